// Package explorer decides where to cut and where to heal: within one run
// (Engine), and from run to run (Core).
//
// It is CoFI's stage 2 (Chen, Dou, Wang, Qin: CoFI, ASE 2020, §3.5 and
// Algorithm 1) for systems of which only the messages are seen:
//
//	1  iStates := runWithoutPartition     Core: the Clean runs, with States
//	2  while iState := next               Core: which pair is next, see policy
//	3    for iNd in iState's nodes        Core: one pair for each of the two
//	5      while passedNewMsgType         Core: until no class is left, see pair
//	12       curState = iState: cut       Engine: on an observation
//	14       curMsg not in seen: heal     Engine: on the packet that carries it
//	7    iStates.add(new states)          Core: from every run's result
//
// # What is CoFI's
//
// One node is cut off once per run and rejoined at most once (§3.1). The cut
// starts when the invariant is violated with the state's values. While
// it lasts, everything to or from the node is lost, until the first message
// whose class is not in the scenario's Seen: it heals, and is the first to pass.
// A pair is done when a run has healed at each class that its runs met, and one
// at none. A state that does not recur is retried a bounded number of times.
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
//   - Counters, and ids numbered as they appear, need not recur: where something
//     took a number more, {#3, #4} is {#4, #5}. So a run is also told the state's
//     place among the inconsistent states of its shape (model.State.Shape), and
//     cuts there if the exact one did not come before. Its classes are read in
//     the numbers of the state asked for.
//   - Which node leads, or hears of something first, is chance. A scenario whose
//     state was not met in all clean runs, or was missed since, stands for the
//     same with other nodes in their places as well (model.Scenario.Or): in the invariant, in the
//     values that name nodes, and in who is cut off. The first of them to come
//     about is cut at, and what its run shows is read in the names asked for.
//     It pays: of 20 fault runs of redis-sentinel (seed 11) 14 made their cut, 7 of
//     them with other nodes; without it 9 of 20 did.
//   - A TCP retransmission is one more attempt of the same message. It heals if
//     its class is new by now, as it is when the state changed.
//   - Packets that carry no message (bare acknowledgements) are lost and never
//     heal.
//   - A cut ends at the latest after MaxCut, and with the workload.
//   - The scenarios of a pair are those of Algorithm 1 in another order. There,
//     each run heals at the first class that no run before it healed at, so a
//     class that takes a timeout behind the cut is reached after as many runs as
//     there are classes before it, and the run that never heals is last. Here
//     that run is first: it judges the longest cut and shows all classes. Each
//     run after it heals at one of them, its target, and at nothing else: first
//     classes whose state is not the one cut at, the newest such state first,
//     then the others as met. Classes that no run met before are explored later.
//     Algorithm 1 heals at whichever new class comes first; where many nodes and
//     clients speak, something new comes at once in every run, and none would
//     get as far as a timeout. A target not met in Retries+1
//     runs in a row is given up; the paper ends a pair with the first run that
//     meets no new class.
//   - A run takes the seed of a run that met its state, not one drawn anew: it
//     drives workload and target, so that the state is likely to recur. Seeds
//     that worked equally well take turns; when each was tried in vain since the
//     pair last reached its state, one is drawn. Where all runs without a cut met the state,
//     a pair has further first runs, each with a seed of its own.
//   - Pairs do not depend on one another: their runs may be outstanding at the
//     same time and come back in any order. Which pair is next is decided by
//     package policy, by weight: all pairs are looked at first, then come the
//     classes met after the system moved on, then the rest. The paper finishes
//     one pair before the next.
//   - A run that was lost or could not be judged is repeated, a bounded number
//     of times, before it counts.
//
// Strategy random is the paper's baseline (§5.1.3) over the same runs and
// checks. Replay turns a run into the scenario that repeats it.
//
// The package is pure: what it returns is a function of the events or inputs
// it was stepped with, and of the seed. Open engine.go first.
package explorer
