package wire

import "netsplit/model"

// PointsQuery asks which faults a search could make.
type PointsQuery struct {
	Faults   []string            `json:"faults,omitempty" maxItems:"22" enum:"crash,isolate,lose,silence,partial,isolate-with-client,isolate-leader,lose-answer,isolate-period,neat,isolate-both,pause,disk-error,disk-failure,corrupt,power-cut,disk,torn,crash-all,power-cut-all,shift-crash,shift-power-cut" doc:"Kinds of faults; absent: crash, isolate, lose, and those of disks if the records have operations on files"`
	Keys     []string            `json:"keys,omitempty" maxItems:"8" enum:"side,node,peer,type,port,after,nth,stage" doc:"What makes two points one; absent: as the target says"`
	Only     map[string][]string `json:"only,omitempty" doc:"Keep faults with one of the values of each key, which is one of fault, id, place and those of points; * stands for any text"`
	Policies *PolicyFile         `json:"policies,omitempty" doc:"What prunes the faults"`
	Seed     uint64              `json:"seed,omitempty" doc:"Draws one fault of each cluster; absent: 1"`
	Depth    int                 `json:"depth,omitempty" minimum:"1" maximum:"2" doc:"2: also sequences of two faults, from the recorded runs of single faults; absent: 1"`
}

// Model converts a query.
func (q PointsQuery) Model() model.PointsQuery {
	m := model.PointsQuery{Only: q.Only, Seed: q.Seed, Depth: q.Depth}
	for _, f := range q.Faults {
		m.Faults = append(m.Faults, model.PointFaultKind(f))
	}
	for _, k := range q.Keys {
		m.Keys = append(m.Keys, model.PointKey(k))
	}
	if p := q.Policies; p != nil {
		m.Policies = &model.PolicyFile{Name: p.Name, Text: p.Text, Files: p.Files}
	}
	if m.Seed == 0 {
		m.Seed = 1
	}
	return m
}

// FaultPoints are the faults that recorded clean runs have a point for.
type FaultPoints struct {
	Target    string            `json:"target"`
	Release   string            `json:"release,omitempty" doc:"Release of the target's software, or what it said of its version"`
	Args      map[string]string `json:"args,omitempty" doc:"Settings of the target"`
	Runs      int               `json:"runs" doc:"Clean runs that were read"`
	Items     []FaultPoint      `json:"items" doc:"Those that would be run first"`
	Kept      int               `json:"kept" doc:"Faults that would be run"`
	Periodic  []PeriodicType    `json:"periodic" doc:"Types that the target's timers cause: they have no points"`
	Files     bool              `json:"files" doc:"A record has operations on files"`
	Apart     []string          `json:"apart,omitempty" doc:"Campaigns whose clean runs were left out, since they have another release or other settings, with the difference"`
	Elsewhere []string          `json:"elsewhere,omitempty" doc:"If only leaves no fault: those of these campaigns that have some, with how many"`
	LeftOut   []string          `json:"leftOut,omitempty" doc:"Runs that cannot be read, with the reason"`
	Torn      []string          `json:"torn,omitempty" doc:"What is missing in records"`
	Printed   []string          `json:"printed,omitempty" doc:"What policies printed"`
	Pairs     *FaultPairs       `json:"pairs,omitempty" doc:"Sequences of two faults; absent: depth is 1"`
}

// FaultPairs are sequences of two faults that follow from recorded runs of single faults.
type FaultPairs struct {
	Firsts   int         `json:"firsts" doc:"Single faults that would be run"`
	Recorded int         `json:"recorded" doc:"Those of them with a recorded run in which the fault occurred"`
	Seen     int         `json:"seen" doc:"Sequences that follow from these runs"`
	Kept     int         `json:"kept" doc:"Sequences that would be run"`
	Items    []FaultPair `json:"items" doc:"Those that would be run first; at most 5000"`
	LeftOut  []string    `json:"leftOut,omitempty" doc:"Runs of single faults that cannot be read, with the reason"`
}

// FaultPair is a sequence of two faults.
type FaultPair struct {
	IDs    []string `json:"ids"`
	Texts  []string `json:"texts" doc:"Each fault and its point, on one line"`
	Pruned string   `json:"pruned,omitempty" doc:"The policy that leaves it out; absent: it would be run"`
	Why    string   `json:"why,omitempty" doc:"The policy's reason"`
	Like   string   `json:"like,omitempty" doc:"What is run in its place"`
}

func fromFaultPairs(m *model.FaultPairs) *FaultPairs {
	if m == nil {
		return nil
	}
	return &FaultPairs{Firsts: m.Firsts, Recorded: m.Recorded, Seen: m.Seen, Kept: m.Kept, LeftOut: m.LeftOut,
		Items: each(m.List, func(p model.FaultPair) FaultPair {
			return FaultPair{IDs: each(p.IDs, func(id model.FaultID) string { return string(id) }),
				Texts:  each(p.Faults, func(f model.PointFault) string { return f.String() }),
				Pruned: p.Pruned, Why: p.Why, Like: likeText(p.Like)}
		})}
}

// likeText is a sequence, "" if it is empty.
func likeText(s model.Sequence) string {
	if len(s) == 0 {
		return ""
	}
	return s.String()
}

// PeriodicType is a type that the target's timers cause.
type PeriodicType struct {
	Type  string   `json:"type"`
	Every Duration `json:"every"`
}

// FaultPoint is a fault at a point of clean runs.
type FaultPoint struct {
	ID     string `json:"id"`
	Text   string `json:"text" doc:"The fault and its point, on one line"`
	Kind   string `json:"kind"`
	Place  string `json:"place"`
	Side   string `json:"side"`
	Node   string `json:"node"`
	Peer   string `json:"peer,omitempty"`
	Type   string `json:"type"`
	Port   uint16 `json:"port,omitempty"`
	After  string `json:"after,omitempty"`
	Number int    `json:"number"`
	Stage  string `json:"stage,omitempty"`
	Runs   int    `json:"runs" doc:"Clean runs that have the point"`
	Pruned string `json:"pruned,omitempty" doc:"The policy that leaves it out; absent: it would be run"`
	Why    string `json:"why,omitempty" doc:"The policy's reason"`
	Like   string `json:"like,omitempty" doc:"What is run in its place"`
}

// FromFaultPoints converts an answer.
func FromFaultPoints(m model.FaultPoints) FaultPoints {
	out := FaultPoints{Target: m.Target, Release: m.Release, Args: m.Args, Apart: m.Apart, Elsewhere: m.Elsewhere, Runs: m.Runs, Files: m.Files, LeftOut: m.LeftOut, Torn: m.Torn, Printed: m.Printed,
		Pairs:    fromFaultPairs(m.Pairs),
		Periodic: each(m.Periodic, func(p model.PeriodicType) PeriodicType { return PeriodicType{p.Type, Duration(p.Every)} }),
		Items: each(m.Faults, func(f model.FaultPoint) FaultPoint {
			return FaultPoint{ID: string(f.ID), Text: f.PointFault.String(), Kind: string(f.Kind), Place: string(f.Place), Side: string(f.Side), Node: string(f.Node), Peer: string(f.Peer),
				Type: f.Type, Port: f.Port, After: f.After, Number: f.Nth, Stage: f.Stage, Runs: f.Runs, Pruned: f.Pruned, Why: f.Why, Like: likeText(f.Like)}
		})}
	for _, f := range m.Faults {
		if f.Pruned == "" {
			out.Kept++
		}
	}
	return out
}
