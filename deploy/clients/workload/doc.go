// Package workload is what the programs share that drive a target: the history
// that they print, when they end, and where the servers are.
//
// netsplit starts a workload on a host of the testbed, reads its operations as
// JSON lines (model.Operation) from its standard output and closes its standard
// input when it shall end; docs/target-reference.md (history) has the contract.
package workload
