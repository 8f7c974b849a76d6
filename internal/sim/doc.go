// Package sim is a small simulated system with a partition bug, and a harness
// that runs the explorer's engine and its search against it as the campaign loop runs
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
// # What was measured
//
// Runs until the first failure, the 3 clean ones included, median (most) over
// campaign seeds 1 to 24, 1 lab and 3 labs, up to 600 fault runs. "Before" is
// Algorithm 1 in the paper's own order with a new seed for each run; "Figure 2"
// counts until a run fails that a message healed.
//
//	                       1 lab               3 labs
//	cofi                   4 (5)               5 (8)
//	cofi before            26 (36)             26 (38)
//	random                 about 120 (one seed: not found), both
//	cofi, Figure 2         15 (34)             20 (46)
//	before, Figure 2       98, not found in 9  73, not found in 6
//
// How far behind random is depends on the system. Here a node hands its data over
// before it says LEFT, and all must answer, so that the cut has to start within
// about one gossip interval. Without that step any cut that begins before LEFT
// and lasts long enough will do: then random's median is 9 (33) and cofi's 4 (6).
//
// A run is a discrete-event simulation on one virtual clock: all chance comes
// from the scenario's seed, so a scenario has exactly one outcome.
package sim
