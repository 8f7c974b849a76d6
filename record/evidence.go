package record

import (
	"fmt"
	"time"

	"netsplit/model"
)

// Entry is one operation of a workload's history, with the workload's name.
type Entry struct {
	Workload string `json:"workload"`
	// Look is 1 for what a final workload printed, 2 where it was run again; 0 for
	// other workloads, and in records of versions that did not look twice.
	Look int `json:"look,omitempty"`
	// Num is the event number that the run gave the line when it arrived (model.Event.Num); 0
	// in records of earlier versions. LogLine.Num and Exit.Num are alike.
	Num uint64 `json:"n,omitempty"`
	model.Operation
}

// LogLine is a line of the target's output. Those that matched a fatal pattern of the
// target file and no allowed one have a file of their own, with Context.
type LogLine struct {
	Num     uint64        `json:"n,omitempty"`
	Host    model.NodeID  `json:"host"`
	Process string        `json:"process"`
	At      time.Duration `json:"at"`
	Line    string        `json:"line"`
	// Context are the lines after it that belong to it: its stack trace.
	Context []string `json:"context,omitempty"`
	// File is the log file with the line, relative to the host's directory; ""
	// for what the process printed.
	File string `json:"file,omitempty"`
}

// NoTemplate begins the remark of a run whose target asks for a template, but has
// none; the reason follows.
const NoTemplate = "there is no template, the run starts from nothing: "

// Started is a process that netsplit started, and the user it runs as.
type Started struct {
	Host    model.NodeID  `json:"host"`
	Process string        `json:"process"`
	At      time.Duration `json:"at"`
	// User is "" on a remote host: the process runs as the user that is logged in there.
	User         string   `json:"user"`
	Capabilities []string `json:"capabilities"` // "all": those of root
}

// Exit is a process that ended.
type Exit struct {
	Num      uint64        `json:"n,omitempty"`
	Host     model.NodeID  `json:"host"`
	Process  string        `json:"process"`
	At       time.Duration `json:"at"`
	Status   int           `json:"status"`   // exit status; 128 + signal number for a signal
	Expected bool          `json:"expected"` // netsplit stopped it, or it may exit
	LastLine string        `json:"lastLine,omitempty"`
}

// Recovery says how the target came back after the heal.
type Recovery struct {
	HealedAt time.Duration `json:"healedAt"` // heal decided; workload end if nothing was cut
	StableAt time.Duration `json:"stableAt"` // 0: not within the limit
	Limit    time.Duration `json:"limit"`    // Timing.Recover
	// Stable: every stable condition held and no invariant was violated, at one
	// moment within the limit.
	Stable  bool     `json:"stable"`
	Pending []string `json:"pending,omitempty"` // conditions that did not hold at the limit
	// QuietAt is when the conditions of the target's quiesce held; 0: it has none, or they did not.
	QuietAt  time.Duration `json:"quietAt,omitempty"`
	Violated []Violation   `json:"violated,omitempty"` // invariants that did not hold again
	// Final holds the last value of every variable at the end of recovery.
	Final []model.VarValue `json:"final,omitempty"`
}

// Look is one round of the final workloads. There is a second if the first reads
// lacked something; it comes after the target's own repair time.
type Look struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
	// Trouble says why a second look does not show everything.
	Trouble []string `json:"trouble,omitempty"`
}

// Violation is an invariant that did not hold, with the values seen.
type Violation struct {
	Invariant model.Invariant `json:"invariant"`
	State     model.State     `json:"state"`
}

// String is the invariant and the state.
func (v Violation) String() string { return v.Invariant.String() + " is " + v.State.String() }

// SourceStat says how a probed source of a variable fared on a host.
type SourceStat struct {
	Variable  string       `json:"variable"`
	Source    int          `json:"source"` // index in the target file
	Host      model.NodeID `json:"host"`
	Requested int          `json:"asked"`
	Answered  int          `json:"answered"`
	// Seen counts the answers that showed a value.
	Seen int `json:"seen"`
	// Cost is the time netsplit waited for answers, not what they cost the system.
	Cost time.Duration `json:"cost"`
	// Along: an earlier source has the same probe. Its answer serves both, and Cost is 0.
	Along bool `json:"along,omitempty"`
	// Error is that of the last probe without an answer; Answer is the beginning of
	// the last answer that showed no value.
	Error  string `json:"error,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// PortRead says how much of the traffic of a port of the target's protocols netsplit
// read. It counts bytes of TCP or UDP payload, to the port or from it, from before the
// target's processes started until after the last workload.
type PortRead struct {
	Transport string `json:"transport"`
	Port      uint16 `json:"port"`
	// Arrived is what the target's hosts received, by their own count, without what a
	// host sent to itself. If they could not count, Known is false and Trouble says
	// why.
	Arrived int64  `json:"arrived"`
	Known   bool   `json:"known"`
	Trouble string `json:"trouble,omitempty"`
	// Read is the part that netsplit read. Held is the part of Read that waited at the
	// gate. Nodes is the part of Read between two nodes: a fault run holds at least that.
	Read  int64 `json:"read"`
	Held  int64 `json:"held"`
	Nodes int64 `json:"nodes"`
}

// Share is the part of Arrived that netsplit read, 0 to 1; 1 if nothing arrived.
func (p PortRead) Share() float64 {
	if p.Arrived <= 0 {
		return 1
	}
	return min(1, float64(p.Read)/float64(p.Arrived))
}

// String is the port and its Share, on one line.
func (p PortRead) String() string {
	s := fmt.Sprintf("%s port %d: ", p.Transport, p.Port)
	switch {
	case !p.Known:
		return s + fmt.Sprintf("read %d bytes; the total is unknown: %s", p.Read, p.Trouble)
	case p.Arrived <= 0:
		return s + "nothing came"
	}
	s += fmt.Sprintf("%.1f %% of %d bytes", 100*p.Share(), p.Arrived)
	if p.Held > 0 {
		s += fmt.Sprintf(", %.1f %% at the gate", 100*min(1, float64(p.Held)/float64(p.Arrived)))
	}
	return s
}

// Evidence is what a run measured beside its line files. The run writes it before
// anything judges the run.
type Evidence struct {
	Exits    []Exit   `json:"exits,omitempty"`
	Hung     []string `json:"hung,omitempty"` // workloads that had to be killed
	Recovery Recovery `json:"recovery"`
	// Looks are the rounds of the final workloads; none in records of older versions.
	Looks []Look       `json:"looks,omitempty"`
	Proof *model.Proof `json:"proof,omitempty"`
	// Faults says what each message fault of the scenario did, in their order.
	Faults []model.FaultProof `json:"faults,omitempty"`
	// Cuts are those of a script, in the order in which they began; Proof then covers
	// all of them.
	Cuts []model.CutProof `json:"cuts,omitempty"`
	// Lines is how many lines the run wrote to each file of the record; nil in records
	// of versions that did not count. A file with another number is not whole.
	Lines map[string]int `json:"lines,omitempty"`
	// Incomplete lists why the run cannot be judged.
	Incomplete []string `json:"incomplete,omitempty"`
	// Unread lists why the operations of workloads are not known in full: netsplit
	// judges only what does not depend on them.
	Unread []string        `json:"unheard,omitempty"`
	Result model.RunResult `json:"result"` // verdict not filled yet
	Cost   model.Cost      `json:"cost"`
	// Version is the version that the target reports; "" if its file has no command for
	// it.
	Version  string         `json:"version,omitempty"`
	CPUWait  float64        `json:"cpuWait,omitempty"` // as in model.RunSummary
	Messages map[string]int `json:"messages,omitempty"`
	// Ports says how much netsplit read of each port of the target's protocols, in the
	// order of the target file; nil in records of versions that did not count.
	Ports       []PortRead        `json:"ports,omitempty"`
	GateDelay   *model.DelayStats `json:"gateDelay,omitempty"`
	Retransmits int               `json:"retransmits"`
	ProbeCost   time.Duration     `json:"probeCost"`
	Probes      int               `json:"probes,omitempty"`
	Sources     []SourceStat      `json:"sources,omitempty"`
	Bounds
	Ended time.Time `json:"ended"`
}

// Bounds are the user's limits on documented losses; negative: none stated
// (model.CampaignSpec).
type Bounds struct {
	MaxLost   int           `json:"maxLost"`
	MaxWindow time.Duration `json:"maxWindow"`
}
