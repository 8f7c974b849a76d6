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
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(lostAnswer), 0o600); err != nil {
		t.Fatal(err)
	}
	for bug, want := range map[string]model.VerdictValue{"second-lease": model.VerdictFail, "none": model.VerdictPass} {
		t.Run(bug, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			res := harness.Run(t, "run", target, "--set", "bug="+bug, "--scenario", file, "-n", "1", "--runs-dir", dir)
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			if len(runs) != 1 || runs[0].Verdict.Value != want || runs[0].Failed("lost-acknowledged-writes") != (want == model.VerdictFail) {
				t.Errorf("%s, want %s\n%s", harness.Verdicts(runs), want, res)
			}
		})
	}
}
