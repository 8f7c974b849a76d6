package explorer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"netsplit/explorer"
	"netsplit/model"
)

// pairRun stands in for the runs of one pair: it meets the classes in this
// order, as the engine would, and heals by the scenario's rule.
func pairRun(s model.Scenario, classes []model.Class) model.RunResult {
	r := model.RunResult{Scenario: s.ID, Reached: true, Verdict: model.Verdict{Value: model.VerdictPass}}
	for _, c := range classes {
		if !slices.Contains(r.Classes, c) {
			r.Classes = append(r.Classes, c)
		}
		if !s.Never && !slices.Contains(s.Seen, c) {
			r.HealClass = &c
			break
		}
	}
	return r
}

func healed(r model.RunResult) string {
	if r.HealClass == nil {
		return "no class"
	}
	return r.HealClass.String()
}

// algorithm1 is the loop of the paper, lines 4 to 7 and 14 to 16: the classes at
// which its runs heal, and the one that heals at no class.
func algorithm1(classes []model.Class) []string {
	var s model.Scenario
	var out []string
	for {
		r := pairRun(s, classes)
		out = append(out, healed(r))
		if r.HealClass == nil {
			return out
		}
		s.Seen = append(s.Seen, *r.HealClass)
	}
}

// TestScenariosOfAlgorithm1: where runs repeat themselves, the search explores
// exactly the scenarios of Algorithm 1, each once, in whatever order. Only where
// the first run tells of no class is the one in which none heals made twice.
func TestScenariosOfAlgorithm1(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 4))
		tell := r.IntN(3) > 0
		classes := map[model.NodeID][]model.Class{}
		for _, n := range []model.NodeID{"a", "b"} {
			for range r.IntN(12) {
				classes[n] = append(classes[n], model.Class{Type: string('A' + rune(r.IntN(3))), From: n, To: hosts[2+r.IntN(2)],
					State: model.State{A: "x", B: string('y' + rune(r.IntN(2)))}})
			}
		}
		core := explorer.NewCore(explorer.Config{Strategy: model.StrategyCoFI, Seed: seed, Nodes: hosts[:2], Hosts: hosts[:2], Effect: model.Drop, Runs: 200})
		core.Step(explorer.Input{Kind: explorer.InputInvariants, Invariants: []model.Invariant{equal("a", "b")},
			Results: []model.RunResult{{Scenario: "earlier", States: []model.MetState{{Invariant: "ab", State: model.State{A: "x", B: "y"}, Count: 1}}}}})
		got := map[model.NodeID][]string{}
		var out []model.Scenario
		for {
			ready := core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1 + r.IntN(2)})
			out = append(out, ready.Scenarios...)
			if len(out) == 0 {
				break
			}
			i := r.IntN(len(out))
			s := out[i]
			out = slices.Delete(out, i, i+1)
			if s.Never != (len(got[s.Isolate]) == 0) {
				t.Fatalf("seed %d: never %v in run %d of a pair", seed, s.Never, len(got[s.Isolate])+1)
			}
			res := pairRun(s, classes[s.Isolate])
			got[s.Isolate] = append(got[s.Isolate], healed(res))
			if !tell {
				res.Classes = nil
			}
			core.Step(explorer.Input{Kind: explorer.InputResult, Result: &res})
		}
		for n, all := range got {
			want := algorithm1(classes[n])
			if !tell || len(classes[n]) == 0 { // the first run told of no class: Algorithm 1 as it stands follows
				want = append(want, "no class")
			}
			slices.Sort(want)
			slices.Sort(all)
			if !slices.Equal(all, want) {
				t.Fatalf("seed %d, isolating %s, told %v:\n got %v\nwant %v\nclasses %v", seed, n, tell, all, want, classes[n])
			}
		}
		if len(got) != 2 {
			t.Fatalf("seed %d: %d pairs explored, want 2", seed, len(got))
		}
	}
}
