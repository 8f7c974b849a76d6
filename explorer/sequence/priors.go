package sequence

import (
	"slices"

	"netsplit/model"
)

// Priors lists the kinds of faults at messages that the NEAT study asks for: a search has
// those that it is told. One with a period is there for each of them.
func Priors(periods []string) []FaultAt {
	at := func(k model.PointFaultKind, sides ...model.Side) (out []FaultAt) {
		for _, s := range sides {
			out = append(out, FaultAt{k, s, model.PlaceBefore})
		}
		return out
	}
	out := slices.Concat(
		at(model.PointSilence, model.SideSend, model.SideReceive),
		at(model.PointPartial, model.SideSend), // of both ends
		at(model.PointWithClient, model.SideSend, model.SideReceive),
		at(model.PointLeader, model.SideSend),
		at(model.PointLoseAnswer, model.SideSend))
	for _, p := range periods {
		out = append(out, at(model.PointPeriod.For(p), model.SideSend, model.SideReceive)...)
	}
	return out
}

// prior is the step of a fault of the NEAT study that begins at a message, as the step before
// has begun; false: the fault is none of them.
func (p Play) prior(f Placed, when model.Trigger, match model.MessageMatch) (model.Step, bool) {
	st := model.Step{When: when, Max: p.MaxCut}
	p.at(f, match, &st.When)
	cut := func(c model.Partition) { st.Do.Cut = &c }
	switch f.Kind {
	case model.PointSilence:
		cut(model.Isolate(f.Node, slices.Concat(p.Nodes, p.Clients), model.Drop))
		st.Do.Isolate, st.Do.Node = f.Node, &model.NodeFault{Verb: model.NodeKill, Host: f.Node}
	case model.PointPartial:
		cut(model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{f.Node}, {f.Peer}}})
	case model.PointWithClient:
		side := []model.NodeID{p.Clients[0], f.Node}
		cut(model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{side,
			slices.DeleteFunc(slices.Concat(p.Nodes, p.Clients), func(h model.NodeID) bool { return slices.Contains(side, h) })}})
		st.Do.Isolate = f.Node
	case model.PointLeader:
		cut(p.Isolating(model.NodeID(p.Role)))
		st.Do.Isolate, st.Do.Roles = model.NodeID(p.Role), []string{p.Role}
	case model.PointBoth:
		cut(p.Isolating(f.Node, f.Peer))
	case model.PointLoseAnswer:
		return model.Step{When: when, Do: model.Fault{Message: &model.MessageFault{
			Kind: model.FaultLose, Lose: model.LoseMessage, Answer: true, Match: match, Nth: f.Turn}}}, true
	default:
		name, ok := f.Kind.Period()
		if !ok {
			return st, false
		}
		cut(p.Isolating(f.Node))
		st.Do.Isolate, st.Max = f.Node, p.Periods[name]*5/4
	}
	return st, true
}
