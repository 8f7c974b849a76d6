package engine

import (
	"slices"

	"netsplit/model"
)

// substituted is the scenario that does to some nodes what this one does to others, alone.
// false: the scenario observes no invariant over the nodes meant.
func substituted(s *model.Scenario, r model.Renaming) (model.Scenario, bool) {
	out := *s
	out.Or, out.Steps = nil, slices.Clone(s.Steps)
	out.Why += "; it came about with " + r.String()
	out.Substituted = true
	for i := range out.Steps {
		if !substitute(&out.Steps[i], r, s.Observe) {
			return model.Scenario{}, false
		}
	}
	return out, true
}

func substitute(st *model.Step, r model.Renaming, observe []model.Invariant) bool {
	turned := false
	if c := st.When.State; c != nil {
		i, t := r.Invariant(&c.Invariant, observe)
		if i < 0 || c.State == nil {
			return false
		}
		at := r.State(*c.State, t)
		st.When.State, turned = &model.FaultCondition{Invariant: observe[i], State: &at, Nth: c.Nth}, t
	}
	st.Do.Isolate = r.Node(st.Do.Isolate)
	if n := st.Do.Node; n != nil {
		st.Do.Node = &model.NodeFault{Verb: n.Verb, Host: r.Node(n.Host), Process: n.Process}
	}
	if f := st.Do.Disk; f != nil {
		on := *f
		on.Host, st.Do.Disk = r.Node(f.Host), &on
	}
	if f := st.When.File; f != nil {
		on := *f
		on.Host, st.When.File = r.Node(f.Host), &on
	}
	if f := st.Until.File; f != nil {
		on := *f
		on.Host, st.Until.File = r.Node(f.Host), &on
	}
	if st.Do.Cut != nil {
		p := *st.Do.Cut
		p.Groups = nil
		for _, g := range st.Do.Cut.Groups {
			named := make([]model.NodeID, len(g))
			for j, n := range g {
				named[j] = r.Node(n)
			}
			slices.Sort(named)
			p.Groups = append(p.Groups, named)
		}
		st.Do.Cut = &p
	}
	if st.Until.Unseen != nil {
		u := &model.Unseen{}
		for _, c := range st.Until.Unseen.Seen {
			u.Seen = append(u.Seen, r.Class(c, turned))
		}
		slices.SortFunc(u.Seen, model.Class.Compare)
		st.Until.Unseen = u
	}
	if st.Until.Class != nil {
		c := r.Class(*st.Until.Class, turned)
		st.Until.Class = &c
	}
	return true
}

// MayCut lists the links that the scenario's partitions cut, to whichever nodes it
// comes about; some more than once. Those of roles, which any host may have, are not there.
func MayCut(s *model.Scenario) []model.Link {
	all := played(s)
	var out []model.Link
	for i := range all {
		p := all[i].Partition()
		out = append(out, slices.DeleteFunc(p.Links(), func(l model.Link) bool {
			return slices.Contains(all[i].Do.Roles, string(l.Src)) || slices.Contains(all[i].Do.Roles, string(l.Dst))
		})...)
	}
	return out
}

// Met is the scenario as a run went through it: with the names of the nodes to
// which it came about. Its Or are what it stood for, the names of the request.
// One that has them already stays.
func Met(s model.Scenario, r model.RunResult) model.Scenario {
	if s.Substituted || len(r.Or) == 0 || s.Waits() == nil {
		return s
	}
	as, ok := substituted(&s, r.Or)
	if !ok {
		return s
	}
	back := r.Or.Inverse()
	as.Or = []model.Renaming{back}
	for _, o := range s.Or {
		if q := o.After(back); len(q) > 0 {
			as.Or = append(as.Or, q)
		}
	}
	return as
}
