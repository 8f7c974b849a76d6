package testbed

import (
	"strings"
	"testing"

	"netsplit/e2e/harness"
)

// TestAScriptOnSomebodysRack: a script is played on a testbed that has a host more
// than its target uses, which reaches all the while whom it likes.
func TestAScriptOnSomebodysRack(t *testing.T) {
	harness.LeavesNothing(t)
	r := newRack(t, []string{"n1", "n2", "n3", "x1", "c1", "c2"})
	r.connect("127.0.0.1:6653")
	dir := t.TempDir()
	res := harness.Run(t, "script", "run", "redis-sentinel/split-brain", "--testbed", r.file, "--openflow", "127.0.0.1:6653", "--runs-dir", dir)
	if res.Code != 0 || !strings.Contains(res.Stdout, "split-brain: 1 of 1 plays failed (1 fail)") {
		t.Fatal(res)
	}
	sum := harness.Records(t, dir, harness.CampaignID(t, res))[0]
	if p := sum.Proof; p == nil || len(p.Links) != 12 || p.Wanted == 0 || p.Dropped != p.Wanted || p.Leaked != 0 || !p.LeakKnown {
		t.Errorf("proof %+v", p)
	}
	if res := harness.Run(t, "script", "run", "redis-sentinel/split-brain", "--openflow", "127.0.0.1:6653"); res.Code != 2 || !strings.Contains(res.Stderr, "--testbed is missing") {
		t.Error(res)
	}
}
