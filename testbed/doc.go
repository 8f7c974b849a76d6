// Package testbed holds a testbed: its switches, or where there are none its hosts,
// and an agent on every host.
//
// Bed (testbed.go) is made with the testbed and lives until Close; agents.go asks
// its hosts, gate.go opens the tap of a run and is its gate, and Cut (cut.go)
// is a partition at line rate, by hand or by a script, with the proof that it
// holds (prove.go) and resets where it is asked for them (reset.go). Roles of the
// testbed file are looked up in roles.go.
//
// It does not know what runs on the hosts, nor why something is cut: a run is
// whoever hears frames (Run).
package testbed
