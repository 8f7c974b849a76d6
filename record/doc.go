// Package record says what a run leaves behind: the evidence types that the
// run writes and that checks, the judge, the report and the API read unchanged.
// It is pure; package rundir writes and reads the files.
package record
