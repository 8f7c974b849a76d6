package nodes

import (
	"testing"
	"time"

	"netsplit/model"
	"netsplit/testbed/proc"
)

// What an operation's command prints, and how it ends, says whether it happened.
// Only what the target file knows to be a refusal did not; silence is unknown.
func TestOutcomeOfAnOperation(t *testing.T) {
	op := model.ClientOperation{OK: `^ok ?(?P<value>.*)$`, Refused: `^error|refused`}
	for _, c := range []struct {
		out, said string
		x         proc.Status
		late      bool
		want      OpResult
	}{
		{out: "ok v1\n", want: OpResult{Type: model.OpOK, Value: "v1"}},
		{out: "ok\n", want: OpResult{Type: model.OpOK}},
		{out: "error read-only\n", want: OpResult{Type: model.OpFail, Error: "error read-only"}},
		{said: "connection refused\n", x: proc.Status{Code: 1}, want: OpResult{Type: model.OpFail, Error: "connection refused"}},
		{said: "connection refused\n", late: true, want: OpResult{Type: model.OpFail, Error: "connection refused"}},
		{late: true, want: OpResult{Type: model.OpInfo, Error: "timeout after 2s"}},
		{out: "ok v1\n", late: true, want: OpResult{Type: model.OpInfo, Error: "timeout after 2s"}},
		{out: "ok v1\n", said: "reset by peer\n", x: proc.Status{Code: 1}, want: OpResult{Type: model.OpInfo, Error: "reset by peer (exit status 1)"}},
		{x: proc.Status{Code: 1}, want: OpResult{Type: model.OpInfo, Error: "it printed nothing (exit status 1)"}},
		// As the client of MariaDB says it.
		{said: "--------------\nINSERT INTO t\n--------------\n\nit is refused: ERROR 1047\n", x: proc.Status{Code: 1}, want: OpResult{Type: model.OpFail, Error: "it is refused: ERROR 1047"}},
		{said: "--------------\nINSERT INTO t\n", x: proc.Status{Code: 1}, want: OpResult{Type: model.OpInfo, Error: "INSERT INTO t (exit status 1)"}},
		{out: "what?\n", want: OpResult{Type: model.OpInfo, Error: "what? (exit status 0)"}},
	} {
		got, err := outcome(op, c.out, c.said, c.x, c.late, 2*time.Second)
		if err != nil || got != c.want {
			t.Errorf("%q %q %v late %v: %+v, %v, want %+v", c.out, c.said, c.x, c.late, got, err, c.want)
		}
	}
	if got, err := outcome(model.ClientOperation{}, "v1\n\n", "", proc.Status{}, false, time.Second); err != nil || got != (OpResult{Type: model.OpOK, Value: "v1"}) {
		t.Errorf("an operation without patterns: %+v, %v", got, err)
	}
}
