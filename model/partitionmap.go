package model

import "slices"

// MetKind is the kind of fault that met a message: MetCut, MetCrash, MetPause, MetDisk, or
// the kind of a message fault.
type MetKind string

// Kinds of faults that meet messages, apart from those of message faults.
const (
	MetCut   MetKind = "cut"   // a partition kept the message from its receiver
	MetCrash MetKind = "crash" // a server crashed at the message
	MetPause MetKind = "pause" // a server was paused at the message
	MetDisk  MetKind = "disk"  // a disk fault began at the message
)

// MetKinds lists all kinds.
func MetKinds() []MetKind {
	out := []MetKind{MetCut}
	for _, k := range FaultKinds() {
		out = append(out, MetKind(k))
	}
	return append(out, MetCrash, MetPause, MetDisk)
}

// MapRow is what a run had of the messages of one type from one host to another, while its
// workloads ran.
type MapRow struct {
	Type string `json:"type"`
	From NodeID `json:"from"`
	To   NodeID `json:"to"`
	Seen int    `json:"seen"` // messages
	// Met counts those that faults met, by kind.
	Met map[MetKind]int `json:"met,omitempty"`
}

// MapCell is a cell of a campaign's partition map: what its runs had of the messages of one
// type from one host to another.
type MapCell struct {
	Type string `json:"type"`
	From NodeID `json:"from"`
	To   NodeID `json:"to"`
	Runs int    `json:"runs"` // that had such a message
	// Outcomes say how the runs ended in which a fault met such a message, in the order of
	// MetKinds. None: no fault ever met one.
	Outcomes []MapOutcome `json:"outcomes,omitempty"`
}

// PartitionMap is the partition map of a campaign, by type, from and to.
type PartitionMap struct {
	Cells []MapCell `json:"cells"`
	// LeftOut counts what runs had of further cells, once for each run: there were too many.
	LeftOut int `json:"leftOut,omitempty"`
}

// Count counts the cells.
func (m PartitionMap) Count() (n MapCount) {
	for _, c := range m.Cells {
		switch {
		case len(c.Outcomes) == 0:
			n.Never++
		case slices.ContainsFunc(c.Outcomes, func(o MapOutcome) bool { return o.Failed > 0 }):
			n.Failed++
		default:
			n.Met++
		}
	}
	return n
}

// MapCount counts the cells of a partition map: those that no fault met, those that one met
// in a run that broke a promise or a stated bound, and other ones that faults met.
type MapCount struct{ Never, Met, Failed int }

// MapOutcome counts the runs in which one kind of fault met messages of a cell, by verdict.
type MapOutcome struct {
	Kind MetKind `json:"kind"`
	// First is the first of the runs, by number.
	First  string `json:"first"`
	Passed int    `json:"passed"`
	// Failed counts runs that broke a promise or a stated bound; Documented those that failed
	// only as the target's documentation says.
	Failed     int `json:"failed"`
	Documented int `json:"documented"`
	Undecided  int `json:"undecided"` // unknown or vacuous
}

// Runs is the number of runs that are counted.
func (o MapOutcome) Runs() int { return o.Passed + o.Failed + o.Documented + o.Undecided }

// Of is the outcome of a kind of fault; its Runs are 0 if none met a message of the cell.
func (c MapCell) Of(k MetKind) MapOutcome {
	for _, o := range c.Outcomes {
		if o.Kind == k {
			return o
		}
	}
	return MapOutcome{Kind: k}
}
