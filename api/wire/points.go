package wire

import "netsplit/model"

// PointsQuery asks which single faults a search could make.
type PointsQuery struct {
	Faults   []string            `json:"faults,omitempty" maxItems:"22" enum:"crash,isolate,lose,silence,partial,isolate-with-client,isolate-leader,lose-answer,isolate-period,neat,isolate-both,pause,disk-error,disk-failure,corrupt,power-cut,disk,torn,crash-all,power-cut-all,shift-crash,shift-power-cut" doc:"Kinds of faults; absent: crash, isolate, lose, and those of disks if the records have operations on files"`
	Keys     []string            `json:"keys,omitempty" maxItems:"8" enum:"side,node,peer,type,port,after,nth,stage" doc:"What makes two points one; absent: as the target says"`
	Only     map[string][]string `json:"only,omitempty" doc:"Keep faults with one of the values of each key, which is one of fault, place and those of points; * stands for any text"`
	Policies *PolicyFile         `json:"policies,omitempty" doc:"What prunes the faults"`
	Seed     uint64              `json:"seed,omitempty" doc:"Draws one fault of each cluster; absent: 1"`
}

// Model converts a query.
func (q PointsQuery) Model() model.PointsQuery {
	m := model.PointsQuery{Only: q.Only, Seed: q.Seed}
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
	Target   string         `json:"target"`
	Runs     int            `json:"runs" doc:"Clean runs that were read"`
	Items    []FaultPoint   `json:"items" doc:"Those that would be run first"`
	Kept     int            `json:"kept" doc:"Faults that would be run"`
	Periodic []PeriodicType `json:"periodic" doc:"Types that the target's timers cause: they have no points"`
	Files    bool           `json:"files" doc:"A record has operations on files"`
	LeftOut  []string       `json:"leftOut,omitempty" doc:"Runs that cannot be read, with the reason"`
	Torn     []string       `json:"torn,omitempty" doc:"What is missing in records"`
	Printed  []string       `json:"printed,omitempty" doc:"What policies printed"`
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
	out := FaultPoints{Target: m.Target, Runs: m.Runs, Files: m.Files, LeftOut: m.LeftOut, Torn: m.Torn, Printed: m.Printed,
		Periodic: each(m.Periodic, func(p model.PeriodicType) PeriodicType { return PeriodicType{p.Type, Duration(p.Every)} }),
		Items: each(m.Faults, func(f model.FaultPoint) FaultPoint {
			x := FaultPoint{ID: string(f.ID), Text: f.PointFault.String(), Kind: string(f.Kind), Place: string(f.Place), Side: string(f.Side), Node: string(f.Node), Peer: string(f.Peer),
				Type: f.Type, Port: f.Port, After: f.After, Number: f.Nth, Stage: f.Stage, Runs: f.Runs, Pruned: f.Pruned, Why: f.Why}
			if len(f.Like) > 0 {
				x.Like = f.Like.String()
			}
			return x
		})}
	for _, f := range m.Faults {
		if f.Pruned == "" {
			out.Kept++
		}
	}
	return out
}
