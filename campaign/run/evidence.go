package run

import (
	"context"
	"fmt"
	"sort"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// collect gathers the evidence, above all the proof of the cut: what the receiving hosts
// counted.
func (r *run) collect(ctx context.Context, ev *record.Evidence) {
	s := r.s
	s.mu.Lock() // the taps are still open
	if s.broken != nil {
		s.report(ev)
		s.mu.Unlock()
		return
	}
	s.look()
	res, cuts := s.engine.Result(), s.gateCuts // no more will begin
	if r.live != nil {
		cuts = nil // each was counted at its heal
	}
	s.mu.Unlock()
	ev.Ports = r.portsRead(ctx, r.before)
	for _, c := range cuts {
		<-c.confirmed
	}
	s.lifted.Wait()
	for _, c := range cuts {
		r.countLeaks(ctx, c)
	}
	if len(res.Faults) > 0 {
		r.proveFaults(ctx)
	}
	if err := r.c.Testbed.CheckGate(ctx); err != nil {
		s.Fail("whether the gate held could not be told: %v", err)
	}
	if err := r.c.Testbed.CheckMirror(); err != nil {
		s.Note("not all of what crossed was read: %v", err)
	}
	r.filesHeld()
	ev.Exits, ev.Hung = r.procs.Exits()
	s.flush()
	s.written()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cuts {
		ev.Cuts = append(ev.Cuts, c.result())
	}
	if n := len(s.faults.kept); n > 0 {
		s.incomplete = append(s.incomplete, fmt.Sprintf("%d packets that message faults held were never released", n))
	}
	res.Steps = s.stepResults(res.Steps)
	ev.Faults = s.faultProofs(res.Faults)
	ev.Result = res.RunResult(r.c.Scenario.ID, model.Verdict{})
	if r.live != nil {
		ev.Cuts = r.live.done
	}
	if len(ev.Cuts) > 0 {
		ev.Proof, ev.Result.Reached = mergeProofs(ev.Cuts), true
	}
	if r.live == nil && len(ev.Cuts) == 1 { // Proof says it all
		ev.Cuts = nil
	}
	s.report(ev)
	ev.Sources = r.probes.result()
	for _, st := range ev.Sources {
		if !st.Along {
			ev.ProbeCost += st.Cost
			ev.Probes += st.Requested
		}
	}
	ev.MaxLost, ev.MaxWindow = r.c.Spec.MaxLost, r.c.Spec.MaxWindow
}

// written waits until everything so far is written, and records any failure.
func (s *session) written() {
	if n, all := s.rec.Waits(); n > 0 {
		s.Note("the record was written more slowly than packets came: %d entries had to wait, %v in all", n, all.Round(time.Millisecond))
	}
	if err := s.rec.Flush(); err != nil {
		s.Fail("%v", err)
	}
}

// report enters what the session knows by itself. s.mu is held.
func (s *session) report(ev *record.Evidence) {
	ev.Incomplete = append(ev.Incomplete, s.incomplete...)
	ev.Unread = s.unread
	ev.Messages = s.messages
	ev.GateDelay = delayStats(s.delays)
	ev.Retransmits = s.retransmits
}

// leakWindow is the time in which a packet that arrives over the cut has leaked:
// from the moment that the cut was in force to the heal. It is empty, and what
// leaked is not known, where the switch never confirmed the cut.
func leakWindow(p model.Proof) (from, to time.Duration, known bool) {
	if p.InForceAt == 0 {
		return p.HealAt, p.HealAt, false
	}
	return p.InForceAt, p.HealAt, true
}

// countLeaks asks every receiving host what arrived over a cut while it was
// in force, and when the first packet arrived after the heal.
func (r *run) countLeaks(ctx context.Context, c *gateCut) {
	s := r.s
	s.mu.Lock()
	inForce, healAt, known := leakWindow(c.proof)
	from, to := s.clock.wall(inForce), s.clock.wall(healAt)
	links, set := c.proof.Links, s.clock.monotone(inForce, healAt)
	s.mu.Unlock()
	if !known {
		s.Note("leaks could not be counted: the cut was never confirmed, so it is unknown when it began")
	}
	if set != nil {
		known = false
		s.Note("leaks could not be counted: %v", set)
	}
	var first time.Time
	for _, l := range links {
		s.mu.Lock()
		released := s.releasedOn(c, l)
		s.mu.Unlock()
		n, at, err := r.arrived(ctx, l, c.partition.Only, from, to, released...)
		if err != nil {
			known = false
			s.Note("leaks on %s could not be counted: %v", l, err)
		}
		s.mu.Lock()
		c.links[l].Leaked = n
		c.proof.Leaked += n
		s.mu.Unlock()
		r.c.Metrics.PacketFate(l, model.FateLeaked, n)
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.proof.LeakKnown = known
	if !first.IsZero() {
		c.proof.HealedAt = s.clock.since(first)
		r.c.Metrics.HealTime(c.proof.HealedAt - c.proof.HealAt)
	}
}

// delayStats summarises how long packets were held; nil if none was.
func delayStats(ds []time.Duration) *model.DelayStats {
	if len(ds) == 0 {
		return nil
	}
	sort.Slice(ds, func(i, j int) bool { return ds[i] < ds[j] })
	at := func(q float64) time.Duration { return ds[int(q*float64(len(ds)-1))] }
	return &model.DelayStats{Count: len(ds), P50: at(.5), P99: at(.99), Max: ds[len(ds)-1]}
}
