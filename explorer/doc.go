// Package explorer decides where to cut and where to heal: within one run
// (Engine), and from run to run (Core).
//
// It is CoFI's stage 2 (Chen, Dou, Wang, Qin: CoFI, ASE 2020, §3.5 and
// Algorithm 1) for systems of which only the messages are seen:
//
//	1  iStates := runWithoutPartition     Core: the Clean runs, with States
//	2  while iState := next               Core: which pair is next, see policy
//	3    for iNd in iState's nodes        Core: one pair for each of the two
//	5      while passedNewMsgType         Core: until a run meets no new class
//	12       curState = iState: cut       Engine: on an observation
//	14       curMsg not in seen: heal     Engine: on the packet that carries it
//	7    iStates.add(new states)          Core: from every run's result
//
// # What is CoFI's
//
// One node is cut off once per run and rejoined at most once (§3.1). The cut
// starts when the invariant is violated with exactly the state's values. While
// it lasts, everything to or from the node is lost, until the first message
// whose class was not passed in an earlier run of the same pair: it heals, and
// is the first to pass. A pair is done after a run that met no new class; that
// run is also its "never healed" case. A state that does not recur is retried
// a bounded number of times.
//
// # What is ours
//
//   - A state is projected on the two variables of its invariant, since whole
//     states do not recur; so is the state in a class. A class has the type
//     read from the payload in place of the sender's stack.
//   - The values come from messages and probes, so a state is known when
//     somebody speaks. The message that reveals the state is still held: it is
//     part of what the cut loses if it crosses the cut, and it cannot heal,
//     because a cut healed by the message it began with is no cut. Sent once
//     more, it may.
//   - A TCP retransmission is one more attempt of the same message. It heals if
//     its class is new by now, as it is when the state changed.
//   - Packets that carry no message (bare acknowledgements) are lost and never
//     heal.
//   - A cut ends at the latest after MaxCut, and with the workload.
//   - Pairs do not depend on one another: their runs may be outstanding at the
//     same time and come back in any order. Which pair is next is decided by
//     package policy, breadth first by weight; the paper finishes one pair
//     before the next.
//   - A run that was lost or could not be judged is repeated, a bounded number
//     of times, before it counts.
//
// Strategy random is the paper's baseline (§5.1.3) over the same runs and
// checks. Replay turns a run into the scenario that repeats it.
//
// The package is pure: what it returns is a function of the events or inputs
// it was stepped with, and of the seed. Open engine.go first.
package explorer
