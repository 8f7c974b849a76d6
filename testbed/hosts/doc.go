// Package hosts has the hosts of a testbed drop packets themselves, where there is
// no switch: what testbed/fabric is with one, for manual partitions. It compiles
// with flowrules/hostrules, tells the agents on the hosts, renews what expires, and
// says when a host does not do any more what it was told.
//
// Hosts (hosts.go) keeps what is cut, host.go what each host was told and the agent
// that keeps it there, counts.go what the rules have counted.
//
// There is no gate: it takes a switch to hold packets back.
//
// A partition never outlives the process: the rules of each host hold for a lease,
// which is renewed here, and go with the agent that holds them.
package hosts
