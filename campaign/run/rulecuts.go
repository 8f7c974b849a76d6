package run

import (
	"fmt"
	"slices"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

// inForceOn says whether a script's cut in force holds a frame back on a link: a mirror shows
// what goes to many also where only some get it. The caller holds mu.
func (s *session) inForceOn(l model.Link, frame []byte) bool {
	return slices.ContainsFunc(s.gateCuts, func(c *gateCut) bool {
		return c.script != "" && c.on && c.proof.InForceAt > 0 && c.links[l] != nil && (len(c.partition.Only) == 0 || agent.Of(frame, c.partition.Only))
	})
}

// beginCut enters a cut of a script: a step of the scenario from now on. The caller installs
// its rules.
func (s *session) beginCut(name string, p model.Partition) (*gateCut, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, step := s.now(), len(s.engine.Scenario().Steps)+1
	a := &model.RuleCut{Name: name, Partition: &p, Step: step}
	for n, k := range s.faults.kept {
		if len(p.Only) > 0 && !agent.Of(k.data, p.Only) {
			a.Spared = append(a.Spared, n)
			held := *k.held // the log has the packet as it came
			held.SparedBy = append(slices.Clip(held.SparedBy), step)
			k.held = &held
		}
	}
	slices.Sort(a.Spared)
	n := len(s.gateCuts)
	s.cutName = name
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventRuleCut, RuleCut: a, Note: fmt.Sprintf("the script cuts %s: %s", name, p)}))
	if len(s.gateCuts) == n { // after a panic the session decides nothing
		return &gateCut{step: step}, at
	}
	return s.gateCuts[n], at
}

// endCut ends a cut of a script at the gate: from here on its packets pass.
func (s *session) endCut(c *gateCut, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventRuleCut, RuleCut: &model.RuleCut{Name: name, Step: c.step}, Note: fmt.Sprintf("the rules of cut %s are gone", name)}))
}

// refused is what the gate has refused so far of a cut, by link.
func (s *session) refused(c *gateCut) map[model.Link]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[model.Link]int{}
	for l, p := range c.links {
		out[l] = p.Dropped
	}
	return out
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
