package check

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestABusyMachineAccusesNobody: what comes late where all wait for a CPU is not
// known to be their doing. Lost data and ended processes are.
func TestABusyMachineAccusesNobody(t *testing.T) {
	for _, c := range []struct {
		check, signature string
		stable           bool
		taken            bool
	}{
		{"recovery", "not recovered", false, true},
		{"operations", "write failed", true, true},
		{"workload-hang", "w did not end", true, true},
		{"leaders", "fewer than 1 lead after recovery", true, true},
		{"leaders", "more than 1 lead after recovery", true, false},
		{"two-leaders", "views of the leader differ after recovery", false, true},
		{"two-leaders", "views of the leader differ after recovery", true, false},
		{"two-leaders", "two leaders in one epoch", false, false},
		{"not-finished", "a job is lost", true, false},
		{"copies-equal", "copies differ", false, false},
		{"process-died", "n1 died", false, false},
	} {
		for _, wait := range []float64{model.Busy - 0.01, model.Busy} {
			r := Record{Target: &model.Target{Checks: []model.CheckSpec{{Name: c.check}}}, CPUWait: wait, WorkloadEnd: 1}
			r.Recovery.Stable = c.stable
			v := judge(r, func(string) (checker, bool) {
				return checker{run: func(*Record, settings) outcome {
					return outcome{failures: []model.Failure{{Signature: c.signature, Summary: "so it was"}}}
				}}, true
			})
			want := model.VerdictFail
			if c.taken && wait >= model.Busy {
				want = model.VerdictUnknown
			}
			if v.Value != want || strings.Contains(v.Reason, "quieter machine") != (want == model.VerdictUnknown) || !strings.Contains(v.Reason, "so it was") {
				t.Errorf("%+v at %v: %s: %s", c, wait, v.Value, v.Reason)
			}
		}
	}
}
