package model

import (
	"regexp"
	"time"
)

// VerdictValue is the outcome of a run. The zero value is invalid: a verdict
// that nobody gave is not a pass.
type VerdictValue string

// Verdicts. Only VerdictPass is a pass.
const (
	VerdictPass    VerdictValue = "pass"
	VerdictFail    VerdictValue = "fail"    // at least one failure
	VerdictUnknown VerdictValue = "unknown" // the run cannot be judged
	VerdictVacuous VerdictValue = "vacuous" // the cut dropped nothing, or a message fault did nothing
)

// Verdict is a judged run.
type Verdict struct {
	Value VerdictValue `json:"value"`
	// Reason is one sentence: why not pass, or what passed.
	Reason   string    `json:"reason"`
	Failures []Failure `json:"failures,omitempty"`
	// Legal counts operations that were refused or timed out and had a right to.
	Legal int `json:"legal,omitempty"`
	// Excuses say by which rule those had a right to, the most frequent first;
	// at most 50.
	Excuses []Excuse `json:"excuses,omitempty"`
	// Lines are log lines that would be failures (logs.fatal) had no disturbance
	// allowed them (logs.disturbed), in order of time; at most 50.
	Lines []ExcusedLine `json:"lines,omitempty"`
	// Late is what the first final reads lacked and a second look found.
	Late []Late `json:"late,omitempty"`
}

// Late is what a check found missing at the first look, and there at the second:
// the target's own repair brought it.
type Late struct {
	Check   string   `json:"check"`
	Summary string   `json:"summary"` // one sentence, with amounts and seconds
	Detail  []string `json:"detail,omitempty"`
	Count   int      `json:"count"`
	// Missing is when the first look ended, There when the second began.
	Missing time.Duration `json:"missing"`
	There   time.Duration `json:"there"`
}

// Excuse is why some operations of a run had a right to fail.
type Excuse struct {
	F     string `json:"f"`
	Error string `json:"error,omitempty"` // first word of the error
	Node  NodeID `json:"node,omitempty"`  // that was asked, or that answered
	// Why is the rule with what it found, without times: "n1 reached 1 of n1,
	// n2, n3 and needed 2: the cut".
	Why   string `json:"why"`
	Count int    `json:"count"`
	// First and Last are when the first and the last of them ended.
	First time.Duration `json:"first"`
	Last  time.Duration `json:"last"`
}

// ExcusedLine is a log line, or several that one disturbance allowed by one pattern.
type ExcusedLine struct {
	Host    NodeID        `json:"host"`
	Process string        `json:"process"`
	Line    string        `json:"line"` // the first of them, its beginning if it is long
	Why     string        `json:"why"`  // the disturbance: "the cut", "n2's server is stopped"
	Count   int           `json:"count"`
	First   time.Duration `json:"first"`
	Last    time.Duration `json:"last"`
}

// FailureClass sorts failures by what the target's documentation says.
type FailureClass string

// Classes of failures.
const (
	// Broken: the documentation promises otherwise, or the target file says that it is wrong without a word of it.
	Broken FailureClass = "broken"
	// Documented: the documentation admits it; it is listed with amounts.
	Documented FailureClass = "documented"
	// BrokenBound: documented, but beyond a bound the user stated.
	BrokenBound FailureClass = "broken-bound"
)

// Severity sorts failures by what they cost a user. Package explorer/check
// decides it.
type Severity string

// Severities, the costliest first.
const (
	SeverityData         Severity = "data"          // what was acknowledged is lost, wrong, out of date, or handed out twice
	SeveritySplitBrain   Severity = "split-brain"   // nodes act on different leaders or members
	SeverityNotRecovered Severity = "not-recovered" // it lasts after heal: unavailable, stuck, or nodes disagree
	SeverityCrash        Severity = "crash"         // a server process ended by itself
	SeverityError        Severity = "error"         // operations fail or take too long
	SeverityLog          Severity = "log"           // a line in a log
)

// Failure is one failed check of one run.
type Failure struct {
	Check string `json:"check"` // e.g. "lost-acknowledged-writes"
	// Signature says what failed and where, without times, counts or ids: two
	// failures of equal signature are one finding.
	Signature string       `json:"signature"`
	Class     FailureClass `json:"class"`
	Summary   string       `json:"summary"` // one sentence, with amounts
	// Quote is the sentence of the documentation that admits or forbids it.
	Quote  string   `json:"quote,omitempty"`
	Detail []string `json:"detail,omitempty"`
	Amount int      `json:"amount,omitempty"` // how many operations, where that makes sense
	// Known is the id of the described failure whose signature it has; "".
	Known string `json:"known,omitempty"`
	// KnownBy is what that signature was made from (KnownFailure.By).
	KnownBy string `json:"knownBy,omitempty"`
	// BeforeCut: it showed before the cut, which can have no part in it. Set by the
	// checks of what happens at one moment: a process ends, a line is logged, an
	// operation fails.
	BeforeCut bool `json:"beforeCut,omitempty"`
	// Severity is what it costs a user, Cause what brought it: failures of equal
	// Cause are told as one. Both are empty in records of older versions.
	Severity Severity `json:"severity,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	// Hosts are where it showed, First and Last when, for checks of what happens at
	// one moment (as BeforeCut).
	Hosts []NodeID      `json:"hosts,omitempty"`
	First time.Duration `json:"first,omitempty"`
	Last  time.Duration `json:"last,omitempty"`
}

// Proof says what the cut of a run really did. Leaked is counted at the
// receiving hosts by somebody who is not the controller.
type Proof struct {
	Links      []Link        `json:"links"`
	CutAt      time.Duration `json:"cutAt"`      // decided
	InForceAt  time.Duration `json:"inForceAt"`  // fence answered
	HealAt     time.Duration `json:"healAt"`     // decided
	HealedAt   time.Duration `json:"healedAt"`   // first packet across seen at its receiver
	Wanted     int           `json:"wanted"`     // packets that wanted to cross
	Dropped    int           `json:"dropped"`    // of those, not let through
	Leaked     int           `json:"leaked"`     // arrived all the same
	LeakKnown  bool          `json:"leakKnown"`  // false: no host could count
	ResetConns int           `json:"resetConns"` // connections reset by effect reset
	PerLink    []LinkProof   `json:"perLink,omitempty"`
}

// LinkProof is a Proof's count for one directed link.
type LinkProof struct {
	Link    Link `json:"link"`
	Wanted  int  `json:"wanted"`
	Dropped int  `json:"dropped"`
	Leaked  int  `json:"leaked"`
}

// RunResult is what the explorer learns from a finished run. It is derived
// from the run record alone.
type RunResult struct {
	Scenario string     `json:"scenario"` // id
	Verdict  Verdict    `json:"verdict"`
	States   []MetState `json:"states,omitempty"` // sorted
	// Reached says whether the trigger fired: the cut took place.
	Reached bool `json:"reached"`
	// GivenUp: runners ended while they made the run, so its scenario is not run again.
	GivenUp bool `json:"givenUp,omitempty"`
	// CutState is the state a cofi run cut at: the scenario's own, or one of its
	// shape. Classes are those of this state.
	CutState *State `json:"cutState,omitempty"`
	// Or is the one of the scenario's Or with whose names it came about; none: with
	// its own. CutState, HealClass and Classes have those names.
	Or Renaming `json:"or,omitempty"`
	// HealClass is the class whose message healed, nil if none did.
	HealClass *Class `json:"healClass,omitempty"`
	// Classes are the message classes that came to cross to or from the
	// isolated host while the cut lasted, HealClass included, each once, in
	// order of first appearance. What passes after MaxCut or the end of the
	// workload is not among them.
	Classes []Class `json:"classes,omitempty"`
	// Steps says how each step of the scenario went; none in records of earlier versions.
	Steps []StepResult `json:"steps,omitempty"`
	// Duration of the workload; random draws its offsets from the longest.
	Duration time.Duration `json:"duration"`
}

// RunMeta opens a run's record.
type RunMeta struct {
	Campaign string `json:"campaign"`
	Run      string `json:"run"` // unique: "<campaign>-r0007"
	Target   string `json:"target"`
	Lab      string `json:"lab"`
	Tap      string `json:"tap"` // "mirror" or "gate"
	// Gate is the transport of the gate where that is the tap: a word of Gate,
	// or both with a comma where the testbed's switches differ.
	Gate     string    `json:"gate,omitempty"`
	Started  time.Time `json:"started"`
	Version  string    `json:"version"`
	Scenario Scenario  `json:"scenario"`
	// ReplayOf is the run whose scenario this run repeats.
	ReplayOf string `json:"replayOf,omitempty"`
	// Scripts are the files beside the target file that it names, each with a hash
	// of what it was as the run began.
	Scripts map[string]string `json:"scripts,omitempty"`
}

// WorkItem is a run to be made.
type WorkItem struct {
	Campaign, Run string // ids
	Spec          CampaignSpec
	Scenario      Scenario
	ReplayOf      string // id of the run that this one repeats; "" for none
}

// Cost says where the wall time of a run went.
type Cost struct {
	Template time.Duration `json:"template"` // making the template the run starts from; 0 where there was one
	Start    time.Duration `json:"start"`    // from the first process to the last one started
	Settle   time.Duration `json:"settle"`   // from then until stable
	Workload time.Duration `json:"workload"` // workload, cut included
	Recover  time.Duration `json:"recover"`  // waiting for recovery
	Ours     time.Duration `json:"ours"`     // everything else
}

// RunSummary is a finished run as it is stored and listed.
type RunSummary struct {
	RunMeta
	Ended   time.Time `json:"ended"`
	Verdict Verdict   `json:"verdict"`
	// CutShort says that the run was not made to its end, since the daemon or
	// its campaign ended: its verdict is of nothing.
	CutShort bool   `json:"cutShort,omitempty"`
	Proof    *Proof `json:"proof,omitempty"` // nil: no cut
	// Faults says what each of the scenario's message faults did.
	Faults   []FaultProof   `json:"faults,omitempty"`
	Result   RunResult      `json:"result"`
	Cost     Cost           `json:"cost"`
	Messages map[string]int `json:"messages,omitempty"` // by type
	// GateDelay holds microseconds a packet was held: p50, p99, max, count.
	GateDelay *DelayStats `json:"gateDelay,omitempty"`
	// Retransmits counts TCP retransmissions outside the cut.
	Retransmits int `json:"retransmits"`
	// ProbeCost is the time spent waiting for probes, Probes their number.
	ProbeCost time.Duration `json:"probeCost"`
	Probes    int           `json:"probes,omitempty"`
	// TargetVersion is what the target said of its version, where it has no Release.
	TargetVersion string `json:"targetVersion,omitempty"`
	// CPUWait is the share of the run, 0 to 1, by which netsplit woke late from short
	// sleeps: how long a process that is ready to run waits for a CPU of its machine.
	// Older runs have none.
	CPUWait float64 `json:"cpuWait,omitempty"`
	// Release of the target's software that ran; "" where it has none.
	Release string `json:"release,omitempty"`
	// Sightings say where values of variables were read. Older runs have none.
	Sightings []Sighting `json:"sightings,omitempty"`
}

// Sighting says how often a run read a variable in messages from one host to
// another, or by probes, where From and To are "".
type Sighting struct {
	Variable string `json:"variable"`
	From     NodeID `json:"from,omitempty"`
	To       NodeID `json:"to,omitempty"`
	Count    int    `json:"count"`
}

// Minable says whether a run's values are mined for invariants: what could not be
// judged may show anything.
func (s *RunSummary) Minable() bool {
	return s.Scenario.Strategy == StrategyClean && s.ReplayOf == "" && s.Verdict.Value != VerdictUnknown
}

// DelayStats summarises how long packets were held.
type DelayStats struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"`
	P99   time.Duration `json:"p99"`
	Max   time.Duration `json:"max"`
}

// Finding is a distinct failure of a campaign with the recipe that repeats it.
type Finding struct {
	ID       string       `json:"id"` // "f-" + hash of campaign and signature
	Campaign string       `json:"campaign"`
	Target   string       `json:"target"`
	Class    FailureClass `json:"class"`
	// Severity is what it costs a user, Rank its place among the findings of a
	// campaign: the costliest has the lowest. Cause is what brought it in all runs
	// that showed it, and CauseID "cause-" + hash of campaign and Cause: findings of
	// one cause are told as one. A finding of an older version has Rank 0.
	Severity Severity `json:"severity,omitempty"`
	Rank     int      `json:"rank,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	CauseID  string   `json:"causeId,omitempty"`
	Failure  Failure  `json:"failure"` // of the first run that showed it
	// Run is the run to replay; Runs all that showed it; FirstAfter the number
	// of runs of the campaign until it was first seen.
	Run        string   `json:"run"`
	Runs       []string `json:"runs"`
	FirstAfter int      `json:"firstAfter"`
	// Seen is how many runs showed it, where a list leaves Runs away.
	Seen int `json:"seen,omitempty"`
	// Clean says that a run showed it too without any partition, or before it.
	Clean bool `json:"clean"`
	// Replays counts the replays made so far, Reproduced those that showed its cause.
	Replays    int `json:"replays,omitempty"`
	Reproduced int `json:"reproduced,omitempty"`
}

// CampaignState is the life of a campaign. One set of words serves API,
// command line, pages and metrics.
type CampaignState string

// States of a campaign.
const (
	CampaignQueued    CampaignState = "queued"
	CampaignRunning   CampaignState = "running"
	CampaignPaused    CampaignState = "paused" // it may be resumed
	CampaignDone      CampaignState = "done"
	CampaignCancelled CampaignState = "cancelled"
	CampaignFailed    CampaignState = "failed" // netsplit or the testbed failed, not the target
)

// What a run under way does.
const (
	DoingTemplate = "template" // makes or awaits the state that runs start from
	DoingStart    = "start"    // starts the target, until it has settled
	DoingWorkload = "workload"
	DoingRecovery = "recovery"
)

// KnownTarget is a target that a campaign can name.
type KnownTarget struct {
	Name string // with its version if it was uploaded
	// Uploaded: it was; others come with netsplit. Newest: it is the last one of
	// its name.
	Uploaded, Newest bool
}

// CampaignSpec is what a user asks for.
type CampaignSpec struct {
	Target string `json:"target"` // name of a known target, or path of a target file where that may be (sut.Uploads)
	// Kept is what the files of a Target named by path were kept as when the campaign was
	// made (sut.Uploads): its runs and their replays take these, whatever is at the path.
	Kept string `json:"kept,omitempty"`
	// Replay is a run whose scenario is repeated Runs times; the rest of the
	// search is then not used. Target, Args and Effect come from that run.
	Replay string `json:"replay,omitempty"`
	// Scenario, when set, is what each of Runs runs does, with a seed of its own
	// unless it states one; the rest of the search is then not used.
	Scenario *Scenario `json:"scenario,omitempty"`
	// Script, when set, is what each of Runs runs plays in place of the target's workloads;
	// the rest of the search is then not used.
	Script   *ScriptFile `json:"script,omitempty"`
	Strategy Strategy    `json:"strategy"`
	Seed     uint64      `json:"seed"`
	Labs     int         `json:"labs"` // labs used at once
	// Runs bounds the fault runs, Clean the clean runs before them; Budget the
	// wall time of the whole (0: no bound).
	Runs   int           `json:"runs"`
	Clean  int           `json:"clean"`
	Budget time.Duration `json:"budget"`
	Effect Effect        `json:"effect"`
	// Gate is the transport of the gate; "" leaves it to the testbed.
	Gate Gate `json:"gate,omitempty"`
	// Retries bounds how often a state that did not recur is tried again.
	Retries int `json:"retries"`
	// Depth is the most faults of a sequence, Faults the kinds that are searched (none: all
	// at messages), Policies prune (none: brute force). Of strategy sequences only.
	Depth    int              `json:"depth,omitempty"`
	Faults   []PointFaultKind `json:"faults,omitempty"`
	Policies *PolicyFile      `json:"policies,omitempty"`
	// Prioritised asks FATE's strategy what the policies keep, Only narrows the search to
	// faults with these values of keys, and Keys are the identity of points; nil: the
	// target's. Of strategy sequences only.
	Prioritised bool                `json:"prioritised,omitempty"`
	Only        map[string][]string `json:"only,omitempty"`
	Keys        []PointKey          `json:"keys,omitempty"`
	// Args are handed to the target (named settings, e.g. bug=true).
	Args map[string]string `json:"args,omitempty"`
	// MaxLost and MaxWindow are the user's bounds on documented losses;
	// negative: none stated.
	MaxLost   int           `json:"maxLost"`
	MaxWindow time.Duration `json:"maxWindow"`
	// Needs is what a runner must have for the runs: tags, cores=N, memory=SIZE; none: any
	// runner makes them.
	Needs []string `json:"needs,omitempty"`
	// StopWhenSuspect ends a search at the first mark of a wrong target file.
	StopWhenSuspect bool `json:"stopWhenSuspect,omitempty"`
	// StopWhenBroken ends a search at the first broken promise that a cut brought.
	StopWhenBroken bool `json:"stopWhenBroken,omitempty"`
	// WithoutCut makes the runs of a replay without what was done to the network.
	WithoutCut bool `json:"withoutCut,omitempty"`
	// Shrink is how often each scenario is tried that lacks steps of a failed run's. Of a
	// replay: the run's steps are left out, and Runs is not used (0: it is a plain replay). Of
	// strategy sequences: the steps of each cause's smallest sequence (negative: none).
	Shrink int `json:"shrink,omitempty"`
}

var targetName = regexp.MustCompile(`^([a-zA-Z0-9_.-]+?)(:[0-9a-f]+)?(@[^@/]*)?$`)

// TargetName is the name of the target without a release and the version of an upload; of a
// target that is named by a path, the path.
func (s *CampaignSpec) TargetName() string {
	if m := targetName.FindStringSubmatch(s.Target); m != nil {
		return m[1]
	}
	return s.Target
}

// OnStage reports whether a program (netsplit script run, a Go test) plays the script itself.
// Such a campaign cannot continue after the program has ended.
func (s *CampaignSpec) OnStage() bool { return s.Strategy == StrategyScripted && s.Script == nil }

// PolicyFile is a user's file of policies: YAML, or Starlark if its name ends in .star.
type PolicyFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Files are the texts of the Starlark files that a YAML one names, by these names.
	Files map[string]string `json:"files,omitempty"`
}

// ScriptFile is a user's scripted test (campaign/script): the text of its file, or only the
// name of one that comes with netsplit.
type ScriptFile struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
}

// KnownScript is a scripted test that comes with netsplit.
type KnownScript struct{ Name, Title, Target, Text string }

// WarningKind names a mark of a wrong target file, or of a wrong scenario.
type WarningKind string

// Signs of a wrong target file.
const (
	WarnLimit WarningKind = "limit" // a limit of the target is as long as the longest cut
	WarnClean WarningKind = "clean" // a finding shows without any cut
	WarnHalf  WarningKind = "half"  // a finding shows in half of the fault runs or more
	// WarnUnjudged: for one reason, a third of the fault runs or more could not be judged.
	WarnUnjudged WarningKind = "unjudged"
	// WarnLate: a step of a user's scenario begins only if the workload takes longer than it should.
	WarnLate WarningKind = "late"
)

// Busy is the CPUWait from which on a missed time limit may be the machine's doing. On two
// busy processors up to 0.29 was measured, and 0.35 where ten other processes came first.
const Busy = 0.5

// Warning is a mark of a wrong target file that a search shows, or of a step that may not begin.
type Warning struct {
	Kind   WarningKind `json:"kind" doc:"limit: a limit of the target is as long as the longest cut; clean: a finding occurs without any cut; half: a finding occurs in half of the fault runs or more; unjudged: for one reason, a third of the fault runs or more could not be judged; late: a step of the scenario begins only if the workload takes longer than timing.workload"`
	About  string      `json:"about" doc:"causeId of the findings, the limits, the reason, or the step"`
	Text   string      `json:"text"`
	Advice string      `json:"advice" doc:"What to change"`
}

// Campaign is a search and how far it got.
type Campaign struct {
	ID       string        `json:"id"`
	Schedule string        `json:"schedule,omitempty"` // that made it
	Spec     CampaignSpec  `json:"spec"`
	State    CampaignState `json:"state"`
	Reason   string        `json:"reason,omitempty"` // why failed or cancelled
	Hint     string        `json:"hint,omitempty"`   // what more clean runs may bring, once some were mined
	Created  time.Time     `json:"created"`
	Ended    time.Time     `json:"ended,omitzero"`
	// Idle is how long it was queued, paused, failed or without a daemon: its budget does not count
	// that. Waits is since when it is so; zero: it is under way, or its end says since when.
	Idle     time.Duration `json:"idle,omitempty"`
	Waits    time.Time     `json:"waits,omitzero"`
	Done     int           `json:"done"`    // runs finished, clean ones included
	Planned  int           `json:"planned"` // bound on Done
	Findings int           `json:"findings"`
	// Warnings are the marks of a wrong target file, in the order in which they showed.
	Warnings []Warning `json:"warnings,omitempty"`
	// Undecided says why no fault run of a search could be judged, a line for each
	// reason; none where one could, or before its end.
	Undecided []string `json:"undecided,omitempty"`
	Running   []string `json:"running,omitempty"` // ids of the runs under way
	// Doing is what each of them does, one of the words below.
	Doing map[string]string `json:"doing,omitempty"`
	// Reproduced counts, for a replay, the runs that showed the cause of what cost most
	// in the original.
	Reproduced int `json:"reproduced,omitempty"`
	// Shrunk says what failed runs need of their steps: of a search, one for each cause.
	Shrunk []Shrunk `json:"shrunk,omitempty"`
}
