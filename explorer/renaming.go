package explorer

import (
	"maps"
	"slices"

	"netsplit/model"
)

// rename1 renames a value, or what a variable is about, if it names a node.
func rename1(r model.Renaming, s string) string { return string(r.Node(model.NodeID(s))) }

func renamedVar(r model.Renaming, v model.VarRef) model.VarRef {
	return model.VarRef{Name: v.Name, About: rename1(r, v.About), Node: r.Node(v.Node)}
}

// after is first q, then r.
func after(r, q model.Renaming) model.Renaming {
	out := model.Renaming{}
	for n := range q {
		out[n] = r.Node(q[n])
	}
	for n := range r {
		if _, ok := q[n]; !ok {
			out[n] = r[n]
		}
	}
	maps.DeleteFunc(out, func(a, b model.NodeID) bool { return a == b })
	return out
}

// inverse leads back.
func inverse(r model.Renaming) model.Renaming {
	out := model.Renaming{}
	for n, m := range r {
		out[m] = n
	}
	return out
}

// renamedInvariant finds an invariant after the renaming among others, -1 if it is not
// there. turned says that its variables, of which A sorts before B, have changed
// places.
func renamedInvariant(r model.Renaming, i *model.Invariant, among []model.Invariant) (at int, turned bool) {
	a, b := renamedVar(r, i.A), renamedVar(r, i.B)
	if turned = b.Compare(a) < 0; turned {
		a, b = b, a
	}
	return slices.IndexFunc(among, func(o model.Invariant) bool { return o.Relation == i.Relation && o.A == a && o.B == b }), turned
}

func renamedState(r model.Renaming, s model.State, turned bool) model.State {
	s.A, s.B = rename1(r, s.A), rename1(r, s.B)
	if turned {
		s.A, s.B = s.B, s.A
	}
	return s
}

func renamedClass(r model.Renaming, c model.Class, turned bool) model.Class {
	c.From, c.To, c.State = r.Node(c.From), r.Node(c.To), renamedState(r, c.State, turned)
	return c
}

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
		i, t := renamedInvariant(r, &c.Invariant, observe)
		if i < 0 || c.State == nil {
			return false
		}
		at := renamedState(r, *c.State, t)
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
			u.Seen = append(u.Seen, renamedClass(r, c, turned))
		}
		slices.SortFunc(u.Seen, model.Class.Compare)
		st.Until.Unseen = u
	}
	if st.Until.Class != nil {
		c := renamedClass(r, *st.Until.Class, turned)
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
	back := inverse(r.Or)
	as.Or = []model.Renaming{back}
	for _, o := range s.Or {
		if q := after(o, back); len(q) > 0 {
			as.Or = append(as.Or, q)
		}
	}
	return as
}

// InTerms is the result in the names of the scenario that was requested, where
// its own are those of the nodes to which it came about. States keep theirs: they
// are what was met.
func InTerms(r model.RunResult, s model.Scenario) model.RunResult {
	if len(r.Or) == 0 || s.Waits() == nil {
		return r
	}
	_, turned := renamedInvariant(r.Or, &s.Waits().When.State.Invariant, nil)
	back := inverse(r.Or)
	if r.CutState != nil {
		st := renamedState(back, *r.CutState, turned)
		r.CutState = &st
	}
	if r.HealClass != nil {
		c := renamedClass(back, *r.HealClass, turned)
		r.HealClass = &c
	}
	classes := make([]model.Class, len(r.Classes))
	for i, c := range r.Classes {
		classes[i] = renamedClass(back, c, turned)
	}
	r.Classes = classes
	return r
}
