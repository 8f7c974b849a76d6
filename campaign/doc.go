// Package campaign keeps campaigns: it makes their testbeds, has their runs made
// and judged, and says what was found.
//
// Service (service.go) keeps campaigns, runs, findings and partitions by hand in
// the store, and takes up after a restart what was under way when the daemon
// died. A campaign (campaigns.go) is a search, a replay, a scenario that a user
// gave (given.go), or the plays of a script (stage.go). Its runs are made by a
// runner (runner.go), several at once, one per testbed.
//
// How a campaign is searched, and how one run is made and judged, is for the
// rooms below: search, run, nodes, bed and judge.
package campaign
