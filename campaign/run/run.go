package run

import (
	"context"
	"errors"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"netsplit/explorer/engine"
	"netsplit/inference"
	"netsplit/inference/pcap"
	"netsplit/inference/state"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut/nodes"
	"netsplit/testbed"
)

// Config is what one run is made of.
type Config struct {
	model.WorkItem
	Dir     string // of its record; there must be none yet
	Kit     *nodes.Kit
	Testbed *testbed.Testbed
	// Play is a script, done in place of the workloads; nil: none.
	Play    Play
	Metrics Metrics
	Version string // of netsplit
	// Doing is told what the run begins to do; nil: nobody is.
	Doing func(what string)
	// Watch is given what shows the run's live state, without what the campaign knows, until
	// the run ends; nil: nobody watches.
	Watch func(live func(after uint64) model.LiveState)
}

// Metrics receives what happens in a run, as it happens.
type Metrics interface {
	KnownLinks(links []model.Link)
	CutStarted(shape model.Shape, links []model.Link)
	CutEnded(reason string, links []model.Link)
	PacketFate(link model.Link, fate model.Fate, n int)
	MessageSeen(messageType, verdict string)
	// MessageFault counts a decision of a message fault, by its reason.
	MessageFault(kind model.FaultKind, reason string)
	GateDelay(transport string, d time.Duration)
	HealTime(d time.Duration)
}

// run is one execution of a target under one scenario.
type run struct {
	c      Config
	target *model.Target // of the kit
	live   *Live         // while a script is played, and after
	rec    *rundir.Writer
	s      *session
	procs  *nodes.Processes
	// settles is procs.
	settles settling
	probes  *probes
	before  arrivals // what had come to the hosts before the target started
	cost    model.Cost
}

// Execute makes a run and returns what is not in its record yet: the evidence.
// Whatever happens, the network is whole and the target's processes are gone
// when it returns. The error is netsplit's own or the testbed's failure.
func Execute(ctx context.Context, c Config) (record.Evidence, error) {
	r := &run{c: c, target: c.Kit.Target}
	return r.execute(ctx)
}

// execute goes through the phases of a run in order.
func (r *run) execute(ctx context.Context) (ev record.Evidence, err error) {
	began, waited := time.Now(), cpuWait(time.Sleep)
	if err := r.open(began); err != nil {
		return ev, err
	}
	rctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	r.s.abort = abort
	err = r.guarded(rctx, &ev, began)
	if broken := r.s.isBroken(); broken != nil {
		err = broken // the rest follows from it
	}
	r.s.close()
	err = errors.Join(err, r.procs.StopAll(), r.c.Testbed.Sweep(), r.c.Testbed.Calm(context.WithoutCancel(ctx)), r.rec.Close())
	ev.Ended, ev.Lines = time.Now(), r.rec.Lines()
	r.cost.Start, r.cost.Settle = r.procs.Took()
	r.cost.Ours = ev.Ended.Sub(began) - r.cost.Template - r.cost.Start - r.cost.Settle - r.cost.Workload - r.cost.Recover
	ev.Cost, ev.CPUWait = r.cost, waited()
	return ev, errors.Join(err, ctx.Err())
}

// guarded is phases; a panic there ends the run, not the daemon, which would
// only take the same campaign up again.
func (r *run) guarded(ctx context.Context, ev *record.Evidence, began time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.s.keepPanic("ran", "", nil, p, debug.Stack())
		}
	}()
	return r.phases(ctx, ev, began)
}

func (r *run) phases(ctx context.Context, ev *record.Evidence, began time.Time) error {
	if err := r.c.Testbed.Ensure(ctx); err != nil {
		return err
	}
	ev.Version = r.procs.Version(ctx)
	t := time.Now()
	r.doing(model.DoingTemplate)
	if err := r.procs.MakeTemplate(ctx); err != nil {
		r.s.Fail("%v", err)
		r.collect(ctx, ev)
		return nil
	}
	r.cost.Template = time.Since(t)
	// The taps are open before the target starts, so that the pipeline sees
	// every connection from its first packet.
	held, mirrored := r.watched()
	if err := r.c.Testbed.Tap(ctx, r.s, held, mirrored, &r.c.Scenario); err != nil {
		return err
	}
	r.before = r.arrivals(ctx)
	r.s.Mark(model.EventStart)
	r.doing(model.DoingStart)
	if err := r.procs.Start(ctx); err != nil {
		r.s.Fail("%v", err)
	}

	if r.s.whole() {
		pctx, stopProbes := context.WithCancel(ctx)
		defer stopProbes() // after a panic too
		r.probes.start(pctx)
		r.probes.firstRound()
		t = time.Now()
		r.doing(model.DoingWorkload)
		if r.c.Play != nil {
			r.script(ctx)
			r.cost.Workload = time.Since(t)
		} else {
			r.workload(ctx)
			r.cost.Workload = time.Since(t)
			t = time.Now()
			r.doing(model.DoingRecovery)
			ev.Recovery = r.recover(ctx)
			ev.Looks = r.finalReads(ctx, ev.Recovery.HealedAt)
			r.probes.lastRound()
			r.cost.Recover = time.Since(t)
		}
		stopProbes()
		r.probes.wait()
	}
	r.collect(ctx, ev)
	return nil
}

func (r *run) doing(what string) {
	if r.c.Doing != nil {
		r.c.Doing(what)
	}
}

func (r *run) open(began time.Time) (err error) {
	tap := r.c.Testbed.TapName(&r.c.Scenario)
	meta := model.RunMeta{
		Campaign: r.c.Campaign, Run: r.c.Run, Target: r.target.Name, Lab: r.c.Testbed.Testbed.Name,
		Tap: tap, Gate: r.c.Testbed.GateName(tap), Started: began, Version: r.c.Version,
		Scenario: r.c.Scenario, ReplayOf: r.c.ReplayOf,
	}
	if meta.Scripts, err = r.c.Kit.Scripts(); err != nil {
		return err
	}
	rec, err := rundir.Create(r.c.Dir, meta)
	if err != nil {
		return err
	}
	r.rec = rec
	defer func() {
		if err != nil {
			err = errors.Join(err, rec.Close())
		}
	}()
	for file, v := range map[string]any{rundir.TargetFile: r.target, rundir.TestbedFile: r.c.Testbed.Located()} {
		if err := rundir.WriteJSON(filepath.Join(r.c.Dir, file), v); err != nil {
			return err
		}
	}
	packets, err := pcap.Create(filepath.Join(r.c.Dir, rundir.PacketsFile), began)
	if err != nil {
		return err
	}
	rec.Capture(packets)
	pipe, err := inference.New(inference.Config{Hosts: r.c.Testbed.Testbed.Hosts, Nodes: r.target.Nodes,
		Protocols: r.target.Protocols, Variables: r.target.Variables})
	if err != nil {
		return err
	}
	r.s = &session{
		start: began, clock: clock{start: began}, gate: r.c.Testbed, transport: meta.Gate, metrics: r.c.Metrics, rec: rec, pipe: pipe,
		table: state.NewTable(r.target.Variables), engine: engine.New(r.c.Scenario), scn: r.c.Scenario,
		messages: map[string]int{}, ports: newPortsRead(r.target), faulty: r.c.Scenario.Messages(),
	}
	r.c.Metrics.KnownLinks(engine.MayCut(&r.c.Scenario))
	r.procs = nodes.New(nodes.Config{Kit: r.c.Kit, Testbed: r.c.Testbed, Run: r.c.Run, Dir: r.c.Dir, Args: r.c.Spec.Args,
		Seed: r.c.Scenario.Seed, Start: began, Record: rec, Journal: r.s, Files: r.files()})
	r.settles = r.procs
	r.s.holders = r.holders
	r.s.damager = r.procs
	r.s.nodes.procs, r.s.nodes.names = r.procs, map[model.NodeID][]string{}
	for _, q := range r.target.Processes {
		for _, h := range q.Hosts {
			if !q.Once {
				r.s.nodes.names[h] = append(r.s.nodes.names[h], q.Name)
			}
		}
	}
	r.probes = &probes{r: r, last: make(chan struct{})}
	if r.c.Watch != nil {
		r.c.Watch(func(after uint64) model.LiveState {
			out := r.s.live(after)
			out.Nodes, out.Clients = r.target.Nodes, r.target.Clients
			return out
		})
	}
	return nil
}

// watched lists the pairs of hosts whose traffic is read. The gate holds the traffic of all
// pairs of nodes, of pairs that the scenario may cut, and of pairs that messages of its steps
// may cross. The mirror shows the traffic between clients and nodes.
func (r *run) watched() (held, mirrored []testbed.Pair) {
	seen := map[model.Link]bool{}
	add := func(to *[]testbed.Pair, a, b model.NodeID) {
		if b < a {
			a, b = b, a
		}
		if l := (model.Link{Src: a, Dst: b}); a != b && !seen[l] {
			seen[l] = true
			*to = append(*to, testbed.Pair{A: a, B: b})
		}
	}
	for _, a := range r.target.Nodes {
		for _, b := range r.target.Nodes {
			add(&held, a, b)
		}
	}
	for _, l := range engine.MayCut(&r.c.Scenario) {
		add(&held, l.Src, l.Dst)
	}
	for i := range r.c.Scenario.Steps {
		if do := &r.c.Scenario.Steps[i].Do; len(do.Roles) > 0 && do.Cut != nil { // any host may have the roles
			for _, l := range r.about(model.MessageMatch{}) {
				add(&held, l.Src, l.Dst)
			}
		}
		for _, m := range r.c.Scenario.Steps[i].Matches() {
			for _, l := range r.about(*m) {
				add(&held, l.Src, l.Dst)
			}
		}
	}
	for _, c := range r.target.Clients {
		for _, n := range r.target.Nodes {
			add(&mirrored, c, n)
		}
		if r.c.Play == nil {
			continue
		}
		for _, o := range r.target.Clients { // a script's faults may be about them
			add(&mirrored, c, o)
		}
	}
	return held, mirrored
}

// about lists the links that messages of a match may cross. An end that names no host may be
// any host, clients included.
func (r *run) about(m model.MessageMatch) []model.Link {
	ends := func(h model.NodeID, role string) []model.NodeID {
		if h != "" {
			return []model.NodeID{h}
		}
		for _, roles := range []map[string]model.Role{r.target.Roles, r.c.Testbed.Testbed.Roles} {
			if role, ok := roles[role]; ok {
				return role.Hosts
			}
		}
		return slices.Concat(r.target.Nodes, r.target.Clients)
	}
	var out []model.Link
	for _, a := range ends(m.From, m.FromRole) {
		for _, b := range ends(m.To, m.ToRole) {
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
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watchRoles(tctx)
	}()
	r.procs.Workloads(ctx, r.target.Workloads, "workload")
	r.s.Mark(model.EventStop)
	stop()
	<-ticks
	<-watched
}
