// Package campaign keeps campaigns: it makes their testbeds, has their runs made
// and judged, and says what was found.
//
// Service (service.go) keeps campaigns, runs and findings in the store, and takes
// up after a restart what was under way when the daemon died. It holds the
// testbeds (testbeds.go), tells what happens (events.go), and examines itself (health.go)
// and its testbed (diagnose.go). A campaign is asked for by a spec (spec.go), and is a search
// (campaigns.go), replays of a run (replays.go) or of parts of it (shrink.go), a scenario
// that a user gave (userscenario.go), or the plays of a script (stage.go). Its runs are made
// by a runner (runner.go), several at once, one per testbed. Failed ones are sorted into
// causes (causes.go).
//
// How a campaign is searched, and how one run is made and judged, is for the
// rooms below: search, run, nodes, testbed and judge. So is cutting manually, for
// testbed/manual: Service hands on what users ask for (partitions.go).
package campaign
