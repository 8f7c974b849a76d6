package redis

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestRandomWithReset runs the other strategy with the other effect: at
// random moments, and connections across the cut are reset at both ends.
func TestRandomWithReset(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", "redis-sentinel", "--runs-dir", dir, "--strategy", "random", "--effect", "reset",
		"--clean", "1", "--faults", "3", "--labs", "3", "--seed", "11", "--set", "failovers=0", "--progress", "plain")
	if res.Code != 0 && res.Code != 3 {
		t.Fatal(res)
	}
	runs := harness.Records(t, dir, harness.CampaignID(t, res))
	if cut := harness.CheckProofs(t, runs); cut < 2 {
		t.Errorf("%d of 3 scenarios were cut and judged: %s", cut, harness.Verdicts(runs))
	}
	for _, r := range runs {
		if r.Clean() {
			continue
		}
		s := r.Scenario
		if cut := s.Cut(); s.Strategy != model.StrategyRandom || cut.When.At >= cut.Until.At || cut.Do.Cut.Effect != model.Reset {
			t.Errorf("%s: scenario %+v", r.Run, s)
		}
		replaysByteForByte(t, r)
		if r.Proof == nil || r.Verdict.Value == model.VerdictUnknown {
			continue
		}
		// Each node has connections to both others: replication or Sentinels.
		if r.Proof.ResetConns < 4 {
			t.Errorf("%s: %d connections reset", r.Run, r.Proof.ResetConns)
		}
		bothEnds(t, r)
	}
}

var resetLine = regexp.MustCompile(`\d+ \w{3} \d{4} (\d\d:\d\d:\d\d\.\d{3}) .*(Connection with (?:replica|master)\S* .*lost|Connection with master lost|Connection reset by peer)`)

// bothEnds checks that Redis noticed soon after the cut, on the host that was cut
// off and on another: nothing but an RST tells it so early, its repl-timeout is 10 s.
func bothEnds(t *testing.T, r harness.Record) {
	t.Helper()
	cut := r.Started.Add(r.Proof.CutAt)
	inside, outside := 0, 0
	for _, n := range []string{"n1", "n2", "n3"} {
		b, err := os.ReadFile(filepath.Join(r.Dir, "logs", n+"-redis.log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			m := resetLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at, err := time.ParseInLocation("2006-01-02 15:04:05.000", cut.Local().Format("2006-01-02 ")+m[1], time.Local)
			if err != nil {
				t.Fatal(err)
			}
			if late := at.Sub(cut); late < -5*time.Millisecond || late > 5*time.Second {
				continue
			}
			if model.NodeID(n) == r.Scenario.Cut().Do.Isolate {
				inside++
			} else {
				outside++
			}
		}
	}
	if inside == 0 || outside == 0 {
		t.Errorf("%s: cut off %s at %s: it noticed %d lost connections within 5 s, the others %d", r.Run, r.Scenario.Cut().Do.Isolate,
			cut.Local().Format("15:04:05.000"), inside, outside)
	}
}
