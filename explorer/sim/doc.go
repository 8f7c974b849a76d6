// Package sim is a small simulated system with a partition bug, and a harness
// that runs explorer's Engine and Core against it as the campaign loop runs
// them against a real one. It is test support: nothing in production imports
// it.
//
// The system is the one of CoFI Figure 2 (CASSANDRA-2115): nodes tell one
// another by gossip what status each node has. A node that leaves says LEFT,
// and some time later all forget it. With the bug they forget everything about
// it, its version too, so that an older NORMAL from a node that missed the news
// is believed: the node that was decommissioned is back. Repaired, they keep
// the version as a tombstone and gossip it.
//
// A run is a discrete-event simulation on one virtual clock: all chance comes
// from the scenario's seed, so a scenario has exactly one outcome.
package sim
