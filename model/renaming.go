package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Renaming gives nodes the names of others, one to one: what is said of the one is
// then said of the other. Nodes that it does not list keep theirs.
type Renaming map[NodeID]NodeID

// Node is a node under its new name.
func (r Renaming) Node(n NodeID) NodeID {
	if m, ok := r[n]; ok {
		return m
	}
	return n
}

// name renames a value, or what a variable is about, if it names a node.
func (r Renaming) name(s string) string { return string(r.Node(NodeID(s))) }

// Var is a variable of the node by its new name.
func (r Renaming) Var(v VarRef) VarRef {
	return VarRef{Name: v.Name, About: r.name(v.About), Node: r.Node(v.Node)}
}

// After is first q, then r.
func (r Renaming) After(q Renaming) Renaming {
	out := Renaming{}
	for n := range q {
		out[n] = r.Node(q[n])
	}
	for n := range r {
		if _, ok := q[n]; !ok {
			out[n] = r[n]
		}
	}
	maps.DeleteFunc(out, func(a, b NodeID) bool { return a == b })
	return out
}

// Inverse leads back.
func (r Renaming) Inverse() Renaming {
	out := Renaming{}
	for n, m := range r {
		out[m] = n
	}
	return out
}

// String is "n2 for n1, n1 for n2".
func (r Renaming) String() string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%s for %s", r[n], n))
	}
	return strings.Join(out, ", ")
}

// Invariant finds an invariant after the renaming among others, -1 if it is not
// there. turned says that its variables, of which A sorts before B, have changed
// places.
func (r Renaming) Invariant(i *Invariant, among []Invariant) (at int, turned bool) {
	a, b := r.Var(i.A), r.Var(i.B)
	if turned = b.Compare(a) < 0; turned {
		a, b = b, a
	}
	return slices.IndexFunc(among, func(o Invariant) bool { return o.Relation == i.Relation && o.A == a && o.B == b }), turned
}

// State is a state of an invariant.
func (r Renaming) State(s State, turned bool) State {
	s.A, s.B = r.name(s.A), r.name(s.B)
	if turned {
		s.A, s.B = s.B, s.A
	}
	return s
}

// Class is a class of an invariant.
func (r Renaming) Class(c Class, turned bool) Class {
	c.From, c.To, c.State = r.Node(c.From), r.Node(c.To), r.State(c.State, turned)
	return c
}

// As is the scenario that does to some nodes what this one does to others, alone.
// false: the scenario observes no invariant over the nodes meant.
func (s *Scenario) As(r Renaming) (Scenario, bool) {
	i, turned := r.Invariant(s.Invariant, s.Observe)
	if i < 0 {
		return Scenario{}, false
	}
	out, inv, st := *s, s.Observe[i], r.State(*s.State, turned)
	out.Invariant, out.State, out.Isolate, out.Or = &inv, &st, r.Node(s.Isolate), nil
	out.Why += "; it came about with " + r.String()
	out.Substituted = true
	out.Partition.Groups = nil
	for _, g := range s.Partition.Groups {
		named := make([]NodeID, len(g))
		for j, n := range g {
			named[j] = r.Node(n)
		}
		slices.Sort(named)
		out.Partition.Groups = append(out.Partition.Groups, named)
	}
	out.Seen = nil
	for _, c := range s.Seen {
		out.Seen = append(out.Seen, r.Class(c, turned))
	}
	slices.SortFunc(out.Seen, Class.Compare)
	if s.HealAt != nil {
		c := r.Class(*s.HealAt, turned)
		out.HealAt = &c
	}
	return out, true
}

// MayCut lists the links that the scenario's partition cuts, to whichever nodes it
// comes about; some more than once.
func (s *Scenario) MayCut() []Link {
	out := s.Partition.Links()
	for _, r := range s.Or {
		if as, ok := s.As(r); ok {
			out = append(out, as.Partition.Links()...)
		}
	}
	return out
}

// Met is the scenario as a run went through it: with the names of the nodes to
// which it came about. Its Or are what it stood for, the names asked for first.
// One that has them already stays.
func (s Scenario) Met(r RunResult) Scenario {
	if s.Substituted || len(r.Or) == 0 || s.Invariant == nil {
		return s
	}
	as, ok := s.As(r.Or)
	if !ok {
		return s
	}
	back := r.Or.Inverse()
	as.Or = []Renaming{back}
	for _, o := range s.Or {
		if q := o.After(back); len(q) > 0 {
			as.Or = append(as.Or, q)
		}
	}
	return as
}

// InTerms is the result in the names of the scenario that was asked for, where
// its own are those of the nodes to which it came about. States keep theirs: they
// are what was met.
func (r RunResult) InTerms(s Scenario) RunResult {
	if len(r.Or) == 0 || s.Invariant == nil {
		return r
	}
	_, turned := r.Or.Invariant(s.Invariant, nil)
	back := r.Or.Inverse()
	if r.CutState != nil {
		st := back.State(*r.CutState, turned)
		r.CutState = &st
	}
	if r.HealClass != nil {
		c := back.Class(*r.HealClass, turned)
		r.HealClass = &c
	}
	classes := make([]Class, len(r.Classes))
	for i, c := range r.Classes {
		classes[i] = back.Class(c, turned)
	}
	r.Classes = classes
	return r
}
