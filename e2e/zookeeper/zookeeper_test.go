package zookeeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m, "zookeeper@3.9.5") }

// TestCampaignFromTheCache runs a campaign on a release that was fetched before, while
// neither mvn nor pip can be found: from the cache, without a network.
func TestCampaignFromTheCache(t *testing.T) {
	harness.LeavesNothing(t)
	t.Setenv("PATH", without(t, "mvn", "pip", "pip3"))
	dir := t.TempDir()
	res := harness.Run(t, "campaign", "zookeeper@3.9.5", "--runs-dir", dir, "--clean", "3", "--faults", "2", "--labs", "1",
		"--seed", "7", "--progress", "plain")
	if res.Code != 0 && res.Code != 3 && res.Code != 4 {
		t.Fatal(res)
	}
	runs := harness.Judged(t, harness.Records(t, dir, harness.CampaignID(t, res)))
	if len(runs) < 5 {
		t.Errorf("want 3 clean and 2 fault runs: %s", harness.Verdicts(runs))
	}
	for _, r := range runs {
		if r.Verdict.Value == model.VerdictUnknown {
			t.Errorf("%s could not be judged: %s", r.Run, r.Verdict.Reason)
		}
		if r.Clean() && r.Verdict.Value != model.VerdictPass {
			t.Errorf("%s, a run without any cut: %s: %s", r.Run, r.Verdict.Value, r.Verdict.Reason)
		}
		all, unknown := 0, 0
		elections := false
		for typ, n := range r.Messages {
			all += n
			if strings.Contains(typ, model.TypeUnknown) {
				unknown += n
			}
			elections = elections || strings.HasPrefix(typ, "zk-fle ") || strings.HasPrefix(typ, "fle ")
		}
		if all < 100 || unknown*100 > all {
			t.Errorf("%s: %d of %d messages are of no known type", r.Run, unknown, all)
		}
		if r.Release != "3.9.5" || r.Probes == 0 {
			t.Errorf("%s: release %q, %d probes", r.Run, r.Release, r.Probes)
		}
		if !r.Clean() && len(r.Scenario.Observe) == 0 {
			t.Errorf("%s observed no invariant", r.Run)
		}
	}
	harness.CheckProofs(t, runs)
}

// without is a PATH of links to every program but some.
func without(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		found, err := os.ReadDir(from)
		if err != nil {
			continue // not every folder of a PATH exists
		}
		for _, f := range found {
			_ = os.Symlink(filepath.Join(from, f.Name()), filepath.Join(dir, f.Name())) // the first one counts
		}
	}
	for _, p := range programs {
		if err := os.Remove(filepath.Join(dir, p)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return dir
}
