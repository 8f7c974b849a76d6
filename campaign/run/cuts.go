package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed"
)

// undoLimit bounds the removal of a cut that the switch took only in part.
const undoLimit = 2 * time.Second

// cut is what the testbed does of a script's cut: a *testbed.Cut.
type cut interface {
	Put(ctx context.Context) error
	Prove(ctx context.Context) (time.Time, error)
	Dropped(ctx context.Context) ([]model.RuleDrops, error)
	Probes() map[model.Link]uint64
	Lift(ctx context.Context) error
	Remove(ctx context.Context) error
	Healed(ctx context.Context, cutByOthers func(model.Link, model.ProbePacket) bool) error
}

var _ cut = (*testbed.Cut)(nil)

// scriptCut is a cut of a script from when its rules are installed until its heal. inForce is
// zero until that is proved.
type scriptCut struct {
	cut     cut
	gate    *gateCut // what the gate does of it
	inForce time.Time
	model.CutProof
}

// Cut cuts a partition and returns when it is proved that nothing passes. It looks up the
// hosts of roles now. The name is free again after Heal.
func (l *Live) Cut(ctx context.Context, name string, p model.Partition) (model.CutProof, error) {
	if slices.ContainsFunc(l.cuts, func(c *scriptCut) bool { return c.Name == name }) {
		return model.CutProof{}, fmt.Errorf("a cut named %q exists: heal it first, or take another name", name)
	}
	where := flowrules.WhereOn(&l.r.c.Testbed.Testbed, func(role string) (model.Holders, error) { return l.r.procs.Holders(ctx, role) })
	where.Hosts = l.Hosts()
	p, err := flowrules.Resolve(p, where)
	if err != nil {
		return model.CutProof{}, err
	}
	if err := l.r.c.Testbed.Takes(p); err != nil {
		return model.CutProof{}, err
	}
	c := &scriptCut{cut: l.r.c.Testbed.NewCut(p), CutProof: model.CutProof{Name: name, Partition: p}}
	c.Proof.Links = p.Links()
	s := l.r.s
	c.gate, c.Proof.CutAt = s.beginCut(name, p)
	c.Step = c.gate.step
	m := l.r.c.Metrics
	m.KnownLinks(c.Proof.Links)
	if err := c.cut.Put(ctx); err != nil {
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		defer s.endCut(c.gate, name)
		return model.CutProof{}, errors.Join(fmt.Errorf("the switch did not take the cut: %w", err), c.cut.Remove(hctx))
	}
	m.CutStarted(p.Shape, c.Proof.Links)
	l.cuts = append(l.cuts, c)
	l.r.rec.Append(rundir.RulesFile, map[string]any{"t": c.Proof.CutAt, "what": "drop rules confirmed", "cut": name, "partition": p})
	at, err := c.cut.Prove(ctx)
	if err != nil {
		return c.CutProof, fmt.Errorf("the cut is not proved to be in force: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.inForce, c.Proof.InForceAt = at, at.Sub(s.start)
	c.gate.proof.InForceAt = c.Proof.InForceAt
	s.rec.Append(rundir.RulesFile, map[string]any{"t": c.Proof.InForceAt, "what": "nothing passes any more", "cut": name})
	s.carryOut(s.now(), nil, s.event(s.now(), model.Event{Kind: model.EventInForce, Note: name}))
	return c.CutProof, nil
}

// Heal lifts a cut by its name, counts what it did, and returns when packets pass again. A
// cut by meters heals on all links at once, as a manual one does.
func (l *Live) Heal(ctx context.Context, name string) (model.CutProof, error) {
	i := slices.IndexFunc(l.cuts, func(c *scriptCut) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range l.cuts {
			names = append(names, c.Name)
		}
		return model.CutProof{}, fmt.Errorf("no cut is named %q: there are %s", name, strings.Join(append(names, "no others"), ", "))
	}
	c := l.cuts[i]
	l.cuts = slices.Delete(l.cuts, i, i+1)
	c.Proof.HealAt = l.Now()
	l.r.s.Note("the script heals %s", name)
	counted := l.count(ctx, c)
	if err := c.cut.Lift(ctx); err != nil {
		l.r.s.Note("cut %s heals link by link: %v", name, err)
	}
	err := c.cut.Remove(ctx)
	l.r.s.endCut(c.gate, name)
	if err != nil {
		err = fmt.Errorf("the switch did not confirm the heal of %s, its rules expire by themselves within seconds: %w", name, err)
	} else if err = c.cut.Healed(ctx, l.r.c.Testbed.CutBy); err == nil {
		c.Proof.HealedAt = l.Now()
		l.r.c.Metrics.HealTime(c.Proof.HealedAt - c.Proof.HealAt)
	}
	l.r.c.Metrics.CutEnded(model.ReasonScript, c.Proof.Links)
	l.r.rec.Append(rundir.RulesFile, map[string]any{"t": l.Now(), "what": "healed", "cut": name, "proof": c.Proof})
	l.done = append(l.done, c.CutProof)
	slices.SortFunc(l.done, func(a, b model.CutProof) int { return int(a.Proof.CutAt - b.Proof.CutAt) })
	return c.CutProof, errors.Join(counted, err)
}

// count books what wanted to cross and what leaked, before the rules go with their counters.
// It subtracts netsplit's own probe packets, of this cut and of others on the same links.
func (l *Live) count(ctx context.Context, c *scriptCut) error {
	p := &c.Proof
	if p.InForceAt == 0 {
		return nil // never in force: the step that asked for it said so
	}
	dropped, err := c.cut.Dropped(ctx)
	if err != nil {
		return fmt.Errorf("what cut %s dropped could not be counted: %w", c.Name, err)
	}
	byLink, probes := model.ByLink(dropped), c.cut.Probes()
	refused := l.r.s.refused(c.gate)
	c.Probes = int(testbed.Sum(probes))
	until, from := time.Now(), c.inForce
	p.LeakKnown = !testbed.SetBack(from, until)
	if !p.LeakKnown {
		l.r.s.Note("leaks could not be counted: the machine's clock was set back meanwhile")
	}
	for _, link := range p.Links {
		// Probe packets that came before the rules were in force went to the gate.
		lp := model.LinkProof{Link: link, Dropped: max(0, int(byLink[link])+refused[link]-int(probes[link]))}
		n, _, err := l.r.arrived(ctx, link, c.Partition.Only, from, until)
		if err != nil {
			p.LeakKnown = false
			l.r.s.Note("leaks on %s could not be counted: %v", link, err)
		}
		lp.Leaked = n
		lp.Wanted = lp.Dropped + lp.Leaked
		p.Wanted, p.Dropped, p.Leaked = p.Wanted+lp.Wanted, p.Dropped+lp.Dropped, p.Leaked+lp.Leaked
		p.PerLink = append(p.PerLink, lp)
		for fate, n := range map[model.Fate]int{model.FateWanted: lp.Wanted, model.FateDropped: lp.Dropped, model.FateLeaked: lp.Leaked} {
			l.r.c.Metrics.PacketFate(link, fate, n)
		}
	}
	return nil
}

func mergeProofs(cuts []model.CutProof) *model.Proof {
	all := cuts[0].Proof
	all.Links, all.PerLink = slices.Clone(all.Links), slices.Clone(all.PerLink)
	for _, c := range cuts[1:] {
		p := c.Proof
		all.HealAt, all.HealedAt = max(all.HealAt, p.HealAt), max(all.HealedAt, p.HealedAt)
		all.Wanted, all.Dropped, all.Leaked = all.Wanted+p.Wanted, all.Dropped+p.Dropped, all.Leaked+p.Leaked
		all.ResetConns += p.ResetConns
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
