package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

type writeOptions struct {
	rate, writers, wait int
	refresh             time.Duration
}

func writeAll(ctx context.Context, c *common, o writeOptions) error {
	if o.rate < 1 || o.writers < 1 {
		return fmt.Errorf("--rate %d --writers %d: both must be at least 1", o.rate, o.writers)
	}
	var wg sync.WaitGroup
	for i := range o.writers {
		w := &writer{common: c, id: i, wait: o.wait, rng: rand.New(rand.NewPCG(c.seed, uint64(i)))}
		if i%2 == 1 {
			w.refresh = o.refresh
		}
		wg.Go(func() { w.run(ctx, time.Second*time.Duration(o.writers)/time.Duration(o.rate)) })
	}
	wg.Wait()
	return nil
}

// writer is a client as the Sentinel documentation describes one: it asks a
// Sentinel for the master, checks with ROLE, writes, and asks again after any
// error. Until then it stays with the connection it has; one with a refresh
// asks that often in any case, as clients do that watch the Sentinels.
type writer struct {
	*common
	id, wait int
	refresh  time.Duration
	rng      *rand.Rand

	next    int // Sentinel to ask next
	master  workload.Node
	conn    redis.Conn
	namedAt time.Time // when a Sentinel last named the master
}

func (w *writer) run(ctx context.Context, every time.Duration) {
	defer w.leave()
	w.next = w.rng.IntN(len(w.nodes))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.refresh > 0 && w.conn != nil && time.Since(w.namedAt) >= w.refresh {
			w.leave()
		}
		if w.conn == nil && !w.join() {
			continue
		}
		w.write(fmt.Sprintf("w%d-%05d", w.id, n))
		n++
	}
}

func (w *writer) leave() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

func (w *writer) join() bool {
	s := w.nodes[w.next%len(w.nodes)]
	w.next++
	op := model.Operation{Process: w.id, F: "find-master", Node: s.Name}
	op.Type = model.OpInvoke
	w.out.Add(op)
	m, err := masterBySentinel(s, w.nodes, w.tmo)
	var conn redis.Conn
	if err == nil {
		conn, err = dial(m.IP, redisPort, w.tmo)
	}
	if err == nil {
		var r string
		if r, err = role(conn, w.nodes); err == nil && r != "master" {
			err = fmt.Errorf("%w: %s names %s, which is %s", errNotMaster, s.Name, m.Name, r)
		}
		if err == nil {
			w.conn, w.master, w.namedAt = conn, m, time.Now()
			op.Type, op.Value = model.OpOK, string(m.Name)
			w.out.Add(op)
			return true
		}
		conn.Close()
	}
	_, op.Error = failure(err)
	op.Type = model.OpFail // a question changes nothing
	w.out.Add(op)
	return false
}

// write sets one new key. It does not end with the run's context: an
// operation that was begun gets its answer or its timeout.
func (w *writer) write(key string) {
	op := model.Operation{Process: w.id, Type: model.OpInvoke, F: "write", Key: key, Value: key, Node: w.master.Name}
	w.out.Add(op)
	_, err := w.conn.Do("SET", key, key)
	if err == nil {
		op.Type = model.OpOK
		if w.wait > 0 {
			// WAIT cannot undo the write; too few replicas mean that nobody
			// knows whether it will last.
			n, werr := redis.Int(w.conn.Do("WAIT", w.wait, 100))
			if werr != nil {
				err = werr
				op.Type, op.Error = model.OpInfo, "wait "+werr.Error()
			} else if n < w.wait {
				op.Type, op.Error = model.OpInfo, fmt.Sprintf("wait %d of %d replicas", n, w.wait)
			}
		}
	} else {
		op.Type, op.Error = failure(err)
	}
	w.out.Add(op)
	if err != nil {
		w.leave()
	}
}
