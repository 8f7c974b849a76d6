package explorer_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"netsplit/explorer"
	"netsplit/internal/onecut"
	"netsplit/model"
)

// pairRun stands in for the runs of one pair: it meets the classes in this
// order, as the engine would, and heals by the scenario's rule.
func pairRun(s onecut.Scenario, classes []model.Class) model.RunResult {
	r := model.RunResult{Scenario: s.ID, Reached: true, Verdict: model.Verdict{Value: model.VerdictPass}}
	for _, c := range classes {
		if !slices.Contains(r.Classes, c) {
			r.Classes = append(r.Classes, c)
		}
		if heals(s, c) {
			r.HealClass = &c
			break
		}
	}
	return r
}

// heals is the rule of the scenario: nothing, one class, or any not seen.
func heals(s onecut.Scenario, c model.Class) bool {
	switch {
	case s.Never:
		return false
	case s.HealAt != nil:
		return c == *s.HealAt
	}
	return !slices.Contains(s.Seen, c)
}

// TestTheControlOfARunDoesNothing to the network: its seed and what it observed stay.
func TestTheControlOfARunDoesNothing(t *testing.T) {
	s := onecut.Scenario{ID: "s0007", Strategy: model.StrategyCoFI, Seed: 44, Isolate: "n1", Observe: []model.Invariant{{ID: "i"}},
		Invariant: &model.Invariant{ID: "i"}, State: &model.State{A: "n1", B: "n2"}, Partition: model.Isolate("n1", []model.NodeID{"n1", "n2"}, model.Drop), Faults: []model.MessageFault{{}}}.Model()
	if c := explorer.WithoutFaults(s); c.Faulty() || c.Strategy != model.StrategyClean || c.Seed != s.Seed || len(c.Observe) != 1 || !strings.Contains(c.Why, s.ID) {
		t.Errorf("%+v", c)
	}
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
	var s onecut.Scenario
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
			s := onecut.Of(out[i])
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

// TestSeedsOfAStateThatAlwaysComes: where each run without a cut met the state, every
// other of a pair's first six runs draws a seed and lets no message heal, unless the
// last one missed the state.
func TestSeedsOfAStateThatAlwaysComes(t *testing.T) {
	for runs, want := range map[string]string{"yyyyyyyy": "DkDkDkkk", "yynnyyyy": "DkDkkkkk"} {
		core := explorer.NewCore(explorer.Config{Strategy: model.StrategyCoFI, Seed: 7, Nodes: hosts[:2], Hosts: hosts[:2], Effect: model.Drop, Runs: 50, Clean: 3, Retries: 5})
		var results []model.RunResult
		known, met := map[uint64]bool{}, []model.MetState{{Invariant: "ab", State: model.State{A: "x", B: "y"}, Count: 1, First: 5}}
		for _, s := range core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 3}).Scenarios {
			known[s.Seed] = true
			core.Step(explorer.Input{Kind: explorer.InputResult, Result: &model.RunResult{Scenario: s.ID}})
			results = append(results, model.RunResult{Scenario: s.ID, States: met})
		}
		core.Step(explorer.Input{Kind: explorer.InputInvariants, Results: results,
			Invariants: []model.Invariant{{ID: "ab", Relation: model.RelationEqual, A: leader("a"), B: leader("b")}}})
		other := core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1}).Scenarios[0] // stays out: what follows is one pair
		known[other.Seed] = true
		got := ""
		for _, does := range runs {
			s := onecut.Of(core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1}).Scenarios[0])
			switch {
			case !known[s.Seed] && s.Never && s.HealAt == nil:
				got += "D"
			case known[s.Seed] && !s.Never && s.HealAt != nil:
				got += "k"
			default:
				t.Errorf("seed %d, Never %v, HealAt %v", s.Seed, s.Never, s.HealAt)
			}
			known[s.Seed] = true
			r := model.RunResult{Scenario: s.ID, Verdict: model.Verdict{Value: model.VerdictPass}, Reached: does == 'y'}
			if r.Reached {
				r.States = met
				for _, typ := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
					r.Classes = append(r.Classes, model.Class{Type: typ, From: "a", To: "b", State: model.State{A: "x", B: "z"}})
				}
			}
			core.Step(explorer.Input{Kind: explorer.InputResult, Result: &r})
		}
		if got != want {
			t.Errorf("runs that reach the state, %s: seeds drawn and known, %s, want %s", runs, got, want)
		}
	}
}

// TestSeeds: a run has the seed of a run that met its state; one tried in vain is
// left alone until the pair reached its state; when none is left, one is drawn.
// That seeds take turns shows in testdata/scripts/algorithm1.txt.
func TestSeeds(t *testing.T) {
	core := explorer.NewCore(explorer.Config{Strategy: model.StrategyCoFI, Seed: 7, Nodes: hosts[:2], Hosts: hosts[:2], Effect: model.Drop, Runs: 50, Clean: 3, Retries: 5})
	ask := func() model.Scenario {
		t.Helper()
		r := core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1})
		if len(r.Scenarios) != 1 {
			t.Fatalf("nothing handed out: %s", r.Why)
		}
		return r.Scenarios[0]
	}
	met := func(count int) []model.MetState {
		return []model.MetState{{Invariant: "ab", State: model.State{A: "x", B: "y"}, Count: count, First: 5}}
	}
	back := func(s model.Scenario, reached bool, classes ...model.Class) {
		res := model.RunResult{Scenario: s.ID, Verdict: model.Verdict{Value: model.VerdictPass}, Reached: reached, Classes: classes}
		if reached {
			res.States = met(1)
		}
		core.Step(explorer.Input{Kind: explorer.InputResult, Result: &res})
	}
	var clean []model.Scenario
	for range 3 {
		s := ask()
		clean = append(clean, s)
		back(s, false)
	}
	core.Step(explorer.Input{Kind: explorer.InputInvariants, Invariants: []model.Invariant{{ID: "ab", Relation: model.RelationEqual, A: leader("a"), B: leader("b")}},
		Results: []model.RunResult{{Scenario: clean[0].ID, States: met(1)}, {Scenario: clean[1].ID}, {Scenario: clean[2].ID, States: met(2)}}})
	moved := func(typ string) model.Class {
		return model.Class{Type: typ, From: "a", To: "b", State: model.State{A: "x", B: "z"}}
	}
	other := ask() // isolates a; left out, so that what follows is one pair
	s := ask()
	if other.Cut().Do.Isolate != "a" || s.Cut().Do.Isolate != "b" || s.Seed != clean[2].Seed {
		t.Fatalf("the first run has seed %d, want that of the run that entered the state most often, %d", s.Seed, clean[2].Seed)
	}
	back(s, false) // in vain
	s = ask()
	if s.Seed != clean[0].Seed {
		t.Fatalf("after a miss the seed is %d, want that of the other run that met the state, %d", s.Seed, clean[0].Seed)
	}
	back(s, false) // in vain too
	s = ask()
	drawn := s.Seed
	for _, c := range clean {
		if s.Seed == c.Seed {
			t.Fatalf("all seeds were tried in vain, and that of %s comes again", c.ID)
		}
	}
	back(s, true, moved("A"), moved("B"), moved("C"))
	if s = ask(); s.Seed != drawn {
		t.Fatalf("seed %d, want the one drawn that was never tried in vain, %d", s.Seed, drawn)
	}
}
