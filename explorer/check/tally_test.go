package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/internal/onecut"
	"netsplit/model"
)

func faultRun(n int, v model.VerdictValue, reason string, seen ...model.Sighting) *model.RunSummary {
	return &model.RunSummary{RunMeta: model.RunMeta{Run: fmt.Sprintf("r%02d", n), Scenario: onecut.Scenario{Strategy: model.StrategyCoFI}.Model()},
		Verdict: model.Verdict{Value: v, Reason: reason}, Result: model.RunResult{Reached: true}, Sightings: seen}
}

// TestWhyNoFaultRunCouldBeJudged: clean runs that pass say nothing of it; each reason
// is told once, with how many runs have it.
func TestWhyNoFaultRunCouldBeJudged(t *testing.T) {
	var y Tally
	clean := &model.RunSummary{RunMeta: model.RunMeta{Run: "clean", Scenario: model.Scenario{Strategy: model.StrategyClean}}, Verdict: model.Verdict{Value: model.VerdictPass}}
	y.Add(clean)
	if diff := cmp.Diff([]string{"no fault run was made"}, y.Undecided("")); diff != "" {
		t.Error(diff)
	}
	for i := range 3 {
		r := faultRun(i, model.VerdictVacuous, fmt.Sprintf("the state x, %d of v did not occur, so nothing was cut", i))
		r.Scenario.Waits().When.State.State, r.Result.Reached = &model.State{A: "x"}, false
		y.Add(r)
		y.Add(r) // once
	}
	y.Add(faultRun(3, model.VerdictVacuous, "no packet wanted to cross the cut"))
	y.Add(faultRun(4, model.VerdictVacuous, "no packet wanted to cross the cut"))
	y.Add(faultRun(5, model.VerdictUnknown, "3 of 7 packets that wanted to cross the cut arrived all the same"))
	short := faultRun(6, model.VerdictUnknown, "the daemon ended")
	short.CutShort = true
	y.Add(short)
	want := []string{"3 of 6 fault runs: the state that was waited for did not occur; since it is so", "2 of 6 fault runs: no packet wanted to cross the cut",
		"1 of 6 fault runs: could not be judged: 3 of 7 packets that wanted to cross the cut arrived all the same"}
	if diff := cmp.Diff(want, y.Undecided("since it is so")); diff != "" {
		t.Error(diff)
	}
	y.Add(faultRun(7, model.VerdictFail, ""))
	if got := y.Undecided(""); got != nil {
		t.Errorf("though one was judged: %q", got)
	}
}

// TestWhyAStateDidNotOccur is told by where runs read the variable, and by nothing
// else: what is read from messages is not to be read from messages.
func TestWhyAStateDidNotOccur(t *testing.T) {
	seen := func(from, to model.NodeID) model.Sighting {
		return model.Sighting{Variable: "v", From: from, To: to, Count: 3}
	}
	client, peers, other, probe := seen("c1", "n1"), seen("n1", "n2"), seen("n2", "n1"), seen("", "")
	for _, c := range []struct {
		clean, fault []model.Sighting
		recurs       bool
		want         string
	}{
		{nil, nil, true, ""}, // older runs
		{[]model.Sighting{client}, nil, false, "clean runs read v from messages between nodes and clients (c1 to n1), and no fault run did: there it showed nowhere; give v a source that fault runs read"},
		{[]model.Sighting{client, probe}, []model.Sighting{probe}, false, "clean runs read v from messages between nodes and clients (c1 to n1), and no fault run did: there it showed only by probes; give v a source that fault runs read"},
		{[]model.Sighting{client}, []model.Sighting{seen("c2", "n3")}, true, "v was read from messages (c2 to n3), and other runs met such a state: it does not come in every run; let the workload change v more often, or try again more often (--retries)"},
		{[]model.Sighting{probe}, []model.Sighting{probe}, true, "v is read by probes only, which may miss what lasts short: read it from messages, where they have it, or ask more often (docs/add-a-system.md, 3)"},
		{[]model.Sighting{peers}, []model.Sighting{other}, false, "v was read from messages (n2 to n1), and no other run met such a state: if its values are of one run only (ids, times), as: ordinal in the target file makes them recur (docs/add-a-system.md, 3)"},
	} {
		var y Tally
		y.Add(&model.RunSummary{RunMeta: model.RunMeta{Run: "clean"}, Sightings: c.clean})
		y.Add(faultRun(1, model.VerdictVacuous, "", c.fault...))
		if got := y.WhyMissed([]model.NodeID{"n1", "n2", "n3"}, "v", c.recurs); got != c.want {
			t.Errorf("%v, %v:\n%q, want\n%q", c.clean, c.fault, got, c.want)
		}
	}
}
