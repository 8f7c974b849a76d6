// Package ofswitch tests controller, flowrules and testbed/fabric on a real
// Open vSwitch with real packets. It holds tests only.
//
// Every test starts an Open vSwitch of its own in a sandbox of its own
// (internal/labtest), with hosts that are namespaces too.
package ofswitch
