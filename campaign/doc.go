// Package campaign is the one loop that owns clock, goroutines and recovery:
// it joins the switch, the readers, the explorer and the judge.
//
// A campaign (search.go) asks the explorer's core for scenarios and hands them
// to a runner, several at once, one per testbed. A run (run.go) starts the
// target, feeds every frame through the reading pipeline, numbers each event
// on arrival, writes it to the record, steps the explorer's engine with it and
// carries out what the engine decides (session.go), judges the record
// (judge.go) and returns a summary. Service (service.go) keeps campaigns, runs
// and findings in the store, and takes up after a restart what was under way
// when the daemon died.
package campaign
