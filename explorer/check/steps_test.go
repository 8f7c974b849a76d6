package check

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// A scripted run is judged by its assertions, and passes only if what it cut was
// bumped into and held.
func TestScriptedRun(t *testing.T) {
	target := &model.Target{Checks: []model.CheckSpec{{Name: Script, Class: model.Documented, Quote: "so it says"}}}
	step := func(do string, o model.StepOutcome) model.ScriptStep {
		return model.ScriptStep{Num: 3, Do: do, Text: "x is v1", Where: "a.yaml:7", Outcome: o, Result: "it is v0"}
	}
	cut := func(wanted, leaked int) *model.Proof {
		return &model.Proof{CutAt: 1, InForceAt: 2, HealAt: 3, Wanted: wanted, Dropped: wanted - leaked, Leaked: leaked, LeakKnown: true}
	}
	healedBy := func(n int) *model.Proof {
		p := cut(9, 0)
		p.Dropped -= n
		return p
	}
	for _, c := range []struct {
		name  string
		steps []model.ScriptStep
		proof *model.Proof
		want  model.VerdictValue
		why   string
	}{
		{"holds, cut", []model.ScriptStep{step("assert", model.StepDone)}, cut(9, 0), model.VerdictPass, "9 packets wanted to cross, 9 were dropped, none leaked"},
		{"holds, and a packet healed it", []model.ScriptStep{step("assert", model.StepDone)}, healedBy(1), model.VerdictPass, "9 packets wanted to cross, 8 were dropped, 1 was held until the heal and then passed, none leaked"},
		{"holds, and packets passed later", []model.ScriptStep{step("assert", model.StepDone)}, healedBy(2), model.VerdictPass, "9 packets wanted to cross, 7 were dropped, 2 passed after the heal, none leaked"},
		{"holds, no cut", []model.ScriptStep{step("assert", model.StepDone)}, nil, model.VerdictPass, "all checks hold"},
		{"holds, vacuous", []model.ScriptStep{step("assert", model.StepDone)}, cut(0, 0), model.VerdictVacuous, "no packet wanted to cross cut a"},
		{"holds, leaky", []model.ScriptStep{step("assert", model.StepDone)}, cut(9, 2), model.VerdictUnknown, "the partition did not hold"},
		{"fails", []model.ScriptStep{step("assert", model.StepFailed)}, cut(9, 0), model.VerdictFail, "x is v1: it is v0"},
		{"fails, then stuck", []model.ScriptStep{step("assert", model.StepFailed), step("await", model.StepStuck)}, cut(9, 0), model.VerdictFail, "could not be done, a.yaml:7"},
		{"stuck", []model.ScriptStep{step("assert", model.StepDone), step("await", model.StepStuck)}, cut(9, 0), model.VerdictUnknown, "step 3 (x is v1) could not be done, a.yaml:7: it is v0"},
		{"asserts nothing", []model.ScriptStep{step("op", model.StepDone)}, nil, model.VerdictUnknown, "the script asserts nothing"},
		{"no such outcome", []model.ScriptStep{step("assert", "")}, nil, model.VerdictUnknown, "which nobody knows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Record{Target: target, Scenario: model.Scenario{Strategy: model.StrategyScripted}, Steps: c.steps, Proof: c.proof,
				CutReached: c.proof != nil, WorkloadEnd: time.Second, Bounds: noBounds}
			if c.proof != nil {
				r.Cuts = []model.CutProof{{Name: "a", Proof: *c.proof}}
			}
			v := Judge(r)
			if v.Value != c.want || !strings.Contains(v.Reason, c.why) {
				t.Errorf("want %s, %s: %+v", c.want, c.why, v)
			}
			for _, f := range v.Failures {
				if f.Signature != "assertion: x is v1" || f.Class != model.Documented || f.Quote == "" || f.Check != Script {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestEachStepOfAScenarioMustCut: one that never began, or that nothing wanted to cross, makes
// the run vacuous, and is named; one that is not proved makes it unknown.
func TestEachStepOfAScenarioMustCut(t *testing.T) {
	cut := func(when model.Trigger) model.Step {
		return model.Step{When: when, Do: model.Fault{Cut: &model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}}
	}
	proof := func(wanted, leaked int) model.Proof {
		return model.Proof{Wanted: wanted, Dropped: wanted - leaked, Leaked: leaked, LeakKnown: true}
	}
	for name, c := range map[string]struct {
		second     model.StepResult
		one, other model.Proof
		all        model.Proof
		want       model.VerdictValue
		says       string
	}{
		"both held":   {model.StepResult{Step: 2, By: model.ReasonFollows}, proof(3, 0), proof(2, 0), proof(5, 0), model.VerdictPass, "5 packets wanted to cross, 5 were dropped, none leaked"},
		"never began": {model.StepResult{Step: 2}, proof(3, 0), model.Proof{}, proof(3, 0), model.VerdictVacuous, "step 2 (cut partial n1 | n2; when the step before has ended): the moment to cut did not come"},
		"lacked":      {model.StepResult{Step: 2, Lacked: "nobody had role leader"}, proof(3, 0), model.Proof{}, proof(3, 0), model.VerdictVacuous, "step 2 (cut partial n1 | n2; when the step before has ended) could not begin: nobody had role leader at its moment"},
		"not wanted":  {model.StepResult{Step: 2, By: model.ReasonFollows}, proof(3, 0), proof(0, 0), proof(3, 0), model.VerdictVacuous, "no packet wanted to cross cut step 2"},
		"one leaked":  {model.StepResult{Step: 2, By: model.ReasonFollows}, proof(3, 0), proof(2, 1), proof(5, 1), model.VerdictUnknown, "the partition did not hold"},
		"not counted": {model.StepResult{Step: 2, By: model.ReasonFollows}, proof(3, 0), proof(2, 0), model.Proof{Wanted: 5, Dropped: 5}, model.VerdictUnknown, "could count what leaked"},
	} {
		r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: processDied().name}}}, CutReached: true, Proof: &c.all,
			Scenario: model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{cut(model.Trigger{}), cut(model.Trigger{Follows: model.FollowsEnd})}},
			Results:  []model.StepResult{{Step: 1, By: model.ReasonTime}, c.second}, Cuts: []model.CutProof{{Name: "step 1", Proof: c.one}}}
		if c.second.By != "" {
			r.Cuts = append(r.Cuts, model.CutProof{Name: "step 2", Proof: c.other})
		}
		if v := Judge(r); v.Value != c.want || !strings.Contains(v.Reason, c.says) {
			t.Errorf("%s: %s: %s; want %s and %q", name, v.Value, v.Reason, c.want, c.says)
		}
	}
}

// A node that was crashed is no run without a fault: neither its verdict nor a finding says so.
func TestACrashIsAFault(t *testing.T) {
	crash := model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}}}
	went := []model.StepResult{{Step: 1, By: model.ReasonTime, Began: 600 * time.Millisecond}}
	r := Record{Target: &model.Target{}, Scenario: crash, Results: went, CutReached: true, WorkloadEnd: time.Second, Bounds: noBounds}
	if v := Judge(r); v.Value != model.VerdictPass || !strings.Contains(v.Reason, "crash n1 at 0.6 s") || strings.Contains(v.Reason, "no cut") {
		t.Errorf("%+v", v)
	}
	machine := crash
	machine.Steps = []model.Step{{Do: model.Fault{Node: crash.Steps[0].Do.Node, Isolate: "n1", Cut: &model.Partition{Shape: model.Complete, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}}}
	for said, p := range map[string]model.Proof{
		"the cut held: 3 packets wanted to cross, 3 were dropped, none leaked; crash the machine n1 at 0.6 s": {Wanted: 3, Dropped: 3, LeakKnown: true},
		"none leaked; crash the machine n1 at 0.6 s":                                                          {LeakKnown: true}, // all were silent
		"the partition did not hold":                                                                          {Wanted: 3, Dropped: 2, Leaked: 1, LeakKnown: true},
	} {
		for _, cuts := range [][]model.CutProof{nil, {{Name: "step 1", Proof: p}}} {
			r.Scenario, r.Proof, r.Cuts = machine, &p, cuts
			if v := Judge(r); !strings.Contains(v.Reason, said) {
				t.Errorf("%+v, want %s", v, said)
			}
		}
	}
	failed := model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "gone", Class: model.Broken, Signature: "s", Summary: "s"}}}
	for _, c := range []struct {
		steps []model.StepResult
		clean bool
	}{{went, false}, {[]model.StepResult{{Step: 1}}, true}} {
		run := model.RunSummary{RunMeta: model.RunMeta{Run: "r1", Scenario: crash}, Verdict: failed, Result: model.RunResult{Steps: c.steps}}
		if got := Merge("c", []model.RunSummary{run}); len(got) != 1 || got[0].Clean != c.clean {
			t.Errorf("%+v: %+v", c.steps, got)
		}
	}
}
