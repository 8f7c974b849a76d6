package fabric_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// across cuts what s1h1 sends to s2h1: a simplex partition lets pass what goes from
// its first group to its second.
var across = model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s2h1"}, {"s1h1"}}}

// TestKeptUntil: what is cut is kept for as long as its rules live after they were
// last renewed, and not by a switch that is away.
func TestKeptUntil(t *testing.T) {
	const life = 20 * time.Second
	r := newRig(t, fabric.Config{HardTimeout: life}.Every(20*time.Millisecond, 0), 1, 2)
	before := time.Now()
	for id, p := range map[uint32]model.Partition{5: isolate1, 6: across} {
		if err := r.f.Cut(soon(t), id, p); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.f.LeaseExpiry(isolate1)
	if err != nil || first.Before(before.Add(life)) || first.After(time.Now().Add(life)) {
		t.Errorf("cut %v ago, kept until %v from now: %v", time.Since(before), time.Until(first), err)
	}
	r.until("it is renewed", func() bool { u, err := r.f.LeaseExpiry(isolate1); return err == nil && u.After(first) })

	r.pipes[2].Close()
	r.until("switch 2 is away", func() bool { return r.c.Switch(2) == nil })
	if _, err := r.f.LeaseExpiry(across); err != nil {
		t.Errorf("what s1h1 sends to s2h1 is cut at switch 1: %v", err)
	}
	back := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"s1h1"}, {"s2h1"}}}
	if _, err := r.f.LeaseExpiry(back); err == nil || !strings.Contains(err.Error(), "switch 0000000000000002 is not connected") {
		t.Errorf("what a switch cuts that is away is kept: %v", err)
	}
	if _, err := r.f.LeaseExpiry(isolate1); err != nil {
		t.Errorf("what the other one cuts: %v", err)
	}
	r.connect(2)
	if err := r.f.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	if u, err := r.f.LeaseExpiry(across); err != nil || u.IsZero() {
		t.Errorf("with both back: until %v, %v", u, err)
	}
}

// TestASilentSwitchKeepsNothingForSure: a switch that is connected and does not
// answer may have let its rules expire.
func TestASilentSwitchKeepsNothingForSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lapsed := make(chan model.DatapathID, 10)
		r := newRig(t, fabric.Config{HardTimeout: time.Second,
			Events: fabric.Events{Lapsed: func(id model.DatapathID) { lapsed <- id }}}.Every(20*time.Millisecond, time.Hour), 1)
		if err := r.f.Cut(soon(t), 5, isolate1); err != nil {
			t.Fatal(err)
		}
		r.slow(func(of13.Message) time.Duration { return time.Hour })
		select {
		case <-lapsed:
		case <-time.After(20 * time.Second):
			t.Fatal("not told within 20 s that the rules may have expired")
		}
		if _, err := r.f.LeaseExpiry(isolate1); err == nil || !strings.Contains(err.Error(), "has not confirmed for 1s") {
			t.Errorf("kept by a switch that does not answer: %v", err)
		}
		r.slow(nil)
		r.until("it is kept again", func() bool { _, err := r.f.LeaseExpiry(isolate1); return err == nil })
		if len(lapsed) > 0 {
			t.Error("told twice")
		}
	})
}

// TestNothingIsKeptBeforePortsAreTold: a switch that is back and has not told which
// numbers its named ports have now keeps nothing for sure, and gets no rules by the old
// ones, whoever asks.
func TestNothingIsKeptBeforePortsAreTold(t *testing.T) {
	r := newRig(t, fabric.Config{Testbed: named(), Timeout: time.Minute, Gate: model.GateByPacketIn}, 1)
	if err := r.f.Cut(soon(t), 1, isolate1); err != nil {
		t.Fatal(err)
	}
	r.slow(func(m of13.Message) time.Duration {
		if q, ok := m.(*of13.MultipartRequest); ok && q.Type == of13.MultipartPortDesc {
			return time.Hour
		}
		return 0
	})
	r.pipes[1].Close()
	r.until("it is away", func() bool { return r.c.Switch(1) == nil })
	r.connect(1)
	r.until("it is back", func() bool { return r.c.Switch(1) != nil })
	unreported := func(err error) bool { return err != nil && strings.Contains(err.Error(), "has not told its ports") }
	r.until("nothing is known of its ports", func() bool { _, err := r.f.LeaseExpiry(isolate1); return unreported(err) })
	if err := r.f.Verify(soon(t), isolate1); !unreported(err) {
		t.Errorf("verified: %v", err)
	}
	r.slow(nil)
	r.pipes[1].Close() // what asks has not to wait
}

// TestARuleOfOthersThatComesLater: what is cut by rules that stand is not called kept
// beside one that goes round them, and the switch is named as long as it is there. One
// behind the drop rules hinders nothing.
func TestARuleOfOthersThatComesLater(t *testing.T) {
	r := newRig(t, fabric.Config{}.Every(0, time.Hour), 1)
	if err := r.f.Cut(soon(t), 1, isolate1); err != nil {
		t.Fatal(err)
	}
	theirs := func(c of13.FlowCommand, table uint8, priority uint16) {
		m := of13.NewFlowMod(c)
		m.TableID, m.Priority, m.Cookie = of13.TableID(table), priority, 0xbad
		m.Instructions = []of13.Instruction{of13.Apply(of13.Output{Port: 2})}
		r.sw[1].Do(m)
	}
	theirs(of13.FlowAdd, flowrules.TableForward, 250)
	if err := r.f.Verify(soon(t), isolate1); err != nil || len(r.f.Refused()) > 0 {
		t.Errorf("behind the drop rules: %v, refused %v", err, r.f.Refused())
	}
	theirs(of13.FlowAdd, flowrules.TableAdmit, 500)
	err := r.f.Verify(soon(t), isolate1)
	if refused := r.f.Refused(); !errors.Is(err, fabric.ErrInTheWay) || strings.Contains(err.Error(), "left as it is") || len(refused) != 1 || refused[0].Error() != err.Error() {
		t.Errorf("before ours: %v, refused %v", err, refused)
	}
	theirs(of13.FlowDeleteStrict, flowrules.TableAdmit, 500)
	if err := r.f.Verify(soon(t), isolate1); err != nil || len(r.f.Refused()) > 0 {
		t.Errorf("when it is gone: %v, refused %v", err, r.f.Refused())
	}
}
