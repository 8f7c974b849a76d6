// Package agent is a small process that netsplit runs on every host: it asks
// probes there without a fork for each, and counts the packets that arrive
// there, independently of the controller.
//
// Start runs it through the host's exec prefix and is the client's side; Serve
// is the agent's side. They speak JSON, one request or response a line, on the
// agent's standard input and output. The agent ends with its input, and the
// kernel kills it when netsplit dies.
//
// Counting is the proof that a cut held. The agent reads every packet that
// comes in on any interface but loopback through a packet socket, with the
// kernel's time of arrival, and remembers when, from whom and to whom. What it
// may have missed it says: Count.Incomplete.
package agent
