package model

import (
	"slices"
	"time"
)

// PointSetting says what makes two points of a target one, for searches over sequences of
// faults.
type PointSetting struct {
	// The keys by which points are told apart, of side, node, peer, type, port, after, nth and stage; side and type
	// among them. Leave out what is chance in the system: fewer keys, fewer and steadier points.
	// Where node or peer is left out, a fault is of whichever host sends or gets the message.
	// Default: all of them. Example: [side, node, peer, type, nth]
	Keys []PointKey `yaml:"keys,omitempty,flow"`
	// Types of messages that timers send, beside those that clean runs show to be periodic; `*` stands for any text. They
	// are no points, and no point is after one.
	// Example: ["json heartbeat*"]
	Periodic []string `yaml:"periodic,omitempty,flow"`
	// Parts of the system's protocol, in any order. Each goes on until another one begins.
	Stages []PointStage `yaml:"stages,omitempty"`
}

// PointStage is a part of the system's protocol. It begins with a message.
type PointStage struct {
	// A unique name.
	// Required. Example: setup
	Name string `yaml:"name"`
	// The type of the message that begins it; `*` stands for any text.
	// Required. Example: "json allocate"
	Begins string `yaml:"begins"`
}

// Identifies says whether keys are enough to tell what can fail at a point.
func Identifies(keys []PointKey) bool {
	return slices.Contains(keys, KeySide) && slices.Contains(keys, KeyType)
}

// Quiesce says when nothing of a run goes on in the background any more: no repair, no copy,
// no clean-up (FATE §4.3.1, stable state). It is waited for in each run once `stable` holds
// again, before the clients of `final` look. A run that does not come to it is unknown.
type Quiesce struct {
	// Asked once on each of `hosts`, to hasten what is left: an order to report, for example. An answer that does not
	// come is no matter; the conditions decide.
	Ask *Probe `yaml:"ask,omitempty"`
	// Where it is asked. Required with `ask`.
	// Example: [n2, n3, n4]
	Hosts []NodeID `yaml:"hosts,omitempty,flow"`
	// What must hold at once, as in `stable`; the names must be others than there.
	// Required.
	Until []Condition `yaml:"until"`
	// How long to wait for it.
	// Required. Example: 20s
	Limit time.Duration `yaml:"limit"`
}
