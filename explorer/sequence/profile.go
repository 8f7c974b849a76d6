package sequence

import (
	"slices"

	"netsplit/model"
)

// Fired lists the numbers of the events at which something was done to a run on
// purpose, in order: its cut began, a message fault acted for the first time, a server
// process was killed, stopped or paused.
func Fired(events []model.Event, decisions []model.Decision) []uint64 {
	var out []uint64
	acted := map[int]bool{}
	for _, d := range decisions {
		if d.Cut || d.Fault > 0 && !acted[d.Fault] {
			out = append(out, d.Event)
		}
		acted[d.Fault] = true
	}
	for _, e := range events {
		switch {
		case e.Kind == model.EventRuleCut && e.RuleCut.Partition != nil,
			e.Kind == model.EventNode && slices.Contains([]model.NodeVerb{model.NodeKill, model.NodeStop, model.NodePause}, e.Node.Verb):
			out = append(out, e.Num)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// FromEvents is the profile of a recorded run. fired lists the events at which its
// faults occurred (see Fired). A message that the gate held is delivered with the first
// packet that carries it and that was not refused; one that was kept for a while
// counts as delivered when it came to the gate.
func FromEvents(events []model.Event, decisions []model.Decision, fired []uint64, o Options) model.Profile {
	last := map[uint64]model.Action{}
	for _, d := range decisions {
		if d.Frame != 0 && d.Action != model.Copy && d.Action != model.Skip {
			last[d.Frame] = d.Action
		}
	}
	held := map[uint64]bool{}
	for _, e := range events {
		if e.Packet != nil {
			for _, n := range e.Packet.Messages {
				held[n] = true
			}
		}
	}
	p, t := model.Profile{}, NewTracker(o)
	at, started := 0, false
	pending := map[uint64]*model.Message{}
	turns := map[model.Point]int{}
	add := func(e *model.Event) func(model.Point, bool) {
		return func(pt model.Point, ok bool) {
			if ok {
				alike := model.Point{Side: pt.Side, Node: pt.Node, Peer: pt.Peer, Type: pt.Type}
				turns[alike]++
				p.Points = append(p.Points, model.SeenPoint{Point: pt, Step: at, Turn: turns[alike], Event: e.Num, At: e.At})
			}
		}
	}
	for i := range events {
		e := &events[i]
		for at < len(fired) && fired[at] < e.Num {
			at++
			clear(turns)
		}
		switch {
		case e.Kind == model.EventWorkload:
			started = true
		case !started:
		case e.Kind == model.EventMessage:
			add(e)(t.Sends(e.Message))
			if held[e.Message.Num] {
				pending[e.Message.Num] = e.Message
			} else {
				add(e)(t.Receives(e.Message))
			}
		case e.Kind == model.EventPacket:
			if a := last[e.Packet.Frame]; a == model.Refuse || a == model.ResetConn {
				continue
			}
			for _, n := range append(slices.Clone(e.Packet.Again), e.Packet.Messages...) {
				if m := pending[n]; m != nil {
					delete(pending, n)
					add(e)(t.Receives(m))
				}
			}
		}
	}
	return p
}
