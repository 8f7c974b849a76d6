package model

import "time"

// PointsQuery asks which single faults a search could make, by the clean runs of a campaign.
type PointsQuery struct {
	Keys     []PointKey       // the identity of points; none: as the target says
	Faults   []PointFaultKind // none: all that the records show points of
	Only     map[string][]string
	Policies *PolicyFile
	Seed     uint64 // draws one fault of each cluster
}

// FaultPoints is the answer.
type FaultPoints struct {
	Target string
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
