// Package nodes runs a target on the hosts of a testbed.
//
// Kit (kit.go) is what every run of a campaign starts from: the target, its
// software and its templates. Processes (processes.go) are those of one run:
// started in order (start.go, servers.go) from a copy of a template where there
// is one (template.go), by the testbed's hooks where it has them (hooks.go),
// waited for until all conditions hold (conditions.go), put to work
// (workloads.go, operations.go), acted on by workloads and scripts (actions.go,
// control.go), held by disk gates where the run needs it (files.go), and read by
// what they log (logs.go).
//
// It does not know what is cut, nor what a run is for: what happens is told to
// a Journal, and goes to the record.
package nodes
