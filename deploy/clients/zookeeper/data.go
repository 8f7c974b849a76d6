package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// The tree: one folder per workload.
const (
	rootPath   = "/netsplit"
	keysPath   = rootPath + "/keys"     // a node per key that was written
	listPath   = rootPath + "/list"     // its data is a list, appended to by compare-and-set
	regPath    = rootPath + "/register" // its data is a value, set by compare-and-set
	configPath = rootPath + "/config"   // a node that changes seldom and that every server is asked for
	lockPath   = rootPath + "/lock"     // the queue of the lock
)

var anyone = zk.WorldACL(zk.PermAll)

type dataOptions struct {
	rate, writers int
	configure     time.Duration
}

func runData(ctx context.Context, c *common, o dataOptions) error {
	if o.rate < 1 || o.writers < 1 || o.configure <= 0 {
		return fmt.Errorf("--rate %d --writers %d --configure %v: all must be above 0", o.rate, o.writers, o.configure)
	}
	var wg sync.WaitGroup
	var failed error
	start := func(process, first int, only bool, work func(*session)) {
		s, err := open(c, process, first, only, nil)
		if err != nil {
			failed = err
			return
		}
		wg.Go(func() {
			defer s.conn.Close()
			work(s)
		})
	}
	rng := rand.New(rand.NewPCG(c.seed, 0xda7a))
	first := rng.IntN(len(c.nodes))
	for i := range o.writers {
		w := &writer{every: time.Second * time.Duration(o.writers) / time.Duration(o.rate)}
		if i == 0 {
			w.configure = o.configure
		}
		start(i, first+i, false, func(s *session) { w.session = s; w.run(ctx) })
	}
	start(o.writers, first+o.writers, false, func(s *session) { readSynced(ctx, s) })
	for i := range c.nodes {
		start(o.writers+1+i, i, true, func(s *session) { readConfig(ctx, s) })
	}
	wg.Wait()
	return failed
}

// prepare makes the folders; whoever is first does.
func prepare(ctx context.Context, s *session) bool {
	for {
		if !s.ready(ctx) {
			return false
		}
		ok := true
		for _, p := range []string{rootPath, keysPath, listPath, regPath, configPath, lockPath} {
			if _, err := s.conn.Create(p, nil, 0, anyone); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writer creates keys, appends to the list and sets the register in turn.
type writer struct {
	*session
	every     time.Duration
	configure time.Duration // writes the configuration node that often; 0: never
}

func (w *writer) run(ctx context.Context) {
	if !prepare(ctx, w.session) {
		return
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	configured := time.Now()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.ready(ctx) {
			return
		}
		switch {
		case w.configure > 0 && time.Since(configured) >= w.configure:
			configured = time.Now()
			op := w.begin("configure", "config", "")
			st, err := w.conn.Set(configPath, []byte(strconv.Itoa(n)), -1)
			if err == nil {
				op.Value = strconv.Itoa(int(st.Version))
			}
			w.end(op, err, true)
		case n%3 == 0:
			w.create(fmt.Sprintf("k%d-%05d", w.process, n))
		case n%3 == 1:
			w.append(fmt.Sprintf("%d-%05d", w.process, n))
		default:
			w.set(fmt.Sprintf("%d-%05d", w.process, n))
		}
	}
}

func (w *writer) create(key string) {
	op := w.begin("create", key, key)
	_, err := w.conn.Create(path.Join(keysPath, key), []byte(key), 0, anyone)
	w.end(op, err, true)
}

// append reads the list and sets it, one element longer, if it still has the
// version that was read.
func (w *writer) append(element string) {
	data, st, err := w.conn.Get(listPath)
	if err != nil {
		return // nothing was asked to change
	}
	op := w.begin("append", element, strconv.Itoa(int(st.Version)+1))
	_, err = w.conn.Set(listPath, []byte(strings.Join(append(strings.Fields(string(data)), element), " ")), st.Version)
	w.end(op, err, true)
}

func (w *writer) set(value string) {
	_, st, err := w.conn.Get(regPath)
	if err != nil {
		return
	}
	op := w.begin("set", "register", value)
	_, err = w.conn.Set(regPath, []byte(value), st.Version)
	w.end(op, err, true)
}

// readSynced reads the register after a sync: nothing older than a value that
// was acknowledged before.
func readSynced(ctx context.Context, s *session) {
	for s.pause(ctx, 150*time.Millisecond) {
		op := s.begin("sync-read", "register", "")
		_, err := s.conn.Sync(regPath)
		var data []byte
		if err == nil {
			data, _, err = s.conn.Get(regPath)
		}
		op.Value = string(data)
		if errors.Is(err, zk.ErrNoNode) { // not made yet
			err = nil
		}
		s.end(op, err, false)
	}
}

// readConfig reads the configuration node from one server: when a watch says
// that it changed, and now and then.
func readConfig(ctx context.Context, s *session) {
	for s.ready(ctx) {
		op := s.begin("read", "config", "")
		_, st, events, err := s.conn.GetW(configPath)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			op.Value, err = "-1", nil
		case err == nil:
			op.Value = strconv.Itoa(int(st.Version))
		}
		s.end(op, err, false)
		if !wait(ctx, events, 200*time.Millisecond) {
			return
		}
	}
}

// wait returns at an event of a watch, or after a while; false: it is over.
func wait(ctx context.Context, events <-chan zk.Event, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-events: // nil where there is no watch
	case <-time.After(d):
	}
	return true
}

// pause waits, then until the session is served; false: it is over.
func (s *session) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return s.ready(ctx)
	}
}
