package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestRandomFaultsOfEveryKind, which overlap: whatever is down already, no record is incomplete, no
// cut leaks, and each fault begins at its time.
func TestRandomFaultsOfEveryKind(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", target, "--strategy", "random", "--kinds", "crash,silence,pause,isolate,isolate-both,power-cut,disk-failure,power-cut-all,shift-crash",
		"--depth", "4", "--clean", "1", "--faults", "10", "--seed", "3", "--labs", "2", "--runs-dir", dir)
	runs, kinds, overlap := harness.Records(t, dir, harness.CampaignID(t, res)), map[string]bool{}, 0
	for _, r := range runs {
		if strings.Contains(r.Verdict.Reason, "not complete") || strings.Contains(r.Verdict.Reason, "did not hold") {
			t.Errorf("%s", harness.Verdicts(runs))
		}
		var first time.Duration // when the workload began
		for _, went := range r.Result.Steps {
			st := &r.Scenario.Steps[went.Step-1]
			kinds[strings.TrimRight(st.Do.String(), "n12345c,| ")] = true // without hosts
			began := went.Began - st.When.At
			switch {
			case went.By == "" || st.When.Follows != "":
			case first == 0:
				first = began
			case (began - first).Abs() > 700*time.Millisecond:
				t.Errorf("%s: step %d began %s from its time", r.Run, went.Step, began-first)
			}
		}
		steps := r.Scenario.Steps
		for i := range steps {
			if i > 0 && steps[i].When.At > 0 && steps[i].When.At < steps[i-1].Until.At && steps[i-1].When.At < steps[i].Until.At {
				overlap++
			}
		}
	}
	if len(runs) < 11 || len(kinds) < 6 || overlap == 0 {
		t.Errorf("%d runs, kinds %v, %d overlap\n%s", len(runs), kinds, overlap, res)
	}
}

// TestAMajorityThatMoves: the second cut begins as the first one ends, and the node that is on both
// sides fails then and is back.
func TestAMajorityThatMoves(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", target, "--strategy", "sequences", "--kinds", "shift-crash,shift-power-cut", "--only", "node=n2,peer=n1", "--clean", "2", "--faults", "4", "--seed", "1",
		"--shrink", "0", "--runs-dir", dir)
	runs, played := harness.Records(t, dir, harness.CampaignID(t, res)), map[model.PointFaultKind]int{}
	for _, r := range runs {
		if len(r.Scenario.Sequence) == 0 || r.Verdict.Value == model.VerdictVacuous {
			continue
		}
		if r.Verdict.Value == model.VerdictUnknown {
			t.Errorf("%s", harness.Verdicts(runs))
		}
		steps := r.Result.Steps
		if len(steps) != 3 || slices.ContainsFunc(steps, func(s model.StepResult) bool { return s.By == "" }) || steps[1].Began != steps[0].Ended || steps[2].Began < steps[1].Began || steps[2].Began > steps[1].Began+time.Second {
			t.Errorf("%s: %+v", r.Run, steps)
		}
		acts := harness.Run(t, "query", r.Dir, "select group_concat(verb || ' ' || host) from (select verb, host from node where host = 'n2' and verb in ('kill', 'start') and n > (select n from event where kind = 'workload') order by n)")
		if !strings.Contains(acts.Stdout, "kill n2,start n2") {
			t.Errorf("%s: %s", r.Run, acts)
		}
		played[r.Scenario.Sequence[0].Kind]++
	}
	if len(played) == 0 {
		t.Errorf("%s\n%s", harness.Verdicts(runs), res)
	}
}

// TestResetsOfACrashAreNoLeakOfAnotherCut: the kernel of a machine that dies is sent resets in the
// name of its peers, also of one that it is cut off from.
func TestResetsOfACrashAreNoLeakOfAnotherCut(t *testing.T) {
	harness.LeavesNothing(t)
	file, dir := filepath.Join(t.TempDir(), "scenario.yaml"), t.TempDir()
	if err := os.WriteFile(file, []byte(`steps:
  - {when: {at: 200ms}, do: {cut: {shape: partial, groups: [[n1], [n3]]}}, until: {at: 1s}}
  - {when: {at: 500ms}, do: {crash: n3, silent: true}, until: {at: 1s}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, "run", target, "--scenario", file, "-n", "1", "--runs-dir", dir)
	runs := harness.Records(t, dir, harness.CampaignID(t, res))
	if len(runs) != 1 || runs[0].Verdict.Value == model.VerdictUnknown || runs[0].Proof == nil || runs[0].Proof.Leaked != 0 || !runs[0].Proof.LeakKnown || runs[0].Proof.Dropped == 0 {
		t.Fatalf("%s\n%s", harness.Verdicts(runs), res)
	}
	connected := harness.Run(t, "query", runs[0].Dir, "select 'found' as it from message where src = 'n3' and dst = 'n1' and t < (select min(t) from cut) limit 1")
	if !strings.Contains(connected.Stdout, "found") {
		t.Errorf("n3 has no connection to reset: %s", connected)
	}
}
