package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m) }

const target = "../targets/pipeline/target.yaml"

func TestTheTargetRunsAsItsFileSays(t *testing.T) {
	harness.LeavesNothing(t)
	res := harness.Run(t, "target", "check", "--run", target)
	if res.Code != 0 || strings.Contains(res.Stdout, "PROBLEM") || !strings.Contains(res.Stdout, "runs as its file says") {
		t.Errorf("%s", res)
	}
}

// lostAnswer is the sequence of the bug second-lease: see the README of the target.
const lostAnswer = `
faults:
  - {kind: lose, lose: message, match: {type: "json allocate-ok", from: n1, to: c1}, nth: 1}
`

// TestALostAnswerShowsTheBugThatNeedsOne plays it with the bug and without.
func TestALostAnswerShowsTheBugThatNeedsOne(t *testing.T) {
	shows(t, "second-lease", lostAnswer, "lost-acknowledged-writes", func(*testing.T, harness.Record) {})
}

// shows plays a scenario: with the bug the check fails, without it the run passes. What a run
// recorded is looked at as well.
func shows(t *testing.T, bug, scenario, check string, look func(*testing.T, harness.Record)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	for bug, want := range map[string]model.VerdictValue{bug: model.VerdictFail, "none": model.VerdictPass} {
		t.Run(bug, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			res := harness.Run(t, "run", target, "--set", "bug="+bug, "--scenario", file, "-n", "1", "--runs-dir", dir)
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			if len(runs) != 1 || runs[0].Verdict.Value != want || runs[0].Failed(check) != (want == model.VerdictFail) {
				t.Fatalf("%s, want %s\n%s", harness.Verdicts(runs), want, res)
			}
			look(t, runs[0])
		})
	}
}

// padded is the same bug with two steps that it does not need.
const padded = `
steps:
  - do: {message: {kind: lose, lose: message, match: {type: "json allocate-ok", from: n1, to: c1}}}
  - do: {message: {kind: delay, for: 30ms, match: {type: "json heartbeat", to: n1}, nth: 2}}
  - when: {after: 20ms}
    do: {message: {kind: delay, for: 30ms, match: {type: "json heartbeat", to: n1}, nth: 4}}
`

// TestAFailureIsShrunkToTheStepThatItNeeds: the smallest scenario has one step of three, and
// as a file it fails again.
func TestAFailureIsShrunkToTheStepThatItNeeds(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	file, smallest := filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "smallest.yaml")
	if err := os.WriteFile(file, []byte(padded), 0o600); err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, "run", target, "--set", "bug=second-lease", "--scenario", file, "-n", "1", "--runs-dir", dir)
	runs := harness.Records(t, dir, harness.CampaignID(t, res))
	if len(runs) != 1 || !runs[0].Failed("lost-acknowledged-writes") {
		t.Fatalf("%s\n%s", harness.Verdicts(runs), res)
	}
	res = harness.Run(t, "shrink", runs[0].Run, "-n", "3", "--out", smallest, "--runs-dir", dir, "--progress", "plain")
	for _, want := range []string{"step 1: lose for good: json allocate-ok n1>c1, number 1\n    needed: failed in ", "smallest: 1 of 3 steps"} {
		if !strings.Contains(res.Stdout, want) {
			t.Errorf("no %q\n%s", want, res)
		}
	}
	if n := strings.Count(res.Stdout, "not needed: failed in "); res.Code != 0 || n != 2 {
		t.Errorf("%d steps are needless, want 2\n%s", n, res)
	}
	res = harness.Run(t, "run", target, "--set", "bug=second-lease", "--scenario", smallest, "-n", "1", "--runs-dir", dir)
	runs = harness.Records(t, dir, harness.CampaignID(t, res))
	if len(runs) != 1 || !runs[0].Failed("lost-acknowledged-writes") || len(runs[0].Scenario.Steps) != 1 {
		t.Errorf("the smallest scenario: %s\n%s", harness.Verdicts(runs), res)
	}
}

// TestASearchFindsTheBugThatNeedsOne: it is told the kind of faults, and nothing else. Without
// the bug, what it runs passes.
func TestASearchFindsTheBugThatNeedsOne(t *testing.T) {
	for bug, want := range map[string]int{"second-lease": 1, "none": 0} {
		t.Run(bug, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			res := harness.Run(t, "campaign", target, "--set", "bug="+bug, "--explore", "prioritised", "--kinds", "lose", "--clean", "2", "--faults", "4",
				"--seed", "1", "--shrink", "0", "--stop-when-broken", "--runs-dir", dir)
			id := harness.CampaignID(t, res)
			runs, failed := harness.Records(t, dir, id), 0
			for _, r := range runs {
				if r.Failed("lost-acknowledged-writes") {
					failed++
				}
			}
			if failed != want || len(runs) < 3 {
				t.Errorf("%s: %d runs lost a write, want %d\n%s", harness.Verdicts(runs), failed, want, res)
			}
			if rep := harness.Run(t, "policy", "report", id, "--runs-dir", dir); rep.Code != 0 || !strings.Contains(rep.Stdout, "with 1 fault") || !strings.Contains(rep.Stdout, "allocate-ok") {
				t.Errorf("%s", rep)
			}
		})
	}
}
