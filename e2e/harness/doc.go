// Package harness lets end-to-end tests use netsplit as a user does: the
// programs as `go build` makes them, started from a command line.
//
// Tests run in network, mount and process namespaces of their own (labtest),
// so that what a test left behind can be told exactly: everything that is
// there and was not before.
package harness
