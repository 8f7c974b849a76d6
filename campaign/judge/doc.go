// Package judge says what recorded runs show: the verdict and the page of a run
// (judge.go, relations.go, page.go), what a clean run shows of its target file (examine.go),
// and the invariants of clean runs (mining.go).
//
// It reads only run directories (read.go), so any record can be judged again on a machine
// without a testbed. It does not know how a run is made.
package judge
