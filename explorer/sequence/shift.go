package sequence

import (
	"slices"
	"time"

	"netsplit/model"
)

// shiftDown is how long the node that both majorities share stays down: a supervisor starts it.
const shiftDown = time.Second

// shiftSteps is how many steps play a shift.
const shiftSteps = 3

// isShift says that a fault is a cut that moves over a node.
func isShift(k model.PointFaultKind) bool {
	return k == model.PointShiftCrash || k == model.PointShiftPowerCut
}

// shift is the steps of a cut that moves. A minority is cut off from its point on, for MaxCut.
// Then, without a gap, the node of the point is on the minority's side, and the others, the peer
// among them, are cut off from both. At this moment the node fails. The minority is the nodes
// that follow the point's node in the target's order, without the peer. Of an even number of nodes
// one more is on both sides, and does not fail.
func (p Play) shift(f Placed, when model.Trigger, match model.MessageMatch) []model.Step {
	p.at(f, match, &when)
	var others []model.NodeID
	at := slices.Index(p.Nodes, f.Node)
	for i := 1; i < len(p.Nodes); i++ {
		if n := p.Nodes[(at+i)%len(p.Nodes)]; n != f.Node && n != f.Peer {
			others = append(others, n)
		}
	}
	minority := others[:min(len(others), max(1, (len(p.Nodes)-1)/2))]
	side := append(slices.Clone(minority), f.Node)
	if len(p.Nodes)%2 == 0 && len(others) > len(minority) {
		side = append(side, others[len(minority)]) // else it is no majority
	}
	// Clients reach both sides, whatever the target says of isolated nodes: what is acknowledged
	// behind the second cut shows what was forgotten.
	parted := func(one []model.NodeID) *model.Partition {
		c := model.IsolateAll(one, p.Nodes, model.Drop)
		c.Shape = model.Partial
		return &c
	}
	first, second := parted(minority), parted(side)
	fails := model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: f.Node}}
	if f.Kind == model.PointShiftPowerCut {
		fails = model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: f.Node}}
	}
	return []model.Step{
		{When: when, Do: model.Fault{Cut: first}, Max: p.MaxCut},
		{When: model.Trigger{Follows: model.FollowsEnd}, Do: model.Fault{Cut: second}, Max: p.MaxCut},
		{When: model.Trigger{Follows: model.FollowsBegin}, Do: fails, Until: model.Trigger{After: shiftDown}},
	}
}
