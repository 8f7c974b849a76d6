package run

import (
	"slices"

	"netsplit/model"
)

// receivers are the hosts that a frame is entered for, each with its own copy; "" is the
// one that its addresses say. What goes to many comes from the tap once, and is decided
// for every receiver by itself: one of them may be cut off. The caller holds mu.
func (s *session) receivers(from model.NodeID, frame []byte, held bool) []model.NodeID {
	one := []model.NodeID{""}
	if len(frame) < 12 || frame[0]&1 == 0 {
		return one
	}
	if from == "" {
		from = s.gate.HostOf([6]byte(frame[6:]))
	}
	all := s.gate.Receivers(from, held)
	p := &s.pipe.DecodeOnly(model.Frame{Data: frame}).Packet
	if asks := p.Proto == model.ProtoARP && slices.Contains(all, p.To); asks || len(all) == 0 {
		return one
	}
	return all
}
