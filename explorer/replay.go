package explorer

import (
	"fmt"

	"netsplit/model"
)

// WithoutFaults is the control of a run: its seed, and nothing is done to the
// network.
func WithoutFaults(s model.Scenario) model.Scenario {
	return model.Scenario{ID: s.ID, Strategy: model.StrategyClean, Seed: s.Seed, Observe: s.Observe,
		Why: fmt.Sprintf("control of %s: the same seed, and nothing is cut", s.ID)}
}

// Replay returns the scenario that repeats a run: cut as before, and heal
// where that run healed, whatever other classes come up. A cofi run that a
// message healed heals at that class (HealAt); one that reached its state and
// was healed by time or by the end of the workload lets no message heal
// (Never). What came about with other nodes than those first asked for is asked
// for with them; the others will do again. A run that never cut, a clean and a
// random one are repeated as they were: their scenarios say all. The id is the
// caller's to change.
func Replay(s model.Scenario, r model.RunResult) model.Scenario {
	s = Met(s, r)
	s.Substituted = false // it is what is asked for now
	if s.Strategy != model.StrategyCoFI || !r.Reached {
		s.Why = fmt.Sprintf("repeats %s", s.ID)
		return s
	}
	s.Seen = nil
	if r.CutState != nil {
		s.State = r.CutState
		for _, m := range r.States {
			if m.Invariant == s.Invariant.ID && m.State == *s.State {
				s.Nth = m.Nth
			}
		}
	}
	if r.HealClass != nil {
		c := *r.HealClass
		s.HealAt, s.Never = &c, false
		s.Why = fmt.Sprintf("repeats %s: heals at %s", s.ID, c)
		return s
	}
	s.HealAt, s.Never = nil, true
	s.Why = fmt.Sprintf("repeats %s: no message heals", s.ID)
	return s
}
