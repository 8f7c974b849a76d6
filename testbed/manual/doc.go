// Package manual keeps the manual partitions of one testbed. It cuts and heals them at
// line rate when a user asks for it, and proves both.
//
// Partitions (partitions.go) takes requests of users (requests.go). Each partition is a
// manualCut (manualcut.go). It is proved until it is in force, and again whenever something
// happens to its rules. It heals when its time is over or when a user asks (heal.go), or it
// is lost with a switch or host (losses.go). Until then the package counts what it drops
// and leaks (counts.go).
//
// It does not know campaigns: other users of the testbed claim it (claim.go).
package manual
