package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"netsplit/campaign/bed"
	"netsplit/campaign/nodes"
	"netsplit/campaign/record"
	"netsplit/explorer"
	"netsplit/inference"
	"netsplit/inference/pcap"
	"netsplit/inference/state"
	"netsplit/model"
)

// run is one execution of a target under one scenario.
type run struct {
	work   Work
	kit    *nodes.Kit
	target *model.Target // of the kit
	// play is a script, done in place of the workloads; nil: none.
	play    Play
	live    *Live // while it is, and after
	bed     *bed.Bed
	dir     string
	rec     *record.Writer
	s       *session
	procs   *nodes.Processes
	probes  *probes
	cost    model.Cost
	metrics Metrics
	version string
}

// execute goes through the phases of a run in order. Whatever happens, the
// network is whole and the target's processes are gone when it returns.
func (r *run) execute(ctx context.Context) (ev record.Evidence, err error) {
	began := time.Now()
	if err := r.open(began); err != nil {
		return ev, err
	}
	err = r.guarded(ctx, &ev, began)
	r.s.close()
	err = errors.Join(err, r.procs.StopAll(), r.bed.Sweep(), r.bed.Calm(context.WithoutCancel(ctx)), r.s.packets.Close(), r.rec.Close())
	ev.Ended = time.Now()
	r.cost.Start, r.cost.Settle = r.procs.Took()
	r.cost.Ours = ev.Ended.Sub(began) - r.cost.Template - r.cost.Start - r.cost.Settle - r.cost.Workload - r.cost.Recover
	ev.Cost = r.cost
	return ev, errors.Join(err, ctx.Err())
}

// guarded is phases; a panic there ends the run, not the daemon, which would
// only take the same campaign up again.
func (r *run) guarded(ctx context.Context, ev *record.Evidence, began time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("broken invariant of netsplit itself, please report it: %v\n%s", p, debug.Stack())
		}
	}()
	return r.phases(ctx, ev, began)
}

// phases taps, starts, works, waits for recovery, and gathers the evidence.
func (r *run) phases(ctx context.Context, ev *record.Evidence, began time.Time) error {
	if err := r.bed.Ensure(ctx); err != nil {
		return err
	}
	t := time.Now()
	if err := r.procs.MakeTemplate(ctx); err != nil {
		r.s.Fail("%v", err)
		r.collect(ctx, ev)
		return nil
	}
	r.cost.Template = time.Since(t)
	// The taps are open before the target starts, so that the pipeline sees
	// every connection from its first packet.
	if err := r.bed.Tap(ctx, r.s, r.watched(), &r.work.Scenario); err != nil {
		return err
	}
	r.s.Mark(model.EventStart)
	if err := r.procs.Start(ctx); err != nil {
		r.s.Fail("%v", err)
	}

	if r.s.whole() {
		t = time.Now()
		pctx, stopProbes := context.WithCancel(ctx)
		defer stopProbes() // after a panic too
		r.probes.start(pctx)
		if r.play != nil {
			r.script(ctx)
			r.cost.Workload = time.Since(t)
		} else {
			r.workload(ctx)
			r.cost.Workload = time.Since(t)
			t = time.Now()
			ev.Recovery = r.recover(ctx)
			r.procs.Workloads(ctx, r.target.Final, "final")
			r.cost.Recover = time.Since(t)
		}
		stopProbes()
		r.probes.wait()
	}
	r.collect(ctx, ev)
	return nil
}

// open makes the record and the session.
func (r *run) open(began time.Time) (err error) {
	tap := r.bed.TapName(&r.work.Scenario)
	meta := model.RunMeta{
		Campaign: r.work.Campaign, Run: r.work.Run, Target: r.target.Name, Lab: r.bed.Testbed.Name,
		Tap: tap, Gate: r.bed.GateName(tap), Started: began, Version: r.version,
		Scenario: r.work.Scenario, ReplayOf: r.work.ReplayOf,
	}
	rec, err := record.Create(r.dir, meta)
	if err != nil {
		return err
	}
	r.rec = rec
	defer func() {
		if err != nil {
			err = errors.Join(err, rec.Close())
		}
	}()
	for file, v := range map[string]any{record.TargetFile: r.target, record.TestbedFile: r.bed.Testbed} {
		if err := record.WriteJSON(filepath.Join(r.dir, file), v); err != nil {
			return err
		}
	}
	packets, err := pcap.Create(filepath.Join(r.dir, record.PacketsFile), began)
	if err != nil {
		return err
	}
	pipe, err := inference.New(inference.Config{Hosts: r.bed.Testbed.Hosts, Nodes: r.target.Nodes,
		Protocols: r.target.Protocols, Variables: r.target.Variables})
	if err != nil {
		return errors.Join(err, packets.Close())
	}
	r.s = &session{
		start: began, gate: r.bed, metrics: r.metrics, rec: rec, pipe: pipe,
		table: state.NewTable(r.target.Variables), engine: explorer.NewEngine(r.work.Scenario), scn: r.work.Scenario,
		packets: packets, messages: map[string]int{}, links: map[model.Link]*model.LinkProof{},
		inForce: make(chan struct{}), healed: make(chan struct{}),
	}
	for _, l := range r.work.Scenario.Partition.Links() {
		r.s.links[l] = &model.LinkProof{Link: l}
	}
	r.metrics.KnownLinks(r.work.Scenario.Partition.Links())
	r.procs = nodes.New(nodes.Config{Kit: r.kit, Bed: r.bed, Run: r.work.Run, Dir: r.dir, Args: r.work.Spec.Args,
		Seed: r.work.Scenario.Seed, Start: began, Record: rec, Journal: r.s})
	r.probes = &probes{r: r}
	return nil
}

// watched lists the pairs of hosts whose traffic is read: all pairs of nodes,
// what the scenario's partition would cut, and what its message faults name.
func (r *run) watched() []bed.Pair {
	seen := map[model.Link]bool{}
	var out []bed.Pair
	add := func(a, b model.NodeID) {
		if b < a {
			a, b = b, a
		}
		if l := (model.Link{Src: a, Dst: b}); a != b && !seen[l] {
			seen[l] = true
			out = append(out, bed.Pair{A: a, B: b})
		}
	}
	for _, a := range r.target.Nodes {
		for _, b := range r.target.Nodes {
			add(a, b)
		}
	}
	for _, l := range r.work.Scenario.Partition.Links() {
		add(l.Src, l.Dst)
	}
	for i := range r.work.Scenario.Faults {
		for _, l := range r.about(&r.work.Scenario.Faults[i]) {
			add(l.Src, l.Dst)
		}
	}
	if r.bed.TapName(&r.work.Scenario) == "mirror" {
		for _, c := range r.target.Clients {
			for _, n := range r.target.Nodes {
				add(c, n)
			}
		}
	}
	return out
}

// about lists the links that a fault's messages may cross: where it names no host,
// any does, clients included.
func (r *run) about(f *model.MessageFault) []model.Link {
	ends := func(h model.NodeID) []model.NodeID {
		if h != "" {
			return []model.NodeID{h}
		}
		return slices.Concat(r.target.Nodes, r.target.Clients)
	}
	var out []model.Link
	for _, a := range ends(f.Match.From) {
		for _, b := range ends(f.Match.To) {
			out = append(out, model.Link{Src: a, Dst: b})
		}
	}
	return out
}

// workload runs the clients until their time is over; triggers act meanwhile.
func (r *run) workload(ctx context.Context) {
	r.s.Mark(model.EventWorkload)
	tctx, stop := context.WithCancel(ctx)
	ticks := make(chan struct{})
	go func() {
		defer close(ticks)
		every := r.target.Timing.Tick
		if every <= 0 {
			every = 50 * time.Millisecond
		}
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-tctx.Done():
				return
			case <-t.C:
				r.s.Tick()
			}
		}
	}()
	r.procs.Workloads(ctx, r.target.Workloads, "workload")
	r.s.Mark(model.EventStop)
	stop()
	<-ticks
}

// recover waits until the target is stable again and the invariants hold.
func (r *run) recover(ctx context.Context) record.Recovery {
	rec := record.Recovery{HealedAt: r.s.now(), Limit: r.target.Timing.Recover}
	select {
	case <-r.s.healed:
		r.s.mu.Lock()
		rec.HealedAt = r.s.proof.HealAt
		r.s.mu.Unlock()
	default:
	}
	left := max(rec.HealedAt+rec.Limit-r.s.now(), 3*time.Second)
	rctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	rec.Pending = r.procs.Settle(rctx, r.target.Stable, func() []string {
		var out []string
		for _, v := range r.s.violated() {
			out = append(out, v.String())
		}
		return out
	})
	rec.Stable = len(rec.Pending) == 0
	if rec.Stable {
		rec.StableAt = r.s.now()
	} else {
		rec.Violated = r.s.violated()
	}
	rec.Final = r.s.values()
	return rec
}

// violated lists the observed invariants that do not hold at this moment.
func (s *session) violated() []record.Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []record.Violation
	for _, inv := range s.scn.Observe {
		if st, known := s.table.State(&inv, s.now()); known && st.A != st.B {
			out = append(out, record.Violation{Invariant: inv, State: st})
		}
	}
	return out
}

// values lists the last value of every variable, sorted.
func (s *session) values() []model.VarValue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Values()
}

// collect gathers the evidence: the proof of the cut above all, counted at the
// receiving hosts.
func (r *run) collect(ctx context.Context, ev *record.Evidence) {
	s := r.s
	s.mu.Lock() // the taps are open still
	res := s.engine.Result()
	s.mu.Unlock()
	if res.Reached {
		<-s.inForce
		s.lifted.Wait()
		r.countLeaks(ctx)
	}
	if len(res.Faults) > 0 {
		r.proveFaults(ctx)
	}
	if err := r.bed.CheckGate(ctx); err != nil {
		s.Fail("what was lost at the gate could not be counted: %v", err)
	}
	ev.Exits, ev.Hung = r.procs.Exits()
	s.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.packets.Flush(); err != nil {
		s.incomplete = append(s.incomplete, err.Error())
	}
	if err := s.rec.Flush(); err != nil {
		s.incomplete = append(s.incomplete, err.Error())
	}
	if res.Reached {
		p := s.proof
		p.PerLink = s.linkProofs()
		ev.Proof = &p
	}
	if n := len(s.faults.kept); n > 0 {
		s.incomplete = append(s.incomplete, fmt.Sprintf("%d packets that message faults kept were never let go", n))
	}
	ev.Faults = s.faultProofs(res.Faults)
	ev.Result = res.RunResult(r.work.Scenario.ID, model.Verdict{})
	if r.live != nil && len(r.live.done) > 0 {
		ev.Cuts = r.live.done
		ev.Proof, ev.Result.Reached = mergeProofs(ev.Cuts), true
	}
	ev.Incomplete = append(ev.Incomplete, s.incomplete...)
	ev.Messages = s.messages
	ev.GateDelay = delayStats(s.delays)
	ev.Retransmits = s.retransmits
	ev.Sources = r.probes.result()
	for _, st := range ev.Sources {
		ev.ProbeCost += st.Cost
		ev.Probes += st.Asked
	}
	ev.MaxLost, ev.MaxWindow = r.work.Spec.MaxLost, r.work.Spec.MaxWindow
}

// countLeaks asks every receiving host what arrived over the cut while it was
// in force, and when the first packet arrived after the heal.
func (r *run) countLeaks(ctx context.Context) {
	s := r.s
	s.mu.Lock()
	from, to := s.start.Add(s.proof.InForceAt), s.start.Add(s.proof.HealAt)
	links := s.proof.Links
	s.mu.Unlock()
	known := true
	var first time.Time
	for _, l := range links {
		n, at, err := r.bed.Arrived(ctx, l, r.work.Scenario.Partition.Only, from, to)
		if err != nil {
			known = false
			s.Note("leaks on %s could not be counted: %v", l, err)
			continue
		}
		s.mu.Lock()
		s.links[l].Leaked = n
		s.proof.Leaked += n
		s.mu.Unlock()
		r.metrics.PacketFate(l, FateLeaked, n)
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proof.LeakKnown = known
	if !first.IsZero() {
		s.proof.HealedAt = first.Sub(s.start)
		r.metrics.HealTime(s.proof.HealedAt - s.proof.HealAt)
	}
}
