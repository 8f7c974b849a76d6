package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// TestAScriptsCutIsAStep of the scenario, with what it cuts and when: what a message fault
// keeps does not cross it, unless it is of other traffic.
func TestAScriptsCutIsAStep(t *testing.T) {
	e := engine.New(model.Scenario{Strategy: model.StrategyScripted})
	num := uint64(0)
	var got []string
	step := func(at time.Duration, ev model.Event) {
		num++
		ev.Num, ev.At = num, at*time.Millisecond
		for _, d := range e.Step(ev) {
			did := string(d.Action)
			switch {
			case d.Cut:
				did = fmt.Sprintf("cut of step %d", d.Step)
			case d.Heal:
				did = fmt.Sprintf("heal of step %d", d.Step)
			}
			got = append(got, fmt.Sprintf("%d: %s %d (%s)", at, did, d.Frame, d.Reason))
		}
	}
	frame := uint64(0)
	packet := func(at time.Duration, to model.NodeID, sparedBy ...int) {
		frame++
		step(at, model.Event{Kind: model.EventMessage, Message: &model.Message{Num: frame, From: "n1", To: to, Type: "A"}})
		step(at, model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: frame, From: "n1", To: to, Messages: []uint64{frame}, SparedBy: sparedBy}})
	}
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}
	step(1, model.Event{Kind: model.EventWorkload})
	step(2, model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Name: "late", Begin: &model.MessageFault{Kind: model.FaultDelay, For: 50 * time.Millisecond, Times: 2, Match: model.MessageMatch{Type: "A"}}}})
	packet(3, "n2")
	packet(4, "n2")
	step(5, model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a", Partition: &p, Step: 2, Spared: []uint64{2}}})
	packet(6, "n2")
	packet(7, "n2", 2)
	packet(8, "n3")
	step(60, model.Event{Kind: model.EventTick})
	step(70, model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a", Step: 2}})
	step(71, model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a", Step: 2}}) // it has ended
	packet(80, "n2")
	want := []string{"3: hold 1 (fault-delay)", "4: hold 2 (fault-delay)", "5: cut of step 2 0 (script)", "6: drop 3 (across-cut)", "7: pass 4 (not-across)", "8: pass 5 (not-across)",
		"60: drop 1 (across-cut)", "60: pass 2 (due)", "70: heal of step 2 0 (script)", "80: pass 6 (open)"}
	if !slices.Equal(got, want) {
		t.Errorf("decided\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s, r := e.Scenario(), e.Result()
	if len(s.Steps) != 2 || s.Steps[1].Do.Cut == nil || s.Steps[1].Do.Cut.String() != p.String() {
		t.Errorf("the scenario is %+v", s.Steps)
	}
	if c := r.Steps[1]; !r.Reached || c.By != model.ReasonScript || c.Began != 5*time.Millisecond || c.EndedBy != model.ReasonScript || c.Ended != 70*time.Millisecond {
		t.Errorf("its result is %+v, reached: %v", c, r.Reached)
	}
}

// TestWhatWaitsBehindAKeptPacket is of other traffic than a cut, as that packet is: it passes.
func TestWhatWaitsBehindAKeptPacket(t *testing.T) {
	r := &faultRun{t: t, e: engine.New(model.Scenario{Strategy: model.StrategyScripted}), now: time.Millisecond}
	r.step(model.Event{Kind: model.EventWorkload})
	r.step(model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Name: "late", Begin: &model.MessageFault{Kind: model.FaultDelay, For: 50 * time.Millisecond, Match: model.MessageMatch{Type: "A"}}}})
	r.packet("n1", "n2", "tcp n1>n2", "A")
	r.packet("n1", "n2", "tcp n1>n2", "B")
	r.packet("n1", "n2", "tcp n1>n2", "B")
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}
	r.step(model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a", Partition: &p, Step: 2, Spared: []uint64{1, 2}}})
	r.until(time.Second)
	var got []string
	for _, f := range r.fates {
		got = append(got, fmt.Sprintf("passed %d, dropped %d", len(f.passed), f.dropped))
	}
	if want := "passed 1, dropped 0; passed 1, dropped 0; passed 0, dropped 1"; strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
}

// TestNothingCrossesAScriptsCut, whatever message faults keep and when they let it go on.
func TestNothingCrossesAScriptsCut(t *testing.T) {
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}
	across, spared := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		r := &faultRun{t: t, e: engine.New(model.Scenario{Strategy: model.StrategyScripted}), now: time.Millisecond}
		type span struct {
			from, to time.Duration
			spared   []uint64
		}
		var cuts []span
		on, place := 0, 0 // of the cut that is on
		r.random(rng, func() {
			switch n := rng.IntN(20); {
			case n < 3:
				f := randomFault(rng, model.FaultKinds())
				r.step(model.Event{Kind: model.EventFault, Fault: &model.FaultChange{Begin: &f}})
				place++
			case n == 3 && on == 0:
				place++
				on = place
				a := &model.RuleCut{Name: "a", Partition: &p, Step: on}
				for _, x := range r.fates {
					if len(x.passed)+x.dropped == 0 && rng.IntN(2) == 0 {
						a.Spared = append(a.Spared, x.p.Frame)
					}
				}
				cuts = append(cuts, span{r.now, time.Hour, a.Spared})
				r.step(model.Event{Kind: model.EventRuleCut, RuleCut: a})
			case n == 4 && on > 0:
				cuts[len(cuts)-1].to = r.now
				r.step(model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: "a", Step: on}})
				on = 0
			}
		})
		end := r.now
		for _, f := range r.fates {
			if len(f.passed)+f.dropped != 1 {
				t.Errorf("seed %d: packet %d passed %v and was dropped %d times", seed, f.p.Frame, f.passed, f.dropped)
			}
			if f.p.From != "n1" && f.p.From != "n2" || f.p.To != "n1" && f.p.To != "n2" {
				continue
			}
			for _, c := range cuts {
				for _, at := range slices.Concat(f.passed, f.copies) {
					switch in := at > c.from && at < min(c.to, end); {
					case in && slices.Contains(c.spared, f.p.Frame):
						spared++
					case in:
						t.Errorf("seed %d: packet %d passed at %v across a cut from %v to %v", seed, f.p.Frame, at, c.from, c.to)
					}
				}
				across += map[bool]int{true: 1}[f.at > c.from && f.at < c.to && f.dropped == 1]
			}
		}
	}
	if across < 500 || spared < 50 {
		t.Errorf("%d packets were across a cut, %d of other traffic: the test shows little", across, spared)
	}
}
