package campaign

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/campaign/bed"
	"netsplit/campaign/nodes"
	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/model"
)

// Play is a script: it acts on a target that runs and is stable. Its error is
// netsplit's own or the testbed's failure; what the target does wrong it enters
// as a step that failed.
type Play func(ctx context.Context, l *Live) error

// Live is a run under way, for a script: the target has settled, and nothing
// happens but what the script does. Cuts are by drop rules, at line rate, and
// the proof that they hold is waited for. Everything is entered in the record.
// One goroutine uses it: that is the global order of the script's operations.
type Live struct {
	r    *run
	ids  uint32
	cuts []*scriptCut      // in force, in the order in which they began
	done []model.ScriptCut // healed
}

// undoLimit is how long a switch may take to forget a cut that it did not take.
const undoLimit = 2 * time.Second

// scriptCut is a cut that is in force.
type scriptCut struct {
	cut   *bed.Cut
	began time.Time
	model.ScriptCut
}

// script plays the script of a run, and heals what it left cut.
func (r *run) script(ctx context.Context) {
	r.s.Mark(model.EventWorkload)
	r.live = &Live{r: r}
	err := r.live.guarded(ctx, r.play)
	for len(r.live.cuts) > 0 { // whoever asked for them has gone
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
		_, herr := r.live.Heal(hctx, r.live.cuts[len(r.live.cuts)-1].Name)
		cancel()
		err = errors.Join(err, herr)
	}
	r.s.Mark(model.EventStop)
	if err != nil && ctx.Err() == nil {
		r.s.Fail("%v", err)
	}
}

// guarded plays; a panic there ends the run and is told with its place.
func (l *Live) guarded(ctx context.Context, play Play) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the script panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return play(ctx, l)
}

// Target is the target with its settings filled in.
func (l *Live) Target() *model.Target { return l.r.target }

// Hosts lists the target's hosts, its nodes first.
func (l *Live) Hosts() []model.NodeID { return l.r.procs.Hosts() }

// Now is the time since the run started, on the record's clock.
func (l *Live) Now() time.Duration { return l.r.s.now() }

// Enter enters a step of the script, over now.
func (l *Live) Enter(st model.Step) {
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventStep, Step: &st}))
}

// decided enters a cut or a heal, so that the report draws it.
func (l *Live) decided(d model.Decision, format string, args ...any) time.Duration {
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventNote, Note: fmt.Sprintf(format, args...)}))
	d.Event, d.At, d.Reason = s.events, at, model.ReasonScript
	s.rec.Append(record.DecisionsFile, d)
	return at
}

// Cut puts a partition in force and returns once it is proved that nothing
// passes. Who has a role is looked up now. The name is free again after Heal.
func (l *Live) Cut(ctx context.Context, name string, p model.Partition) (model.ScriptCut, error) {
	if slices.ContainsFunc(l.cuts, func(c *scriptCut) bool { return c.Name == name }) {
		return model.ScriptCut{}, fmt.Errorf("a cut named %q is in force: heal it first, or take another name", name)
	}
	where := l.r.bed.Testbed.Where(func(role string) (model.Holders, error) { return l.r.procs.Holders(ctx, role) })
	where.Hosts = l.Hosts()
	p, err := p.Resolve(where)
	if err != nil {
		return model.ScriptCut{}, err
	}
	if p.Effect != model.Drop {
		return model.ScriptCut{}, fmt.Errorf("effect %q: a script's cut drops; only the gate, in campaigns, can reset connections", p.Effect)
	}
	l.ids++
	c := &scriptCut{cut: l.r.bed.NewCut(l.ids, p), began: time.Now(), ScriptCut: model.ScriptCut{Name: name, Partition: p}}
	c.Proof.Links = p.Links()
	c.Proof.CutAt = l.decided(model.Decision{Cut: true}, "the script cuts %s: %s", name, p)
	m := l.r.metrics
	m.KnownLinks(c.Proof.Links)
	if err := c.cut.Put(ctx); err != nil {
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		return model.ScriptCut{}, errors.Join(fmt.Errorf("the switch did not take the cut: %w", err), c.cut.Remove(hctx))
	}
	m.CutStarted(p.Shape, c.Proof.Links)
	l.cuts = append(l.cuts, c)
	l.r.rec.Append(record.RulesFile, map[string]any{"t": c.Proof.CutAt, "what": "drop rules confirmed", "cut": name, "partition": p})
	at, err := c.cut.Prove(ctx)
	if err != nil {
		return c.ScriptCut, fmt.Errorf("the cut is not proved to be in force: %w", err)
	}
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Proof.InForceAt = at.Sub(s.start)
	s.rec.Append(record.RulesFile, map[string]any{"t": c.Proof.InForceAt, "what": "nothing passes any more", "cut": name})
	s.carryOut(s.now(), nil, s.event(s.now(), model.Event{Kind: model.EventInForce}))
	return c.ScriptCut, nil
}

// Heal lifts a cut by its name, counts what it did, and returns once packets
// pass again.
func (l *Live) Heal(ctx context.Context, name string) (model.ScriptCut, error) {
	i := slices.IndexFunc(l.cuts, func(c *scriptCut) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range l.cuts {
			names = append(names, c.Name)
		}
		return model.ScriptCut{}, fmt.Errorf("no cut named %q is in force: there are %s", name, strings.Join(append(names, "no others"), ", "))
	}
	c := l.cuts[i]
	l.cuts = slices.Delete(l.cuts, i, i+1)
	counted := l.count(ctx, c)
	c.Proof.HealAt = l.decided(model.Decision{Heal: true}, "the script heals %s", name)
	err := c.cut.Remove(ctx)
	if err != nil {
		err = fmt.Errorf("the switch did not confirm the heal of %s, its rules expire by themselves within seconds: %w", name, err)
	} else {
		began := time.Now()
		if err = c.cut.Healed(ctx, l.cutBy); err == nil {
			c.Proof.HealedAt = l.Now()
			l.r.metrics.HealTime(time.Since(began))
		}
	}
	l.r.metrics.CutEnded(model.ReasonScript, c.Proof.Links)
	l.r.rec.Append(record.RulesFile, map[string]any{"t": l.Now(), "what": "healed", "cut": name, "proof": c.Proof})
	l.done = append(l.done, c.ScriptCut)
	slices.SortFunc(l.done, func(a, b model.ScriptCut) int { return int(a.Proof.CutAt - b.Proof.CutAt) })
	return c.ScriptCut, errors.Join(counted, err)
}

// cutBy says whether a cut that is in force cuts the link.
func (l *Live) cutBy(link model.Link) bool {
	return slices.ContainsFunc(l.cuts, func(c *scriptCut) bool { return slices.Contains(c.Proof.Links, link) })
}

// count books what wanted to cross and what leaked, before the rules and their
// counters go. What the proof sent is taken off: it went over every link alike.
func (l *Live) count(ctx context.Context, c *scriptCut) error {
	p := &c.Proof
	if p.InForceAt == 0 {
		return nil // never in force: the step that asked for it said so
	}
	byLink, err := c.cut.DroppedBy(ctx)
	if err != nil {
		return fmt.Errorf("what cut %s dropped could not be counted: %w", c.Name, err)
	}
	c.Probes = int(c.cut.Sent())
	each := c.Probes / max(len(p.Links), 1)
	until, from := time.Now(), l.r.s.start.Add(p.InForceAt)
	p.LeakKnown = true
	for _, link := range p.Links {
		lp := model.LinkProof{Link: link, Dropped: max(0, int(byLink[link])-each)}
		n, _, err := l.r.bed.Arrived(ctx, link, c.Partition.Only, from, until)
		if err != nil {
			p.LeakKnown = false
			l.r.s.Note("leaks on %s could not be counted: %v", link, err)
		}
		lp.Leaked = n
		lp.Wanted = lp.Dropped + lp.Leaked
		p.Wanted, p.Dropped, p.Leaked = p.Wanted+lp.Wanted, p.Dropped+lp.Dropped, p.Leaked+lp.Leaked
		p.PerLink = append(p.PerLink, lp)
		for fate, n := range map[string]int{FateWanted: lp.Wanted, FateDropped: lp.Dropped, FateLeaked: lp.Leaked} {
			l.r.metrics.PacketFate(link, fate, n)
		}
	}
	return nil
}

// mergeProofs is what all cuts of a script did together.
func mergeProofs(cuts []model.ScriptCut) *model.Proof {
	all := cuts[0].Proof
	all.Links, all.PerLink = slices.Clone(all.Links), slices.Clone(all.PerLink)
	for _, c := range cuts[1:] {
		p := c.Proof
		all.HealAt, all.HealedAt = max(all.HealAt, p.HealAt), max(all.HealedAt, p.HealedAt)
		all.Wanted, all.Dropped, all.Leaked = all.Wanted+p.Wanted, all.Dropped+p.Dropped, all.Leaked+p.Leaked
		all.LeakKnown = all.LeakKnown && p.LeakKnown
		for _, l := range p.Links {
			if !slices.Contains(all.Links, l) {
				all.Links = append(all.Links, l)
			}
		}
		for _, q := range p.PerLink {
			i := slices.IndexFunc(all.PerLink, func(o model.LinkProof) bool { return o.Link == q.Link })
			if i < 0 {
				all.PerLink = append(all.PerLink, q)
				continue
			}
			o := &all.PerLink[i]
			o.Wanted, o.Dropped, o.Leaked = o.Wanted+q.Wanted, o.Dropped+q.Dropped, o.Leaked+q.Leaked
		}
	}
	slices.SortFunc(all.Links, model.Link.Compare)
	slices.SortFunc(all.PerLink, func(a, b model.LinkProof) int { return a.Link.Compare(b.Link) })
	return &all
}

// Do has a host carry out an operation of the target and returns when it has
// ended. Invocation and answer go to the history under the host's name. The
// error is netsplit's own, or says what is wrong with the name or arguments.
func (l *Live) Do(ctx context.Context, host model.NodeID, name string, args ...string) (nodes.OpResult, error) {
	i := slices.Index(l.Hosts(), host)
	if i < 0 {
		return nodes.OpResult{}, fmt.Errorf("no host %q: the target has %v", host, l.Hosts())
	}
	op, err := l.r.procs.Operation(host, name, args)
	if err != nil {
		return nodes.OpResult{}, err
	}
	h := model.Operation{Process: i, Type: model.OpInvoke, F: name, Time: l.Now()}
	for j, k := range op.Takes {
		switch k {
		case "key":
			h.Key = args[j]
		case "value":
			h.Value = args[j]
		case "node":
			h.Node = model.NodeID(args[j])
		}
	}
	l.history(host, h)
	res, err := l.r.procs.Operate(ctx, host, op)
	if err != nil {
		return res, err
	}
	h.Type, h.Time, h.Error = res.Type, l.Now(), res.Error
	if res.Type == model.OpOK && h.Value == "" {
		h.Value = res.Value
	}
	l.history(host, h)
	return res, nil
}

func (l *Live) history(host model.NodeID, op model.Operation) {
	l.r.rec.Append(record.HistoryFile, record.Entry{Workload: string(host), Operation: op})
}

// Holders asks who has a role of the target now, or one of the testbed file
// where the target has none of that name.
func (l *Live) Holders(ctx context.Context, name string) (model.Holders, error) {
	return l.r.procs.Holders(ctx, name)
}

// Period is how long a period of the target is.
func (l *Live) Period(name string) (time.Duration, error) {
	return target.PeriodOf(l.r.target, target.ExpandInput{Args: l.r.work.Spec.Args}, name)
}

// Await waits until the named stable conditions hold at once, all of them where
// there is no name, and returns what is still pending at the limit.
func (l *Live) Await(ctx context.Context, limit time.Duration, names []string) ([]string, error) {
	for _, n := range names {
		if !slices.ContainsFunc(l.r.target.Stable, func(c model.Condition) bool { return c.Name == n }) {
			var have []string
			for _, c := range l.r.target.Stable {
				have = append(have, c.Name)
			}
			return nil, fmt.Errorf("target %s has no condition %q: stable has %s", l.r.target.Name, n, strings.Join(have, ", "))
		}
	}
	conditions := l.r.target.Stable
	if len(names) > 0 {
		conditions = l.r.procs.Conditions(names)
	}
	wctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.r.procs.Settle(wctx, conditions, nil), ctx.Err()
}

// Sleep lets time pass.
func (l *Live) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Node acts on a server process of a host, or, where process is "", on all of
// them that it makes sense for: start in the order of the file, all else in the
// other one. It returns the names of those it acted on.
func (l *Live) Node(verb model.NodeVerb, host model.NodeID, process string) ([]string, error) {
	if !slices.Contains(l.Hosts(), host) {
		return nil, fmt.Errorf("no host %q: the target has %v", host, l.Hosts())
	}
	names := []string{process}
	if process == "" {
		names = nil
		for _, q := range l.r.target.Processes {
			if slices.Contains(q.Hosts, host) && !q.Once && !(q.Manual && verb == model.NodeStart) && l.r.procs.Runs(host, q.Name) == (verb != model.NodeStart) {
				names = append(names, q.Name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("host %s has no server to %s now", host, verb)
		}
		if verb != model.NodeStart {
			slices.Reverse(names)
		}
	}
	errs := make([]error, len(names))
	each := func(i int) {
		if err := l.r.procs.Act(model.NodeAction{Verb: verb, Process: names[i], Host: host}); err != nil {
			errs[i] = fmt.Errorf("%s %s on %s: %w", verb, names[i], host, err)
		}
	}
	if verb == model.NodeStart || verb == model.NodeStop { // in order, and these take a while
		for i := range names {
			each(i)
		}
		return names, errors.Join(errs...)
	}
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() { each(i) })
	}
	wg.Wait()
	return names, errors.Join(errs...)
}
