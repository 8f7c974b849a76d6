package model

import (
	"encoding/json"
	"time"
)

// Strategy names how a scenario decides when to cut and when to heal.
type Strategy string

// Strategies of this slice.
const (
	// StrategyClean never cuts: the runs that invariants are mined from, and
	// Algorithm 1's run without partition.
	StrategyClean Strategy = "clean"
	// StrategyCoFI cuts at an inconsistent state and heals at a message class
	// (CoFI Algorithm 1).
	StrategyCoFI Strategy = "cofi"
	// StrategyRandom cuts and heals at random offsets (CoFI §5.1.3).
	StrategyRandom Strategy = "random"
	// StrategyMessages never cuts: only the scenario's message faults act.
	StrategyMessages Strategy = "messages"
	// StrategyScripted does what a script says, step by step (NEAT §7.1).
	StrategyScripted Strategy = "scripted"
)

// WhyRequested is the reason of a scenario that a user gave.
const WhyRequested = "asked for"

// Scenario is the work item of one run: what to cut, when, and until when.
// It is complete in itself: a run needs nothing else from the explorer.
type Scenario struct {
	ID       string   `json:"id"` // unique in its campaign, e.g. "s0007"
	Strategy Strategy `json:"strategy"`
	// Seed drives every random choice of the run (workload, target).
	Seed uint64 `json:"seed"`

	// Isolate is the host cut off by a cofi or random scenario.
	Isolate NodeID `json:"isolate,omitempty"`
	// Partition is what the cut does.
	Partition Partition `json:"partition,omitzero"`

	// Invariant and State are the cofi trigger: cut when the invariant's two
	// variables have exactly these values.
	Invariant *Invariant `json:"invariant,omitempty"`
	State     *State     `json:"state,omitempty"`
	// Nth, when set, cuts as well where the Nth state of State's shape is entered
	// since the workload started: numbers need not recur. The classes of Seen and
	// HealAt are then read as if the cut had been at State.
	Nth int `json:"nth,omitempty"`
	// Or, when set, names other nodes to which the same may happen: the cut is at
	// the first moment at which Invariant, read so, has State, read so, and all
	// else of the scenario is read so, too. Which node leads, or hears of something
	// first, is chance in many systems. Invariants that Observe lacks are left out.
	Or []Renaming `json:"or,omitempty"`
	// Substituted says that the nodes are those to which it happened in a run, in
	// place of those of the scenario, which are among Or now. Earlier
	// records call it "came".
	Substituted bool `json:"substituted,omitempty"`
	// Seen holds the classes that do not heal: while cut, the first message to
	// or from Isolate whose class is not in Seen heals. Sorted.
	Seen []Class `json:"seen,omitempty"`
	// HealAt, when set, replaces Seen: only a message of this class heals.
	HealAt *Class `json:"healAt,omitempty"`
	// Never, when set, says that no message heals: the first run of a state and
	// a node, which shows what classes there are. The cut ends at MaxCut.
	Never bool `json:"never,omitempty"`

	// CutAfter and HealAfter are the random triggers: offsets from the start
	// of the workload.
	CutAfter  time.Duration `json:"cutAfter,omitempty"`
	HealAfter time.Duration `json:"healAfter,omitempty"`

	// MaxCut heals at the latest this long after the cut.
	MaxCut time.Duration `json:"maxCut,omitempty"`

	// Faults are what is done to single messages, beside the cut if there is one.
	// Where the turn of several comes at one packet, the first has it.
	Faults []MessageFault `json:"faults,omitempty"`
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
		Came bool `json:"came"`
	}{plain: (*plain)(s)}
	err := json.Unmarshal(b, &v)
	s.Substituted = s.Substituted || v.Came
	return err
}

// Cuts says that the scenario asks for a cut.
func (s *Scenario) Cuts() bool {
	return s.Strategy == StrategyCoFI || s.Strategy == StrategyRandom
}

// Faulty says that the scenario asks for a cut or for message faults: its run
// takes the gate.
func (s *Scenario) Faulty() bool { return s.Cuts() || len(s.Faults) > 0 }

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
