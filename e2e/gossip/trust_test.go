package gossip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// quiet is a system whose nodes have nothing to say to one another.
const quiet = `
name: quiet
nodes: [n1, n2, n3]
clients: [c1]
protocols: [{port: 7000, transport: tcp, dissector: text}]
processes: [{name: server, hosts: [n1, n2, n3], command: [sleep, "60"]}]
stable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]
variables: []
workloads: [{name: idler, host: c1, command: [sleep, "1"]}]
checks: [{name: process-died, class: broken, quote: none}]
timing: {settle: 5s, workload: 1s, max_cut: 300ms, recover: 2s}
`

// TestFaultRunsThatShowNothing: that clean runs pass is no pass of the campaign, and
// the reason is told.
func TestFaultRunsThatShowNothing(t *testing.T) {
	harness.LeavesNothing(t)
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "target.yaml")
	if err := os.WriteFile(file, []byte(quiet), 0o600); err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, "campaign", file, "--strategy", "random", "--seed", "1", "--clean", "3", "--faults", "3", "--labs", "3", "--runs-dir", dir, "--progress", "plain")
	for _, r := range harness.Records(t, dir, harness.CampaignID(t, res)) {
		if want := map[bool]model.VerdictValue{true: model.VerdictPass, false: model.VerdictVacuous}[r.Clean()]; r.Verdict.Value != want {
			t.Errorf("%s: %s: %s, want %s", r.Run, r.Verdict.Value, r.Verdict.Reason, want)
		}
	}
	if res.Code != 4 || !strings.Contains(res.Stderr, "3 of 3 fault runs: no packet wanted to cross the cut") {
		t.Errorf("%s", res)
	}
}

// TestAWrongTargetFileIsToldOf: a check that every run fails is told of as soon as a
// clean run does, and ends a search that was asked to stop.
func TestAWrongTargetFileIsToldOf(t *testing.T) {
	harness.LeavesNothing(t)
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "target.yaml")
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), "  - name: workload-hang\n", "  - name: workload-hang\n    with: {limit: 1ms}\n", 1)
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil || wrong == string(text) {
		t.Fatalf("no other target file: %v", err)
	}
	res := harness.Run(t, "campaign", file, "--seed", "1", "--clean", "3", "--faults", "12", "--labs", "1", "--stop-when-suspect", "--runs-dir", dir, "--progress", "plain")
	if runs := harness.Records(t, dir, harness.CampaignID(t, res)); len(runs) > 2 { // the second may have begun
		t.Errorf("it went on for %d runs", len(runs))
	}
	if res.Code != 4 || !strings.Contains(res.Stderr, "warning: workload-hang: operations took longer than their limit shows also without any fault") ||
		!strings.Contains(res.Stderr, "  what to change: read the report of ") || !strings.Contains(res.Stdout, "error (broken): ") {
		t.Errorf("%s", res)
	}
}
