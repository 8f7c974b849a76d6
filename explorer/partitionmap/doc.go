// Package partitionmap says which messages the faults of runs met, and how those runs
// ended: a cell for each type of message on each directed link, as in "which of all that
// could be cut was cut, and what came of it".
//
// Of reads one run's record; a Map adds up the runs of a campaign.
package partitionmap
