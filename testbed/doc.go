// Package testbed holds a testbed: its switches, or where there are none its hosts,
// and an agent on every host.
//
// A Testbed (testbed.go) lives from Open until Close. agents.go asks its hosts. gate.go
// opens the taps of a run and implements its gate. A Cut (cut.go) is a partition at line rate,
// manual or of a script: prove.go proves that it holds, reset.go sends resets if it has that
// effect. roles.go looks up roles of the testbed file.
//
// It does not know what runs on the hosts, nor why something is cut. To it a run is only a
// receiver of frames (Run).
package testbed
