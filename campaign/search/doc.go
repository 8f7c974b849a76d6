// Package search drives the search of one campaign: it asks the explorer's core
// for scenarios, has them run, several at once, gives the results back, and has
// the clean runs mined when the core waits for that.
//
// It does not know how a run is made, nor where anything is kept: both are
// functions of its Config.
package search
