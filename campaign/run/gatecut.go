package run

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed/agent"
)

// gateCut is a cut of a step: the gate refuses what would cross it, from its decision to that
// of its heal. Rules behind the gate do so, too. The cut of a script is made by rules on the
// whole path, and the gate refuses what comes there all the same, or is kept there.
type gateCut struct {
	step      int    // place in the scenario, from 1
	script    string // its name in a script; "": no script made it
	partition model.Partition
	on        bool // not healed
	links     map[model.Link]*model.LinkProof
	proof     model.Proof
	id        uint32        // of the rules
	confirmed chan struct{} // closed when the switch has confirmed the rules, or not
	// released are the packets that the gate let pass, from agent.Edge before the cut
	// to agent.Edge after the heal.
	released []letGo
}

// cutting says whether the gate refuses anything. The caller holds mu.
func (s *session) cutting() bool {
	return slices.ContainsFunc(s.gateCuts, func(c *gateCut) bool { return c.on })
}

// spare enters which of the scenario's cuts are of other traffic than this packet. The
// caller holds mu.
func (s *session) spare(pkt *model.HeldPacket, frame []byte) {
	cuts := 0
	for i := range s.scn.Steps {
		p := s.scn.Steps[i].Do.Cut
		if p == nil {
			continue
		}
		if cuts++; len(p.Only) > 0 && !agent.Of(frame, p.Only) {
			pkt.SparedBy = append(pkt.SparedBy, i+1)
		}
	}
	if pkt.Spared = cuts > 0 && len(pkt.SparedBy) == cuts && s.scn.Strategy != model.StrategyScripted; pkt.Spared { // no cut will be added
		pkt.SparedBy = nil
	}
}

// count counts a packet that met cuts, or the one that healed one.
func (s *session) count(held *heldFrame, d model.Decision) {
	link := model.Link{Src: held.packet.From, Dst: held.packet.To}
	met := false
	for _, c := range s.gateCuts {
		l := c.links[link]
		if !c.on && !(d.Heal && d.Step == c.step) || l == nil || held.held.Spared || slices.Contains(held.held.SparedBy, c.step) {
			continue
		}
		l.Wanted++
		c.proof.Wanted++
		if d.Action == model.DropPacket {
			l.Dropped++
			c.proof.Dropped++
		}
		met = met || c.script == "" // the metrics of a script's cut are counted at its heal
	}
	if met {
		s.metrics.PacketFate(link, model.FateWanted, 1)
		if d.Action == model.DropPacket {
			s.metrics.PacketFate(link, model.FateDropped, 1)
		}
	}
}

func (s *session) cut(at time.Duration, d model.Decision, held *heldFrame) {
	s.scn = s.engine.Scenario()
	c := &gateCut{step: d.Step, partition: s.scn.Steps[d.Step-1].Partition(), on: true, links: map[model.Link]*model.LinkProof{}, confirmed: make(chan struct{})}
	c.released = s.recently(at)
	s.gateCuts = append(s.gateCuts, c)
	c.proof.CutAt, c.proof.Links = at, c.partition.Links()
	for _, l := range c.proof.Links {
		c.links[l] = &model.LinkProof{Link: l}
	}
	if d.Reason == model.ReasonScript { // whoever asked for it puts it in force
		c.script = s.cutName
		close(c.confirmed)
		return
	}
	s.metrics.KnownLinks(c.proof.Links)
	s.metrics.CutStarted(c.partition.Shape, c.proof.Links)
	s.rec.Append(rundir.RulesFile, map[string]any{"t": at, "what": "gate refuses", "step": c.step, "links": c.proof.Links})
	if c.partition.Effect == model.Reset {
		c.proof.ResetConns = s.reset(c.partition, held)
	}
	go func() {
		defer close(c.confirmed)
		id, err := s.gate.Cut(c.partition)
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.guard("entered that the cut is in force", "", nil)
		if c.id = id; err != nil {
			s.incomplete = append(s.incomplete, fmt.Sprintf("the switch did not confirm the cut: %v", err))
			return
		}
		s.clock.look() // what arrives is asked for by the machine's
		c.proof.InForceAt = s.now()
		s.rec.Append(rundir.RulesFile, map[string]any{"t": c.proof.InForceAt, "what": "barrier reply behind the cut", "step": c.step})
		if c.on {
			s.carryOut(c.proof.InForceAt, nil, s.event(c.proof.InForceAt, model.Event{Kind: model.EventInForce, Note: model.StepName(c.step)}))
		}
	}()
}

func (s *session) heal(d model.Decision) {
	i := slices.IndexFunc(s.gateCuts, func(c *gateCut) bool { return c.on && c.step == d.Step })
	if i < 0 {
		s.incomplete = append(s.incomplete, "a heal of a cut that is not in force: please report it")
		return
	}
	c := s.gateCuts[i]
	c.on = false
	if c.script != "" {
		return // its rules are gone
	}
	s.clock.look()
	c.proof.HealAt = s.now()
	s.metrics.CutEnded(d.Reason, c.proof.Links)
	s.rec.Append(rundir.RulesFile, map[string]any{"t": c.proof.HealAt, "what": "gate passes again", "step": c.step, "reason": d.Reason})
	s.lifted.Add(1)
	go func() {
		defer s.lifted.Done()
		<-c.confirmed
		if err := s.gate.Heal(c.id); err != nil {
			s.Fail("the switch did not confirm the heal: %v", err)
		}
	}()
}

// healedAt is when the last cut was healed; 0: nothing was cut.
func (s *session) healedAt() (last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.gateCuts {
		last = max(last, c.proof.HealAt)
	}
	return last
}

func (c *gateCut) name() string { return cmp.Or(c.script, model.StepName(c.step)) }

// result is the cut with what it did, its links sorted.
func (c *gateCut) result() model.CutProof {
	p := c.proof
	for _, l := range c.links {
		p.PerLink = append(p.PerLink, *l)
	}
	sort.Slice(p.PerLink, func(i, j int) bool { return p.PerLink[i].Link.Compare(p.PerLink[j].Link) < 0 })
	return model.CutProof{Name: c.name(), Step: c.step, Partition: c.partition, Proof: p}
}
