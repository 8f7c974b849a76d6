// Package search drives the search of one campaign. It asks the explorer's core for
// scenarios, has several run at once, and gives the core their results. When the core waits
// for invariants, it has the clean runs mined.
//
// It does not know how a run is made, nor where anything is stored: functions of its Config
// do both.
package search
