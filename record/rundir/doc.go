// Package rundir writes and reads the directory that a run leaves behind.
//
// Everything is written while the run goes on, in append-only files that are
// readable after a crash, and before anything is judged: meta.json first, then
// events, decisions, rules, history, logs and packets as they occur,
// summary.json last. A killed daemon loses the last fifth of a second, and more only
// where the disk is slower than the packets. A directory without summary.json is a run that did not
// finish. `netsplit judge` needs nothing but this directory.
package rundir
