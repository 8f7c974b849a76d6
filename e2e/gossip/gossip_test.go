package gossip

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m) }

const target = "../targets/gossip/target.yaml"

// longVar asks for the long form: more seeds, and the 100 runs without the bug.
const longVar = "NETSPLIT_E2E_LONG"

// size gives the seeds of the campaigns with the bug, chosen beforehand, and
// how many judged runs without it must show nothing.
func size() (seeds []int, clean int) {
	if os.Getenv(longVar) != "" {
		return []int{1, 2, 3, 4, 5}, 100
	}
	return []int{1, 2}, 40
}

func TestFindsTheBugInEveryCampaign(t *testing.T) {
	seeds, _ := size()
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			// Whether, not how soon: a busy machine misses moments. internal/sim bounds how soon.
			res := harness.Run(t, "campaign", target, "--set", "bug=true", "--seed", strconv.Itoa(seed), "--clean", "5", "--faults", "60",
				"--stop-when-broken", "--labs", "6", "--runs-dir", dir, "--progress", "plain")
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			if cut := harness.CheckProofs(t, runs); cut == 0 {
				t.Errorf("no run cut: %s", harness.Verdicts(runs))
			}
			first := 0
			for i, r := range runs {
				if !r.Failed("resurrected") {
					continue
				}
				if r.Clean() {
					t.Errorf("%s: resurrected without a cut, so the cut is not what finds it", r.Run)
				}
				if first == 0 {
					first = i + 1
				}
			}
			if first == 0 {
				t.Fatalf("not found in %d runs: %s\n%s", len(runs), harness.Verdicts(runs), res)
			}
			t.Logf("found in run %d of %d", first, len(runs))
			if res.Code != 3 || !strings.Contains(res.Stdout, "resurrected") {
				t.Errorf("a finding must be told and give exit status 3: %s", res)
			}
			mapsTheCut(t, dir, runs[first-1])
		})
	}
}

// mapsTheCut: the partition map has the gossip that a run's cut kept back, and the run's
// export shows cut and heal.
func mapsTheCut(t *testing.T, dir string, r harness.Record) {
	t.Helper()
	res := harness.Run(t, "campaign", "map", r.Campaign, "--runs-dir", dir, "--only", "failed", "-o", "json")
	var cells []wire.MapCell
	if err := json.Unmarshal([]byte(res.Stdout), &cells); err != nil {
		t.Fatalf("%v: %s", err, res)
	}
	if !slices.ContainsFunc(cells, func(c wire.MapCell) bool {
		return c.Type == "text GOSSIP" && c.Runs >= 5 && slices.ContainsFunc(c.Outcomes, func(o wire.MapOutcome) bool { return o.Kind == "cut" && o.Failed > 0 })
	}) {
		t.Errorf("no gossip that a cut kept back in a failed run: %+v", cells)
	}
	res = harness.Run(t, "export", r.Dir, "--format", "shiviz")
	for _, want := range []string{" cut ", "heal: ", `"netsplit":2`, "receive from ", "GOSSIP"} {
		if res.Code != 0 || !strings.Contains(res.Stdout, want) {
			t.Errorf("export: status %d, %q is not in the log of %d bytes: %s", res.Code, want, len(res.Stdout), res.Stderr)
		}
	}
}

func TestFindsNothingWithoutTheBug(t *testing.T) {
	harness.LeavesNothing(t)
	_, n := size()
	dir := t.TempDir()
	judged, cut := 0, 0
	// One strategy is done when it has been everywhere; the other never is.
	for _, strategy := range []string{"cofi", "random"} {
		if judged >= n {
			break
		}
		res := harness.Run(t, "campaign", target, "--strategy", strategy, "--seed", "4", "--clean", "5", "--faults", strconv.Itoa(n-judged),
			"--labs", "6", "--runs-dir", dir, "--progress", "plain")
		if res.Code != 0 || !strings.Contains(res.Stdout, "no findings") {
			t.Errorf("%s: %s", strategy, res)
		}
		runs := harness.Judged(t, harness.Records(t, dir, harness.CampaignID(t, res)))
		cut += harness.CheckProofs(t, runs)
		for _, r := range runs {
			switch {
			case r.Verdict.Value == model.VerdictPass || r.Verdict.Value == model.VerdictVacuous:
				judged++
			case r.Verdict.Value == model.VerdictUnknown && strings.Contains(r.Verdict.Reason, "no removal was acknowledged"):
				// Cut off from before the removal to the end: nothing to judge.
			default:
				t.Errorf("%s %s: %s", r.Run, r.Verdict.Value, r.Verdict.Reason)
			}
		}
	}
	if judged < n || cut < n/4 {
		t.Errorf("%d runs judged, %d of them cut; want %d and %d", judged, cut, n, n/4)
	}
	t.Logf("%d runs judged, %d of them cut, no finding", judged, cut)
}
