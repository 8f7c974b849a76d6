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

// Operation is one line of the operation history (JSON lines). A workload
// process prints them on its standard output; anything else it prints there
// is an error.
type Operation struct {
	Process int           `json:"process"`
	Type    OpType        `json:"type"`
	F       string        `json:"f"` // "write", "read", "failover", "final-read", …
	Key     string        `json:"key,omitempty"`
	Value   string        `json:"value,omitempty"`
	Time    time.Duration `json:"time"` // nanoseconds since the run started
	// Node is the host that answered (invoke: that was asked); "" unknown.
	Node NodeID `json:"node,omitempty"`
	// Error says why a fail or info; its first word is a stable code.
	Error string `json:"error,omitempty"`
	// Needs says, at the invocation, what the operation cannot do without: a
	// failure while one of them was not met is legal, any other is not.
	Needs []Need `json:"needs,omitempty"`
}

// Need is a condition on the network: Via reaches Count of the hosts From, in
// both directions; itself it always reaches. A quorum read through n1 needs
// {via: n1, from: [n1, n2, n3], count: 2}, and its client c1 needs
// {via: c1, from: [n1], count: 1}.
type Need struct {
	Via   NodeID   `json:"via"`
	From  []NodeID `json:"from"`
	Count int      `json:"count"`
}
