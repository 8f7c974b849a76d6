// Package run makes one run of a target: from its start, under one scenario or
// one script, to the evidence that it is judged by.
//
// Execute (run.go) goes through the phases of a run. It starts the target and sends every
// frame through the reading pipeline. session.go numbers each event on arrival, queues it
// for the record, steps the explorer's engine with it, and carries out what the engine
// decides; its one lock is the order of the run. Message faults and resets are in faults.go
// and reset.go, faults of servers and disks in nodefault.go and diskfault.go, and probes of
// variables in probes.go. evidence.go and arrivals.go gather what the receiving hosts
// counted. A script acts on a Live (live.go, cuts.go).
//
// It does not know campaigns, other runs or the store. It gives no verdict: package judge
// does.
package run
