package run

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// ruleCut is a cut of a script, from when it is asked for to its heal. The switch makes it;
// what comes to the gate all the same, or is kept there, the gate refuses.
type ruleCut struct {
	model.Partition
	inForce bool
	refused map[model.Link]int // by the gate
}

func (a *ruleCut) takes(l model.Link, frame []byte) bool {
	return slices.Contains(a.Links(), l) && (len(a.Only) == 0 || agent.Of(frame, a.Only))
}

// cutBy lists the script's cuts that a frame on a link is of. The caller holds mu.
func (s *session) cutBy(l model.Link, frame []byte) (out []*ruleCut) {
	for _, a := range s.cuts {
		if a.takes(l, frame) {
			out = append(out, a)
		}
	}
	return out
}

// inForceOn says whether a cut in force holds a frame back on a link: a mirror shows what
// goes to many also where only some get it. The caller holds mu.
func (s *session) inForceOn(l model.Link, frame []byte) bool {
	return slices.ContainsFunc(s.cutBy(l, frame), func(a *ruleCut) bool { return a.inForce })
}

// enterCut enters a cut of a script, or with nil the end of one. The caller holds mu.
func (s *session) enterCut(at time.Duration, name string, p *model.Partition, format string, args ...any) {
	c := &model.RuleCut{Name: name, Partition: p}
	delete(s.cuts, name)
	if p != nil {
		if s.cuts == nil {
			s.cuts = map[string]*ruleCut{}
		}
		a := &ruleCut{Partition: *p, refused: map[model.Link]int{}}
		s.cuts[name] = a
		for n, k := range s.faults.kept {
			if a.takes(model.Link{Src: k.held.From, Dst: k.held.To}, k.data) {
				c.Kept = append(c.Kept, n)
			}
		}
		slices.Sort(c.Kept)
	}
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventRuleCut, RuleCut: c, Note: fmt.Sprintf(format, args...)}))
}

// countRuleCut books what the gate refuses of a script's cuts. The caller holds mu.
func (s *session) countRuleCut(held *heldFrame, d model.Decision) {
	if d.Action != model.DropPacket || d.Reason != model.ReasonAcross {
		return
	}
	l := model.Link{Src: held.packet.From, Dst: held.packet.To}
	for _, a := range s.cutBy(l, held.data) {
		a.refused[l]++
	}
}

// refused is what the gate has refused so far of a script's cut.
func (s *session) refused(name string) map[model.Link]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.cuts[name]; a != nil {
		return maps.Clone(a.refused)
	}
	return nil
}

// gated are the pairs of hosts that a script has the gate hold, each way, and since when
// nothing passes it by.
type gated struct {
	links map[model.Link]bool
	since time.Duration
}

// checkGated fails the run where the mirror port shows what the gate was to hold. The
// caller holds mu.
func (s *session) checkGated(at time.Duration, p *model.Packet) {
	if s.gated.links[model.Link{Src: p.From, Dst: p.To}] && at > s.gated.since {
		s.gated.links = nil // once
		s.incomplete = append(s.incomplete, fmt.Sprintf("a packet from %s to %s passed the gate by at %v, after it was proved to hold all: what message faults met is not known", p.From, p.To, at))
	}
}

// isProbe says whether netsplit itself sent a packet of TCP or UDP, by its ports. ARP requests
// of netsplit's own look like all others.
func isProbe(p *model.Packet) bool {
	return (p.Proto == model.ProtoTCP || p.Proto == model.ProtoUDP) && (p.Src.Port() == model.ProbePacketPort || p.Dst.Port() == model.ProbePacketPort)
}
