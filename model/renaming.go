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

// String is "n2 for n1, n1 for n2".
func (r Renaming) String() string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%s for %s", r[n], n))
	}
	return strings.Join(out, ", ")
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

// value is a value, or what a variable is about, under its new name if it names a node.
func (r Renaming) value(s string) string { return string(r.Node(NodeID(s))) }

func (r Renaming) variable(v VarRef) VarRef {
	return VarRef{Name: v.Name, About: r.value(v.About), Node: r.Node(v.Node)}
}

// Invariant finds an invariant under its new names among others, -1 if it is not
// there. turned says that its variables, of which A sorts before B, have changed
// places.
func (r Renaming) Invariant(i *Invariant, among []Invariant) (at int, turned bool) {
	a, b := r.variable(i.A), r.variable(i.B)
	if turned = b.Compare(a) < 0; turned {
		a, b = b, a
	}
	return slices.IndexFunc(among, func(o Invariant) bool { return o.Relation == i.Relation && o.A == a && o.B == b }), turned
}

// State is a state of an invariant that is turned or not: see Invariant.
func (r Renaming) State(s State, turned bool) State {
	s.A, s.B = r.value(s.A), r.value(s.B)
	if turned {
		s.A, s.B = s.B, s.A
	}
	return s
}

// Class is a class at a state of an invariant that is turned or not.
func (r Renaming) Class(c Class, turned bool) Class {
	c.From, c.To, c.State = r.Node(c.From), r.Node(c.To), r.State(c.State, turned)
	return c
}
