package run

import (
	"slices"

	"netsplit/model"
	"netsplit/testbed/agent"
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
	p := &s.pipe.Look(model.Frame{Data: frame}).Packet
	if asks := p.Proto == model.ProtoARP && slices.Contains(all, p.To); asks || len(all) == 0 {
		return one
	}
	return all
}

// isApart says whether a script's cut holds a frame back on a link: a mirror shows what
// goes to many also where only some get it. The caller holds mu.
func (s *session) isApart(l model.Link, frame []byte) bool {
	for _, p := range s.apart {
		if slices.Contains(p.Links(), l) && (len(p.Only) == 0 || agent.Of(frame, p.Only)) {
			return true
		}
	}
	return false
}

// part says that a script's cut is in force from now on, or no more.
func (s *session) part(name string, p *model.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		delete(s.apart, name)
		return
	}
	if s.apart == nil {
		s.apart = map[string]model.Partition{}
	}
	s.apart[name] = *p
}
