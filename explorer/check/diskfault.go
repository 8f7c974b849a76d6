package check

import (
	"fmt"
	"slices"

	"netsplit/model"
)

// diskFaults are the disk faults of the run that began.
func (r *Record) diskFaults() (out []diskFault) {
	for _, b := range r.begun() {
		if f := b.Do.Disk; f != nil {
			out = append(out, diskFault{f, b.went})
		}
	}
	return out
}

type diskFault struct {
	*model.DiskFault
	went model.StepResult
}

func (f *diskFault) disturbance() disturbance {
	d := disturbance{from: f.went.Began, since: f.went.Began, to: forever, down: f.Host, what: fmt.Sprintf("the disk fault of step %d (%s)", f.went.Step, f)}
	if f.went.EndedBy != "" {
		d.to = max(f.went.Ended, d.from)
	}
	return d
}

// excuseByDisk makes of servers that ended while their disk failed servers that the fault has
// killed: many end on purpose rather than go on without what they wrote.
func excuseByDisk(r *Record) {
	faults := r.diskFaults()
	if len(faults) == 0 {
		return
	}
	r.Exits, r.Actions = slices.Clone(r.Exits), slices.Clone(r.Actions)
	for i := range r.Exits {
		e := &r.Exits[i]
		if !e.Expected && slices.ContainsFunc(faults, func(f diskFault) bool {
			d := f.disturbance()
			return f.Of(e.Host, e.Process) && d.holds(e.At)
		}) {
			e.Expected = true
			r.Actions = append(r.Actions, NodeAction{At: e.At, NodeAction: model.NodeAction{Verb: model.NodeKill, Host: e.Host, Process: e.Process}})
		}
	}
}

// idleDisk says which disk fault met no operation that it could have failed; "" if all did.
func idleDisk(r *Record) string {
	for _, f := range r.diskFaults() {
		if !f.Kills() && f.went.Failed == 0 {
			return fmt.Sprintf("step %d (%s): nothing wanted to be written there meanwhile", f.went.Step, f)
		}
	}
	return ""
}

// notSeen is why a step that waits for a file operation did not begin or end.
const notSeen = "its file operation did not come before the workload ended (what is written to mapped memory is not seen)"
