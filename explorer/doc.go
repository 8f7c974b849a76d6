// Package explorer decides where to cut and where to heal: within one run
// (Engine), and from run to run (Core).
//
// A scenario is a list of steps (model.Step), and the Engine plays any: it knows no
// strategy. Core makes those of CoFI and of its baseline; of a script, each message fault
// and each cut is a step from when the script asks for it.
//
// It is CoFI's stage 2 (Chen, Dou, Wang, Qin: CoFI, ASE 2020, §3.5 and
// Algorithm 1) for systems of which netsplit sees only the messages:
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
// A run cuts off one node once and rejoins it at most once (§3.1). The cut starts
// when the invariant is violated with the state's values. While it lasts,
// everything to or from the node is lost. The first message whose class is not in
// the step's Unseen heals the cut and is the first to pass. A pair is done when
// its runs have healed at each class that they met, and one run healed at none. A
// state that does not recur is retried a bounded number of times.
//
// # What is ours
//
//   - States are projected on the two variables of their invariant, because whole
//     states do not recur. This includes the state in a class. The type in a class
//     is read from the payload; CoFI takes the sender's call stack.
//   - Values come from messages and probes, so the Engine knows a state once a node
//     has spoken. The gate still holds the message that reveals the state. The cut
//     loses it if it crosses the cut. It cannot heal the cut that it began, which
//     would then cut nothing; sent again, it may.
//   - Counters, and ids numbered as they appear, need not recur: if something else
//     took a number first, {#3, #4} becomes {#4, #5}. So a scenario also carries
//     the place of its state among the inconsistent states of its shape
//     (model.State.Shape). The run cuts there unless the exact state occurred
//     before. Its classes are renumbered to the state of the scenario.
//   - Which node leads, or is the first to learn something, is chance. If some
//     clean run did not meet a scenario's state, or a later run missed it, the
//     scenario also names other nodes (model.Scenario.Or): in the invariant, in
//     values that are nodes, and as the node to isolate. The run cuts at the first
//     of these states that occurs. Core renames its results to the nodes of the
//     scenario. Of 20 fault runs of redis-sentinel (seed 11), 14 made their cut, 7
//     of them with other nodes; without this rule, 9 of 20 did.
//   - A TCP retransmission is one more attempt of the same message. It heals if its
//     class has become new, because the state changed.
//   - Packets without a message (bare acknowledgements) are lost and never heal.
//   - A cut ends after its Max or with the workload, whichever is first.
//   - The runs of a pair are those of Algorithm 1 in another order. In Algorithm 1
//     each run heals at the first class that no earlier run healed at. A class that
//     takes a timeout to appear waits for as many runs as there are classes before
//     it, and the run that never heals is the last. Here that run is the first: it
//     judges the longest cut and shows all classes. Each later run heals at one of
//     them, its target, and at nothing else. Targets come in this order: classes of
//     a later inconsistent state, classes of a later state in which the nodes
//     agree (of both, the newest state first), then the others as met. Classes that
//     no earlier run met are explored later. Algorithm 1 heals at any new class;
//     where many nodes and clients speak, one comes at once in every run, and no
//     run would get as far as a timeout. A target that Retries+1 runs in a row did
//     not meet is given up. The paper ends a pair with the first run that meets no
//     new class.
//   - A run takes the seed of a run that met its state, instead of a new one. The
//     seed drives workload and target, so the state is likely to recur. Seeds that
//     worked equally well take turns. If each of them was tried in vain since the
//     pair last reached its state, Core draws a new one.
//   - If all runs without a cut met the state, and there are enough of them, a pair
//     has further runs that never heal, each with a new seed.
//   - Pairs do not depend on one another: their runs may be outstanding at the same
//     time and return in any order. Package policy decides by weight which pair is
//     next. A pair behind whose cut the system moved to another state gets its next
//     run before a new pair gets its first; the others come after the new ones. The
//     paper finishes one pair before the next.
//   - A run that was lost or could not be judged is repeated, a bounded number of
//     times, before it counts.
//
// Strategy random is the paper's baseline (§5.1.3) over the same runs and checks.
// Replay turns a run into the scenario that repeats it, and Shrink finds the smallest
// part of it that still fails.
//
// The package is pure: what it returns is a function of the events or inputs that
// it was stepped with, and of the seed. Open engine.go first.
package explorer
