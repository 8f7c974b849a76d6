// Package sequence searches over sequences of faults: which points a run can fail at,
// which sequences are worth a run, and why the others are not.
//
// It is the failure server of FATE (Gunawi et al., NSDI 2011, §4) and the driver of
// PreFail (Joshi, Gunawi, Sen, UCB/EECS-2011-30, §3) for systems of which only messages
// and file operations are seen:
//
//	points of a run, as they come          Tracker    FATE §4.1, I/O id
//	points of a recorded run               FromEvents PreFail §3.2, profile
//	types that no point is after           Periodic   ours
//	which sequences are run                Search     PreFail §3.4, Algorithm 1
//	which are not                          Policy     PreFail §3.3, filter and cluster
//	one of each recovery behaviour         Prioritised FATE §4.3
//	each of its points with each fault     Pairs      ours
//	what policies can ask                  Known      PreFail §3.2, library
//
// Without a policy, Search is FATE's brute force (§4.2.2).
//
// # What is ours
//
//   - A point has the type of the last message delivered to its node in place of the
//     call stack, and the number of its occurrence up to "more".
//   - Segments that open or close connections have no points. Points that came when no fault
//     could begin any more help to tell recoveries apart, but no fault is placed at them.
//   - Runs differ. Several clean runs, not one, show which points need no fault. If a point
//     of a sequence did not come, the sequence is run again with another seed, a bounded
//     number of times. The same goes for a fault at another point than was meant: triggers
//     only count messages, and the record shows later what came before them.
//   - Recovery behaviours are compared as sets: which types of messages between which nodes.
//     Numbers and what came before are left out, since they are chance in most systems. A
//     user may name other keys.
//   - The sequence that is run of a cluster is drawn from the search's seed. Prioritised and
//     Pairs set an order of their own: recoveries first, and faults that have not failed yet.
//
// # What was measured
//
// Runs on the simulated write of internal/simwrite with its five bugs, crashes before
// messages and file operations, until the search was done (TestPrioritisedFindsTheSameBugs,
// BenchmarkDepth3):
//
//	                         1 packet, depth 2   1 packet, depth 3   3 packets, depth 2
//	brute force              621                 9691                1166
//	prioritised              343                 2527                419
//	prioritised, by type     228                 757                 290
//	pairs                    228                 911                 274
//
// All find the same bugs, one that needs one crash and three that need two. The one that needs
// three is found at depth 3 by brute force and prioritised, by type by chance, and missed by
// pairs. FATE's Table 4 has, for HDFS's write, 524 and 49 runs at depth 2, 3221 and 333 at
// depth 3. What prioritising saves depends on how many points have the same recovery: here few
// have.
package sequence
