// Package run makes one run of a target: from its start, under one scenario or
// one script, to the evidence that it is judged by.
//
// Execute (run.go) goes through its phases: the target is started, every frame
// goes through the reading pipeline, each event is numbered on arrival, written
// to the record, the explorer's engine is stepped with it, and what the engine
// decides is carried out (session.go: the one lock that is the order). Message
// faults and resets are faults.go and reset.go, steps about servers and disks nodefault.go
// and diskfault.go; variables are asked in probes.go;
// what the receiving hosts counted is gathered in evidence.go and arrivals.go. A
// script acts on a Live (live.go, cuts.go).
//
// It does not know campaigns, other runs or the store, and gives no verdict: that
// is for package judge.
package run
