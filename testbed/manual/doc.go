// Package manual keeps the manual partitions of one testbed: they are cut and healed
// when a user asks for it, at line rate, with the proof of both.
//
// Partitions (partitions.go) takes what users ask for (requests.go). Each is a manualCut
// (handcut.go), proved until it is in force, and anew whenever something happened to
// its rules; healed at its time or when asked (heal.go), or lost with a switch or host
// (losses.go). What it drops and leaks is counted all the while (counts.go).
//
// It does not know campaigns: whoever else uses the testbed claims it (claim.go).
package manual
