// Package invariant mines equalities between the variables of two nodes from
// the samples of clean runs (CoFI §3.4), with a bound on chance.
//
// Samples with the same sender, receiver and message type form a trace. A
// candidate is a pair of variables of one kind, one of the sender and one of
// the receiver; it is kept at a program point if it held in every sample of
// that trace that has both values, often enough and in enough runs. One
// violation removes it at that point, not at others: what two nodes agree on
// after one kind of message they need not agree on after another (CoFI
// §3.4.3). An invariant is reported if it is kept at one point at least and
// unlikely to be chance there, by its own samples or together with those of pairs
// that are like it (like.go).
package invariant
