// Package hosts makes manual partitions on a testbed without a switch: its hosts drop
// packets themselves. It takes the place of testbed/fabric. It
// compiles with flowrules/hostrules, sends the rules to the agents on the hosts, renews
// what expires, and reports a host that no longer holds its rules.
//
// Hosts (hosts.go) keeps what is cut. host.go keeps the rules and the agent of each host,
// counts.go what the rules have counted.
//
// There is no gate: only a switch can hold packets.
//
// A partition never outlives the process. The rules of each host end with a lease, which
// this package renews, or with the agent that installed them.
package hosts
