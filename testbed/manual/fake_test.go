package manual

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/inference/store"
	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/testbed"
)

// limit is how long anything may take on a machine with other things to do.
const limit = 3 * time.Second

// fakeCut does at once what it is told, and notes it.
type fakeCut struct {
	r      *room
	links  string
	put    func() error // nil: it is cut
	kept   func() error // nil: it is kept
	proof  func() error // what its proof finds; nil: it is in force
	heals  func() error // what its proof of a heal finds; nil: all passes
	remove func()       // nil: its rules go at once
	// dropped is what reading the counts finds; nil: nothing.
	dropped func(context.Context) error
}

func (c *fakeCut) did(what string) { c.r.note(what + " " + c.links) }

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (c *fakeCut) Put(context.Context) error {
	c.did("put")
	return call(c.put)
}

func (c *fakeCut) Prove(context.Context) (time.Time, error) {
	c.did("prove")
	return time.Now(), call(c.proof)
}

func (c *fakeCut) Dropped(ctx context.Context) ([]model.RuleDrops, error) {
	c.did("count drops")
	if c.dropped != nil {
		return nil, c.dropped(ctx)
	}
	return nil, nil
}

func (c *fakeCut) Crossed(context.Context, time.Time, time.Time) (map[model.Link]uint64, error) {
	c.did("count leaks")
	return nil, nil
}

func (c *fakeCut) Lift(context.Context) error {
	c.did("lift")
	return nil
}

func (c *fakeCut) Remove(context.Context) error {
	c.did("remove")
	if c.remove != nil {
		c.remove()
	}
	return nil
}

func (c *fakeCut) Healed(context.Context, func(model.Link, model.ProbePacket) bool) error {
	c.did("pass again")
	return call(c.heals)
}

func (c *fakeCut) LeaseExpiry() (time.Time, error) { return time.Time{}, call(c.kept) }
func (c *fakeCut) Mechanism() (bool, error)        { return true, nil }
func (c *fakeCut) Probes() map[model.Link]uint64   { return nil }
func (c *fakeCut) Resets() uint64                  { return 0 }

// room is a testbed of fake cuts, with what was done, told and measured in its order.
type room struct {
	*Partitions
	t     *testing.T
	store *store.Store
	close context.CancelFunc
	make  func(*fakeCut) // changes the cuts that are made from now on

	mu    sync.Mutex
	all   []string
	texts []string // of what was told
}

func newRoom(t *testing.T) *room {
	r := &room{t: t, store: storetest.New(t), make: func(*fakeCut) {}}
	var closing context.Context
	closing, r.close = context.WithCancel(t.Context())
	r.Partitions = New(Config{Store: r.store, Metrics: r, Log: slog.New(slog.DiscardHandler), Closing: closing,
		Tell: func(_, id, state, text string) {
			r.note("told " + id + " " + state)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.texts = append(r.texts, text)
		}})
	var hosts []model.TestbedHost
	for i := range 4 { // n1 and n2 on one switch, n3 and n4 on another
		hosts = append(hosts, model.TestbedHost{Name: model.NodeID(fmt.Sprintf("n%d", i+1)), Datapath: model.DatapathID(1 + i/2)})
	}
	if err := r.Open(&testbed.Testbed{Testbed: model.Testbed{Hosts: hosts}}, nil); err != nil {
		t.Fatal(err)
	}
	r.newCut = func(p model.Partition) cut {
		c := &fakeCut{r: r, links: p.Links()[0].String()}
		r.make(c)
		return c
	}
	t.Cleanup(func() {
		r.close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *room) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, what)
}

func (r *room) CutStarted(model.Shape, []model.Link)         { r.note("measured a cut") }
func (r *room) CutEnded(reason string, _ []model.Link)       { r.note("measured its end " + reason) }
func (r *room) HealTime(time.Duration)                       { r.note("measured a heal") }
func (r *room) PacketFate(_ model.Link, _ model.Fate, _ int) {}

// so is all that happened since it was last asked.
func (r *room) so() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.all = nil }()
	return strings.Join(r.all, "; ")
}

func spec(name string, a, b model.NodeID) model.PartitionSpec {
	return model.PartitionSpec{Name: name, Partition: model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{a}, {b}}}}
}

// cut cuts two hosts from one another and waits until that is in force, and said so.
func (r *room) cut(name string, a, b model.NodeID) {
	r.t.Helper()
	if _, err := r.Create(r.t.Context(), spec(name, a, b)); err != nil {
		r.t.Fatal(err)
	}
	r.is(name, model.PartitionInForce)
	r.said(name, model.PartitionInForce)
}

// said waits until a state was reported, which comes after it was stored.
func (r *room) said(name string, state model.PartitionState) {
	r.t.Helper()
	what := "told " + name + " " + string(state)
	said := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Contains(r.all, what)
	}
	for end := time.Now().Add(limit); !said(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("not said in time: %s", what)
		}
	}
}

// is waits until a partition is in a state.
func (r *room) is(name string, want model.PartitionState) model.PartitionStatus {
	r.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		st, err := r.store.GetPartition(name)
		if err == nil && st.State == want {
			return st
		}
		if time.Now().After(end) {
			r.t.Fatalf("partition %s is %+v, %v; want %s", name, st, err, want)
		}
	}
}

// status is that of a partition now.
func (r *room) status(name string) model.PartitionStatus {
	r.t.Helper()
	st, err := r.store.GetPartition(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}
