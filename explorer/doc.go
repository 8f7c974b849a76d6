// Package explorer decides from run to run where to cut and where to heal: Core is a
// search. What one run does is its scenario, a list of steps (model.Step), which package
// engine plays.
//
// It is CoFI's stage 2 (Chen, Dou, Wang, Qin: CoFI, ASE 2020, §3.5 and
// Algorithm 1) for systems of which netsplit sees only the messages:
//
//	1  iStates := runWithoutPartition     Core: the Clean runs, with their states
//	2  while iState := next               Core: which pair is next, see policy
//	3    for iNd in iState's nodes        Core: one pair for each of the two
//	5      while passedNewMsgType         Core: until no class is left, see pair
//	12       curState = iState: cut       engine: on an observation
//	14       curMsg not in seen: heal     engine: on the packet that carries it
//	7    iStates.add(new states)          Core: from every run's result
//
// # What is CoFI's
//
// A run cuts off one node once and rejoins it at most once (§3.1). A pair is done when
// its runs have healed at each class that they met, and one run healed at none. A
// state that does not recur is retried a bounded number of times.
//
// # What is ours
//
//   - States are projected on the two variables of their invariant, because whole
//     states do not recur. This includes the state in a class. The type in a class
//     is read from the payload; CoFI takes the sender's call stack.
//   - Counters, and ids numbered as they appear, need not recur: if something else
//     took a number first, {#3, #4} becomes {#4, #5}. So a scenario also carries
//     the place of its state among the inconsistent states of its shape
//     (model.State.Shape).
//   - Which node leads, or is the first to learn something, is chance. If some
//     clean run did not meet a scenario's state, or a later run missed it, the
//     scenario also names other nodes (model.Scenario.Or): in the invariant, in
//     values that are nodes, and as the node to isolate. Core reads its results in the
//     names of the scenario. Of 20 fault runs of redis-sentinel (seed 11), 14 made
//     their cut, 7 of them with other nodes; without this rule, 9 of 20 did.
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
// The package is pure: what it returns is a function of the inputs that it was stepped
// with, and of the seed. Open core.go first.
package explorer
