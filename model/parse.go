package model

import (
	"fmt"
	"strings"
)

// ParseVarRef reads name[about]@node or name@node, as VarRef.String writes it.
func ParseVarRef(s string) (VarRef, error) {
	left, node, ok := strings.Cut(strings.TrimSpace(s), "@")
	name, about, has := strings.Cut(left, "[")
	if has {
		about, has = strings.CutSuffix(about, "]")
		ok = ok && has && about != ""
	}
	if !ok || name == "" || node == "" || strings.ContainsAny(name+node, " []") {
		return VarRef{}, fmt.Errorf("variable %q: write name[about]@node or name@node, as in status[n1]@n2", s)
	}
	return VarRef{Name: name, About: about, Node: NodeID(node)}, nil
}

// ParseInvariant reads an invariant as Invariant.String writes it. Its id alone
// gives one with nothing but that. swapped: the variables were given in the other
// order, so that A is the second.
func ParseInvariant(s string) (inv Invariant, swapped bool, err error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "inv-") && !strings.ContainsAny(s, " @") {
		return Invariant{ID: s}, false, nil
	}
	left, right, ok := strings.Cut(s, RelationEqual)
	if !ok {
		return Invariant{}, false, fmt.Errorf("invariant %q: write two variables, as in status[n1]@n2 == status[n1]@n3, or the id of a mined one", s)
	}
	a, err := ParseVarRef(left)
	if err != nil {
		return Invariant{}, false, err
	}
	b, err := ParseVarRef(right)
	if err != nil {
		return Invariant{}, false, err
	}
	if b.Compare(a) < 0 {
		a, b, swapped = b, a, true
	}
	return Invariant{ID: InvariantID(RelationEqual, a, b), Relation: RelationEqual, A: a, B: b}, swapped, nil
}
