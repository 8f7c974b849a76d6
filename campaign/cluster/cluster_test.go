package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
	"netsplit/record/rundir"
)

// short are times for tests.
var short = times{lease: 1500 * time.Millisecond, beat: 100 * time.Millisecond, retry: 300 * time.Millisecond, half: time.Hour}

const patience = 30 * time.Second

// class is a daemon with its runners.
type class struct {
	*testing.T
	dir   string
	hub   *Hub
	goes  func(string) bool
	room  atomic.Bool
	times times
	// software is the daemon's cache; nil: it is empty.
	software func(set string) (dir, hash string, err error)
	// at is an existing NATS server; the zero one: the daemon's own.
	at existing

	mu      sync.Mutex
	changes []model.Runner
	made    map[string][]string // by run: the runners that made it
}

func newClass(t *testing.T) *class {
	t.Parallel()
	return newClassAt(t, existing{})
}

// newClassAt has its daemon at an existing NATS server.
func newClassAt(t *testing.T, at existing) *class {
	c := &class{T: t, at: at, dir: t.TempDir(), goes: func(string) bool { return true }, made: map[string][]string{}, times: short}
	c.room.Store(true)
	c.open(cmp.Or(at.url, "127.0.0.1:0"))
	t.Cleanup(func() { c.hub.Close() })
	return c
}

// open starts the daemon's side.
func (c *class) open(address string) {
	c.Helper()
	var err error
	software := func(set string) (string, string, error) {
		if c.software == nil {
			return "", "", fmt.Errorf("no set %s", set)
		}
		return c.software(set)
	}
	c.hub, err = Open(c.Context(), Config{Dir: filepath.Join(c.dir, "cluster"), Address: address, Existing: c.at.daemon, Goes: c.goes, HasRoom: c.room.Load, Log: slog.New(slog.DiscardHandler), times: c.times, Doing: func(string, string, string) {},
		Software: software,
		Changed:  func(r model.Runner) { c.mu.Lock(); c.changes = append(c.changes, r); c.mu.Unlock() }})
	if err != nil {
		c.Fatal(err)
	}
}

// reopen ends the daemon and starts the next one at the same address.
func (c *class) reopen(after time.Duration) {
	c.Helper()
	address := cmp.Or(c.at.url, c.hub.Address())
	c.hub.Close()
	time.Sleep(after)
	c.open(address)
}

func (c *class) until(what string, ok func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("never: %s; the broker has %v", what, c.left())
		}
	}
}

func (c *class) makers(run string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.made[run])
}

// hand is a runner of a test: its worker makes records of a few bytes.
type hand struct {
	c     *class
	name  string
	slots int
	// makes is what a run does before it is recorded; nil: nothing. change changes what is
	// recorded.
	makes  func(ctx context.Context, w model.WorkItem) error
	change func(dir string, m *model.RunMeta)
	lacks  error
	times  times
	// opens is told of each campaign with what brings its files; nil: nobody is.
	opens func(ctx context.Context, w Work, files Files)

	r     *Runner
	done  chan struct{}
	ended error
	end   context.CancelFunc
}

func (h *hand) Open(ctx context.Context, w Work, files Files) (Bench, error) {
	if h.opens != nil {
		h.opens(ctx, w, files)
	}
	return h, h.lacks
}
func (h *hand) Slots() int        { return max(h.slots, 1) }
func (h *hand) Close()            {}
func (h *hand) Forget(dir string) { _ = os.RemoveAll(dir) }

func (h *hand) Run(ctx context.Context, w model.WorkItem, say Say) (string, error) {
	say.Doing("workload")
	say.Cuts(func() map[model.Shape]int { return map[model.Shape]int{model.Partial: 1, "odd": 7} })
	if h.makes != nil {
		if err := h.makes(ctx, w); err != nil {
			return "", err
		}
	}
	h.c.mu.Lock()
	h.c.made[w.Run] = append(h.c.made[w.Run], h.name)
	h.c.mu.Unlock()
	dir, err := os.MkdirTemp(h.c.dir, "made-")
	meta := model.RunMeta{Campaign: w.Campaign, Run: w.Run, Scenario: w.Scenario, ReplayOf: w.ReplayOf, Version: "v1", Lab: h.name}
	if h.change != nil {
		h.change(dir, &meta)
	}
	return dir, errors.Join(err, rundir.WriteJSON(filepath.Join(dir, rundir.MetaFile), meta))
}

// starts has a runner join.
func (c *class) starts(h *hand) *hand {
	c.Helper()
	if c.at.url != "" {
		return c.joins(h, RunnerConfig{URL: cmp.Or(c.at.runnerURL, c.at.url), Existing: c.at.runner, About: model.Runner{Name: h.name}})
	}
	i, err := Authority{filepath.Join(c.dir, "cluster")}.Invite(h.name, c.hub.Address())
	if err != nil {
		c.Fatal(err)
	}
	return c.joins(h, RunnerConfig{Invitation: i})
}

func (c *class) joins(h *hand, conf RunnerConfig) *hand {
	c.Helper()
	h.c, h.done = c, make(chan struct{})
	conf.About.Version, conf.About.Has, conf.About.State = "v1", []string{"lab"}, model.RunnerIdle
	conf.Worker, conf.times, conf.Log = h, cmp.Or(h.times, short), slog.New(slog.DiscardHandler)
	var err error
	h.r, err = Join(conf)
	if err != nil {
		c.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	h.end = end
	go func() {
		defer close(h.done)
		h.ended = h.r.Run(ctx)
	}()
	c.Cleanup(func() { end(); <-h.done })
	return h
}

// dies ends a runner as kill -9 does: it says nothing more.
func (h *hand) dies() {
	h.r.nc.Close()
	h.end()
	<-h.done
}

func (c *class) offer(needs ...string) *Offer {
	c.Helper()
	o, err := c.hub.Offer(c.Context(), Work{Campaign: "c-1", Version: "v1", Needs: needs}, nil)
	if err != nil {
		c.Fatal(err)
	}
	return o
}

func item(n int) model.WorkItem {
	return model.WorkItem{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n), Scenario: model.Scenario{ID: fmt.Sprintf("s%04d", n), Strategy: model.StrategyRandom, Seed: uint64(n)}}
}

func (c *class) record(run string) string { return filepath.Join(c.dir, "runs", run) }

// one has a run made, and says what the record of it is.
func (c *class) one(ctx context.Context, o *Offer, w model.WorkItem) (model.RunMeta, error) {
	give, err := o.Slot(ctx)
	if err != nil {
		return model.RunMeta{}, err
	}
	defer give()
	made, err := o.Run(ctx, w, c.record(w.Run), func(string) error { return nil })
	var m model.RunMeta
	if made {
		err = errors.Join(err, rundir.ReadJSON(filepath.Join(c.record(w.Run), rundir.MetaFile), &m))
	}
	return m, err
}

// leaves begins the first run, and leaves it to the runner that took it, as a daemon does that
// ends.
func (c *class) leaves(o *Offer, took <-chan string) {
	ctx, ends := context.WithCancel(c.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.one(ctx, o, item(1))
	}()
	<-took
	ends()
	<-ended
	o.Leave()
}

// begins has the first run made; what it returns waits for that.
func (c *class) begins(o *Offer) func() (model.RunMeta, error) {
	var m model.RunMeta
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m, err = c.one(c.Context(), o, item(1))
	}()
	return func() (model.RunMeta, error) {
		<-ended
		return m, err
	}
}

// left is what the broker stores of campaigns.
func (c *class) left() (out []string) {
	ctx := c.Context()
	for _, s := range []jetstream.Stream{c.hub.items, c.hub.results, c.hub.givenUp} {
		info, err := s.Info(ctx)
		if err != nil {
			c.Fatal(err)
		}
		if info.State.Msgs > 0 {
			out = append(out, fmt.Sprintf("%s: %d messages", info.Config.Name, info.State.Msgs))
		}
	}
	for bucket := range c.hub.js.ObjectStoreNames(ctx).Name() {
		if !strings.HasPrefix(bucket, c.hub.n.records("")) {
			continue
		}
		records, err := openStore(ctx, c.hub.js, bucket)
		if err != nil {
			c.Fatal(err)
		}
		objects, err := records.all(ctx)
		if err != nil {
			c.Fatal(err)
		}
		for _, o := range objects {
			out = append(out, o.Name)
		}
		// Pieces of a record that was half sent stay for a while; names do not.
		info, err := records.stream.Info(ctx, jetstream.WithSubjectFilter("$O."+bucket+".M.>"))
		if err != nil {
			c.Fatal(err)
		}
		if n := len(info.State.Subjects); n > len(objects) {
			out = append(out, fmt.Sprintf("%s: the names of %d records, and %d records", info.Config.Name, n, len(objects)))
		}
	}
	return out
}

func TestRunnersMakeTheRuns(t *testing.T) {
	c := newClass(t)
	c.starts(&hand{name: "m1", slots: 3})
	c.starts(&hand{name: "m2", slots: 2})
	o := c.offer()
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			w := item(n)
			m, err := c.one(t.Context(), o, w)
			if err != nil || m.Run != w.Run || m.Scenario.Seed != w.Scenario.Seed {
				t.Errorf("run %d: %+v, %v", n, m, err)
			}
			if by := c.makers(w.Run); len(by) != 1 || by[0] != m.Lab {
				t.Errorf("run %d was made by %v, and the record is of %s", n, by, m.Lab)
			}
		})
	}
	all.Wait()
	o.End()
	c.until("nothing of the campaign is left", func() bool { return len(c.left()) == 0 })
	c.until("the runners are idle", func() bool {
		for _, r := range c.hub.Runners() {
			if r.State != model.RunnerIdle {
				return false
			}
		}
		return len(c.hub.Runners()) == 2
	})
	if left, _ := filepath.Glob(filepath.Join(c.dir, "made-*")); len(left) > 0 {
		t.Errorf("records stay with the runners: %v", left)
	}
}

// TestNoMoreThanThereIsRoomFor: runs are handed out as runners have room, and a runner that
// joins later has some.
func TestNoMoreThanThereIsRoomFor(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	var mu sync.Mutex
	now, most := 0, 0
	blocks := make(chan struct{})
	busy := func(ctx context.Context, _ model.WorkItem) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-blocks
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return now }
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			if _, err := c.one(t.Context(), o, item(n)); err != nil {
				t.Error(err)
			}
		})
	}
	c.starts(&hand{name: "m1", slots: 2, makes: busy})
	c.until("two runs are under way", func() bool { return count() == 2 })
	time.Sleep(3 * short.beat)
	if handed, err := c.hub.items.Info(t.Context()); err != nil || handed.State.Msgs != 2 {
		t.Errorf("%v items are handed out to a runner with room for 2, %v", handed.State.Msgs, err)
	}
	c.starts(&hand{name: "m2", slots: 1, makes: busy})
	c.until("three runs are under way", func() bool { return count() == 3 })
	close(blocks)
	all.Wait()
	if most != 3 {
		t.Errorf("%d runs at once on runners with room for 3", most)
	}
}
