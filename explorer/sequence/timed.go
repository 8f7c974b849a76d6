package sequence

import (
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// untimed are the kinds of faults that need a message, or an operation on a file.
var untimed = []model.PointFaultKind{model.PointLose, model.PointLoseAnswer, model.PointDiskError, model.PointCorrupt, model.PointTorn}

// AtTimes are the kinds of faults that a random search draws from. A name for several kinds stands
// for those that need no message. It is an error if a named kind needs one, or if the target cannot
// have it.
func AtTimes(named []model.PointFaultKind, a Around) (out []model.PointFaultKind, err error) {
	at, err := Kinds(named, a, false)
	if err != nil {
		return nil, err
	}
	for _, k := range at {
		switch {
		case slices.Contains(out, k.Kind):
		case !slices.Contains(untimed, k.Kind):
			out = append(out, k.Kind)
		case slices.Contains(named, k.Kind):
			return nil, fmt.Errorf("a fault %s is of a message or an operation on a file, and strategy random has neither: leave it out, or use strategy sequences", k.Kind)
		}
	}
	return out, nil
}

// Timed is what plays a fault of AtTimes from one time of the workload to another, whatever
// other faults do. One of a period lasts as long as that says. Where it kills or pauses servers,
// it leaves those alone that another fault has killed, or that are being started.
func (p Play) Timed(kind model.PointFaultKind, node, peer model.NodeID, from, to time.Duration) []model.Step {
	p.MaxCut = 0
	if isShift(kind) {
		p.MaxCut = max((to-from)/2, 1) // it moves half-way
	}
	f := Placed{PointFault: model.PointFault{Point: model.Point{Side: model.SideSend, Node: node, Peer: peer}, Kind: kind, Place: model.PlaceAfter}}
	if kind == model.PointDiskFailure {
		f.Side = model.SideFile
	}
	out := p.one(f, model.Trigger{}, model.MessageMatch{})
	for i := range out {
		st := &out[i]
		st.When.Message, st.When.File = nil, nil
		if i == 0 {
			st.When.At = from
		}
		if st.Max == 0 && st.Until.After == 0 {
			st.Until.At = to
		}
		st.Do.IfRunning = st.Do.Node != nil || st.Do.Disk != nil && st.Do.Disk.Kills()
	}
	return out
}
