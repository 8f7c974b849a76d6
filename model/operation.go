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
}
