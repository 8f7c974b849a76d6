package report

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestAScenarioIsToldStepByStep: when and why each step began and ended, what its cut did, and
// which never began.
func TestAScenarioIsToldStepByStep(t *testing.T) {
	in := failing(t)
	first := in.Summary.Scenario.Steps[0]
	other := model.Step{When: model.Trigger{Follows: model.FollowsEnd}, Do: model.Fault{Cut: &model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}}
	in.Summary.Scenario.Steps = []model.Step{first, other, other}
	in.Summary.Result.Steps = []model.StepResult{{Step: 1, By: model.ReasonState, Began: time.Second, EndedBy: model.ReasonMessage, Ended: 3 * time.Second},
		{Step: 2, By: model.ReasonFollows, Began: 3 * time.Second, EndedBy: model.ReasonStop, Ended: 4 * time.Second}, {Step: 3}}
	in.Cuts = []model.CutProof{{Name: "step 1", Proof: model.Proof{Wanted: 5, Dropped: 4, LeakKnown: true}}, {Name: "step 2", Proof: model.Proof{Wanted: 3, Dropped: 3}}}
	in.Decisions = append(in.Decisions, model.Decision{Cut: true, Step: 2, At: 3 * time.Second, Reason: model.ReasonFollows})
	page := write(t, in)
	plan := section(t, page, "plan")
	wants(t, "plan", plan, "state-reached", "message; 5 packets wanted to cross, 4 were dropped, 0 leaked",
		"cut simplex n1 | n2; when the step before has ended", "workload-ended; 3 packets wanted to cross, 3 were dropped, an unknown number leaked", "never began")
	if n := strings.Count(plan, "<tr class=\"cut\">"); n != 2 {
		t.Errorf("%d cuts", n)
	}
	wants(t, "report", page, "of the run&#39;s 2 cuts, the first of which is drawn", "Step 2 cut what n2 send to n1 (the other direction stays open), from 3.000 s to 4.000 s.")
	s := &in.Summary
	s.Scenario.Steps = []model.Step{other, first, {Do: model.Fault{Cut: first.Do.Cut, Node: &model.NodeFault{Verb: model.NodeKill, Host: "n3"}}}}
	s.Result.Steps = []model.StepResult{{Step: 1, By: model.ReasonTime, Began: 9 * time.Second}, {Step: 2, By: model.ReasonTime, Began: time.Second, EndedBy: model.ReasonTime, Ended: 2 * time.Second},
		{Step: 3, By: model.ReasonTime, Began: 5 * time.Second, EndedBy: model.ReasonTime, Ended: 6 * time.Second}}
	if got := strings.Join(furtherCuts(s), " "); got != "Step 3 crashed the machine n3, from 5.000 s to 6.000 s. Step 1 cut what n2 send to n1 (the other direction stays open), from 9.000 s." {
		t.Errorf("%q", got)
	}
	torn := in // of the events: the results of steps are whole
	torn.Summary.Result.Steps = []model.StepResult{{Step: 9, By: model.ReasonScript}}
	write(t, torn)
	s.Scenario.Strategy = model.StrategyScripted
	s.Scenario.Steps[0].Do.Cut = &model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: []model.Traffic{{Proto: "icmp"}}}
	if got := furtherCuts(s); got[1] != "The script also cut n1 from n2, icmp only, from 9.000 s." {
		t.Errorf("%q", got)
	}
	if strings.Contains(page, "Step 1 cut") || strings.Contains(page, "Step 3 cut") {
		t.Error("the first cut is told twice, or one that never began")
	}
}
