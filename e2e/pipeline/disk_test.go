package pipeline

import (
	"slices"
	"strings"
	"testing"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// failedWrite is the sequence of the bug ignored-error, on whichever data node of the chain n3
// is: see the README of the target. The first write to a block's file is its first packet.
const failedWrite = `
steps:
  - when: {file: {op: write, path: "b#_#.tmp", host: n3, process: data-node}}
    do: {disk: {fault: eio}}
`

// TestAFailedWriteShowsTheBugThatNeedsOne plays it with the bug and without. The write failed,
// and the record says so.
func TestAFailedWriteShowsTheBugThatNeedsOne(t *testing.T) {
	shows(t, "ignored-error", failedWrite, "gone", func(t *testing.T, r harness.Record) {
		failed := harness.Run(t, "query", r.Dir, "select host, op, kind, fate, error from file where fate <> 'pass'")
		if !strings.Contains(strings.Join(strings.Fields(failed.Stdout), " "), "n3 write b#_#.tmp fail EIO") {
			t.Errorf("%s", failed)
		}
	})
}

// TestASearchFindsTheBugThatNeedsAFailedDisk: it is told that disks fail, and nothing else.
func TestASearchFindsTheBugThatNeedsAFailedDisk(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", target, "--set", "bug=ignored-error", "--explore", "prioritised", "--kinds", "disk-error", "--clean", "2",
		"--faults", "40", "--seed", "1", "--shrink", "0", "--stop-when-broken", "--runs-dir", dir)
	id := harness.CampaignID(t, res)
	runs := harness.Records(t, dir, id)
	if !slices.ContainsFunc(runs, func(r harness.Record) bool {
		return r.Failed("gone") && len(r.Scenario.Sequence) == 1 && r.Scenario.Sequence[0].Kind == model.PointDiskError
	}) {
		t.Errorf("%s\n%s", harness.Verdicts(runs), res)
	}
	points := harness.Run(t, "points", id, "--runs-dir", dir)
	for _, want := range []string{`disk-error before file n`, `"write b#_#.tmp"`, `crash before file n`, `corrupt before file n`} {
		if !strings.Contains(points.Stdout, want) {
			t.Errorf("no %q\n%s", want, points)
		}
	}
	if strings.Contains(points.Stdout, "no record has file operations") {
		t.Errorf("%s", points)
	}
}

// TestFaultsThatNameNoNode strike whoever operates on the file, or all nodes at once: the search
// is told kinds, and that a point is the same on every node.
func TestFaultsThatNameNoNode(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	res := harness.Run(t, "campaign", target, "--strategy", "sequences", "--kinds", "disk-error,power-cut-all", "--keys", "side,type,nth", "--only", "type=write b#_#.tmp",
		"--clean", "2", "--faults", "4", "--seed", "1", "--shrink", "0", "--runs-dir", dir)
	all, one := 0, 0
	runs := harness.Records(t, dir, harness.CampaignID(t, res))
	for _, r := range runs {
		if len(r.Scenario.Sequence) == 0 {
			continue
		}
		if r.Verdict.Value == model.VerdictUnknown || r.Verdict.Value == model.VerdictVacuous {
			t.Errorf("%s", harness.Verdicts(runs))
		}
		steps := r.Result.Steps
		switch r.Scenario.Sequence[0].Kind {
		case model.PointPowerCutAll:
			if all++; len(steps) != 5 || slices.ContainsFunc(steps, func(s model.StepResult) bool { return s.By == "" || s.Began != steps[0].Began }) {
				t.Errorf("%s: %+v", r.Run, steps)
			}
		case model.PointDiskError:
			one++
			if len(steps[0].Roles) != 1 || steps[0].Roles[0].Role != model.RoleFileHost || len(steps[0].Roles[0].Have) != 1 {
				t.Fatalf("%s: %+v", r.Run, steps)
			}
			want := string(steps[0].Roles[0].Have[0]) + " write EIO"
			failed := harness.Run(t, "query", r.Dir, "select host, op, error from file where fate <> 'pass'")
			if !strings.Contains(strings.Join(strings.Fields(failed.Stdout), " "), want) {
				t.Errorf("%s: no %q in %s", r.Run, want, failed)
			}
		}
	}
	if all == 0 || one == 0 {
		t.Errorf("%d power cuts of all nodes, %d failed writes\n%s", all, one, res)
	}
}
