// Package sut reads target files and fills in what a run knows.
//
// A target file describes a system under test: its nodes, processes,
// protocols, variables, workloads and checks (model.Target; every key is
// explained in docs/target-reference.md). Load reads one strictly and reports
// all that is wrong with it at once, each problem with its line. Expand turns
// the file's templates into the commands, files and probes of one host.
package sut
