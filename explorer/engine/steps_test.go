package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"netsplit/explorer"
	"netsplit/explorer/engine"
	"netsplit/internal/story"
	"netsplit/model"
)

func cutOff(n model.NodeID) model.Fault {
	p := model.Isolate(n, []model.NodeID{"n1", "n2", "n3"}, model.Drop)
	return model.Fault{Cut: &p}
}

func oneWay(from, to model.NodeID) model.Fault { // nothing comes from from to to
	return model.Fault{Cut: &model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{to}, {from}}}}
}

func silent(n model.NodeID) model.Fault {
	f := cutOff(n)
	f.Isolate, f.Node = n, &model.NodeFault{Verb: model.NodeKill, Host: n}
	return f
}

func message(typ string, nth int) *model.MessageTrigger {
	return &model.MessageTrigger{Match: model.MessageMatch{Type: typ}, Nth: nth}
}

// TestStepsOneAfterAnotherAndAtOnce: what begins and ends a step, and that a packet is
// refused while any cut is across it.
func TestStepsOneAfterAnotherAndAtOnce(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		steps []model.Step
		want  string
	}{
		"one after another, the second armed by the end of the first": {[]model.Step{
			{When: model.Trigger{At: s}, Do: cutOff("n1"), Until: model.Trigger{After: s}},
			{When: model.Trigger{Follows: model.FollowsEnd, After: s}, Do: oneWay("n2", "n3")},
		}, `
			0s workload
			1s tick                                       CUT 1 (time)
			1.5s n1>n2 A                                  drop (across-cut)
			1.6s n2>n3 A                                  pass (not-across)
			2s tick                                       HEAL 1 (time)
			2.5s n2>n3 A                                  pass (open)
			3s n2>n3 A                                    CUT 2 (time); drop (across-cut)
			3.1s n3>n2 A                                  pass (not-across)
			4s stop                                       HEAL 2 (workload-ended)`},
		"a shape changes without a gap": {[]model.Step{
			{Do: cutOff("n1"), Max: s},
			{When: model.Trigger{Follows: model.FollowsEnd}, Do: oneWay("n1", "n2")},
		}, `
			0s workload                                   CUT 1 (time)
			1s n1>n2 A                                    HEAL 1 (max-cut); CUT 2 (step-before); drop (across-cut)
			1s n2>n1 A                                    pass (not-across)
			2s stop                                       HEAL 2 (workload-ended)`},
		"two at once: the heal of one lets nothing across the other": {[]model.Step{
			{Do: cutOff("n1"), Until: model.Trigger{Message: message("B", 1)}},
			{Do: oneWay("n1", "n2"), Until: model.Trigger{After: 2 * s}},
		}, `
			0s workload                                   CUT 1 (time); CUT 2 (time)
			0.1s n1>n3 A                                  drop (across-cut)
			1s n1>n2 B                                    HEAL 1 (message); drop (across-cut)
			1.1s n1>n3 A                                  pass (not-across)
			1.2s n1>n2 A                                  drop (across-cut)
			2s n1>n2 A                                    HEAL 2 (time); pass (open)
			3s stop`},
		"a message that ends the cut is the first to pass": {[]model.Step{
			{Do: cutOff("n1"), Until: model.Trigger{Message: message("B*", 2)}},
		}, `
			0s workload                                   CUT 1 (time)
			1s n1>n2 B1                                   drop (across-cut)
			2s n1>n2 B2                                   HEAL 1 pass (message)
			3s stop`},
		"a message beside the cut ends it, too": {[]model.Step{
			{Do: cutOff("n1"), Until: model.Trigger{Message: message("B", 1)}},
		}, `
			0s workload                                   CUT 1 (time)
			1s n2>n3 B                                    HEAL 1 (message); pass (open)
			3s stop`},
		"a message begins a cut before it passes, and is not what ends it": {[]model.Step{
			{When: model.Trigger{Message: message("B", 2)}, Do: cutOff("n1"), Until: model.Trigger{Message: message("B", 1)}},
		}, `
			0s n1>n2 B                                    pass (open)
			1s workload
			1.1s n1>n2 B                                  pass (open)
			1.2s n1>n2 B                                  CUT 1 (message); drop (across-cut)
			1.3s n1>n2 B                                  HEAL 1 pass (message)
			3s stop`},
		"a message begins a cut behind it; one that is dropped was not received": {[]model.Step{
			{Do: oneWay("n1", "n3")},
			{When: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "B"}, Side: model.SideReceive}}, Do: cutOff("n1")},
		}, `
			1s workload                                   CUT 1 (time)
			1.1s n1>n3 B                                  drop (across-cut)
			1.2s n1>n2 B                                  pass (not-across); CUT 2 (message)
			1.3s n1>n2 B                                  drop (across-cut)
			3s stop                                       HEAL 1 (workload-ended); HEAL 2 (workload-ended)`},
		"a message fault between two cuts": {[]model.Step{
			{When: model.Trigger{Follows: ""}, Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "B"}}}},
			{When: model.Trigger{Follows: model.FollowsBegin}, Do: cutOff("n1"), Until: model.Trigger{After: s}},
			{When: model.Trigger{Follows: model.FollowsEnd}, Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "C"}, Every: 1}}, Until: model.Trigger{After: s}},
		}, `
			0s workload
			0.1s n1>n2 C                                  p1 pass (open)
			0.2s n2>n3 B                                  p2 drop (fault-lose); CUT 2 (step-before)
			0.2s n1>n2 A                                  p3 drop (across-cut)
			1.2s n2>n3 C                                  HEAL 2 (time); p4 drop (fault-lose)
			1.3s n2>n3 C                                  p5 drop (fault-lose)
			2.3s n2>n3 C                                  p6 pass (open)
			3s stop`},
		"a machine falls silent as its servers die, and comes back at a message": {[]model.Step{
			{When: model.Trigger{Message: message("B", 1)}, Do: silent("n1"), Until: model.Trigger{Message: message("C", 1)}},
			{When: model.Trigger{Follows: model.FollowsEnd}, Do: silent("n2")},
		}, `
			0s workload
			1s n1>n2 B                                    CUT 1 kill (message); drop (across-cut)
			1.1s n1>n3 tcp-fin                            drop (across-cut)
			2s n2>n1 C                                    HEAL 1 start pass (message); CUT 2 kill (step-before)
			3s stop                                       HEAL 2 start (workload-ended)`},
		"what never comes": {[]model.Step{
			{When: model.Trigger{Message: message("B", 3)}, Do: cutOff("n1")},
			{When: model.Trigger{Follows: model.FollowsBegin}, Do: cutOff("n2")},
		}, `
			0s workload
			1s n1>n2 B                                    pass (open)
			3s stop`},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.steps {
				if err := c.steps[i].Validate([]model.NodeID{"n1", "n2", "n3"}, i+1); err != nil {
					t.Fatal(err)
				}
			}
			x := newScript()
			x.scn = model.Scenario{Strategy: model.StrategySteps, Steps: c.steps}
			x.numbered = true
			x.restart()
			var in, want []string
			for _, l := range story.Lines(c.want) {
				ev, _, _ := strings.Cut(l, "   ")
				in, want = append(in, ev), append(want, strings.Join(strings.Fields(l), " "))
			}
			var got []string
			for _, l := range story.Lines(x.steps(t, &datadriven.TestData{Input: strings.Join(in, "\n")})) {
				got = append(got, strings.Join(strings.Fields(l), " "))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for i, r := range x.engine.Result().Steps {
				if r.Step != i+1 || (r.By == "") != (name == "what never comes") {
					t.Errorf("step %d went %+v", i+1, r)
				}
			}
		})
	}
}

// TestAPacketIsSparedByWhatItIsNotOf: each cut is of some traffic.
func TestAPacketIsSparedByWhatItIsNotOf(t *testing.T) {
	e := engine.New(model.Scenario{Steps: []model.Step{{Do: cutOff("n1")}, {Do: cutOff("n1"), Until: model.Trigger{After: 1}}}})
	e.Step(model.Event{Kind: model.EventWorkload})
	for _, c := range []struct {
		at   time.Duration
		p    model.HeldPacket
		want model.Action
	}{{0, model.HeldPacket{SparedBy: []int{1}}, model.DropPacket}, {0, model.HeldPacket{SparedBy: []int{2}}, model.DropPacket}, {0, model.HeldPacket{Spared: true}, model.Pass},
		{1, model.HeldPacket{SparedBy: []int{1}}, model.Pass}, {1, model.HeldPacket{SparedBy: []int{2}}, model.DropPacket}} {
		c.p.From, c.p.To = "n1", "n2"
		ds := e.Step(model.Event{Kind: model.EventPacket, At: c.at, Packet: &c.p})
		if got := ds[len(ds)-1]; got.Action != c.want {
			t.Errorf("at %d, %+v: %+v", c.at, c.p, got)
		}
	}
}

// TestAReplayOfSeveralStatesNamesTheStepThatBegan: the other one waits as it did.
func TestAReplayOfSeveralStatesNamesTheStepThatBegan(t *testing.T) {
	ab, bc := equal("a", "b"), equal("b", "c")
	st := model.Step{When: model.Trigger{State: &model.FaultCondition{Invariant: ab, State: &model.State{A: "x", B: "y"}}}, Do: cutOff("n1"), Until: model.Trigger{Unseen: &model.Unseen{}}}
	other := st
	other.When.State = &model.FaultCondition{Invariant: bc, State: &model.State{A: "#1", B: "#2"}, Nth: 1}
	other.Do.Isolate, other.Do.Cut = "n2", cutOff("n2").Cut
	s := model.Scenario{ID: "s1", Steps: []model.Step{st, other}}
	e := engine.New(s)
	e.Step(model.Event{Kind: model.EventWorkload})
	for i, v := range []string{"#3", "#4"} {
		e.Step(model.Event{Num: 1, Kind: model.EventObserve, Observation: &model.Observation{Var: leader([]model.NodeID{"b", "c"}[i]), Value: v}})
	}
	e.Step(model.Event{Kind: model.EventMessage, Message: &model.Message{Num: 1, Type: "A", From: "n2", To: "n3"}})
	e.Step(model.Event{Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: 1, From: "n2", To: "n3", Messages: []uint64{1}}})
	r := e.Result().RunResult("s1", model.Verdict{})
	again := explorer.Replay(s, r)
	one, two := again.Steps[0], again.Steps[1]
	if diff := cmp.Diff(st, one); diff != "" {
		t.Error(diff)
	}
	if *two.When.State.State != (model.State{A: "#3", B: "#4"}) || two.Until.Class == nil || two.Until.Class.Type != "A" || two.Until.Unseen != nil || s.Steps[1].Until.Unseen == nil {
		t.Errorf("%s, of %+v", &two, r)
	}
}

// TestAReplayOfAResultThatIsFalse: the record of a run may come from another machine.
func TestAReplayOfAResultThatIsFalse(t *testing.T) {
	s := model.Scenario{Steps: []model.Step{{Do: cutOff("n1")}, {When: model.Trigger{State: &model.FaultCondition{}}, Do: cutOff("n1")}}}
	for _, at := range []int{-1, 0, 1, 3} {
		r := model.RunResult{Reached: true, CutState: &model.State{A: "a", B: "b"}, Steps: []model.StepResult{{Step: at, By: model.ReasonState}}}
		if again := explorer.Replay(s, r); again.Steps[1].When.State.State == nil || *again.Steps[1].When.State.State != *r.CutState {
			t.Errorf("step %d: %+v", at, again.Steps)
		}
	}
}

// TestACrashIsBeforeItsMessageOrBehindIt, and what crashed is started as its step ends.
func TestACrashIsBeforeItsMessageOrBehindIt(t *testing.T) {
	crash := model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}
	pause := model.Fault{Node: &model.NodeFault{Verb: model.NodePause, Host: "n2"}}
	s := model.Scenario{Steps: []model.Step{
		{When: model.Trigger{Message: message("A", 1)}, Do: crash, Until: model.Trigger{Message: message("C", 1)}},
		{When: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "B"}, Side: model.SideReceive}}, Do: pause, Max: time.Second},
		{When: model.Trigger{Follows: model.FollowsEnd}, Do: crash},
	}}
	e := engine.New(s)
	e.Step(model.Event{Kind: model.EventWorkload})
	var got []string
	do := func(ds []model.Decision) {
		for _, d := range ds {
			switch {
			case d.Verb != "":
				got = append(got, fmt.Sprintf("%d %s (%s)", d.Step, d.Verb, d.Reason))
			default:
				got = append(got, string(d.Action))
			}
			if d.Cut || d.Heal {
				t.Errorf("%+v", d)
			}
		}
	}
	for i, typ := range []string{"A", "B", "C", "D"} {
		n, at := uint64(i+1), time.Duration(i)*600*time.Millisecond
		do(e.Step(model.Event{Num: n, At: at, Kind: model.EventMessage, Message: &model.Message{Num: n, Type: typ, From: "n1", To: "n2"}}))
		do(e.Step(model.Event{Num: n, At: at, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: n, From: "n1", To: "n2", Messages: []uint64{n}}}))
	}
	do(e.Step(model.Event{At: 3 * time.Second, Kind: model.EventStop}))
	want := []string{"1 kill (message)", "pass", "pass", "2 pause (message)", "1 start (message)", "pass", "2 resume (max-cut)", "3 kill (step-before)", "pass", "3 start (workload-ended)"}
	if diff := cmp.Diff(want, got); diff != "" || e.Result().Reached {
		t.Error(diff)
	}
}
