package workload

import (
	"fmt"
	"time"

	"netsplit/model"
)

// Outage is the time in which a client gets no acknowledgement, as an
// operation of its own: "resume" begins at the first failure and ends with the
// next acknowledgement, or without an answer when it has lasted too long. A single
// operation may fail while leaders change.
type Outage struct {
	Out    *History
	Within time.Duration
	op     *model.Operation // that has begun
	since  time.Time
}

// Failed notes a failure at a moment. Process, Node and Needs of the operation are those
// of op.
func (o *Outage) Failed(at time.Time, op model.Operation) {
	switch {
	case o.op == nil:
		op.Type, op.F, op.Key, op.Error = model.OpInvoke, "resume", "", ""
		o.op, o.since = &op, at
		o.Out.Add(op)
	case at.Sub(o.since) > o.Within:
		o.End(model.OpInfo, fmt.Sprintf("timeout no acknowledgement in %s", o.Within))
	}
}

// End ends the operation, if one has begun.
func (o *Outage) End(t model.OpType, text string) {
	if o.op == nil {
		return
	}
	o.op.Type, o.op.Error, o.op.Needs = t, text, nil
	o.Out.Add(*o.op)
	o.op = nil
}
