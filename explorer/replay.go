package explorer

import (
	"fmt"
	"slices"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// WithoutFaults is the control of a run: its seed, and nothing is done to the
// network.
func WithoutFaults(s model.Scenario) model.Scenario {
	return model.Scenario{ID: s.ID, Strategy: model.StrategyClean, Seed: s.Seed, Observe: s.Observe,
		Why: fmt.Sprintf("control of %s: the same seed, and nothing is cut", s.ID)}
}

// Replay returns the scenario that repeats a run: cut as before, and heal
// where that run healed, whatever other classes come up. A run that waited for a state and
// that a message healed by its class heals at that class; one that reached its state and
// was healed by time or by the end of the workload lets no class heal. What came about with other nodes than those first asked for is asked
// for with them; the others will do again. A run that never cut, and one that waited for no
// state, are repeated as they were: their scenarios say all. Who has a role is found out
// again. The id is the
// caller's to change.
func Replay(s model.Scenario, r model.RunResult) model.Scenario {
	s = engine.Met(s, r).AskedFor()
	s.Substituted = false // it is what is asked for now
	if s.Waits() == nil || !r.Reached {
		s.Why = fmt.Sprintf("repeats %s", s.ID)
		return s
	}
	s.Steps = slices.Clone(s.Steps)
	step := told(&s, r)
	if r.CutState != nil {
		at := *step.When.State
		at.State = r.CutState
		for _, m := range r.States {
			if m.Invariant == at.Invariant.ID && m.State == *at.State {
				at.Nth = m.Nth
			}
		}
		step.When.State = &at
	}
	step.Until.Class, step.Until.Unseen = nil, nil
	if r.HealClass != nil {
		c := *r.HealClass
		step.Until.Class = &c
		s.Why = fmt.Sprintf("repeats %s: heals at %s", s.ID, c)
		return s
	}
	s.Why = fmt.Sprintf("repeats %s: no message heals", s.ID)
	return s
}

// told is the step of which a result has state and classes: the first that began at a state.
func told(s *model.Scenario, r model.RunResult) *model.Step {
	out, first := s.Waits(), model.StepResult{}
	for _, x := range r.Steps {
		if x.By == model.ReasonState && x.Step >= 1 && x.Step <= len(s.Steps) && s.Steps[x.Step-1].When.State != nil && (first.By == "" || x.Began < first.Began) {
			out, first = &s.Steps[x.Step-1], x
		}
	}
	return out
}
