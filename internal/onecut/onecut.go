// Package onecut is for tests. It writes a scenario with message faults and at most one cut
// as one flat struct, without steps, as old records did.
package onecut

import (
	"encoding/json"
	"time"

	"netsplit/model"
)

// Scenario is a scenario of message faults and one cut: at a state (strategy cofi) or between
// two times (random).
type Scenario struct {
	ID          string               `json:"id"`
	Strategy    model.Strategy       `json:"strategy"`
	Seed        uint64               `json:"seed"`
	Isolate     model.NodeID         `json:"isolate,omitempty"`
	Partition   model.Partition      `json:"partition,omitzero"`
	Invariant   *model.Invariant     `json:"invariant,omitempty"`
	State       *model.State         `json:"state,omitempty"`
	Nth         int                  `json:"nth,omitempty"`
	Or          []model.Renaming     `json:"or,omitempty"`
	Substituted bool                 `json:"substituted,omitempty"`
	Seen        []model.Class        `json:"seen,omitempty"`
	HealAt      *model.Class         `json:"healAt,omitempty"`
	Never       bool                 `json:"never,omitempty"`
	CutAfter    time.Duration        `json:"cutAfter,omitempty"`
	HealAfter   time.Duration        `json:"healAfter,omitempty"`
	MaxCut      time.Duration        `json:"maxCut,omitempty"`
	Faults      []model.MessageFault `json:"faults,omitempty"`
	Observe     []model.Invariant    `json:"observe,omitempty"`
	Why         string               `json:"why,omitempty"`
}

// Model is the scenario in steps, as a record of it is read.
func (s Scenario) Model() model.Scenario {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var out model.Scenario
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// Of is what the message faults and the first cut of a scenario do.
func Of(m model.Scenario) Scenario {
	cut := m.Cut()
	s := Scenario{ID: m.ID, Strategy: m.Strategy, Seed: m.Seed, Isolate: cut.Do.Isolate, Partition: cut.Partition(), Or: m.Or, Substituted: m.Substituted,
		HealAt: cut.Until.Class, Never: cut.When.State != nil && cut.Until.Class == nil && cut.Until.Unseen == nil,
		CutAfter: cut.When.At, HealAfter: cut.Until.At, MaxCut: cut.Max, Observe: m.Observe, Why: m.Why}
	if at := cut.When.State; at != nil {
		s.Invariant, s.State, s.Nth = &at.Invariant, at.State, at.Nth
	}
	if cut.Until.Unseen != nil {
		s.Seen = cut.Until.Unseen.Seen
	}
	for _, st := range m.Steps {
		if st.Do.Message != nil {
			s.Faults = append(s.Faults, *st.Do.Message)
		}
	}
	return s
}
