package model

import "time"

// OpType is the type of a history entry in Jepsen's shape.
type OpType string

// An invoke is followed by ok (it happened), fail (it did not) or info (nobody
// knows).
const (
	OpInvoke OpType = "invoke"
	OpOK     OpType = "ok"
	OpFail   OpType = "fail"
	OpInfo   OpType = "info"
)

// Operation is one line of the operation history that a workload prints, a JSON object. An operation has
// an `invoke` line, then one that says how it ended:
//
//	{"process":0,"type":"invoke","f":"write","key":"a","value":"1","time":1200000000,"node":"n1"}
//	{"process":0,"type":"ok","f":"write","key":"a","value":"1","time":1201000000,"node":"n1"}
//
// Write each key once, with a value of its own.
type Operation struct {
	// The thread or connection; it has one operation at a time.
	// Required. Example: 0
	Process int `json:"process"`
	// `invoke`, then `ok` (it happened), `fail` (it did not) or `info` (nobody knows: a timeout, a closed connection).
	// Required. Example: "ok"
	Type OpType `json:"type"`
	// What was done; `with` of a check names it.
	// Required. Example: "write"
	F string `json:"f"`
	// What it was done to.
	// Example: "a"
	Key string `json:"key,omitempty"`
	// What was written or read.
	// Example: "1"
	Value string `json:"value,omitempty"`
	// Nanoseconds since the run started: now minus `NETSPLIT_RUN_START`.
	// Required. Example: 1200000000
	Time time.Duration `json:"time"`
	// The host that was asked, or that answered.
	// Example: "n1"
	Node NodeID `json:"node,omitempty"`
	// Why `fail` or `info`. The first word is a stable code: `legal` of check `operations` lists it.
	// Example: "NotLeader n2 leads"
	Error string `json:"error,omitempty"`
	// Of `invoke`: what the operation needs of the network. A failure while one need was not met is legal.
	Needs []Need `json:"needs,omitempty"`
}

// Need is met while host `via` reaches `count` of the hosts `from`, in both directions. A host always reaches itself.
// A majority write through n1 by client c1 needs
//
//	[{"via":"c1","from":["n1"],"count":1},{"via":"n1","from":["n1","n2","n3"],"count":2}]
type Need struct {
	// The host that must reach others.
	// Required. Example: "c1"
	Via NodeID `json:"via"`
	// The hosts to reach.
	// Required. Example: ["n1"]
	From []NodeID `json:"from"`
	// How many of them.
	// Required. Example: 1
	Count int `json:"count"`
}
