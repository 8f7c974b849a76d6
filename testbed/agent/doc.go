// Package agent is a small process that netsplit runs on every host: it asks
// probes there without a fork for each, and counts the packets that arrive
// there, independently of the controller.
//
// Start runs it through the host's exec prefix and is the client's side; Serve
// is the agent's side. They speak JSON, one request or response a line, on the
// agent's standard input and output. The agent ends with its input, and the
// kernel kills it when netsplit dies.
//
// Where there is no switch, the agent also has the kernel drop packets, by
// testbed/nft.
//
// Counting is the proof that a cut held. The agent reads every IPv4, IPv6 and ARP
// packet that comes in on any interface but loopback through packet sockets, with
// the kernel's time of arrival, and remembers when, from whom and to whom. What it
// may have missed it says: Count.Incomplete. Sockets of one protocol see a packet
// after the rules at ingress, so what those drop has not arrived.
package agent
