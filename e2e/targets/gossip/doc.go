// Command gossip is a small membership service with a partition bug that a
// flag switches on: the system of CoFI Figure 2 (CASSANDRA-2115) as a real
// program, for campaigns on a lab. See README.md.
//
// One node per host: it gossips over UDP and answers its administrators over
// TCP. With -workload it is the client that decommissions a node and watches,
// with -final the one that reads what all nodes say in the end.
package main
