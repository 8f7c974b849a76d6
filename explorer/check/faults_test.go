package check

import (
	"strings"
	"testing"

	"netsplit/internal/onecut"
	"netsplit/model"
)

// A fault that did nothing makes a run vacuous, one whose packets did not arrive
// as decided makes it unknown, and only one that is proved passes.
func TestMessageFaultsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name string
		kind model.FaultKind
		p    model.FaultProof
		want model.VerdictValue
		says string
	}{
		{"proved", model.FaultDelay, model.FaultProof{Met: 3, Acted: 1, Known: true, Checked: 1}, model.VerdictPass, "acted on 1 packet(s)"},
		{"late", model.FaultDelay, model.FaultProof{Met: 3, Acted: 1, Known: true, Checked: 1, Late: 1}, model.VerdictPass, "late"},
		{"next back", model.FaultLose, model.FaultProof{Met: 3, Acted: 1, Known: true, Checked: 1, ByPlace: 1}, model.VerdictPass, "; 1 were taken for the answer as the next message back"},
		{"never met", model.FaultLose, model.FaultProof{Known: true}, model.VerdictVacuous, "never met its message"},
		{"met too few", model.FaultLose, model.FaultProof{Met: 2, Known: true}, model.VerdictVacuous, "met only 2"},
		{"taken", model.FaultLose, model.FaultProof{Met: 2, Taken: 1, Known: true}, model.VerdictVacuous, "another fault"},
		{"in order", model.FaultReorder, model.FaultProof{Met: 2, Acted: 2, InOrder: 2, Known: true, Checked: 2}, model.VerdictVacuous, "changed no order"},
		{"no copy", model.FaultDuplicate, model.FaultProof{Met: 1, Acted: 1, Known: true, Checked: 1}, model.VerdictVacuous, "sent no copy"},
		{"nobody looked", model.FaultLose, model.FaultProof{Met: 1, Acted: 1, Trouble: "host n2 could not tell"}, model.VerdictUnknown, "not proved"},
		{"nobody was asked", model.FaultLose, model.FaultProof{Met: 2, Acted: 2, Known: true}, model.VerdictUnknown, "no host could be asked"},
		{"arrived", model.FaultLose, model.FaultProof{Met: 1, Acted: 1, Known: true, Checked: 1, Wrong: 1, Trouble: "it arrived"}, model.VerdictUnknown, "something else"},
	} {
		r := Record{Target: &model.Target{}, Faults: []model.FaultProof{c.p},
			Scenario: onecut.Scenario{Faults: []model.MessageFault{{Kind: c.kind, Match: model.MessageMatch{Type: "A"}}}}.Model()}
		r.Faults[0].Fault = 1
		v := Judge(r)
		if v.Value != c.want || !strings.Contains(v.Reason, c.says) {
			t.Errorf("%s: %s: %s; want %s and %q", c.name, v.Value, v.Reason, c.want, c.says)
		}
	}
	crash := model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}
	lose := model.Step{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "A"}}}}
	both := Judge(Record{Target: &model.Target{}, Scenario: model.Scenario{Steps: []model.Step{lose, crash}}, Results: []model.StepResult{{Step: 1}, {Step: 2, By: model.ReasonFollows}},
		Faults: []model.FaultProof{{Fault: 1, Met: 1, Acted: 1, Known: true, Checked: 1}}})
	if both.Value != model.VerdictPass || !strings.Contains(both.Reason, "crash n1") || !strings.Contains(both.Reason, "acted on 1 packet(s)") {
		t.Errorf("a crash beside a message fault: %s: %s", both.Value, both.Reason)
	}
	missing := Judge(Record{Target: &model.Target{}, Scenario: onecut.Scenario{Faults: []model.MessageFault{{Kind: model.FaultLose}}}.Model()})
	if missing.Value != model.VerdictUnknown {
		t.Errorf("a record without what the fault did: %s: %s", missing.Value, missing.Reason)
	}
}
