package model

import (
	"path"
	"testing"
)

// MatchType against path.Match, whose "*" is the same where there is no slash.
func TestMatchTypeIsAGlob(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "aab", "aba", "abab", "text A", "text AB", "text B A"}
	for _, p := range []string{"", "*", "a", "a*", "*a", "*a*", "a*b", "a*b*a", "**", "text *", "text A*", "*A", "text * A", "a*a"} {
		for _, s := range texts {
			want, err := path.Match(p, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := MatchType(p, s); got != want {
				t.Errorf("%q matches %q: %v, want %v", p, s, got, want)
			}
		}
	}
}

func TestInvariantsAreReadAsTheyAreWritten(t *testing.T) {
	a, b := VarRef{Name: "status", About: "n1", Node: "n2"}, VarRef{Name: "leader", Node: "n3"}
	inv := Invariant{ID: InvariantID(RelationEqual, a, b), Relation: RelationEqual, A: b, B: a}
	for _, c := range []struct {
		text    string
		swapped bool
	}{{inv.String(), false}, {"status[n1]@n2==leader@n3", true}} {
		got, swapped, err := ParseInvariant(c.text)
		if err != nil || got.ID != inv.ID || got.A != inv.A || got.B != inv.B || swapped != c.swapped {
			t.Errorf("%q: %+v, swapped %v, %v", c.text, got, swapped, err)
		}
	}
	if got, _, err := ParseInvariant("inv-0123456789"); err != nil || got.ID != "inv-0123456789" {
		t.Errorf("an id: %+v, %v", got, err)
	}
	for _, bad := range []string{"", "a@n1", "a == b", "a[]@n1 == b@n2", "a[x@n1 == b@n2", "a b@n1 == c@n2"} {
		if got, _, err := ParseInvariant(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}
