// Package harness lets end-to-end tests use netsplit as a user does: it starts the programs
// that `go build` makes, by command line.
//
// Tests run in network, mount and process namespaces of their own (labtest). So whatever is
// new there after a test was left behind by it.
package harness
