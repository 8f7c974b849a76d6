package model

import "time"

// LiveState is what a run shows while it is under way.
type LiveState struct {
	Campaign string
	Run      string
	Target   string
	// Phase is what the run does: one of the Doing constants; "" before it has begun.
	Phase string
	// At is the time since the run started.
	At      time.Duration
	Nodes   []NodeID
	Clients []NodeID
	Cuts    []LiveCut
	// Steps are those of the scenario, and of a script those that have begun.
	Steps []LiveStep
	// Events are the newest ones, in their order, and Last is the number of the last event so
	// far.
	Events []LiveEvent
	Last   uint64
}

// LiveStep is a step of the scenario, as a run plays it, with how it went so far. It waits if it
// has neither By nor Lacked.
type LiveStep struct {
	StepResult
	Text string
}

// LiveCut is a cut that is not healed.
type LiveCut struct {
	Name      string // step or script cut
	Partition Partition
	InForce   bool // the switch has confirmed it, and a script's cut was proved
}

// LiveEventKind says what a LiveEvent is of.
type LiveEventKind string

// Kinds of live events.
const (
	LiveMessage LiveEventKind = "message"
	LiveCutDone LiveEventKind = "cut"
	LiveHeal    LiveEventKind = "heal"
	LiveInForce LiveEventKind = "in-force"
	LiveServer  LiveEventKind = "server" // something was done to a server
	LiveDisk    LiveEventKind = "disk"   // a disk fault began or ended
	LiveFault   LiveEventKind = "fault"  // a script began or ended a message fault
	LivePhase   LiveEventKind = "phase"  // the workload began or ended
)

// LiveEvent is one thing that happened in a run, as somebody who watches it sees it.
type LiveEvent struct {
	Num  uint64 // from 1, without a gap
	At   time.Duration
	Kind LiveEventKind
	// From, To, Type, Bytes and Action are of a message. Action is what became of the packet
	// that completed it when it came; Pass where the mirror port showed it.
	From   NodeID
	To     NodeID
	Type   string
	Bytes  int
	Action Action
	// Name is the step, or the cut or fault of a script, that begins or ends.
	Name string
	// Host is the host of what was done to a server or disk.
	Host NodeID
	// Text describes what is no message.
	Text string
}
