package engine

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"netsplit/internal/onecut"
	"netsplit/model"
)

// TestRenamingLeadsBack: a scenario with other nodes, renamed back by the first of
// its Or, is the scenario, and a result in its terms is what it was.
func TestRenamingLeadsBack(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3", "n4"}
	value := func(n model.NodeID) string { return string(n) }
	var observe []model.Invariant
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			inv := model.Invariant{Kind: "leader", Relation: model.RelationEqual, A: model.VarRef{Name: "leader", Node: a}, B: model.VarRef{Name: "leader", Node: b}}
			inv.ID = model.InvariantID(inv.Relation, inv.A, inv.B)
			observe = append(observe, inv)
		}
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		draw := func() model.NodeID { return nodes[r.IntN(4)] }
		permutation := func() model.Renaming {
			out := model.Renaming{}
			for i, j := range r.Perm(4) {
				if i != j {
					out[nodes[i]] = nodes[j]
				}
			}
			return out
		}
		inv := observe[r.IntN(len(observe))]
		class := func() model.Class {
			return model.Class{Type: "VOTE", From: draw(), To: draw(), State: model.State{A: value(draw()), B: model.Absent}}
		}
		heal := class()
		scn := onecut.Scenario{Strategy: model.StrategyCoFI, Isolate: inv.A.Node, Partition: model.Isolate(inv.A.Node, nodes, model.Drop), Invariant: &inv,
			State: &model.State{A: value(draw()), B: value(draw())}, Seen: []model.Class{class()}, HealAt: &heal, Observe: observe,
			Or: []model.Renaming{permutation(), permutation()}}.Model()
		scn.Steps[0].Until.Unseen = &model.Unseen{Seen: []model.Class{class()}}
		s := onecut.Of(scn)
		way := 1 + r.IntN(2)
		if len(s.Or[way-1]) == 0 {
			continue // the same names
		}
		met := Met(scn, model.RunResult{Or: s.Or[way-1]})
		as := onecut.Of(met)
		if !as.Substituted {
			t.Fatalf("seed %d: %+v", seed, as)
		}
		if got, want := as.Isolate, s.Or[way-1].Node(s.Isolate); got != want || as.Partition.Groups[0][0] != want {
			t.Fatalf("seed %d: isolates %s by %s, want %s", seed, got, as.Partition, want)
		}
		for _, l := range as.Partition.Links() {
			if !slices.Contains(MayCut(&scn), l) {
				t.Fatalf("seed %d: %s may be cut, and is not among %v", seed, l, MayCut(&scn))
			}
		}
		if again := Met(met, model.RunResult{Or: as.Or[0]}); !reflect.DeepEqual(again, met) {
			t.Fatalf("seed %d: renamed twice: %+v", seed, again)
		}
		twice, ok := substituted(&met, as.Or[0])
		back := onecut.Of(twice)
		if !ok || !reflect.DeepEqual([]any{back.Invariant, back.State, back.Isolate, back.Seen, back.HealAt, back.Partition},
			[]any{s.Invariant, s.State, s.Isolate, s.Seen, s.HealAt, s.Partition}) {
			t.Fatalf("seed %d: %+v\nwant %+v", seed, back, s)
		}
		// What the second of Or means is among those of the renamed one, too.
		other := s.Or[2-way]
		if len(other) > 0 && !maps.Equal(other, s.Or[way-1]) {
			wanted, _ := substituted(&scn, other)
			all, ok := substituted(&met, as.Or[1])
			want, got := onecut.Of(wanted), onecut.Of(all)
			if !ok || got.Isolate != want.Isolate || *got.State != *want.State || got.Invariant.ID != want.Invariant.ID {
				t.Fatalf("seed %d: %s of %s, isolating %s, want %s of %s, isolating %s", seed, got.State, got.Invariant, got.Isolate, want.State, want.Invariant, want.Isolate)
			}
		}
		res := InTerms(model.RunResult{Or: s.Or[way-1], Reached: true, CutState: as.State, HealClass: as.HealAt, Classes: as.Seen}, scn)
		if *res.CutState != *s.State || *res.HealClass != *s.HealAt || res.Classes[0] != s.Seen[0] {
			t.Fatalf("seed %d: %+v", seed, res)
		}
	}
}
