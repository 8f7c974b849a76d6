package explorer_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"netsplit/explorer"
	"netsplit/internal/onecut"
	"netsplit/model"
)

var hosts = []model.NodeID{"a", "b", "c", "k"}

func leader(n model.NodeID) model.VarRef { return model.VarRef{Name: "leader", Node: n} }

func equal(a, b model.NodeID) model.Invariant {
	return model.Invariant{ID: string(a + b), Kind: "leader", Relation: model.RelationEqual, A: leader(a), B: leader(b)}
}

// TestSearchKeepsItsRules drives a search with random results that come back
// in random order, some lost, some unjudged, and checks what must hold.
func TestSearchKeepsItsRules(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		cfg := explorer.Config{Strategy: []model.Strategy{model.StrategyCoFI, model.StrategyRandom}[r.IntN(2)], Seed: seed, Nodes: hosts[:3], Hosts: hosts,
			Effect: model.Drop, Retries: r.IntN(3), Runs: r.IntN(60), Clean: r.IntN(4), Workload: time.Second, IsolateClients: r.IntN(2) == 0}
		core := explorer.NewCore(cfg)
		invs := []model.Invariant{equal("a", "b"), equal("b", "c")}
		tells := r.IntN(4) > 0 // results say which classes were met
		out := map[string]onecut.Scenario{}
		fresh, fault, steps := map[string]bool{}, 0, 0
		var ids []string
		step := func(in explorer.Input) explorer.Ready {
			if steps++; steps > 5000 {
				t.Fatalf("seed %d: does not end", seed)
			}
			return core.Step(in)
		}
		for {
			ready := step(explorer.Input{Kind: explorer.InputAsk, Slots: 1 + r.IntN(3)})
			for _, handed := range ready.Scenarios {
				s := onecut.Of(handed)
				if _, dup := out[s.ID]; dup {
					t.Fatalf("seed %d: %s is out twice", seed, s.ID)
				}
				for _, o := range out {
					if s.Strategy == model.StrategyCoFI && o.Strategy == s.Strategy && o.Isolate == s.Isolate && o.Invariant.ID == s.Invariant.ID && *o.State == *s.State {
						t.Fatalf("seed %d: %s and %s are two runs of one pair", seed, s.ID, o.ID)
					}
				}
				if !fresh[s.ID] && s.Strategy != model.StrategyClean {
					fault++
				}
				fresh[s.ID] = true
				if s.Strategy != model.StrategyClean {
					if err := s.Partition.Validate(hosts); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				if s.Strategy == model.StrategyRandom && (s.CutAfter < 0 || s.HealAfter < s.CutAfter || s.HealAfter > 2*time.Second) {
					t.Fatalf("seed %d: offsets %s, %s", seed, s.CutAfter, s.HealAfter)
				}
				if !slices.IsSortedFunc(s.Seen, model.Class.Compare) {
					t.Fatalf("seed %d: classes not sorted", seed)
				}
				out[s.ID] = s
				ids = append(ids, s.ID)
			}
			if ready.Mine {
				step(explorer.Input{Kind: explorer.InputInvariants, Invariants: invs})
				continue
			}
			if ready.Done {
				break
			}
			if len(ids) == 0 {
				t.Fatalf("seed %d: nothing out, not done: %s", seed, ready.Why)
			}
			i := r.IntN(len(ids))
			s := out[ids[i]]
			ids = slices.Delete(ids, i, i+1)
			delete(out, s.ID)
			if r.IntN(10) == 0 {
				step(explorer.Input{Kind: explorer.InputLost, Scenario: s.ID})
				continue
			}
			res := model.RunResult{Scenario: s.ID, Verdict: model.Verdict{Value: model.VerdictPass}, Duration: time.Duration(r.IntN(int(2 * time.Second)))}
			if r.IntN(10) == 0 {
				res.Verdict.Value = model.VerdictUnknown
			}
			if r.IntN(3) > 0 {
				res.States = []model.MetState{{Invariant: "ab", State: model.State{A: "x", B: string('p' + rune(r.IntN(3)))}, Count: 1, First: time.Duration(r.IntN(9))}}
			}
			if s.Strategy == model.StrategyCoFI && r.IntN(3) > 0 {
				res.Reached = true
				for range r.IntN(4) {
					c := model.Class{Type: string('A' + rune(r.IntN(6))), From: s.Isolate, To: "k", State: model.State{A: "x", B: string('p' + rune(r.IntN(3)))}}
					if tells {
						res.Classes = append(res.Classes, c)
					}
					if heals(s, c) {
						res.HealClass = &c
						break
					}
				}
			}
			step(explorer.Input{Kind: explorer.InputResult, Result: &res})
		}
		if len(out) > 0 {
			t.Fatalf("seed %d: done with %d runs out", seed, len(out))
		}
		if fault > cfg.Runs {
			t.Fatalf("seed %d: %d fault runs, budget %d", seed, fault, cfg.Runs)
		}
		if cfg.Strategy == model.StrategyRandom && fault != cfg.Runs {
			t.Fatalf("seed %d: %d random runs of %d", seed, fault, cfg.Runs)
		}
	}
}

// TestConfig: a wrong configuration says what to do.
func TestConfig(t *testing.T) {
	good := explorer.Config{Strategy: model.StrategyCoFI, Nodes: hosts[:3], Hosts: hosts, Effect: model.Drop}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*explorer.Config){
		"strategy": func(c *explorer.Config) { c.Strategy = "best" },
		"negative": func(c *explorer.Config) { c.Runs = -1 },
		"no nodes": func(c *explorer.Config) { c.Nodes = nil },
		"effect":   func(c *explorer.Config) { c.Effect = "" },
		"one node": func(c *explorer.Config) { c.Nodes = hosts[:1] },
		"no host":  func(c *explorer.Config) { c.Hosts = hosts[:2]; c.IsolateClients = true },
	} {
		c := good
		spoil(&c)
		r := explorer.NewCore(c).Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1})
		if c.Validate() == nil || !r.Done || r.Why == "" || len(r.Scenarios) > 0 {
			t.Errorf("%s: error %v, ready %+v", name, c.Validate(), r)
		}
	}
}
