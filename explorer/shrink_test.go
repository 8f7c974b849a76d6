package explorer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"netsplit/model"
)

func crashes(hosts ...model.NodeID) model.Scenario {
	sc := model.Scenario{ID: "s0007", Strategy: model.StrategySequences, Seed: 7, Sequence: make([]model.PointFault, len(hosts))}
	for _, h := range hosts {
		sc.Steps = append(sc.Steps, model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: h}}})
	}
	return sc
}

// needing is a system that fails if all of these steps are played, in so many of 3 tries.
func needing(failed int, steps ...int) (try func([]int) (model.Tally, error), tried *int) {
	tried = new(int)
	seen := map[string]bool{}
	return func(places []int) (model.Tally, error) {
		if seen[fmt.Sprint(places)] {
			return model.Tally{}, fmt.Errorf("%v is tried twice", places)
		}
		seen[fmt.Sprint(places)] = true
		*tried++
		for _, s := range steps {
			if !slices.Contains(places, s) {
				return model.Tally{Tries: 3}, nil
			}
		}
		return model.Tally{Tries: 3, Failed: failed}, nil
	}, tried
}

// TestShrinkFindsTheStepsThatAFailureNeeds, and tries no more than ddmin may.
func TestShrinkFindsTheStepsThatAFailureNeeds(t *testing.T) {
	for _, c := range []struct {
		steps int
		needs []int
		tries int // at most
	}{
		{1, []int{1}, 2}, {3, []int{2}, 5}, {3, []int{1, 3}, 9}, {3, []int{1, 2, 3}, 9}, {8, []int{8}, 10}, {32, []int{5, 31}, 60}, {32, []int{17}, 20},
	} {
		hosts := make([]model.NodeID, c.steps)
		for i := range hosts {
			hosts[i] = model.NodeID(fmt.Sprintf("n%d", i+1))
		}
		try, tried := needing(3, c.needs...)
		got, err := Shrink(crashes(hosts...), Past{}, try)
		if err != nil || !slices.Equal(got.Keep, c.needs) || len(got.Smallest.Steps) != len(c.needs) || *tried > c.tries {
			t.Errorf("of %d steps %v are needed: kept %v in %d tries, %v", c.steps, c.needs, got.Keep, *tried, err)
		}
		for _, st := range got.Steps {
			want, with, without := model.NeededNo, 3, 3
			if slices.Contains(c.needs, st.Step) {
				want, with, without = model.NeededYes, 3, 0
			}
			if st.Needed != want || st.With.Failed != with || st.Without.Failed != without || st.Text != "crash n"+fmt.Sprint(st.Step) {
				t.Errorf("of %d steps %v are needed: %+v", c.steps, c.needs, st)
			}
		}
		if got.All.Failed != 3 || got.None.Tries != 3 || got.Least.Failed != 3 || got.Why != "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestShrinkSaysWhatItDoesNotKnow: of what never fails again, what fails seldom or without
// any step, what may not be tried, and what could not be judged.
func TestShrinkSaysWhatItDoesNotKnow(t *testing.T) {
	sc := crashes("n1", "n2")
	try, tried := needing(0)
	got, err := Shrink(sc, Past{}, try)
	if err != nil || got.Smallest != nil || got.Steps[0].Needed != model.NeededUnknown || got.Why == "" || *tried != 1 {
		t.Errorf("what never fails again: %+v, %v", got, err)
	}

	try, _ = needing(1, 2)
	got, _ = Shrink(sc, Past{}, try)
	if got.Steps[1].Needed != model.NeededUnknown || got.Steps[1].Why != "it fails too seldom to tell: try more often" || got.Steps[0].Needed != model.NeededNo {
		t.Errorf("what fails in one of three: %+v", got.Steps)
	}

	try, _ = needing(3)
	got, _ = Shrink(sc, Past{}, try)
	if got.Smallest == nil || len(got.Keep) != 0 || got.Smallest.Faulty() || got.Steps[0].Needed != model.NeededNo || got.None.Failed != 3 {
		t.Errorf("what fails by itself: %+v", got)
	}

	all, _ := needing(3, 2)
	n := 0
	got, err = Shrink(sc, Past{}, func(p []int) (model.Tally, error) {
		if n++; n > 2 {
			return model.Tally{}, ErrTries
		}
		return all(p)
	})
	if err != nil || len(got.Keep) != 2 || got.Why != "no more tries were allowed" || got.Steps[1].Needed != model.NeededUnknown || got.Steps[1].Why != "it was not tried without the step" {
		t.Errorf("what may not be tried: %+v, %v", got, err)
	}
	stop := errors.New("stop")
	if _, err = Shrink(sc, Past{}, func([]int) (model.Tally, error) { return model.Tally{}, stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}

	all, _ = needing(3, 1, 2)
	got, _ = Shrink(sc, Past{}, func(p []int) (model.Tally, error) {
		a, err := all(p)
		if len(p) == 1 {
			a.Idle = a.Tries
		}
		return a, err
	})
	if got.Steps[0].Needed != model.NeededUnknown || got.Steps[0].Why != "without it no try could be judged, or other steps did not come" {
		t.Errorf("what could not be judged: %+v", got.Steps)
	}
}

// showed is a run whose steps began at these times, with a message that matches at each
// moment from 2 on.
func showed(began ...time.Duration) Past {
	p := Past{Start: 1}
	for i, at := range began {
		p.Steps = append(p.Steps, model.StepResult{Step: i + 1, By: model.ReasonMessage, Began: at})
	}
	for at := range time.Duration(10) {
		if at >= 2 {
			p.Messages = append(p.Messages, Came{at, "ack", "n1", "n2"}, Came{at, "ack", "n9", "n2"})
		}
	}
	return p
}

// TestAMessageFaultCountsFromAMessageThatIsLeftOut.
func TestAMessageFaultCountsFromAMessageThatIsLeftOut(t *testing.T) {
	match := model.MessageMatch{Type: "ack", From: "n1"}
	sc := model.Scenario{Steps: []model.Step{
		{When: model.Trigger{Message: &model.MessageTrigger{Match: match}}, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}},
		{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: match}}}}}
	got, moved := Only(sc, []int{2}, showed(4, 5))
	if st := got.Steps[0]; st.Do.Message.Nth != 4 || st.When != (model.Trigger{}) || moved != nil || sc.Steps[1].Do.Message.Nth != 0 {
		t.Errorf("%s, moved %v", &st, moved)
	}
	sc.Steps[1].Do.Message.Every = 1
	if _, moved := Only(sc, []int{2}, showed(4, 5)); len(moved) != 1 {
		t.Error("a fault that acts again and again is said to come at its moment")
	}
}

// TestOnlyKeepsTheMomentsOfSteps whose step before is left out.
func TestOnlyKeepsTheMomentsOfSteps(t *testing.T) {
	match := model.MessageMatch{Type: "ack", From: "n1"}
	message := &model.MessageTrigger{Match: match, Nth: 2}
	lose := model.Step{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: match, Nth: 2}}}
	crash := func(w model.Trigger) model.Step {
		return model.Step{When: w, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}
	}
	cut := func(w, u model.Trigger, most time.Duration) model.Step {
		return model.Step{When: w, Do: model.Fault{Cut: &model.Partition{}}, Until: u, Max: most}
	}
	begin := model.Trigger{Follows: model.FollowsBegin}
	for _, c := range []struct {
		name  string
		steps []model.Step
		keep  []int
		want  model.Trigger // of the last
		moved bool
		past  Past
	}{
		{"a lost message and a crash", []model.Step{lose, crash(begin)}, []int{2}, model.Trigger{Message: message}, false, Past{}},
		{"behind another step", []model.Step{crash(model.Trigger{}), {When: begin, Do: lose.Do}, crash(begin)}, []int{1, 3},
			model.Trigger{Follows: model.FollowsBegin, Message: message}, false, Past{}},
		{"times add up", []model.Step{crash(model.Trigger{At: 3, After: 5}), crash(model.Trigger{Follows: model.FollowsBegin, At: 2, After: 7})}, []int{2}, model.Trigger{At: 3, After: 12}, false, Past{}},
		{"behind the end of a cut", []model.Step{cut(model.Trigger{After: 5}, model.Trigger{After: 10}, 0), crash(model.Trigger{Follows: model.FollowsEnd, After: 1})}, []int{2}, model.Trigger{After: 16}, false, Past{}},
		{"behind its longest time", []model.Step{cut(model.Trigger{}, model.Trigger{}, 8), crash(model.Trigger{Follows: model.FollowsEnd})}, []int{2}, model.Trigger{After: 8}, false, Past{}},
		{"the end at a message is nobody's", []model.Step{cut(model.Trigger{}, model.Trigger{Message: message}, 8), crash(model.Trigger{Follows: model.FollowsEnd})}, []int{2}, model.Trigger{}, true, Past{}},
		{"a message after a message", []model.Step{crash(model.Trigger{Message: message}), crash(model.Trigger{Follows: model.FollowsBegin, Message: &model.MessageTrigger{Match: match, Nth: 4}})}, []int{2},
			model.Trigger{Message: &model.MessageTrigger{Match: match, Nth: 4}}, true, Past{}},
		{"a loss after a message", []model.Step{crash(model.Trigger{Message: message}), {When: begin, Do: lose.Do}}, []int{2}, model.Trigger{}, true, Past{}},
		{"what follows nobody stays", []model.Step{lose, crash(model.Trigger{After: 4})}, []int{2}, model.Trigger{After: 4}, false, Past{}},
		{"two are left out", []model.Step{crash(model.Trigger{Message: message}), crash(begin), crash(begin)}, []int{3}, model.Trigger{Message: message}, false, Past{}},
		{"a message counted from a message on", []model.Step{crash(model.Trigger{Message: message}), crash(model.Trigger{Follows: model.FollowsBegin, Message: &model.MessageTrigger{Match: match, Nth: 4}})}, []int{2},
			model.Trigger{Message: &model.MessageTrigger{Match: match, Nth: 6}}, false, showed(3, 9)},
		{"and from a step on", []model.Step{crash(model.Trigger{}), crash(model.Trigger{Follows: model.FollowsBegin, Message: message}), crash(begin), crash(model.Trigger{Follows: model.FollowsBegin, Message: message})}, []int{1, 4},
			model.Trigger{Follows: model.FollowsBegin, Message: &model.MessageTrigger{Match: match, Nth: 3}}, false, showed(2, 3, 3, 9)},
		{"from a step that never began", []model.Step{crash(model.Trigger{Message: message}), crash(model.Trigger{Follows: model.FollowsBegin, Message: message})}, []int{2}, model.Trigger{Message: message}, true,
			Past{Steps: []model.StepResult{{Step: 1}}}},
	} {
		got, moved := Only(model.Scenario{ID: "s1", Strategy: model.StrategySequences, Steps: c.steps, Sequence: make([]model.PointFault, 1)}, c.keep, c.past)
		last := got.Steps[len(got.Steps)-1]
		if fmt.Sprint(last.When.String()) != c.want.String() || last.When.Follows != c.want.Follows || len(moved) > 0 != c.moved || len(got.Steps) != len(c.keep) {
			t.Errorf("%s: %q, want %q; moved %v", c.name, last.When.String(), c.want.String(), moved)
		}
		for i := range got.Steps {
			if err := got.Steps[i].Validate([]model.NodeID{"n1"}, i+1); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got.Strategy != model.StrategySteps || got.Sequence != nil {
			t.Errorf("%s: it is still a sequence", c.name)
		}
	}
}
