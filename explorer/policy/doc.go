// Package policy orders the explorer's work: which (invariant, state, node)
// is tried next, and which wait until nothing better is left.
//
// CoFI explores its states in the order in which they were found and finishes
// one <state, node> before it begins the next (Algorithm 1, lines 2 to 7). All
// of the ordering here is this project's: with a budget of runs, what is tried
// first is what is tried at all. The first run of a pair looks at it: it is the
// longest cut. A pair behind whose cut the system moved to another state gets its
// next run before the next new pair. When all were looked at, the shortest cuts of
// the others follow, then the rest. Policy decides order only; nothing is ever
// excluded.
//
// The rules are small values that say when they apply and why. They look only
// at a Candidate, never at a clock or a global generator; ties break on the
// order in which candidates were found, so equal input gives equal order.
package policy
