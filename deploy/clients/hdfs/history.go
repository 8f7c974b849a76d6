package main

import (
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// history is that of the users and the administrator.
type history struct{ *workload.History }

// do prints an operation before and after it runs. An error that is a
// timeout leaves open what happened.
func (h history) do(op model.Operation, f func() (value string, err error)) error {
	op.Type = model.OpInvoke
	h.Add(op)
	value, err := f()
	op.Type, op.Needs = model.OpOK, nil
	if value != "" {
		op.Value = value
	}
	if err != nil {
		op.Type, op.Error = model.OpFail, err.Error()
		if isTimeout(err) {
			op.Type = model.OpInfo
		}
	}
	h.Add(op)
	return err
}

// did prints an operation that failed and of which nobody knew, when it began, that
// it would be one.
func (h history) did(began time.Time, op model.Operation, err error) {
	op.Type, op.Time = model.OpInvoke, h.Since(began)
	h.Put(op)
	op.Type, op.Needs, op.Error = model.OpFail, nil, err.Error()
	h.Add(op)
}
