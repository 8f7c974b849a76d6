// Package invariant mines relations between the variables of two nodes from
// the samples of clean runs (CoFI §3.4), with a bound on chance.
package invariant
