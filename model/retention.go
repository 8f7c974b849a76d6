package model

import "time"

// Retention says which records of runs are deleted: those that are older than Age, and the
// oldest beyond Bytes in all. 0: no bound. What findings name and what a campaign may still
// need stays, whatever the bounds.
type Retention struct {
	Age   time.Duration
	Bytes int64
	// DryRun deletes nothing, and counts what would be deleted.
	DryRun bool
}

// None says that there is no bound.
func (r Retention) None() bool { return r.Age <= 0 && r.Bytes <= 0 }

// Pruned counts what a retention did.
type Pruned struct {
	Runs  int   // whose records were deleted
	Bytes int64 // of them
	Left  int64 // bytes of all other records
	Kept  int   // runs that were due, but that a finding names or a campaign needs
	// Failed counts records that could not be deleted; Why is the first reason.
	Failed int
	Why    string
}
