package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"netsplit/model"
)

type lockOptions struct {
	contenders int
	hold       time.Duration
}

// lockProcesses is where the numbers of the contenders begin.
const lockProcesses = 100

// runLock lets contenders take turns at a lock.
func runLock(ctx context.Context, c *common, o lockOptions) error {
	if o.contenders < 1 || o.hold <= 0 {
		return fmt.Errorf("--contenders %d --hold %v: both must be above 0", o.contenders, o.hold)
	}
	var wg sync.WaitGroup
	for i := range o.contenders {
		k := &contender{common: c, id: i, hold: o.hold, rng: rand.New(rand.NewPCG(c.seed, 0x10c0+uint64(i)))}
		wg.Go(func() { k.run(ctx) })
	}
	wg.Wait()
	return nil
}

// contender wants the lock again and again, as ZooKeeper's recipe says: it
// creates a sequential ephemeral node and has the lock when no other node of
// the queue comes before its own. It gives the lock back by deleting the node,
// by closing its session, or by falling silent, as a client that crashed.
type contender struct {
	*common
	id   int
	hold time.Duration
	rng  *rand.Rand

	s     *session
	lost  atomic.Bool // the connection was lost since the node was created
	holds sync.Mutex  // guards held
	held  string      // the node with which the lock is held
}

func (k *contender) run(ctx context.Context) {
	for ctx.Err() == nil {
		if k.s == nil {
			s, err := open(k.common, lockProcesses+k.id, k.id, false, k.disconnected)
			if err != nil {
				return
			}
			k.s = s
			if !prepare(ctx, s) {
				break
			}
		}
		k.turn(ctx)
	}
	if k.s != nil {
		k.release("end of the workload")
		k.s.conn.Close()
	}
}

// disconnected: a client that does not know whether its session lives must not
// act as if it had the lock (ZooKeeper, Recipes and Solutions).
func (k *contender) disconnected() {
	k.lost.Store(true)
	k.release("disconnected")
}

// release prints that the lock is not held any more.
func (k *contender) release(why string) {
	k.holds.Lock()
	defer k.holds.Unlock()
	if k.held != "" {
		k.out.Add(model.Operation{Process: lockProcesses + k.id, Type: model.OpOK, F: "release", Key: "lock", Value: k.held, Error: why})
		k.held = ""
	}
}

func (k *contender) turn(ctx context.Context) {
	if !k.s.ready(ctx) {
		return
	}
	k.lost.Store(false)
	op := k.s.begin("enqueue", "lock", "")
	made, err := k.s.conn.Create(lockPath+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, anyone)
	op.Value = path.Base(made)
	k.s.end(op, err, true)
	if err != nil {
		k.renew(ctx, op.Value) // it may be in the queue all the same
		return
	}
	mine := op.Value
	for {
		if !k.s.ready(ctx) {
			return
		}
		list, events, err := k.queue()
		switch {
		case err != nil && k.lost.Load() && errors.Is(err, zk.ErrSessionExpired):
			k.renew(ctx, mine)
			return
		case err == nil && !slices.Contains(list, mine) && k.lost.Load(): // expired
			k.renew(ctx, mine)
			return
		}
		if err == nil && len(list) > 0 && slices.Min(list) == mine {
			break
		}
		if !wait(ctx, events, 150*time.Millisecond) {
			return
		}
	}
	k.holds.Lock()
	if k.s.conn.State() != zk.StateHasSession {
		k.holds.Unlock()
		k.renew(ctx, mine)
		return
	}
	k.held = mine
	k.out.Add(model.Operation{Process: lockProcesses + k.id, Type: model.OpOK, F: "acquire", Key: "lock", Value: mine, Node: k.s.server()})
	k.holds.Unlock()
	var events <-chan zk.Event
	for until := time.Now().Add(k.hold); time.Now().Before(until); {
		if !wait(ctx, events, min(150*time.Millisecond, time.Until(until))) {
			break
		}
		if k.s.conn.State() == zk.StateHasSession {
			_, events, _ = k.queue()
		}
	}
	k.giveBack(ctx, mine)
}

func (k *contender) queue() ([]string, <-chan zk.Event, error) {
	at := k.s.server()
	list, _, events, err := k.s.conn.ChildrenW(lockPath)
	if err != nil {
		return nil, nil, err
	}
	if k.s.server() == at { // else nobody knows who answered
		k.out.Add(status("status", k.s.process, at, list))
	}
	return list, events, nil
}

func status(f string, process int, at model.NodeID, list []string) model.Operation {
	slices.Sort(list)
	value := make([]string, 0, len(list))
	for _, n := range list {
		value = append(value, n+"=QUEUED")
	}
	return model.Operation{Process: process, Type: model.OpOK, F: f, Node: at, Value: strings.Join(value, " ")}
}

// giveBack ends the turn in one of three ways. A session that lost its
// connection is waited for, and so is the server that serves it next.
func (k *contender) giveBack(ctx context.Context, mine string) {
	k.release("given back")
	if !k.s.ready(ctx) {
		return
	}
	switch k.rng.IntN(4) {
	default:
		op := k.s.begin("leave", mine, "delete")
		err := k.s.conn.Delete(lockPath+"/"+mine, -1)
		if errors.Is(err, zk.ErrNoNode) {
			err = nil // expired in between
		}
		k.s.end(op, err, true)
		if err != nil {
			k.renew(ctx, mine)
		}
	case 2:
		k.renew(ctx, mine)
	case 3:
		k.s.abandon()
		k.s.conn.Close()
		k.s = nil
	}
}

// renew closes the session; with it goes its node. The library does not say
// whether a server has answered.
func (k *contender) renew(ctx context.Context, mine string) {
	k.release("session ends")
	k.s.ready(ctx)
	op := k.s.begin("leave", mine, "close")
	k.s.conn.Close()
	op.Type, op.Error = model.OpInfo, "closed"
	k.out.Add(op)
	k.s = nil
}
