// Package prune holds the policies that say which sequences of faults are run: those
// that users write in Starlark, and named ones that they compose in YAML (PreFail §3.3
// and §4).
//
// A policy in Starlark is a function of what runs have shown. It has no clock, no
// chance, no file, no loop without an end and no recursion, and is stopped after a number
// of steps. One thing is not bounded: how much memory a policy takes, which can double with
// every step.
//
// # What of the paper is otherwise here
//
//   - The keys of a fit are those of a point (model.PointKey), failure and place. The
//     paper's keys are read from them: loc is side, type and port; stack is stage and
//     after; func is side; target is peer; ioType is read for what is received or read
//     from a file, else write; ioTarget is net or disk; sender and receiver are the ends of a message.
//     There is no thread and no time.
//   - explored can be called with a list of pairs and indexed by a pair: Figure 4 prints
//     it without the parentheses of a call.
//   - allFits and postInjectionFits know only sequences that were run. The candidate
//     itself was not; its prefix was.
//   - key(fitSeq) in place of cluster(a, b) makes clustering linear.
//   - A policy that fails ends the search. It never keeps or prunes by failing.
package prune
