package main

import (
	"cmp"
	"fmt"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// history is that of the user and the administrator.
type history struct{ *workload.History }

// outcome of an operation: an error whose first word is stable, and whether
// it is certain that the operation did not happen.
type outcome struct {
	key     string // "": as at the invocation
	value   string // likewise
	err     string
	unknown bool
}

func ok(value string) outcome { return outcome{value: value} }

func failed(word, format string, a ...any) outcome {
	return outcome{err: word + ": " + fmt.Sprintf(format, a...)}
}

func unknown(word, format string, a ...any) outcome {
	o := failed(word, format, a...)
	o.unknown = true
	return o
}

// do runs an operation and prints its two lines.
func (h history) do(op model.Operation, f func() outcome) outcome {
	op.Type = model.OpInvoke
	h.Add(op)
	o := f()
	op.Needs = nil
	op.Key, op.Value = cmp.Or(o.key, op.Key), cmp.Or(o.value, op.Value)
	op.Type, op.Error = model.OpOK, o.err
	switch {
	case o.unknown:
		op.Type = model.OpInfo
	case o.err != "":
		op.Type = model.OpFail
	}
	h.Add(op)
	return o
}
