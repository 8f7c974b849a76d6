package sequence

import (
	"maps"
	"slices"

	"netsplit/model"
)

// AccountFile is the name of the file beside a campaign's runs that has its Account.
const AccountFile = "sequences.json"

// accountMost bounds the pruned sequences of a level that an Account lists.
const accountMost = 5000

// Account says of a search what became of every sequence, and of every fault how often its
// point came.
type Account struct {
	Why       string         `json:"why"` // it is done, or that it is not
	Error     string         `json:"error,omitempty"`
	CleanRuns int            `json:"cleanRuns"`
	FaultRuns int            `json:"faultRuns"` // all attempts included
	Left      int            `json:"left,omitempty"`
	Levels    []LevelAccount `json:"levels"`
	Faults    []FaultAccount `json:"faults,omitempty"`
}

// LevelAccount is what became of the sequences with Depth faults. The counts are those of
// Level; By counts those that are not run, by what took them out.
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

// SequenceAccount is one sequence: it passed, failed, or was taken out by a policy (or as
// vacuous, or lost), Like which it is.
type SequenceAccount struct {
	IDs    model.Sequence `json:"ids"`
	Faults []string       `json:"faults"`
	Fate   string         `json:"fate"` // passed, failed, or the name of what took it out
	Why    string         `json:"why,omitempty"`
	Like   model.Sequence `json:"like,omitempty"` // is run in its place
}

// FaultAccount is a FaultStat.
type FaultAccount struct {
	ID    model.FaultID `json:"id"`
	Fault string        `json:"fault"`
	Asked int           `json:"asked"`
	Came  int           `json:"came"`
	Other int           `json:"other,omitempty"`
}

// Ran is a sequence all of whose faults occurred at their points.
type Ran struct {
	Candidate
	Failed bool
}

// Account is the report as it is kept. why is Ready.Why.
func (r *Report) Account(why string) Account {
	out := Account{Why: why, CleanRuns: r.CleanRuns, FaultRuns: r.FaultRuns, Left: r.Left}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	for _, l := range r.Levels {
		a := LevelAccount{Depth: l.Depth, Candidates: l.Candidates, Kept: l.Kept, Run: l.Run, Failed: l.Failed, Vacuous: l.Vacuous, By: map[string]int{}}
		for _, q := range l.Ran {
			s := q.account()
			s.Fate = map[bool]string{false: "passed", true: "failed"}[q.Failed]
			a.Sequences = append(a.Sequences, s)
		}
		for i, q := range l.Pruned {
			a.By[q.Policy]++
			if i >= accountMost {
				a.Unlisted++
				continue
			}
			s := q.account()
			s.Fate, s.Why, s.Like = q.Policy, q.Why, q.Like
			a.Sequences = append(a.Sequences, s)
		}
		out.Levels = append(out.Levels, a)
	}
	for _, f := range r.Faults {
		out.Faults = append(out.Faults, FaultAccount{ID: f.ID, Fault: f.Fault.String(), Asked: f.Asked, Came: f.Came, Other: f.Other})
	}
	return out
}

func (c Candidate) account() SequenceAccount {
	s := SequenceAccount{IDs: c.IDs}
	for _, f := range c.Faults {
		s.Faults = append(s.Faults, f.String())
	}
	return s
}

// Taken lists what took sequences out of a level, sorted.
func (l *LevelAccount) Taken() []string { return slices.Sorted(maps.Keys(l.By)) }
