package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// names is metadata with four registered data nodes, and the clock of its test.
type names struct {
	*metadata
	t     *testing.T
	now   time.Time
	saved image
	fails error // of the disk
}

func newNames(t *testing.T, bug string) *names {
	n := &names{t: t, now: time.Unix(1000, 0)}
	l := limits{dead: 10 * time.Second, lease: 5 * time.Second, delay: 4 * time.Second, copying: 2 * time.Second, quiet: time.Second}
	n.metadata = newMetadata(l, bug, image{}, func(im image) error {
		if n.fails == nil {
			n.saved = im
		}
		return n.fails
	}, n.now)
	for _, d := range dataNodes {
		n.register(d, nil, n.now)
	}
	n.now = n.now.Add(2 * time.Second)
	return n
}

func (n *names) take(block string, exclude ...string) *file {
	n.t.Helper()
	f, err := n.allocate(block, exclude, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	return f
}

// written makes a complete block of what these data nodes have.
func (n *names) written(block string, nodes ...string) held {
	n.t.Helper()
	h := held{n.take(block).Replica, 9}
	for _, d := range nodes {
		n.received(d, h)
	}
	if err := n.complete(h, n.now); err != nil {
		n.t.Fatal(err)
	}
	return h
}

func TestAWriterThatAsksAgainGetsTheSameChain(t *testing.T) {
	n := newNames(t, "none")
	first := *n.take("b1")
	if again := n.take("b1"); again.Replica != first.Replica || len(n.leases) != 1 {
		t.Errorf("%v, then %v, with %d leases", first.Replica, again.Replica, len(n.leases))
	}
	other := n.take("b1", "n2")
	if other.Replica.stamp <= first.Replica.stamp || !reflect.DeepEqual(other.nodes, []string{"n3", "n4", "n5"}) || len(n.leases) != 1 {
		t.Errorf("without n2: %v on %v, %d leases", other.Replica, other.nodes, len(n.leases))
	}
	if _, err := n.allocate("b2", []string{"n2", "n3", "n4"}, n.now); err == nil || !strings.HasPrefix(err.Error(), "few ") {
		t.Errorf("with one data node: %v", err)
	}
}

func TestABlockIsCompleteWithEnoughReplicasAndOnDisk(t *testing.T) {
	n := newNames(t, "none")
	h := held{n.take("b1").Replica, 9}
	n.received("n2", h)
	n.received("n2", h)
	if err := n.complete(h, n.now); err == nil || !strings.HasPrefix(err.Error(), "few ") {
		t.Errorf("with one replica that was reported twice: %v", err)
	}
	n.received("n3", held{h.Replica, 8})
	if err := n.complete(h, n.now); err == nil {
		t.Error("with a replica that is too short")
	}
	n.received("n4", h)
	n.fails = errors.New("EIO")
	if err := n.complete(h, n.now); !errors.Is(err, n.fails) || len(n.list()) > 0 {
		t.Errorf("not saved: %v, %v", err, n.list())
	}
	n.fails = nil
	for range 2 { // it may be asked again
		if err := n.complete(h, n.now); err != nil {
			t.Error(err)
		}
	}
	if want := (image{h.Replica.stamp, []held{h}}); !reflect.DeepEqual(n.saved, want) || len(n.leases) > 0 {
		t.Errorf("saved %+v, want %+v; %d leases", n.saved, want, len(n.leases))
	}
	if _, err := n.allocate("b1", nil, n.now); err == nil || !strings.HasPrefix(err.Error(), "exists") {
		t.Errorf("a block that is complete: %v", err)
	}
	old := h
	old.Replica.stamp--
	if err := n.complete(old, n.now); err == nil || !strings.HasPrefix(err.Error(), "unknown") {
		t.Errorf("an old stamp: %v", err)
	}
}

func TestAStampIsNeverGivenOutAgain(t *testing.T) {
	n := newNames(t, "none")
	r := n.take("b1").Replica
	r, err := n.bump(r, n.now)
	if err != nil || n.saved.Stamp != r.stamp {
		t.Fatalf("%v, %v, saved %d", r, err, n.saved.Stamp)
	}
	m := newMetadata(n.limits, "none", n.saved, n.save, n.now)
	m.register("n2", nil, n.now)
	m.register("n3", nil, n.now)
	if f, err := m.allocate("b1", nil, n.now); err != nil || f.Replica.stamp <= r.stamp {
		t.Errorf("after a crash: %v, %v", f, err)
	}
	if _, err := m.bump(replica{"b9", 1}, n.now); err == nil {
		t.Error("a block that nobody writes got a stamp")
	}
}

func TestWhoFallsSilentIsForgotten(t *testing.T) {
	n := newNames(t, "none")
	h := n.written("b1", "n2", "n3", "n4")
	n.take("b2")
	n.now = n.now.Add(6 * time.Second)
	for _, d := range dataNodes[1:] {
		n.heartbeat(d, n.now)
	}
	n.now = n.now.Add(5 * time.Second)
	if err := n.tick(n.now); err != nil {
		t.Fatal(err)
	}
	if want := (status{Live: 3, Under: 1, Files: 1}); *n.status() != want || n.files["b2"] != nil {
		t.Errorf("%+v, want %+v", *n.status(), want)
	}
	if m := n.heartbeat("n2", n.now); m.Type != "register-order" {
		t.Errorf("n2 is back: %+v", m)
	}
	n.received("n2", h)
	if n.status().Under != 1 {
		t.Error("a data node that is not registered counts")
	}
}

// orders is what each data node is told, once.
func (n *names) orders() (out []string) {
	for _, d := range dataNodes {
		if m := n.heartbeat(d, n.now); m.Type != "heartbeat-ok" {
			out = append(out, strings.TrimSpace(fmt.Sprint(d, " ", m.Type, " ", m.Replica, " ", m.Target)))
		}
	}
	return out
}

func TestReplicasAreMadeAndGo(t *testing.T) {
	n := newNames(t, "none")
	h := n.written("b1", "n2", "n3")
	want := func(what string, orders ...string) {
		t.Helper()
		if got := n.orders(); !reflect.DeepEqual(got, orders) {
			t.Errorf("%s: %q, want %q", what, got, orders)
		}
	}
	want("the dead are not known yet")
	n.now = n.now.Add(4 * time.Second)
	want("too few", "n2 copy-order b1@1 n4")
	want("under way")
	n.now = n.now.Add(3 * time.Second)
	if err := n.tick(n.now); err != nil {
		t.Fatal(err)
	}
	want("it did not come: the other one's turn", "n3 copy-order b1@1 n5")
	n.bad("n3", h)
	want("its source is bad", "n2 copy-order b1@1 n5")
	n.received("n3", h)
	n.received("n4", h)
	n.received("n5", h)
	want("too many: the last goes", "n5 drop-order b1@1")
	n.received("n5", held{replica{"b1", 7}, 9})
	n.received("n5", held{h.Replica, 8})
	n.received("n5", held{replica{"b0", 1}, 9})
	if n.status().Extra != 3 {
		t.Errorf("%+v", n.status())
	}
	for _, r := range []string{"b0@1", "b1@1", "b1@7"} {
		want("unknown, short and of another stamp", "n5 drop-order "+r)
	}
	want("at rest")
	if want := (status{Live: 4, Files: 1}); *n.status() != want {
		t.Errorf("%+v, want %+v", *n.status(), want)
	}
}

func TestDataNodesReportBeforeCopiesAreOrdered(t *testing.T) {
	n := newNames(t, "none")
	h := n.written("b1", "n2", "n3", "n4")
	n.metadata = newMetadata(n.limits, "none", n.saved, n.save, n.now)
	n.register("n2", []held{h}, n.now)
	n.register("n5", nil, n.now)
	if m := n.heartbeat("n2", n.now); m.Type != "heartbeat-ok" {
		t.Errorf("%+v", m)
	}
}
