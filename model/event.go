package model

import "time"

// EventKind says which part of an Event is filled.
type EventKind string

// Kinds of events of a run.
const (
	// EventStart opens the log; the run's scenario follows in the record.
	EventStart EventKind = "start"
	// EventWorkload marks the moment at which the workload starts: triggers
	// are armed from here on and offsets of random scenarios count from here.
	EventWorkload EventKind = "workload"
	// EventMessage is one message, read by either tap. At the gate its packet
	// follows as EventPacket; at the mirror it was forwarded already.
	EventMessage EventKind = "message"
	// EventObserve is one observation.
	EventObserve EventKind = "observe"
	// EventPacket is one packet held at the gate and waiting for a decision.
	EventPacket EventKind = "packet"
	// EventTick carries time; random triggers and MaxCut act on it.
	EventTick EventKind = "tick"
	// EventInForce reports that the cut holds: a fence behind it was answered.
	EventInForce EventKind = "in-force"
	// EventStop ends the workload: a partition still in force is healed.
	EventStop EventKind = "stop"
	// EventNode is something a workload did to a server process.
	EventNode EventKind = "node"
	// EventStep is a step of a script, over.
	EventStep EventKind = "step"
	// EventNote is a remark for the record; the core ignores it.
	EventNote EventKind = "note"
)

// Event is one entry of a run's event log. Num and At are set once, on
// arrival, by the campaign loop; the log is written before the event is acted
// on. What the core decides is a function of (event log, seed, version).
type Event struct {
	Num  uint64        `json:"n"`
	At   time.Duration `json:"t"`
	Kind EventKind     `json:"k"`

	Message     *Message     `json:"msg,omitempty"`
	Observation *Observation `json:"obs,omitempty"`
	Packet      *HeldPacket  `json:"pkt,omitempty"`
	Node        *NodeAction  `json:"node,omitempty"`
	Step        *Step        `json:"step,omitempty"`
	Note        string       `json:"note,omitempty"`
}

// NodeVerb is what can be done to a server process.
type NodeVerb string

// Verbs of node actions.
const (
	NodeStart  NodeVerb = "start"
	NodeStop   NodeVerb = "stop" // SIGTERM, then SIGKILL
	NodeKill   NodeVerb = "kill" // SIGKILL at once: a crash
	NodePause  NodeVerb = "pause"
	NodeResume NodeVerb = "resume"
)

// NodeAction is something done to a server process during a run, entered when
// it is done.
type NodeAction struct {
	Verb    NodeVerb `json:"verb"`
	Process string   `json:"process"`
	Host    NodeID   `json:"host"`
	// Took is how long it took, before it was entered.
	Took time.Duration `json:"took,omitempty"`
}

// HeldPacket is a packet at the gate, without its bytes.
type HeldPacket struct {
	Frame uint64 `json:"frame"`
	From  NodeID `json:"from"`
	To    NodeID `json:"to"`
	Bytes int    `json:"bytes"` // whole frame
	// Messages are the numbers of the messages this packet carries or
	// completes, in stream order; Again those it carries once more (a TCP
	// retransmission: the same message, wanting to cross again).
	Messages []uint64 `json:"messages,omitempty"`
	Again    []uint64 `json:"again,omitempty"`
}

// Action is what happens to a held packet.
type Action string

// Actions of the gate.
const (
	Pass   Action = "pass"
	Refuse Action = "drop"
)

// Decision is the core's answer to an EventPacket, or a change of the
// partition on any event. The order in which it must be carried out is: Cut
// or Heal first, then the packet.
type Decision struct {
	Event  uint64        `json:"event"` // the event it answers
	At     time.Duration `json:"t"`
	Frame  uint64        `json:"frame,omitempty"` // 0: no packet waits
	Action Action        `json:"action,omitempty"`
	// Cut asks that the scenario's partition be put in force before this
	// packet; Heal that it be lifted before this packet passes.
	Cut  bool `json:"cut,omitempty"`
	Heal bool `json:"heal,omitempty"`
	// Reason is a short constant (metric label): see the Reason constants.
	Reason string `json:"reason"`
	// Message and Class are the message that decided, where one did.
	Message uint64 `json:"message,omitempty"`
	Class   *Class `json:"class,omitempty"`
}

// Reasons of decisions.
const (
	ReasonOpen      = "open"           // no partition in force
	ReasonNotCut    = "not-across"     // partition in force, packet does not cross it
	ReasonAcross    = "across-cut"     // dropped: crosses the partition
	ReasonState     = "state-reached"  // cut: the inconsistent state occurred
	ReasonNewClass  = "new-class"      // heal: first message of an unseen class
	ReasonHealClass = "heal-class"     // heal: the class a replay waits for
	ReasonTime      = "time"           // cut or heal: the random offset came
	ReasonMaxCut    = "max-cut"        // heal: the longest cut is over
	ReasonStop      = "workload-ended" // heal: the workload ended while cut
	ReasonScript    = "script"         // cut or heal: a step of a script
)
