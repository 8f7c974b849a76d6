package model

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestRenamingLeadsBack: a scenario with other nodes, renamed back by the first of
// its Or, is the scenario, and a result in its terms is what it was.
func TestRenamingLeadsBack(t *testing.T) {
	nodes := []NodeID{"n1", "n2", "n3", "n4"}
	value := func(n NodeID) string { return string(n) }
	var observe []Invariant
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			inv := Invariant{Kind: "leader", Relation: RelationEqual, A: VarRef{Name: "leader", Node: a}, B: VarRef{Name: "leader", Node: b}}
			inv.ID = InvariantID(inv.Relation, inv.A, inv.B)
			observe = append(observe, inv)
		}
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		draw := func() NodeID { return nodes[r.IntN(4)] }
		permutation := func() Renaming {
			out := Renaming{}
			for i, j := range r.Perm(4) {
				if i != j {
					out[nodes[i]] = nodes[j]
				}
			}
			return out
		}
		inv := observe[r.IntN(len(observe))]
		class := func() Class {
			return Class{Type: "VOTE", From: draw(), To: draw(), State: State{A: value(draw()), B: Absent}}
		}
		heal := class()
		s := Scenario{Strategy: StrategyCoFI, Isolate: inv.A.Node, Partition: Isolate(inv.A.Node, nodes, Drop), Invariant: &inv,
			State: &State{A: value(draw()), B: value(draw())}, Seen: []Class{class()}, HealAt: &heal, Observe: observe,
			Or: []Renaming{permutation(), permutation()}}
		way := 1 + r.IntN(2)
		if len(s.Or[way-1]) == 0 {
			continue // the same names
		}
		as := s.Met(RunResult{Or: s.Or[way-1]})
		if !as.Substituted {
			t.Fatalf("seed %d: %+v", seed, as)
		}
		if got, want := as.Isolate, s.Or[way-1].Node(s.Isolate); got != want || as.Partition.Groups[0][0] != want {
			t.Fatalf("seed %d: isolates %s by %s, want %s", seed, got, as.Partition, want)
		}
		for _, l := range as.Partition.Links() {
			if !slices.Contains(s.MayCut(), l) {
				t.Fatalf("seed %d: %s may be cut, and is not among %v", seed, l, s.MayCut())
			}
		}
		if again := as.Met(RunResult{Or: as.Or[0]}); !reflect.DeepEqual(again, as) {
			t.Fatalf("seed %d: renamed twice: %+v", seed, again)
		}
		back, ok := as.As(as.Or[0])
		if !ok || !reflect.DeepEqual([]any{back.Invariant, back.State, back.Isolate, back.Seen, back.HealAt, back.Partition},
			[]any{s.Invariant, s.State, s.Isolate, s.Seen, s.HealAt, s.Partition}) {
			t.Fatalf("seed %d: %+v\nwant %+v", seed, back, s)
		}
		// What the second of Or means is among those of the renamed one, too.
		other := s.Or[2-way]
		if len(other) > 0 && !maps.Equal(other, s.Or[way-1]) {
			want, _ := s.As(other)
			got, ok := as.As(as.Or[1])
			if !ok || got.Isolate != want.Isolate || *got.State != *want.State || got.Invariant.ID != want.Invariant.ID {
				t.Fatalf("seed %d: %s of %s, isolating %s, want %s of %s, isolating %s", seed, got.State, got.Invariant, got.Isolate, want.State, want.Invariant, want.Isolate)
			}
		}
		res := RunResult{Or: s.Or[way-1], Reached: true, CutState: as.State, HealClass: as.HealAt, Classes: as.Seen}.InTerms(s)
		if *res.CutState != *s.State || *res.HealClass != *s.HealAt || res.Classes[0] != s.Seen[0] {
			t.Fatalf("seed %d: %+v", seed, res)
		}
	}
}

func TestEarlierRecordsOfASubstitutionLoad(t *testing.T) {
	for text, want := range map[string]bool{`{"id":"s1","came":true}`: true, `{"id":"s1","substituted":true}`: true, `{"id":"s1"}`: false} {
		var s Scenario
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.ID != "s1" || s.Substituted != want {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}
