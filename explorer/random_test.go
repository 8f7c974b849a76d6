package explorer_test

import (
	"fmt"
	"testing"
	"time"

	"netsplit/explorer"
	"netsplit/explorer/sequence"
	"netsplit/model"
)

// TestARandomScenarioHasFaultsOfTheKinds, up to a depth, each at a node and between two times of
// its own, and the same ones with the same seed.
func TestARandomScenarioHasFaultsOfTheKinds(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3", "n4"}
	draw := func(seed uint64) (out []model.Scenario) {
		cfg := explorer.Config{Strategy: model.StrategyRandom, Seed: seed, Nodes: nodes, Hosts: nodes, Effect: model.Drop, Runs: 60, Workload: 10 * time.Second}
		cfg.Random = explorer.Random{Depth: 3, Kinds: []model.PointFaultKind{model.PointIsolate, model.PointBoth, model.PointPowerCut},
			Steps: sequence.Play{Isolating: cfg.Isolating, Around: sequence.Around{Nodes: nodes}}.Timed}
		c := explorer.NewCore(cfg)
		c.Step(explorer.Input{Kind: explorer.InputInvariants})
		return c.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 60}).Scenarios
	}
	got := draw(7)
	if fmt.Sprint(got) != fmt.Sprint(draw(7)) || fmt.Sprint(got) == fmt.Sprint(draw(8)) {
		t.Error("the seed does not determine the scenarios")
	}
	many, kinds, overlap := map[int]int{}, map[string]int{}, 0
	for _, s := range got {
		many[len(s.Steps)]++
		for i := range s.Steps {
			st := &s.Steps[i]
			if err := st.Validate(nodes, i+1); err != nil {
				t.Errorf("%s: %v", s.ID, err)
			}
			if st.When.At < 0 || st.Until.At < st.When.At || st.Until.At > 10*time.Second || st.Max != 0 {
				t.Errorf("%s: %s", s.ID, st)
			}
			switch {
			case st.Do.Disk != nil:
				kinds["power-cut"]++
			case len(st.Do.Cut.Groups[0]) == 2 && st.Do.Cut.Groups[0][0] != st.Do.Cut.Groups[0][1]:
				kinds["both"]++
			case len(st.Do.Cut.Groups[0]) == 1:
				kinds["isolate"]++
			default:
				t.Errorf("%s: %s", s.ID, st)
			}
			if i > 0 && st.When.At < s.Steps[i-1].Until.At && s.Steps[i-1].When.At < st.Until.At {
				overlap++
			}
		}
	}
	if len(got) != 60 || len(many) != 3 || many[0] > 0 || len(kinds) != 3 || overlap == 0 {
		t.Errorf("%d scenarios, by faults %v, by kind %v, %d overlap", len(got), many, kinds, overlap)
	}
}

// TestRandomTimesAreWithinTheWorkload as the clean runs show it; a fault run may have cut its own
// short.
func TestRandomTimesAreWithinTheWorkload(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2"}
	for clean, want := range map[int]bool{0: true, 1: false} {
		c := explorer.NewCore(explorer.Config{Strategy: model.StrategyRandom, Seed: 1, Clean: clean, Nodes: nodes, Hosts: nodes, Effect: model.Drop, Runs: 40, Workload: 10 * time.Second})
		if clean == 0 {
			c.Step(explorer.Input{Kind: explorer.InputInvariants})
		}
		first := c.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 1}).Scenarios[0]
		c.Step(explorer.Input{Kind: explorer.InputResult, Result: &model.RunResult{Scenario: first.ID, Duration: time.Second, Verdict: model.Verdict{Value: model.VerdictPass}}})
		if clean > 0 {
			c.Step(explorer.Input{Kind: explorer.InputInvariants})
		}
		late := false
		for _, s := range c.Step(explorer.Input{Kind: explorer.InputAsk, Slots: 30}).Scenarios {
			late = late || s.Steps[0].Until.At > time.Second
		}
		if late != want {
			t.Errorf("%d clean runs of 1 s: cuts later than that: %v", clean, late)
		}
	}
}
