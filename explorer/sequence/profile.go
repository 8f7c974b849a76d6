package sequence

import (
	"slices"
	"time"

	"netsplit/model"
)

// FromEvents is the profile of a recorded run. fired lists the events at which its faults
// occurred, in order (FiredSteps); none for a clean run. A message that the gate held is
// delivered with the first packet that carries it and was not refused. If that packet was
// kept for a while, the message counts as delivered when the packet came to the gate.
func FromEvents(events []model.Event, decisions []model.Decision, fired []uint64, o Options) model.Profile {
	p, _ := read(events, decisions, fired, nil, o)
	return p
}

// read is FromEvents. It also returns the points at these moments, in their order.
func read(events []model.Event, decisions []model.Decision, fired []uint64, moments []moment, o Options) (model.Profile, []model.Point) {
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
	at, started, ended, from := 0, false, false, time.Duration(0)
	pending := map[uint64]*model.Message{}
	turns := map[model.Point]int{}
	sent := map[uint64]model.Point{} // by message
	met := make([]model.Point, len(moments))
	// A trigger counts every message that it selects, even one without a point.
	add := func(e *model.Event, seen, pt model.Point, ok bool) {
		triggers := seen.Triggers(t.keys)
		if turns[triggers]++; ok {
			p.Points = append(p.Points, model.SeenPoint{Point: pt, Step: at, Turn: turns[triggers], Event: e.Num, At: e.At,
				Beyond: ended || o.LastFault > 0 && e.At-from >= o.LastFault})
		}
	}
	receives := func(e *model.Event, m *model.Message) {
		pt, ok := t.Receives(m)
		add(e, model.Point{Side: model.SideReceive, Node: m.To, Peer: m.From, Type: m.Type}, pt, ok)
	}
	for i := range events {
		e := &events[i]
		for at < len(fired) && fired[at] < e.Num {
			at++
			clear(turns)
		}
		for j, m := range moments {
			switch {
			case m.event != e.Num:
			case e.Kind == model.EventFile:
				met[j] = t.next(operation(e.File))
			case m.receive:
				met[j] = t.delivers(pending[m.message])
			case m.message != 0:
				met[j] = sent[m.message]
			}
		}
		switch {
		case e.Kind == model.EventWorkload:
			started, from = true, e.At
		case e.Kind == model.EventStop:
			ended = true
		case !started:
		case e.Kind == model.EventFile:
			pt, ok := t.Operates(e.File)
			add(e, operation(e.File), pt, ok)
		case e.Kind == model.EventMessage:
			m := e.Message
			pt, ok := t.Sends(m)
			if add(e, model.Point{Side: model.SideSend, Node: m.From, Peer: m.To, Type: m.Type}, pt, ok); ok && len(moments) > 0 {
				sent[m.Num] = pt
			}
			if held[m.Num] {
				pending[m.Num] = m
			} else {
				receives(e, m)
			}
		case e.Kind == model.EventPacket:
			if a := last[e.Packet.Frame]; a == model.DropPacket || a == model.ResetConn {
				continue
			}
			for _, n := range append(slices.Clone(e.Packet.Again), e.Packet.Messages...) {
				if m := pending[n]; m != nil {
					delete(pending, n)
					receives(e, m)
				}
			}
		}
	}
	return p, met
}
