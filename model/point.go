package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SideFile is the side of a point at which a node does something to a file. At SideSend
// a message leaves the node, at SideReceive one is delivered to it.
const SideFile Side = "file"

// PointMore is the highest Nth of a point: later occurrences count as this one. A message
// that is sent a hundred times has three points.
const PointMore = 3

// Point is a place in a run where something can fail: one message at one of its ends, or one
// operation on a file. It is the I/O ID of FATE §4.1 (Table 1): Type, Side and Port are its
// static part, Node, After and Nth the dynamic part, Peer and Stage the domain specific
// part. After replaces the call stack, which a switch does not show.
type Point struct {
	Side Side `json:"side"`
	// Node is the host at which it is; Peer is the other end of the message, "" for a
	// file.
	Node NodeID `json:"node"`
	Peer NodeID `json:"peer,omitempty"`
	// Type is the type of the message, or the operation and the normalised path
	// ("rename blk_*").
	Type string `json:"type"`
	// Port is the one on which one of the two ends listens; 0 for files and ARP.
	Port uint16 `json:"port,omitempty"`
	// After is the type of the last message delivered to Node before this point, apart from
	// periodic types; "" if there was none since the workload started.
	After string `json:"after,omitempty"`
	// Nth numbers, from 1, the points of a run that are equal in all other keys. PointMore
	// stands for itself and all later ones.
	Nth int `json:"nth"`
	// Stage is the part of the target's protocol that the target file declares, if any.
	Stage string `json:"stage,omitempty"`
}

// PointKey names a part of a Point.
type PointKey string

// Keys of a point.
const (
	KeySide  PointKey = "side"
	KeyNode  PointKey = "node"
	KeyPeer  PointKey = "peer"
	KeyType  PointKey = "type"
	KeyPort  PointKey = "port"
	KeyAfter PointKey = "after"
	KeyNth   PointKey = "nth"
	KeyStage PointKey = "stage"
)

// PointKeys lists all keys, in the order of the fields of Point. All of them are a
// point's identity unless a target says otherwise.
func PointKeys() []PointKey {
	return []PointKey{KeySide, KeyNode, KeyPeer, KeyType, KeyPort, KeyAfter, KeyNth, KeyStage}
}

// Value is what the point has under a key: "" for a key that it does not know.
func (p Point) Value(k PointKey) string {
	switch k {
	case KeySide:
		return string(p.Side)
	case KeyNode:
		return string(p.Node)
	case KeyPeer:
		return string(p.Peer)
	case KeyType:
		return p.Type
	case KeyPort:
		return strconv.Itoa(int(p.Port))
	case KeyAfter:
		return p.After
	case KeyNth:
		if p.Nth >= PointMore {
			return "more"
		}
		return strconv.Itoa(p.Nth)
	case KeyStage:
		return p.Stage
	}
	return ""
}

// Identity is the point by some of its keys, whatever their order: points of equal
// identity are one point. It is for comparing, not for people.
func (p Point) Identity(keys []PointKey) string {
	var b []byte
	for _, k := range PointKeys() {
		if slices.Contains(keys, k) {
			v := p.Value(k)
			b = append(b, k...)
			b = strconv.AppendInt(append(b, '='), int64(len(v)), 10)
			b = append(append(append(b, ':'), v...), ';')
		}
	}
	return string(b)
}

// Triggers is the part of the point that a step's trigger can select by: what is sent or
// received or done to which file, and by whom. It has node and peer only if keys has them.
func (p Point) Triggers(keys []PointKey) Point {
	t := Point{Side: p.Side, Type: p.Type}
	if slices.Contains(keys, KeyNode) {
		t.Node = p.Node
	}
	if slices.Contains(keys, KeyPeer) {
		t.Peer = p.Peer
	}
	return t
}

// Message is the match that selects the point's message: see Triggers.
func (p Point) Message(keys []PointKey) MessageMatch {
	t := p.Triggers(keys)
	if t.Side == SideReceive {
		return MessageMatch{Type: t.Type, From: t.Peer, To: t.Node}
	}
	return MessageMatch{Type: t.Type, From: t.Node, To: t.Peer}
}

// String is the point on one line: send n2>n1 "hdfs ack" :50010 after "hdfs packet", number 1.
func (p Point) String() string {
	from, to := p.Node, p.Peer
	if p.Side == SideReceive {
		from, to = p.Peer, p.Node
	}
	s := string(p.Side)
	switch {
	case p.Node != "" && p.Peer != "":
		s += " " + string(from) + ">" + string(to)
	case p.Node != "" || p.Peer != "":
		s += " " + string(p.Node) + string(p.Peer)
	}
	s += fmt.Sprintf(" %q", p.Type)
	if p.Port != 0 {
		s += fmt.Sprintf(" :%d", p.Port)
	}
	if p.After != "" {
		s += fmt.Sprintf(" after %q", p.After)
	}
	if p.Stage != "" {
		s += " in " + p.Stage
	}
	if p.Nth > 0 {
		s += ", number " + p.Value(KeyNth)
	}
	return s
}

// PointFaultKind is what fails at a point.
type PointFaultKind string

// Kinds of faults at points: those of FATE §4.1 that a node can have by itself.
const (
	PointCrash       PointFaultKind = "crash"         // the node's process dies
	PointIsolate     PointFaultKind = "isolate"       // the node is cut off from all others
	PointPause       PointFaultKind = "pause"         // the node's processes stand still
	PointLose        PointFaultKind = "lose"          // the message is lost for good
	PointDiskError   PointFaultKind = "disk-error"    // the operation fails, once
	PointDiskFailure PointFaultKind = "disk-failure"  // this and all later operations of the node fail
	PointCorrupt     PointFaultKind = "corrupt"       // the node crashes, and a byte of the file is changed
	PointTorn        PointFaultKind = "torn"          // the node crashes, and the second half of the file is gone
	PointPowerCut    PointFaultKind = "power-cut"     // the node crashes and loses what it did not sync
	PointCrashAll    PointFaultKind = "crash-all"     // the processes of all nodes die
	PointPowerCutAll PointFaultKind = "power-cut-all" // all nodes crash and lose what they did not sync
	// PointShiftCrash and PointShiftPowerCut: the majority moves. A minority is cut off; then it is
	// joined by the node, which fails at that moment, and the others are cut off. Two majorities share
	// a node, and the system counts on its memory.
	PointShiftCrash    PointFaultKind = "shift-crash"
	PointShiftPowerCut PointFaultKind = "shift-power-cut"

	PointDisk PointFaultKind = "disk" // stands for all disk faults, and for a crash before an operation on a file
)

// FaultPlace says whether a fault is before or after the message or operation of its point.
type FaultPlace string

// Places of faults.
const (
	PlaceBefore FaultPlace = "before" // the message or the operation does not happen any more
	PlaceAfter  FaultPlace = "after"  // it has happened
)

// PointFault is a fault at a point: the failure-injection task, "fit", of PreFail §3.2.
type PointFault struct {
	Point
	Kind  PointFaultKind `json:"fault"`
	Place FaultPlace     `json:"place"`
}

// FaultID names a fault at a point. It is the same in every run: "f-" and ten hexadecimal
// digits.
type FaultID string

// ID is the hash of the point's identity, by these keys, and of the fault. So is the failure
// ID of FATE §4.1 (Table 1): of I/O ID and failure.
func (f PointFault) ID(keys []PointKey) FaultID {
	sum := sha256.Sum256([]byte(f.Identity(keys) + string(f.Kind) + ";" + string(f.Place)))
	return FaultID("f-" + hex.EncodeToString(sum[:5]))
}

// String is the fault on one line: crash before send n2>n1 "hdfs ack" :50010, number 1.
func (f PointFault) String() string {
	return string(f.Kind) + " " + string(f.Place) + " " + f.Point.String()
}

// Sequence is faults in the order in which they occur, each once the one before it has
// occurred (PreFail §3.2, fitSeq). An empty one is a clean run.
type Sequence []FaultID

// String is the ids with spaces between them; "none" if there is none.
func (s Sequence) String() string {
	if len(s) == 0 {
		return "none"
	}
	out := make([]string, len(s))
	for i, id := range s {
		out[i] = string(id)
	}
	return strings.Join(out, " ")
}

// Compare orders sequences by length, then by ids.
func (s Sequence) Compare(t Sequence) int {
	return cmp.Or(cmp.Compare(len(s), len(t)), slices.Compare(s, t))
}

// SeenPoint is a point that a run had.
type SeenPoint struct {
	Point
	// Step is how many faults of the run's sequence had occurred when the point was seen.
	Step int `json:"step,omitempty"`
	// Turn numbers, from 1, the messages since that step that a trigger cannot tell apart
	// (Point.Triggers). A trigger that the step arms needs this number to come at the point.
	Turn int `json:"turn,omitempty"`
	// Beyond says that no fault could begin any more: the workload or the scenario's LastFault
	// was over.
	Beyond bool `json:"beyond,omitempty"`
	// Event is the number of the event at which it was seen, At the time of that event
	// since the run started.
	Event uint64        `json:"event,omitempty"`
	At    time.Duration `json:"at,omitempty"`
}

// Profile is the points of a run in order, from the start of the workload to the end of the
// record. The record ends after recovery, so it has what the target does in the background
// after a fault (FATE §4.3.1; per-experiment profile in PreFail §3.2).
type Profile struct {
	Points []SeenPoint `json:"points"`
}
