// Command bench measures netsplit on this machine, in labs that it makes and
// removes: packets that leak through a cut at the gate and through one by hand,
// how long that takes to be in force, the gate's rate and delay, the
// mirror's cost, how fast many rules are installed, what memory many hosts take,
// the codec, the part of a run's time that is netsplit's, and how fast the API
// answers from a store with many runs.
//
// Where there is something to compare with, a figure stands beside another one that
// was taken in the same run, the two in turn (A B A B), and the table gives their
// ratio: absolute figures of a machine that does other work too are worth little.
// A goal has a mark only where enough was measured to tell. It needs root and Open
// vSwitch, ovs-testcontroller, iperf3 and Go; see scripts/bench.sh.
//
// The loads come from child processes of this program, so that they do not
// share a scheduler with the gate.
package main
