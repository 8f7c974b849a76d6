package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/sut"
)

// userScenario checks a scenario that a user gave and completes it: the host that it
// isolates to a partition, the groups of a partition, invariants by what was
// mined, the longest cut.
func (s *Service) userScenario(spec model.CampaignSpec, t *model.Target) (*model.Scenario, error) {
	bad := func(format string, args ...any) (*model.Scenario, error) {
		return nil, fmt.Errorf("%w: scenario: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
	}
	sc := *spec.Scenario
	sc.Faults = slices.Clone(sc.Faults)
	hosts := slices.Concat(t.Nodes, t.Clients)
	if !sc.Faulty() {
		return bad("it does nothing: add faults, a cut, or both")
	}
	known, err := s.store.ListInvariants(t.Name)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		if k.Status != model.InvariantDrop {
			sc.Observe = append(sc.Observe, k.Invariant)
		}
	}
	find := func(inv *model.Invariant) error {
		for _, k := range known {
			if k.ID == inv.ID {
				*inv = k.Invariant
				return nil
			}
		}
		if err := complete(inv, t); err != nil {
			return fmt.Errorf("%w: scenario: %w", model.ErrInvalid, err)
		}
		return nil
	}
	roles := slices.Collect(maps.Keys(t.Roles))
	if s.cfg.Testbed != nil {
		roles = slices.AppendSeq(roles, maps.Keys(s.cfg.Testbed.Roles))
	}
	for i := range sc.Faults {
		f := &sc.Faults[i]
		if f.While != nil {
			w := *f.While
			f.While = &w
			if err := find(&w.Invariant); err != nil {
				return nil, err
			}
		}
		if err := sut.Ends(&f.Match, hosts, roles); err != nil {
			return bad("fault %d: %v", i+1, err)
		}
		if err := f.Validate(hosts); err != nil {
			return bad("fault %d: %v", i+1, err)
		}
	}
	if !sc.Cuts() {
		return &sc, nil
	}
	if sc.Invariant != nil {
		inv := *sc.Invariant
		sc.Invariant = &inv
		if err := find(&inv); err != nil {
			return nil, err
		}
		if sc.State == nil || sc.State.A == sc.State.B {
			return bad("the cut waits for %s but names no inconsistent state of it: write two values that differ", inv.String())
		}
	}
	switch effect := sc.Partition.Effect; {
	case sc.Partition.Shape == "":
		if !slices.Contains(hosts, sc.Isolate) {
			return bad("the cut isolates %q: name a host, one of %v, or a partition", sc.Isolate, hosts)
		}
		spec.Effect = model.Drop
		if effect != "" {
			spec.Effect = effect
		}
		sc.Partition = s.coreConfig(spec, t).Isolating(sc.Isolate)
	case sc.Isolate != "":
		return bad("the cut isolates %s and names a partition: leave out one of them", sc.Isolate)
	case effect == "":
		sc.Partition.Effect = model.Drop
	}
	if sc.Partition, err = flowrules.Resolve(sc.Partition, s.where(hosts)); err != nil {
		if errors.Is(err, flowrules.ErrRoleUnknown) {
			return bad("%v: a scenario names its hosts before the run, so name the one to isolate; a script (netsplit script run) looks the role up when it cuts", err)
		}
		return bad("%v", err)
	}
	if h := sc.HealAt; h != nil {
		if !slices.Contains(sc.Partition.Links(), model.Link{Src: h.From, Dst: h.To}) {
			return bad("the cut heals at %s, and no message from %q to %q crosses it: name two hosts that it parts", h.Type, h.From, h.To)
		}
		if sc.Isolate == "" { // whose messages heal
			sc.Isolate = h.From
			if slices.Contains(sc.Partition.Groups[0], h.To) {
				sc.Isolate = h.To
			}
		}
	}
	if sc.MaxCut == 0 {
		sc.MaxCut = t.Timing.MaxCut
	}
	return &sc, nil
}

// complete gives an invariant that a person wrote down the kind of its variables, or
// says why the target can have no such invariant.
func complete(inv *model.Invariant, t *model.Target) error {
	if inv.A == inv.B && inv.A.Name == "" {
		return fmt.Errorf("no invariant %s was mined on %s: netsplit invariants lists them; you may also write two variables", inv.ID, t.Name)
	}
	if inv.A == inv.B {
		return fmt.Errorf("%s is the same variable twice: use variables of two nodes", inv.String())
	}
	if inv.A.Node == inv.B.Node {
		return fmt.Errorf("%s: both variables are of %s: an invariant relates two nodes", inv.String(), inv.A.Node)
	}
	kinds := [2]string{}
	for k, ref := range []model.VarRef{inv.A, inv.B} {
		i := slices.IndexFunc(t.Variables, func(v model.Variable) bool { return v.Name == ref.Name })
		if i < 0 {
			return fmt.Errorf("target %s has no variable %q: it has %s", t.Name, ref.Name, strings.Join(names(t.Variables), ", "))
		}
		if !slices.Contains(t.Nodes, ref.Node) {
			return fmt.Errorf("%s: target %s has no node %q: it has %v", ref, t.Name, ref.Node, t.Nodes)
		}
		kinds[k] = t.Variables[i].Kind
	}
	if kinds[0] != kinds[1] {
		return fmt.Errorf("%s: %s is a %s and %s a %s: only variables of one kind are compared", inv.String(), inv.A.Name, kinds[0], inv.B.Name, kinds[1])
	}
	inv.Kind = kinds[0]
	return nil
}

// where is what a partition of a scenario needs to know: the target's hosts, and
// what labels they have, if they are somebody's. Nobody can be asked for a role
// before there is a run.
func (s *Service) where(hosts []model.NodeID) flowrules.Where {
	w := flowrules.Where{Hosts: hosts}
	if s.cfg.Testbed != nil {
		w.Labels = flowrules.WhereOn(s.cfg.Testbed, nil).Labels
	}
	return w
}

func names(vs []model.Variable) []string {
	var out []string
	for _, v := range vs {
		out = append(out, v.Name)
	}
	return out
}

// runUserScenario runs the scenario that a user gave as often as asked.
func (s *Service) runUserScenario(ctx context.Context, j *job, r *labRunner) error {
	return s.each(ctx, j, r, func(n int) model.WorkItem {
		sc := *j.c.Spec.Scenario
		sc.ID = fmt.Sprintf("s%04d", n)
		if sc.Seed == 0 {
			sc.Seed = j.c.Spec.Seed + uint64(n)
		}
		sc.Why = model.WhyRequested
		return model.WorkItem{Campaign: j.c.ID, Run: fmt.Sprintf("%s-r%04d", j.c.ID, n), Spec: j.c.Spec, Scenario: sc}
	}, func(model.RunSummary) {})
}
