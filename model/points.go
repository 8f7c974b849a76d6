package model

import "time"

// PointsQuery asks which faults a search could make, by the recorded runs of a campaign.
type PointsQuery struct {
	Keys     []PointKey       // the identity of points; none: as the target says
	Faults   []PointFaultKind // none: all that the records show points of
	Only     map[string][]string
	Policies *PolicyFile
	Seed     uint64 // draws one fault of each cluster
	// Depth 2 also asks for sequences of two faults; 0: 1.
	Depth int
}

// FaultPoints is the answer.
type FaultPoints struct {
	Target string
	// Release of its software, or what the target said of its version. Args are its settings.
	Release string
	Args    map[string]string
	// Apart are campaigns whose clean runs were left out, since they have another release or other
	// settings, each with the difference.
	Apart  []string
	Runs   int // clean runs that were read
	Faults []FaultPoint
	// Periodic types have no points.
	Periodic []PeriodicType
	// Files says whether a record has operations on files.
	Files bool
	// LeftOut are runs that cannot be read, Torn what is missing in records of others, each
	// with the reason.
	LeftOut, Torn []string
	// Printed are the lines that policies printed.
	Printed []string
	// Elsewhere, if no fault is left, are the campaigns of Apart that have some that the query's Only
	// asks for, each with how many.
	Elsewhere []string
	// Pairs are the sequences of two faults; nil: none were asked for.
	Pairs *FaultPairs
}

// FaultPairs are sequences of two faults. A search learns them from the runs of first faults, so
// they are those that follow from recorded runs.
type FaultPairs struct {
	// Firsts is how many single faults would be run, Recorded of how many there is a run in which the fault
	// occurred.
	Firsts, Recorded int
	// Seen is how many sequences follow from these runs, Kept how many of them policies keep. List has the
	// first MaxFaultPairs of them, those that are kept first.
	Seen, Kept int
	List       []FaultPair
	LeftOut    []string // runs of first faults that cannot be read, each with the reason
}

// MaxFaultPairs bounds FaultPairs.List.
const MaxFaultPairs = 5000

// FaultPair is a sequence of two faults. Pruned, Why and Like are as in FaultPoint.
type FaultPair struct {
	IDs         Sequence
	Faults      []PointFault
	Pruned, Why string
	Like        Sequence
}

// PeriodicType is a type that the target's timers cause.
type PeriodicType struct {
	Type  string
	Every time.Duration
}

// FaultPoint is a fault at a point of clean runs.
type FaultPoint struct {
	ID FaultID
	PointFault
	Runs int // that have the point
	// Pruned is the policy that keeps the fault out, Why its reason, and Like what is run in its
	// place, if anything; "": the fault would be run.
	Pruned, Why string
	Like        Sequence
}
