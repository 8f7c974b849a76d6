// Package campaign keeps campaigns: it makes their testbeds, has their runs made
// and judged, and says what was found.
//
// Service (service.go) keeps campaigns, runs, findings and partitions by hand in
// the store, and takes up after a restart what was under way when the daemon
// died. A campaign is a search (search.go), which asks the explorer's core for
// scenarios and hands them to a runner (runner.go), several at once, one per
// testbed; a replay (campaigns.go); a scenario that a user gave (given.go); or
// the plays of a script (stage.go).
//
// How one run is made and judged is for the rooms below: run, nodes, bed and
// judge.
package campaign
