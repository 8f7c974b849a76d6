// Package prune holds the policies that say which sequences of faults are run: those
// that users write in Starlark, and named ones that they compose in YAML (PreFail §3.3
// and §4).
//
// A policy in Starlark is a function of what runs have shown. It has no clock, no random
// source, no files, no unbounded loops and no recursion. It is stopped after a number of
// steps. Only its memory is not bounded: that can double with every step.
//
// # What differs from the paper
//
//   - The keys of a fit are those of a point (model.PointKey), failure and place. The
//     paper's keys are derived: loc is side, type and port; stack is stage and after; func
//     is side; target is peer; ioType is "read" for a message received or a file read, else
//     "write"; ioTarget is "net" or "disk"; sender and receiver are the ends of a message.
//     There is no thread and no time.
//   - explored can be called with a list of pairs and indexed by a pair: Figure 4 prints
//     it without the parentheses of a call.
//   - allFits and postInjectionFits know only sequences that were run. The candidate
//     itself was not; its prefix was.
//   - key(fitSeq) in place of cluster(a, b) makes clustering linear.
//   - A policy that fails ends the search. It never keeps or prunes by failing.
package prune
