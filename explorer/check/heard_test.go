package check

import (
	"testing"

	"netsplit/model"
)

// TestAMessageThatNeverCameIsSaidWithWhatCame in its place.
func TestAMessageThatNeverCameIsSaidWithWhatCame(t *testing.T) {
	heard := []Heard{
		{"json complete-ok", "n1", "c1", 7000, 12}, {"json list-ok", "n1", "c1", 7000, 30}, {"json ping", "n1", "c1", 9000, 2}, {"json ack", "n2", "n1", 7000, 3}, {"json ack", "n3", "n1", 7001, 1},
	}
	for _, c := range []struct {
		match model.MessageMatch
		want  string
	}{
		{model.MessageMatch{Type: "complete-ok", From: "n1", To: "c1"}, `no message of type "complete-ok" came from n1 to c1; on port 7000 came json complete-ok (12), json list-ok (30), on port 9000 came json ping (2)`},
		{model.MessageMatch{Type: "json ack", From: "n1"}, `no message of type "json ack" came from n1; it came from n2 to n1 json ack (3), from n3 to n1 json ack (1)`},
		{model.MessageMatch{Type: "json nak", From: "n3", ToRole: "leader"}, `no message of type "json nak" came from n3 to leader; on port 7001 came json ack (1)`},
		{model.MessageMatch{Type: "x", To: "n9"}, `no message of type "x" came to n9; nothing came to n9`},
		{model.MessageMatch{Type: "json *-ok"}, ""},
		{model.MessageMatch{Type: "json ack", From: "n2", ToRole: "leader"}, ""},
	} {
		if got := neverCame(heard, &c.match); got != c.want {
			t.Errorf("%s: %q\nwant %q", c.match, got, c.want)
		}
	}
	var many []Heard
	for _, typ := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		many = append(many, Heard{typ, "n1", "n2", 1, 1})
	}
	if got, want := neverCame(many, &model.MessageMatch{Type: "x"}), `no message of type "x" came; on port 1 came a (1), b (1), c (1), d (1), e (1), f (1), and 2 types more`; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := neverCame(nil, &model.MessageMatch{Type: "x"}); got != "" {
		t.Errorf("where nobody knows: %q", got)
	}
}

// TestAVacuousRunNamesWhatCame for a fault of messages and for a step that begins at one.
func TestAVacuousRunNamesWhatCame(t *testing.T) {
	match := model.MessageMatch{Type: "ack", From: "n1"}
	r := Record{Target: &model.Target{}, Bounds: noBounds, Heard: []Heard{{"json ack", "n1", "n2", 7000, 5}}}
	r.Scenario = model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: match}}}}}
	r.Faults = []model.FaultProof{{Fault: 1, Known: true}}
	want := `message fault 1 (lose: ack n1>*, number 1) never met its message: no message of type "ack" came from n1; on port 7000 came json ack (5)`
	if v := Judge(r); v.Value != model.VerdictVacuous || v.Reason != want {
		t.Errorf("%+v", v)
	}
	r.Faults, r.Scenario.Steps = nil, []model.Step{{When: model.Trigger{Message: &model.MessageTrigger{Match: match}}, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}}
	if v := Judge(r); v.Value != model.VerdictVacuous || v.Reason != `no message of type "ack" came from n1; on port 7000 came json ack (5)` {
		t.Errorf("%+v", v)
	}
	r.Heard[0].Type = "ack" // it came, and not often enough
	if v := Judge(r); v.Reason != "its moment did not come before the workload ended" {
		t.Errorf("%+v", v)
	}
}
