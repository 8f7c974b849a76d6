// Package fabric keeps the switches of one testbed in their desired state:
// taps, partitions and plain forwarding. It compiles with flowrules, talks
// through controller, renews what expires, repairs what somebody changed, and
// hands held packets to its owner and back: by packet-ins and packet-outs, or
// by a gate port of the switch.
//
// Where a switch has meters, every pair of hosts that is neither gated nor
// mirrored goes through one: a cut turns it down first, since Open vSwitch looks
// at a meter for every packet, but at rules only when it revises its cache.
//
// Ports that the testbed gives by name are found in what a switch tells of its
// ports, now and whenever one comes or goes; rules have their numbers only while a
// name is one port's.
//
// Several fabrics share one controller, each with datapaths of its own.
//
// A partition never outlives the process: the rules that hold packets back, and
// those that name a meter that is turned down, carry a hard timeout, which the
// fabric renews.
package fabric
