package pipeline

import (
	"os"
	"path/filepath"
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
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(failedWrite), 0o600); err != nil {
		t.Fatal(err)
	}
	for bug, want := range map[string]model.VerdictValue{"ignored-error": model.VerdictFail, "none": model.VerdictPass} {
		t.Run(bug, func(t *testing.T) {
			harness.LeavesNothing(t)
			dir := t.TempDir()
			res := harness.Run(t, "run", target, "--set", "bug="+bug, "--scenario", file, "-n", "1", "--runs-dir", dir)
			runs := harness.Records(t, dir, harness.CampaignID(t, res))
			if len(runs) != 1 || runs[0].Verdict.Value != want || runs[0].Failed("gone") != (want == model.VerdictFail) {
				t.Fatalf("%s, want %s\n%s", harness.Verdicts(runs), want, res)
			}
			failed := harness.Run(t, "query", runs[0].Dir, "select host, op, kind, fate, error from file where fate <> 'pass'")
			if !strings.Contains(strings.Join(strings.Fields(failed.Stdout), " "), "n3 write b#_#.tmp fail EIO") {
				t.Errorf("%s", failed)
			}
		})
	}
}
