package model

import (
	"maps"
	"slices"
)

// Account says of a search what became of all that it could have run: of strategy cofi every
// pair, of strategy sequences every sequence and how often the point of each fault came.
type Account struct {
	Why       string         `json:"why"` // it is done, or that it is not
	Error     string         `json:"error,omitempty"`
	CleanRuns int            `json:"cleanRuns"`
	FaultRuns int            `json:"faultRuns"` // all attempts included
	Left      int            `json:"left,omitempty"`
	Pairs     []PairAccount  `json:"pairs,omitempty"`
	Levels    []LevelAccount `json:"levels,omitempty"`
	Faults    []FaultAccount `json:"faults,omitempty"`
}

// PairAccount is an inconsistent state and a node that is isolated at it (CoFI Algorithm 1).
type PairAccount struct {
	Invariant string `json:"invariant"`
	State     State  `json:"state"`
	Node      NodeID `json:"node"`
	Runs      int    `json:"runs"` // that came back
	// Elsewhere counts those of them in which the state occurred on other nodes, which stand for these
	// (Scenario.Or).
	Elsewhere int    `json:"elsewhere,omitempty"`
	Fate      string `json:"fate"` // explored, given up or left
	Why       string `json:"why,omitempty"`
}

// LevelAccount is what became of the sequences with Depth faults. Candidates is how many were
// seen, Kept how many the policies left, Run how many were run with all their faults, and
// Failed how many of these failed; Vacuous were given up since a point did not come. By
// counts those that are not run, by what took them out.
type LevelAccount struct {
	Depth      int               `json:"depth"`
	Candidates int               `json:"candidates"`
	Kept       int               `json:"kept"`
	Run        int               `json:"run"`
	Failed     int               `json:"failed"`
	Vacuous    int               `json:"vacuous"`
	By         map[string]int    `json:"by,omitempty"`
	Sequences  []SequenceAccount `json:"sequences,omitempty"`
	Unlisted   int               `json:"unlisted,omitempty"` // pruned, and not among Sequences
}

// Taken lists what took sequences out of a level, sorted.
func (l *LevelAccount) Taken() []string { return slices.Sorted(maps.Keys(l.By)) }

// SequenceAccount is one sequence: it passed, failed, or was taken out by a policy (or as
// vacuous, or lost).
type SequenceAccount struct {
	IDs    Sequence `json:"ids"`
	Faults []string `json:"faults"`
	Fate   string   `json:"fate"` // passed, failed, or the name of what took it out
	Why    string   `json:"why,omitempty"`
	Like   Sequence `json:"like,omitempty"` // is run in its place
}

// FaultAccount says how often the point of a fault came: in Came of Asked runs that waited
// for it. In Other of them its message came at another point.
type FaultAccount struct {
	ID       FaultID `json:"id"`
	Fault    string  `json:"fault"`
	Asked    int     `json:"asked"`
	Occurred int     `json:"came"`
	Other    int     `json:"other,omitempty"`
}
