// Package simwrite is a small simulated system for tests of fault sequences: a
// replicated write as in FATE's Figure 1 and PreFail's Figure 8. It is test support:
// nothing in production imports it.
//
// A client asks a namenode for three of five datanodes, sets up a pipeline over them,
// streams packets and closes the block. If a node dies during setup, the client asks for
// a new pipeline and begins anew; later it goes on with those that are left, after they
// have agreed on a length. In the background the namenode has lost replicas copied.
// Datanodes send heartbeats all the time. At the end the nodes that crashed are back, and
// the namenode has no more work: the stable state of FATE §4.3.1.
//
// Each Bug is off unless asked for, and needs one, two or three crashes.
//
// A run is a function of its options and seed. The seed decides in which order nodes do
// what they do at the same time.
package simwrite
