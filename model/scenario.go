package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Strategy names where a scenario comes from.
type Strategy string

// Strategies.
const (
	// StrategyClean never cuts: the runs that invariants are mined from, and
	// Algorithm 1's run without partition.
	StrategyClean Strategy = "clean"
	// StrategyCoFI cuts at an inconsistent state and heals at a message class
	// (CoFI Algorithm 1).
	StrategyCoFI Strategy = "cofi"
	// StrategyRandom cuts and heals at random offsets (CoFI §5.1.3).
	StrategyRandom Strategy = "random"
	// StrategySteps does what a user's file says. Earlier records call it by what it
	// did: messages, random or cofi.
	StrategySteps Strategy = "steps"
	// StrategySequences plays sequences of faults at points of earlier runs (FATE §4.2,
	// PreFail §3.4).
	StrategySequences Strategy = "sequences"
	// StrategyScripted does what a script says, step by step (NEAT §7.1).
	StrategyScripted Strategy = "scripted"
)

// WhyRequested is the reason of a scenario that a user gave.
const WhyRequested = "asked for"

// Scenario is the work item of one run: the faults to inject, when, and until when.
// It is complete in itself: a run needs nothing else from the explorer.
type Scenario struct {
	ID       string   `json:"id"` // unique in its campaign, e.g. "s0007"
	Strategy Strategy `json:"strategy"`
	// Seed drives every random choice of the run (workload, target).
	Seed uint64 `json:"seed"`

	// Steps are what the run does. Where the turn of several message faults comes at one
	// packet, the first has it.
	Steps []Step `json:"steps,omitempty"`

	// LastFault is the time into the workload from which on no fault begins, so that what
	// follows can be judged; 0: none begins once the workload has ended.
	LastFault time.Duration `json:"lastFault,omitempty"`

	// Files says that the file operations of all servers of nodes are held and recorded,
	// whether a step waits for one or not.
	Files bool `json:"files,omitempty"`

	// Sequence is, of strategy sequences, the faults that Steps play, each at its point.
	Sequence []PointFault `json:"sequence,omitempty"`

	// Or, when set, names other nodes to which the same may happen: a step that waits for
	// a state begins at the first moment at which its invariant, read so, has its state,
	// read so, and all else of the scenario is read so, too. Which node leads, or hears of something
	// first, is chance in many systems. Invariants that Observe lacks are left out.
	Or []Renaming `json:"or,omitempty"`
	// Substituted says that the nodes are those to which it happened in a run, in
	// place of those of the scenario, which are among Or now. Earlier
	// records call it "came".
	Substituted bool `json:"substituted,omitempty"`
	// Script is the name of a scripted run's script, Repeat the command or test
	// that plays it again.
	Script string `json:"script,omitempty"`
	Repeat string `json:"repeat,omitempty"`

	// Observe are the invariants whose inconsistent states the run records,
	// whatever it cuts for.
	Observe []Invariant `json:"observe,omitempty"`

	// Why says in a sentence why the explorer chose this scenario now; WhyAsked,
	// that a user did.
	Why string `json:"why,omitempty"`
}

// UnmarshalJSON reads records of earlier versions, too.
func (s *Scenario) UnmarshalJSON(b []byte) error {
	type plain Scenario
	v := struct {
		*plain
		earlier
	}{plain: (*plain)(s)}
	err := json.Unmarshal(b, &v)
	s.Substituted = s.Substituted || v.Came
	if len(s.Steps) == 0 {
		s.Steps = v.steps(s.Strategy)
	}
	return err
}

// earlier are the fields of a Scenario before it had steps: at most one cut, and faults of
// messages.
type earlier struct {
	Isolate   NodeID         `json:"isolate"`
	Partition Partition      `json:"partition"`
	Invariant *Invariant     `json:"invariant"`
	State     *State         `json:"state"`
	Nth       int            `json:"nth"`
	Seen      []Class        `json:"seen"`
	HealAt    *Class         `json:"healAt"`
	Never     bool           `json:"never"`
	CutAfter  time.Duration  `json:"cutAfter"`
	HealAfter time.Duration  `json:"healAfter"`
	MaxCut    time.Duration  `json:"maxCut"`
	Faults    []MessageFault `json:"faults"`
	Came      bool           `json:"came"`
}

// steps are the message faults, at the places by which decisions and proofs name them, then
// the cut.
func (e *earlier) steps(st Strategy) []Step {
	var out []Step
	for i := range e.Faults {
		out = append(out, Step{Do: Fault{Message: &e.Faults[i]}})
	}
	cut := Step{Do: Fault{Cut: &e.Partition, Isolate: e.Isolate}, Max: e.MaxCut}
	switch {
	case st == StrategyCoFI:
		cut.When.State = &FaultCondition{State: e.State, Nth: e.Nth}
		if e.Invariant != nil {
			cut.When.State.Invariant = *e.Invariant
		}
		if cut.Until.Class = e.HealAt; e.HealAt == nil && !e.Never {
			cut.Until.Unseen = &Unseen{Seen: e.Seen}
		}
	case st == StrategyRandom:
		cut.When.At, cut.Until.At = e.CutAfter, e.HealAfter
	case st != StrategyScripted || e.Partition.Shape == "": // a script's is known once it had cut
		return out
	}
	return append(out, cut)
}

// Cut is the first step that cuts; the zero value: none does.
func (s *Scenario) Cut() Step {
	for _, st := range s.Steps {
		if st.Do.Cut != nil {
			return st
		}
	}
	return Step{}
}

// Cuts says that the scenario asks for a cut.
func (s *Scenario) Cuts() bool { return s.Cut().Do.Cut != nil }

// Faulty says that the scenario asks for any fault: its run takes the gate.
func (s *Scenario) Faulty() bool { return len(s.Steps) > 0 }

// Messages says that the scenario asks for message faults.
func (s *Scenario) Messages() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Do.Message != nil })
}

// Extend appends the step that an event of a script began, if it began one.
func (s *Scenario) Extend(e *Event) {
	switch {
	case e.Kind == EventFault && e.Fault != nil && e.Fault.Begin != nil:
		s.Steps = append(slices.Clip(s.Steps), Step{Do: Fault{Message: e.Fault.Begin}})
	case e.Kind == EventRuleCut && e.RuleCut != nil && e.RuleCut.Step > 0 && e.RuleCut.Partition != nil:
		s.Steps = append(slices.Clip(s.Steps), Step{Do: Fault{Cut: e.RuleCut.Partition}})
	}
}

// Fault is the message fault at a place among the steps, from 1; nil: there is none.
func (s *Scenario) Fault(place int) *MessageFault {
	if place < 1 || place > len(s.Steps) {
		return nil
	}
	return s.Steps[place-1].Do.Message
}

// StepName names the cut of a step among a run's cuts (CutProof).
func StepName(place int) string { return fmt.Sprintf("step %d", place) }

// Waits is the first step that waits for a state; nil: none does.
func (s *Scenario) Waits() *Step {
	for i := range s.Steps {
		if s.Steps[i].When.State != nil {
			return &s.Steps[i]
		}
	}
	return nil
}

// MetState is an inconsistent state that occurred during a run.
type MetState struct {
	Invariant string        `json:"invariant"` // id
	State     State         `json:"state"`
	First     time.Duration `json:"first"` // when it first occurred
	Count     int           `json:"count"` // how often it was entered
	// Nth counts the states of its shape that had been entered by First, it
	// included.
	Nth int `json:"nth,omitempty"`
}

// Compare orders by invariant, then state.
func (m MetState) Compare(o MetState) int {
	return cmp.Or(cmp.Compare(m.Invariant, o.Invariant), m.State.Compare(o.State))
}
