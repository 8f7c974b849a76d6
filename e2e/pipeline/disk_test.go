package pipeline

import (
	"strings"
	"testing"

	"netsplit/e2e/harness"
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
