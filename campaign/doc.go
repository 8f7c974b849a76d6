// Package campaign runs campaigns: it makes their testbeds, has their runs made and judged,
// and keeps the findings.
//
// Service (service.go) keeps campaigns, runs and findings in the store. After a restart it
// continues what was under way when the daemon died. It holds the testbeds (testbeds.go),
// reports what happens (events.go), and examines itself (health.go) and its testbed
// (diagnose.go). A spec (spec.go) asks for a campaign. The campaign is a search
// (campaigns.go), replays of a run (replays.go) or of parts of it (shrink.go), a user's
// scenario (userscenario.go), or plays of a script (stage.go). A runner (runner.go) makes
// its runs, several at once, one per testbed. causes.go groups failed runs by cause,
// partitionmap.go says what faults met, history.go how failures stand over campaigns.
// livestate.go shows runs under way, retention.go deletes records, and unstored.go keeps what a
// full disk did not take.
//
// The packages below do the rest: campaign/search searches, campaign/run, sut/nodes and testbed
// make a run, campaign/judge judges it, and testbed/manual cuts manually. Service passes on
// what users ask of these (partitions.go).
package campaign
