package model

import "strings"

// Kinds of faults at points that the NEAT study (OSDI'18) asks for and that FATE's node does
// not have by itself. The shares are of its 136 failures.
const (
	// PointSilence: the node's machine dies, beside PointCrash of its process: a search that has
	// both it and PointIsolate sees who takes the unreachable for dead (§4.3, §4.4).
	PointSilence PointFaultKind = "silence"
	// PointPartial: the node and the peer of the message are cut off from one another, and all
	// others reach both (Table 6: 28.7 %).
	PointPartial PointFaultKind = "partial"
	// PointWithClient: the node is cut off with one client on its side (Table 5: 36 % need
	// clients on one side only).
	PointWithClient PointFaultKind = "isolate-with-client"
	// PointLeader: whoever leads at that moment is cut off, whichever node has the point (Table 10:
	// 36 %).
	PointLeader PointFaultKind = "isolate-leader"
	// PointLoseAnswer: the request passes and its answer is lost for good (§4.2: most of 13.2 %).
	PointLoseAnswer PointFaultKind = "lose-answer"
	// PointPeriod: the node is cut off for one of the target's own periods and a quarter of it
	// (Table 11: 18.4 %). The name of the period follows: see For.
	PointPeriod PointFaultKind = "isolate-period"
	// PointBoth: the node and the peer of the message are cut off together from all other nodes
	// (Table 6: 69.1 % need a complete partition).
	PointBoth PointFaultKind = "isolate-both"
	// PointNEAT stands for all of them, beside PointCrash and PointIsolate.
	PointNEAT PointFaultKind = "neat"
)

// SearchedFaults lists what a search can be told to look for: kinds of faults at points, and
// names for several of them.
func SearchedFaults() []PointFaultKind {
	return []PointFaultKind{PointCrash, PointIsolate, PointLose, PointSilence, PointPartial, PointWithClient, PointLeader, PointLoseAnswer,
		PointPeriod, PointNEAT, PointBoth, PointPause, PointDiskError, PointDiskFailure, PointCorrupt, PointPowerCut, PointDisk, PointTorn, PointCrashAll,
		PointPowerCutAll, PointShiftCrash, PointShiftPowerCut}
}

// For is PointPeriod of a period.
func (k PointFaultKind) For(period string) PointFaultKind {
	return k + PointFaultKind(":"+period)
}

// Period is the period of a PointPeriod.
func (k PointFaultKind) Period() (name string, ok bool) {
	return strings.CutPrefix(string(k), string(PointPeriod)+":")
}
