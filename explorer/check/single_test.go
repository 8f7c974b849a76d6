package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

var noBounds = record.Bounds{MaxLost: -1, MaxWindow: -1}

// led is a record in which nodes say what they are: "1.5 n1 leader", one each
// line, by a probe, or "1.5 n1 leader message".
func led(t *testing.T, check string, with map[string]string, lines ...string) Record {
	t.Helper()
	r := Record{
		Target: &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Variables: []model.Variable{{Name: "role", Kind: "role", MaxAge: time.Second}},
			Checks: []model.CheckSpec{{Name: check, Class: model.Broken, With: with}}},
		Scenario: model.Scenario{Strategy: model.StrategyClean}, Bounds: noBounds,
		Recovery: record.Recovery{Stable: true, StableAt: 20 * time.Second, Limit: 25 * time.Second}, WorkloadEnd: 9 * time.Second,
	}
	for i, l := range lines {
		f := strings.Fields(l)
		o := model.Observation{At: at(t, f[0]), Var: model.VarRef{Name: "role", Node: model.NodeID(f[1])}, Value: f[2], Probe: "role#0"}
		if len(f) > 3 {
			o.Probe, o.Message = "", uint64(i+1)
		}
		r.Observations = append(r.Observations, o)
	}
	return r
}

// TestLeadTogether: a node leads without doubt between two answers that say so,
// if no more than max_age lies between them, and to when the last was asked.
func TestLeadTogether(t *testing.T) {
	every := func(node, value string, from, to, step float64) (out []string) {
		for x := from; x <= to+1e-9; x += step {
			out = append(out, fmt.Sprintf("%.3f %s %s", x, node, value))
		}
		return out
	}
	both := func(a, b []string) []string {
		return append(append(a, b...), "21.0 n1 leader", "21.0 n2 follower")
	}
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"both lead, seen all the time", both(every("n1", "leader", 1, 5, 0.2), every("n2", "leader", 3, 6, 0.2)), "from 3.000 to 4.800 s"},
		{"the first one's probe hangs from 2 to 9 s, between two terms", both([]string{"1 n1 leader", "1.5 n1 leader", "2 n1 leader", "9 n1 leader", "9.5 n1 leader"}, every("n2", "leader", 3, 8, 0.2)), ""},
		{"its last value stands for the rest of the run", both(every("n1", "leader", 1, 2, 0.2), every("n2", "leader", 1.9, 19, 0.2)), ""},
		{"an answer that was asked for before the other led", both([]string{"2.5 n1 leader", "3.2 n1 leader", "4 n1 leader"}, every("n2", "leader", 3.1, 5, 0.2)), ""},
		{"the same by messages, which say what is so", both([]string{"2.5 n1 leader message", "3.2 n1 leader message", "4 n1 leader message"}, every("n2", "leader", 3.1, 5, 0.2)), "from 3.100 to 4.000 s"},
	} {
		v := Judge(led(t, "leaders", map[string]string{"variable": "role", "overlap": "300ms"}, c.lines...))
		switch {
		case c.want == "" && len(v.Failures) > 0:
			t.Errorf("%s: %+v", c.name, v)
		case c.want != "" && (len(v.Failures) != 1 || !strings.Contains(v.Failures[0].Summary, c.want)):
			t.Errorf("%s: want %s, got %+v", c.name, c.want, v)
		}
	}
}

// TestWhatNoNodeEverIs: where leads names no value that there is, the check compares
// with nothing, and says so.
func TestWhatNoNodeEverIs(t *testing.T) {
	lines := []string{"2 n1 n1", "2 n2 n1", "3 n1 n1", "3 n2 n2", "21 n1 n2", "21 n2 n2", "21 n3 n2"}
	for leads, idle := range map[string]bool{"leader": true, "$self": false, "leader,$self": false} {
		v := Judge(led(t, "leaders", map[string]string{"variable": "role", "overlap": "5s", "leads": leads}, lines...))
		if v.Value != model.VerdictPass || strings.Contains(v.Reason, "nothing to judge for leaders") != idle {
			t.Errorf("leads %s: %+v", leads, v)
		}
	}
	// Roles in other words than those of leads are told beside them.
	v := Judge(led(t, "leaders", map[string]string{"variable": "role", "least": "1", "leads": "$self"}, "30 n1 leader", "30 n2 follower"))
	if v.Value != model.VerdictFail || !strings.Contains(v.Reason, "0 nodes lead when recovery is over (a node leads that is $self): n1 is leader, n2 is follower") {
		t.Errorf("%+v", v)
	}
}

// TestOldValuesAreNoEvidence: beside what another node showed last, a value
// older than max_age neither leads, nor does it show that nobody does.
func TestOldValuesAreNoEvidence(t *testing.T) {
	for _, c := range []struct {
		name, check string
		with        map[string]string
		stable      bool
		lines       []string
		value       model.VerdictValue
		want        string
	}{
		{"n1 led and was silent, n2 led then", "leaders", map[string]string{"variable": "role"}, true,
			[]string{"20.1 n1 leader", "20.2 n2 follower", "30 n2 leader"}, model.VerdictPass, ""},
		{"both lead in the end", "leaders", map[string]string{"variable": "role"}, true,
			[]string{"29.5 n1 leader", "30 n2 leader"}, model.VerdictFail, "2 nodes lead"},
		{"the same at the limit", "leaders", map[string]string{"variable": "role"}, false,
			[]string{"20.1 n1 leader", "20.2 n2 follower", "24 n2 leader"}, model.VerdictPass, ""},
		{"both at the limit", "leaders", map[string]string{"variable": "role"}, false,
			[]string{"24 n1 leader", "24.2 n2 leader"}, model.VerdictFail, "2 nodes lead"},
		{"the leader's probe is silent", "leaders", map[string]string{"variable": "role", "least": "1"}, true,
			[]string{"20.1 n1 leader", "30 n2 follower"}, model.VerdictUnknown, "0 nodes lead when recovery is over, and n1 was not observed then"},
		{"nobody leads", "leaders", map[string]string{"variable": "role", "least": "1"}, true,
			[]string{"30 n1 follower", "30 n2 follower"}, model.VerdictFail, "0 nodes lead"},
		{"views of one leader, one of them old", "two-leaders", map[string]string{"view": "role"}, true,
			[]string{"20.1 n1 n1", "30 n2 n2", "30 n3 n2"}, model.VerdictPass, ""},
		{"views that differ", "two-leaders", map[string]string{"view": "role"}, true,
			[]string{"29.9 n1 n1", "30 n2 n2", "30 n3 n2"}, model.VerdictFail, "name different leaders"},
		{"one that names itself, and is silent", "two-leaders", map[string]string{"leader": "role"}, false,
			[]string{"12 n1 n1", "24 n2 n2"}, model.VerdictPass, ""},
		{"two that do", "two-leaders", map[string]string{"leader": "role"}, false,
			[]string{"24 n1 n1", "24 n2 n2"}, model.VerdictFail, "2 nodes lead"},
		{"nobody showed for how long two led", "leaders", map[string]string{"variable": "other", "overlap": "1s"}, true,
			[]string{"30 n1 leader"}, model.VerdictUnknown, "nothing says who leads"},
	} {
		r := led(t, c.check, c.with, c.lines...)
		if r.Recovery.Stable = c.stable; !c.stable {
			last := map[model.VarRef]string{}
			for _, o := range r.Observations {
				last[o.Var] = o.Value
			}
			for v, value := range last {
				r.Recovery.Final = append(r.Recovery.Final, model.VarValue{Var: v, Value: value})
			}
		}
		if v := Judge(r); v.Value != c.value || !strings.Contains(v.Reason, c.want) {
			t.Errorf("%s: want %s with %q, got %+v", c.name, c.value, c.want, v)
		}
	}
}

// TestNobodyShowedWhoLed: roles asked for at the end do not say whether two led
// before.
func TestNobodyShowedWhoLed(t *testing.T) {
	r := led(t, "leaders", map[string]string{"variable": "role", "overlap": "1s"})
	r.History = []record.Entry{{Workload: "w", Operation: model.Operation{Type: model.OpOK, F: "final-role", Value: "leader", Node: "n1", Time: 21 * time.Second}}}
	if v := Judge(r); v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "no node ever showed role") {
		t.Errorf("%+v", v)
	}
}
