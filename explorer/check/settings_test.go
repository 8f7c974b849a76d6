package check

import (
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record"
)

// TestSettingsNameVariablesThatThereAre: a misspelt variable would be judged as
// one that nobody ever showed.
func TestSettingsNameVariablesThatThereAre(t *testing.T) {
	vars := []model.Variable{{Name: "leader"}, {Name: "term"}}
	spec := model.CheckSpec{Name: "leaders", With: map[string]string{"variable": "laeder"}}
	if got := Settings(spec, vars); len(got) != 1 || !strings.Contains(got[0].String(), `no variable "laeder"`) || !strings.Contains(got[0].String(), "leader, term") {
		t.Errorf("%q", got)
	}
	spec.With["variable"] = "leader"
	if got := Settings(spec, vars); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestCountsThatMakeNoSense: a thing that nobody may hold is no semaphore.
func TestCountsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ name, setting string }{{"double", "count"}, {"copies-equal", "least"}, {"linearizable", "steps"}} {
		for value, ok := range map[string]bool{"0": false, "-1": false, "x": false, "1": true} {
			got := Settings(model.CheckSpec{Name: c.name, With: map[string]string{c.setting: value}}, nil)
			if ok != (len(got) == 0) || !ok && !strings.Contains(got[0].String(), c.setting+": want a count of 1 or more") {
				t.Errorf("%s %s=%s: %q", c.name, c.setting, value, got)
			}
		}
	}
	if got := Settings(model.CheckSpec{Name: "leaders", With: map[string]string{"least": "0"}}, nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestCheckThatPanics leaves the run undecided, and the others judge it.
func TestCheckThatPanics(t *testing.T) {
	r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: "bad"}, {Name: "process-died", Class: model.Broken}}},
		Scenario: model.Scenario{Strategy: model.StrategyClean}, Bounds: noBounds}
	registered := func(name string) (checker, bool) {
		if name == "bad" {
			return checker{name: name, run: func(*Record, settings) outcome { return outcome{failures: make([]model.Failure, len(r.Steps)-1)} }}, true
		}
		return lookup(name)
	}
	v := judge(r, registered)
	if v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "check bad could not decide: internal error of netsplit") {
		t.Errorf("%+v", v)
	}
	r.Exits = []record.Exit{{Host: "n1", Process: "server", Status: 1}}
	v = judge(r, registered)
	if v.Value != model.VerdictFail || len(v.Failures) != 1 || !strings.Contains(v.Reason, "check bad could not decide") {
		t.Errorf("%+v", v)
	}
}
