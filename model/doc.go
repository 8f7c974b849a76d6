// Package model holds the shared nouns of netsplit: hosts, frames, messages,
// variables, invariants, partitions, scenarios, runs, verdicts and findings.
//
// It is a leaf: it imports no other package of netsplit and holds no behaviour
// beyond comparing, sorting, naming and validating its own values. The rooms
// that hold algorithms (inference, explorer, flowrules) never import one
// another; they meet here and are joined in package campaign and those below it.
//
// Time inside a run is a time.Duration since the run started, so that every
// pure room can be stepped from a record without a clock.
package model
