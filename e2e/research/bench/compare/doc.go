// Command compare reads the records of campaigns that searched the same
// targets with different strategies, and prints for every distinct finding how
// many runs it took until it was first seen, and how often its replay failed
// again.
//
// Records lie in DIR/<target>/<strategy>/<seed>/, each the runs directory of
// one campaign and of the replays of its runs; a file named done in it says
// that the campaign came to its end. See scripts/compare.sh, which makes them.
package main
