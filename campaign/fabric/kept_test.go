package fabric_test

import (
	"strings"
	"testing"
	"time"

	"netsplit/campaign/fabric"
	"netsplit/controller/of13"
	"netsplit/model"
)

// across cuts hosts of two switches from each other, one way.
var across = model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s2h1"}, {"s1h1"}}}

// TestKeptUntil: what is cut is kept for as long as its rules live after they were
// last renewed, and not by a switch that is away.
func TestKeptUntil(t *testing.T) {
	const life = 20 * time.Second
	r := newRig(t, fabric.Config{HardTimeout: life, RenewEvery: 20 * time.Millisecond}, 1, 2)
	before := time.Now()
	for id, p := range map[uint32]model.Partition{5: isolate1, 6: across} {
		if err := r.f.Cut(soon(t), id, p); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.f.Kept(isolate1)
	if err != nil || first.Before(before.Add(life)) || first.After(time.Now().Add(life)) {
		t.Errorf("cut %v ago, kept until %v from now: %v", time.Since(before), time.Until(first), err)
	}
	r.until("it is renewed", func() bool { u, err := r.f.Kept(isolate1); return err == nil && u.After(first) })

	r.pipes[2].Close()
	r.until("switch 2 is away", func() bool { return r.c.Switch(2) == nil })
	if _, err := r.f.Kept(across); err != nil && !strings.Contains(err.Error(), "is not connected") {
		t.Errorf("s2h1 is cut off from s1h1 at switch 1: %v", err)
	}
	back := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s2h1"}}}
	if _, err := r.f.Kept(back); err == nil || !strings.Contains(err.Error(), "switch 0000000000000002 is not connected") {
		t.Errorf("what a switch cuts that is away is kept: %v", err)
	}
	if _, err := r.f.Kept(isolate1); err != nil {
		t.Errorf("what the other one cuts: %v", err)
	}
	r.connect(2)
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	if u, err := r.f.Kept(across); err != nil || u.IsZero() {
		t.Errorf("with both back: until %v, %v", u, err)
	}
}

// TestASilentSwitchKeepsNothingForSure: a switch that is connected and does not
// answer may have let its rules expire.
func TestASilentSwitchKeepsNothingForSure(t *testing.T) {
	lapsed := make(chan model.DatapathID, 10)
	r := newRig(t, fabric.Config{HardTimeout: time.Second, RenewEvery: 20 * time.Millisecond, CheckEvery: time.Hour,
		Events: fabric.Events{Lapsed: func(id model.DatapathID) { lapsed <- id }}}, 1)
	if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
		t.Fatal(err)
	}
	r.slow(func(of13.Message) time.Duration { return time.Hour })
	select {
	case <-lapsed:
	case <-time.After(20 * time.Second):
		t.Fatal("not told within 20 s that the rules may have expired")
	}
	if _, err := r.f.Kept(isolate1); err == nil || !strings.Contains(err.Error(), "has not confirmed for 1s") {
		t.Errorf("kept by a switch that does not answer: %v", err)
	}
	r.slow(nil)
	r.until("it is kept again", func() bool { _, err := r.f.Kept(isolate1); return err == nil })
	if len(lapsed) > 0 {
		t.Error("told twice")
	}
}
