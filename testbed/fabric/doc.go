// Package fabric keeps the switches of one testbed in their desired state:
// taps, partitions and plain forwarding. It compiles with flowrules, talks
// through controller, renews what expires, repairs what somebody changed, and
// hands held packets to its owner and back: by packet-ins and packet-outs, or
// by a gate port of the switch.
//
// If a switch has meters, every pair of hosts that is neither gated nor mirrored goes
// through one. A cut first turns the meter down: Open vSwitch looks at meters for every
// packet, but at rules only when it revises its cache.
//
// The testbed may give ports by name. The fabric finds their numbers in what the switch
// reports of its ports, again whenever one comes or goes. It installs rules for a name only
// while exactly one port has it.
//
// Several fabrics share one controller, each with datapaths of its own.
//
// A partition never outlives the process. Rules that hold packets back, and rules that name
// a meter that is turned down, have a hard timeout, which the fabric renews.
package fabric
