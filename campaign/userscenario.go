package campaign

import (
	"cmp"
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

// userScenario checks a scenario that a user gave and completes it: the hosts that its cuts
// isolate to partitions, the groups of partitions, invariants by what was mined, the longest
// cut.
func (s *Service) userScenario(spec model.CampaignSpec, t *model.Target) (*model.Scenario, error) {
	sc := *spec.Scenario
	sc.Strategy = model.StrategySteps
	if len(sc.Steps) == 0 {
		return nil, fmt.Errorf("%w: scenario: it does nothing: add steps", model.ErrInvalid)
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
	sc.Steps = nil
	for i, st := range spec.Scenario.Steps {
		if err := s.userStep(&st, i+1, spec, t, known); err != nil {
			if errors.Is(err, flowrules.ErrRoleUnknown) {
				err = fmt.Errorf("%w: in a scenario write isolate: leader, or name the role in a group of another shape", err)
			}
			return nil, fmt.Errorf("%w: scenario: step %d: %w", model.ErrInvalid, i+1, err)
		}
		sc.Steps = append(sc.Steps, st)
	}
	if _, err := planned(sc.Steps, t, spec.Args); err != nil {
		return nil, fmt.Errorf("%w: scenario: %w", model.ErrInvalid, err)
	}
	return &sc, nil
}

// userStep checks one step and completes it. What it points to is the user's and stays.
func (s *Service) userStep(st *model.Step, place int, spec model.CampaignSpec, t *model.Target, known []model.TargetInvariant) error {
	hosts := slices.Concat(t.Nodes, t.Clients)
	roles := slices.Collect(maps.Keys(t.Roles))
	if s.cfg.Testbed != nil {
		roles = slices.AppendSeq(roles, maps.Keys(s.cfg.Testbed.Roles))
	}
	st.When.State, st.When.Message, st.Until.Message, st.Do.Message = copied(st.When.State), copied(st.When.Message), copied(st.Until.Message), copied(st.Do.Message)
	conditions := []*model.FaultCondition{st.When.State}
	if m := st.Do.Message; m != nil {
		m.While = copied(m.While)
		conditions = append(conditions, m.While)
	}
	for _, c := range conditions {
		if c == nil {
			continue
		}
		if i := slices.IndexFunc(known, func(k model.TargetInvariant) bool { return k.ID == c.Invariant.ID }); i >= 0 {
			c.Invariant = known[i].Invariant
		} else if err := complete(&c.Invariant, t); err != nil {
			return err
		}
	}
	for _, m := range st.Matches() {
		if err := errors.Join(sut.Ends(m, hosts, roles), sut.Gives(t, m.Type)); err != nil {
			return err
		}
	}
	if c := st.Until.Class; c != nil {
		if err := sut.Gives(t, c.Type); err != nil {
			return err
		}
	}
	if st.Do.Cut == nil && st.Do.Isolate != "" {
		st.Do.Cut = &model.Partition{}
	}
	if err := nameRoles(&st.Do, hosts, roles); err != nil {
		return err
	}
	for _, name := range st.RoleNames() {
		if !slices.Contains(roles, name) {
			return noRole(name, roles)
		}
	}
	if err := errors.Join(st.Validate(hosts, place), s.holdsFiles(st)); err != nil {
		return err
	}
	if err := ofServers(st, t); err != nil {
		return err
	}
	if n := st.Do.Node; n != nil && !slices.ContainsFunc(t.Processes, func(q model.Process) bool {
		return !q.Once && (len(st.Do.Roles) > 0 || slices.Contains(q.Hosts, n.Host)) && (n.Process == "" || n.Process == q.Name)
	}) {
		return fmt.Errorf("%s: target %s has no such server there", n, t.Name)
	}
	if st.Do.Cut == nil {
		return nil
	}
	p := *st.Do.Cut
	st.Do.Cut = &p
	switch effect := p.Effect; {
	case st.Do.Silent():
		p = model.Isolate(st.Do.Isolate, hosts, model.Drop)
	case p.Shape == "":
		if !slices.Contains(hosts, st.Do.Isolate) && len(st.Do.Roles) == 0 {
			return fmt.Errorf("the cut isolates %q: name a host, one of %v, or a partition", st.Do.Isolate, hosts)
		}
		spec.Effect = cmp.Or(effect, model.Drop)
		p = s.coreConfig(spec, t).Isolating(st.Do.Isolate)
	case st.Do.Isolate != "":
		return fmt.Errorf("the cut isolates %s and names a partition: leave out one of them", st.Do.Isolate)
	default:
		p.Effect = cmp.Or(effect, model.Drop)
	}
	if len(st.Do.Roles) > 0 && !slices.Contains([]model.Shape{model.Complete, model.Isolated, model.Partial, model.Simplex, model.Bridge}, p.Shape) {
		return fmt.Errorf("%s has no place for a role: use isolate, complete, partial, simplex or bridge", p.Shape)
	}
	p, err := flowrules.Resolve(p, s.where(t, model.WithRoles(hosts, st.Do.Roles)))
	if err != nil {
		return err
	}
	*st.Do.Cut = p
	if h := st.Until.Class; h != nil {
		if !slices.Contains(p.Links(), model.Link{Src: h.From, Dst: h.To}) {
			return fmt.Errorf("the cut heals at %s, and no message from %q to %q crosses it: name two hosts that it parts", h.Type, h.From, h.To)
		}
		if st.Do.Isolate == "" { // whose messages heal
			st.Do.Isolate = h.From
			if slices.Contains(p.Groups[0], h.To) {
				st.Do.Isolate = h.To
			}
		}
	}
	if st.Max == 0 && !st.Until.Timed() && !st.Do.Silent() {
		st.Max = t.Timing.MaxCut
	}
	return nil
}

// copied is a copy of what a pointer points to.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
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

// where is what a partition of a scenario needs to know: the target's hosts, and what labels
// they have, by the testbed file or, in a lab, by the target file. Nobody can be asked for a role
// before there is a run.
func (s *Service) where(t *model.Target, hosts []model.NodeID) flowrules.Where {
	w := flowrules.Where{Hosts: hosts, Labels: t.Labels}
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
func (s *Service) runUserScenario(ctx context.Context, j *job, r place) error {
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
