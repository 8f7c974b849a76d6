// Package policy orders the explorer's work: which (invariant, state, node)
// is tried next, and which wait until nothing better is left.
//
// CoFI explores its states in the order in which they were found and finishes one
// <state, node> before it begins the next (Algorithm 1, lines 2 to 7). The order here is
// this project's own: a budget of runs reaches only what comes first. The first run of a
// pair has the longest cut and shows what happens behind it. If the system moved to another
// state behind the cut, the pair gets its next run before a new pair gets its first. When
// every pair has had its first run, the shortest cuts of the other pairs follow, then the
// rest. Policy decides the order only; it excludes nothing.
//
// The rules are small values that say when they apply and why. They look only
// at a Candidate, never at a clock or a global generator; ties break on the
// order in which candidates were found, so equal input gives equal order.
package policy
