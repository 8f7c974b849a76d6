// Package check judges a finished run from its record alone.
//
// Judge takes everything that was recorded about a run and returns one
// verdict; Merge folds the verdicts of a campaign into distinct findings. Both
// are pure: judging a stored record again gives the same verdict, and a check
// that improves can be applied to old records. Each checker is named in the
// target file (model.CheckSpec) and reports failures in the classes of
// model.FailureClass; what a system had a right to refuse is counted as legal
// and is never a failure.
//
// A checker says more than the rows of a relation (package record/relation): what the fault
// excuses, how much was lost, and a title by which failures of many runs are one finding.
package check
