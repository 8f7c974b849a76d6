// Package ofswitch tests controller, flowrules and testbed/fabric on a real
// Open vSwitch with real packets. It holds tests only.
//
// Every test starts an Open vSwitch of its own, in a network namespace of its
// own, with hosts that are namespaces too, and removes all of it.
package ofswitch
