// Package invariant mines equalities between the variables of two nodes from
// the samples of clean runs (CoFI §3.4), with a bound on chance.
//
// Samples with the same sender, receiver and message type form a trace. A
// candidate is a pair of variables of one kind, one of the sender and one of
// the receiver. The miner keeps it at a program point (the sender, receiver and
// type of a trace) if it held in every sample of the trace that has both values,
// often enough and in enough runs. One violation removes it at that point, not at
// others: what two nodes agree on after one kind of message they need not agree
// on after another (CoFI §3.4.3). The miner reports an invariant if it keeps it at
// one point at least and chance is an unlikely explanation there, by its own
// samples or together with those of pairs that are like it (like.go).
package invariant
