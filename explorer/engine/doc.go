// Package engine decides within one run what passes, and when each step of its scenario
// begins and ends (model.Step). It plays any list of steps and knows no strategy. Of a
// script, each message fault and each cut is a step from when the script asks for it.
//
// A step that waits for a state is the cut of CoFI (Chen, Dou, Wang, Qin: CoFI, ASE 2020,
// §3.5 and Algorithm 1, lines 12 to 16). It begins when the invariant is violated with the
// state's values. While it lasts, everything to or from the node is lost. The first
// message whose class is not in the step's Unseen heals the cut and is the first to pass.
// What the paper leaves open:
//
//   - Values come from messages and probes, so the engine knows a state once a node
//     has spoken. The gate still holds the message that reveals the state. The cut
//     loses it if it crosses the cut. It cannot heal the cut that it began, which
//     would then cut nothing; sent again, it may.
//   - A state of numbers has a place among the inconsistent states of its shape
//     (model.State.Shape). The run cuts at that place unless the exact state occurred
//     before, and reads its classes in the numbers of the scenario.
//   - Of the other nodes that a scenario names (model.Scenario.Or), the first state that
//     occurs is cut at.
//   - A TCP retransmission is one more attempt of the same message. It heals if its
//     class has become new, because the state changed.
//   - Packets without a message (bare acknowledgements) are lost and never heal.
//   - A cut ends after its Max or with the workload, whichever is first.
//
// The package is pure: its decisions are a function of the scenario and of the events that
// it was stepped with. Open engine.go first.
package engine
