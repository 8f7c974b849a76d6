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
	// EventRole says who has a role: it was asked since a message that is held, the next
	// one, depends on it, since a step is to begin, or since the answer may begin one.
	EventRole EventKind = "role"
	// EventFault begins a message fault in the middle of a run, or ends one.
	EventFault EventKind = "fault"
	// EventRuleCut begins a cut of a script, or ends one.
	EventRuleCut EventKind = "rule-cut"
	// EventFile is one file operation held at a disk gate and waiting for a decision.
	EventFile EventKind = "file"
	// EventDisk is what a step did to files.
	EventDisk EventKind = "disk"
	// EventNote is a remark for the record; the core ignores it.
	EventNote EventKind = "note"
)

// Event is one entry of a run's event log. Num and At are set once, on
// arrival, by the campaign loop; the event is in the log, in its order, before it is
// acted on. What the core decides is a function of (event log, seed, version).
type Event struct {
	Num  uint64        `json:"n"`
	At   time.Duration `json:"t"`
	Kind EventKind     `json:"k"`

	Message     *Message     `json:"msg,omitempty"`
	Observation *Observation `json:"obs,omitempty"`
	Packet      *HeldPacket  `json:"pkt,omitempty"`
	Node        *NodeAction  `json:"node,omitempty"`
	Step        *ScriptStep  `json:"step,omitempty"`
	Role        *RoleHolders `json:"role,omitempty"`
	Fault       *FaultChange `json:"fault,omitempty"`
	RuleCut     *RuleCut     `json:"ruleCut,omitempty"`

	File *FileOperation `json:"file,omitempty"`
	Disk *DiskDamage    `json:"disk,omitempty"`
	Note string         `json:"note,omitempty"`
}

// RoleHolders are those who say that they have a role; none: nobody does, or nobody
// could be asked.
type RoleHolders struct {
	Role string   `json:"role"`
	Have []NodeID `json:"have,omitempty"`
}

// FaultChange begins or ends a message fault. What it kept when it ends goes on.
type FaultChange struct {
	Name string `json:"name"`
	// Begin becomes the last of Scenario.Steps; End is the place of one there, from 1.
	Begin *MessageFault `json:"begin,omitempty"`
	End   int           `json:"end,omitempty"`
}

// RuleCut is a cut of a script. Rules of the switch make it, and the gate refuses what comes
// there all the same, or is kept there.
type RuleCut struct {
	Name string `json:"name"`
	// Partition is what is cut from now on; nil: nothing under this name any more.
	Partition *Partition `json:"partition,omitempty"`
	// Step is the place of the cut among Scenario.Steps, from 1: a cut that begins becomes the
	// last. In earlier records it is 0, and cuts of scripts are no steps.
	Step int `json:"step,omitempty"`
	// Spared are the frames of packets that are kept now, and that are of none of its traffic.
	Spared []uint64 `json:"spared,omitempty"`
	// Kept are, in earlier records, the frames of packets that are kept now, and that it cuts.
	Kept []uint64 `json:"kept,omitempty"`
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
	// NodeReset is for hooks only: a node as a run finds it.
	NodeReset NodeVerb = "reset"
)

// NodeAction is something done to a server process during a run, entered when
// it is done.
type NodeAction struct {
	Verb    NodeVerb `json:"verb"`
	Process string   `json:"process"`
	Host    NodeID   `json:"host"`
	// Took is how long it took, before it was entered.
	Took time.Duration `json:"took,omitempty"`
	// Output is what the testbed's hook for it said, if one did it.
	Output string `json:"output,omitempty"`
}

// EndsMemory says that a server may have lost what it knew by this.
func (a NodeAction) EndsMemory() bool { return a.Verb != NodePause && a.Verb != NodeResume }

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
	// Spared: the scenario's partitions are of some traffic only, and this packet is of
	// none of it. SparedBy are the steps, from 1, whose partition alone is not of it.
	Spared   bool  `json:"spared,omitempty"`
	SparedBy []int `json:"sparedBy,omitempty"`
	// RuleCut: in earlier records, a cut of a script is of this packet.
	RuleCut bool `json:"ruleCut,omitempty"`
	// Stream and Payload are set in runs with message faults: the direction of
	// the TCP connection, as in Message.Stream, "" for other packets; and the
	// bytes behind the TCP or UDP header.
	Stream  string `json:"stream,omitempty"`
	Payload int    `json:"payload,omitempty"`
}

// Action is what happens to a held packet.
type Action string

// Actions of the gate.
const (
	Pass       Action = "pass"
	DropPacket Action = "drop"
	// Hold keeps the packet until a later decision names its frame.
	Hold Action = "hold"
	// Copy sends a copy of a packet that has passed or passes with this event.
	Copy Action = "copy"
	// Skip does not send a copy that was to be sent.
	Skip Action = "skip"
	// ResetConn drops the packet and resets its TCP connection at both ends.
	ResetConn Action = "reset"
)

// Decision is the core's answer to an EventPacket, or a change of the
// partition on any event. The order in which it must be carried out is: Cut
// or Heal first, then the packet. On any event it may also say what becomes of
// a packet that was held before.
type Decision struct {
	Event  uint64        `json:"event"` // the event it answers
	At     time.Duration `json:"t"`
	Frame  uint64        `json:"frame,omitempty"` // 0: no packet waits
	Action Action        `json:"action,omitempty"`
	// Cut asks that the partition of Step be put in force before this packet; Heal
	// that it be lifted before this packet passes. Step is a place in Scenario.Steps,
	// from 1; 0 in records of earlier versions, and of a script's cuts.
	Cut  bool `json:"cut,omitempty"`
	Heal bool `json:"heal,omitempty"`
	Step int  `json:"step,omitempty"`
	// Verb is what is to be done to the servers of Step, before this packet. With Cut or Heal
	// it is of a machine, see Fault.Silent.
	Verb NodeVerb `json:"verb,omitempty"`
	// Disk is the disk fault of Step: it begins or, with a verb that starts servers, ends.
	// File is what becomes of the operation that waits; nil: it goes on.
	Disk DiskFaultKind `json:"disk,omitempty"`
	File *FileAnswer   `json:"file,omitempty"`
	// Ask wants to know who has this role, in an EventRole, before Step begins.
	Ask string `json:"ask,omitempty"`
	// Reason is a short constant (metric label): see the Reason constants.
	Reason string `json:"reason"`
	// Message and Class are the message that decided, where one did.
	Message uint64 `json:"message,omitempty"`
	Class   *Class `json:"class,omitempty"`
	// Fault is the place of the message fault that decided in Scenario.Steps,
	// from 1; 0: none did. Keep says that a packet which passes, or a copy, is
	// needed once more.
	Fault int  `json:"fault,omitempty"`
	Keep  bool `json:"keep,omitempty"`
}

// Reasons of decisions.
const (
	ReasonOpen      = "open"           // no partition in force
	ReasonNotCut    = "not-across"     // partition in force, packet does not cross it
	ReasonAcross    = "across-cut"     // dropped: crosses the partition
	ReasonState     = "state-reached"  // cut: the inconsistent state occurred
	ReasonNewClass  = "new-class"      // heal: first message of an unseen class
	ReasonHealClass = "heal-class"     // heal: the class a replay waits for
	ReasonTime      = "time"           // cut or heal: a time came
	ReasonMessage   = "message"        // cut or heal: the message waited for wants to cross, or has passed
	ReasonFollows   = "step-before"    // cut: the step before has begun or ended
	ReasonFile      = "file-operation" // the file operation waited for wants to begin
	ReasonDisk      = "disk-fault"     // of a file operation: the disk is full, or gone
	ReasonRole      = "role"           // cut or heal: a host has the role
	ReasonMaxCut    = "max-cut"        // heal: the longest cut is over
	ReasonStop      = "workload-ended" // heal, or released: the workload ended while cut or held
	ReasonScript    = "script"         // cut or heal: a step of a script
	ReasonHand      = "by-hand"        // heal: somebody asked for it
	ReasonLost      = "lost"           // a partition ended with its switch or host
	ReasonBroken    = "run-broken"     // heal: netsplit itself failed in the run

	// Of message faults.
	ReasonDelay      = "fault-delay"     // held for a time
	ReasonBehind     = "behind-delayed"  // held: its stream waits behind a delayed packet
	ReasonReorder    = "fault-reorder"   // held until others have passed
	ReasonDuplicate  = "fault-duplicate" // passed, or sent once more
	ReasonLose       = "fault-lose"      // dropped
	ReasonLostAgain  = "fault-lost-again"
	ReasonReset      = "fault-reset" // dropped with its connection
	ReasonAfterReset = "after-reset" // dropped: behind a message that was lost for good
	ReasonCameAgain  = "came-again"  // passed: a retransmission of what was lost or waits
	ReasonEnded      = "fault-ended" // released: the fault that kept it was ended
	ReasonDue        = "due"         // released: the delay is over
	ReasonOvertaken  = "overtaken"   // released: enough have passed
	ReasonLimit      = "limit"       // released: nothing more came to overtake it
)
