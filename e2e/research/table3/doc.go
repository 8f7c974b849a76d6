// Command table3 repeats the evaluation of CoFI (Table 3 of the paper) with
// netsplit, one campaign after the other, and prints the paper's table with
// columns of its own.
//
// plan.yaml says which campaigns there are and which bugs of the table each of
// them can meet. What a campaign found is one line of results.jsonl; campaigns
// that have a line are not run again, so the work can be done piece by piece.
// Both strategies, cofi and random, get the same budget of fault runs. Which
// bug a finding is says the target's list of known failures, which no search
// reads.
//
//	table3 [-for 30m] [-only hdfs] [-labs 2] run
//	table3 table
package main
