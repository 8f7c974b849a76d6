package model

import (
	"math"
	"slices"
	"time"
)

// PartitionState is the life of a manual partition.
type PartitionState string

// States of a partition. It is in force only once that was proved, and healed
// only once packets pass again.
const (
	PartitionRequested PartitionState = "requested"
	PartitionInForce   PartitionState = "in_force"
	PartitionHealing   PartitionState = "healing"
	PartitionHealed    PartitionState = "healed"
	PartitionFailed    PartitionState = "failed"
)

// PartitionSpec asks for a manual partition.
type PartitionSpec struct {
	// Name is [a-z0-9-]{1,63}; "" lets the daemon choose one.
	Name      string    `json:"name"`
	Partition Partition `json:"partition"`
	// For heals by itself this long after it is in force; 0: only by hand.
	For time.Duration `json:"for,omitempty"`
}

// PartitionStatus is a manual partition and how far it got.
type PartitionStatus struct {
	PartitionSpec
	State   PartitionState `json:"state"`
	Reason  string         `json:"reason,omitempty"` // what hinders it, or why it ended so
	Created time.Time      `json:"created"`
	// Installed is when every switch or host had confirmed the rules, for the first
	// time, which is not yet proof.
	Installed time.Time `json:"installed,omitzero"`
	InForce   time.Time `json:"inForce,omitzero"` // proved, for the first time
	// Lapses are the stretches since then in which it was not proved, oldest first:
	// the last MaxLapses of Lapsed.
	Lapses []Lapse `json:"lapses,omitempty"`
	Lapsed int     `json:"lapsed,omitempty"`
	// RenewedUntil is when the first of the rules expires unless they are renewed,
	// which they are every second; zero where nothing is cut any more.
	RenewedUntil time.Time `json:"-"`
	Healed       time.Time `json:"healed,omitzero"` // proved
	// Counts of packets across the cut: Leaked since it was in force, the others since the
	// installation; LeakKnown false
	// says that nobody could count Leaked.
	Wanted uint64 `json:"wanted"`
	// Probes are netsplit's own packets among those that wanted to cross.
	Probes    uint64 `json:"probes"`
	Dropped   uint64 `json:"dropped"`
	Leaked    uint64 `json:"leaked"`
	LeakKnown bool   `json:"leakKnown"`
	// Resets are packets that netsplit sent to end TCP connections, with effect
	// reset.
	Resets uint64 `json:"resets,omitempty"`
	// CutBy says in words what it cuts by, and why if by drop rules alone.
	CutBy string `json:"cutBy,omitempty"`
}

// Ended says whether the partition is over, for good.
func (p PartitionStatus) Ended() bool {
	return p.State == PartitionHealed || p.State == PartitionFailed
}

// MaxLapses is how many lapses of a partition are kept.
const MaxLapses = 20

// Lapse is a stretch in which a partition that had been in force was not: something
// happened to its rules, and it was not proved anew yet. Packets may have passed.
type Lapse struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"` // proved anew, or the end of the partition; zero: it lasts
	Why  string    `json:"why"`
}

// Lapse begins a lapse.
func (p *PartitionStatus) Lapse(at time.Time, why string) {
	p.Lapsed++
	p.Lapses = append(p.Lapses[max(0, len(p.Lapses)+1-MaxLapses):len(p.Lapses):len(p.Lapses)], Lapse{From: at, Why: why})
}

// Resume ends the lapse that lasts, if one does.
func (p *PartitionStatus) Resume(at time.Time) {
	if n := len(p.Lapses); n > 0 && p.Lapses[n-1].To.IsZero() {
		p.Lapses = slices.Clone(p.Lapses) // others may read what they were given
		p.Lapses[n-1].To = at
	}
}

// Fate is what became of a packet that wanted to cross a cut.
type Fate string

// Fates of packets. Wanted counts all of them.
const (
	FateWanted  Fate = "wanted"
	FateDropped Fate = "dropped"
	FateLeaked  Fate = "leaked"
)

// Fates lists all fates.
func Fates() []Fate { return []Fate{FateWanted, FateDropped, FateLeaked} }

// SwitchStatus is a switch as the controller knows it.
type SwitchStatus struct {
	Datapath  DatapathID
	Connected bool
	Since     time.Time // of the last change of Connected
	Address   string    // of the switch's end of the session
	Role      string    // "master", "equal" or "slave" (OpenFlow 1.3 §6.3.4); "" when not connected
	// Reason says why it has no session, or what is wrong with one that has; "" if nothing is.
	Reason string
	// Hardware and Software as in OFPMP_DESC (OpenFlow 1.3 §7.3.5.1).
	Hardware, Software string
	// Cuts says in words what manual partitions cut by there, and why if by
	// drop rules alone; "" if it is no switch of the daemon's testbed.
	Cuts  string
	Ports []PortStatus
	Flows []FlowStatus
}

// PortStatus is one port of a switch.
type PortStatus struct {
	Number uint32 `json:"number"`
	Name   string `json:"name"`
	Up     bool   `json:"up"`
	Host   NodeID `json:"host,omitempty"` // "" if no host of the testbed is on it
}

// FlowStatus is one rule in a switch's table, as a person reads it.
type FlowStatus struct {
	Table          uint8
	Priority       uint16
	Cookie         uint64
	Match, Actions string
	Packets, Bytes uint64
	Age            time.Duration
	HardTimeout    time.Duration // 0: none
	Ours           bool          // the cookie is one of ours
}

// Health says whether the daemon can do its work.
type Health struct {
	OK     bool          `json:"ok"`
	Checks []HealthCheck `json:"checks"` // in a fixed order
}

// ServiceState is what a daemon is and does at a moment, for its metrics.
type ServiceState struct {
	Testbed    string // its name; "lab" where campaigns make their own
	StoreBytes int64  // -1: unknown
	FreeBytes  int64  // for records of runs; -1: unknown
	Health     Health
	Queued     int // campaigns
	Running    int // campaigns
	Runs       int // under way
	// Map counts the fields of the partition map of the campaign that finished a run last.
	Map MapCount
	// Runners counts the runners that have joined, by state; nil where the daemon makes the runs.
	Runners map[RunnerState]int
	// InForce counts the partitions in force at runners when they were heard of last, by shape.
	InForce map[Shape]int
}

// HealthCheck is one part of Health.
type HealthCheck struct {
	Name   string `json:"name"` // "store", "switch", …
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what is wrong and what to do; or one fact
}

// ServiceEvent is one entry of the daemon's log of changes. Num counts without
// gaps from the time, in microseconds since 1970, at which the daemon began, so
// that a reader who was cut off resumes after the last Num it saw, and numbers
// go on rising over a restart. An event of kind "events" and state "missed"
// tells a reader that some are kept no more.
type ServiceEvent struct {
	Num  uint64    `json:"num"`
	At   time.Time `json:"at"`   // UTC
	Kind string    `json:"kind"` // "campaign", "run", "finding", "warning", "partition", "switch", "host", "invariant", "schedule", "retention", "events"
	ID   string    `json:"id"`   // of what changed
	// State is the state it is in now: a word of CampaignState,
	// PartitionState or VerdictValue, or "connected", "disconnected", "slave", "waiting", "over",
	// "deleted", "pruned", "missed".
	State string `json:"state"`
	Text  string `json:"text"` // one sentence for a person
}

// EventsFromNow, in place of the number of an event, stands for the last one so far.
const EventsFromNow = math.MaxUint64

// Annotation is a span of time to mark in a graph.
type Annotation struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to,omitzero"` // zero while it lasts
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Tags  []string  `json:"tags"`
}

// TargetInvariant is an invariant of a named target.
type TargetInvariant struct {
	Target string `json:"target"`
	Invariant
}
