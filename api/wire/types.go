package wire

import (
	"fmt"
	"time"

	"netsplit/model"
)

// Duration is a length of time, written as Go writes it: "1.5s", "2m0s".
type Duration time.Duration

// String is the duration as it goes over the wire.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("duration %q: write a number and a unit, such as 1.5s, 250ms or 10m", b)
	}
	*d = Duration(v)
	return nil
}

// Span is a Duration in a request that may be left out. Zero is refused, because it could
// mean both "at once" and "never".
type Span Duration

// MarshalText writes the span as a Duration.
func (s Span) MarshalText() ([]byte, error) { return Duration(s).MarshalText() }

// UnmarshalText reads a duration of more than nothing.
func (s *Span) UnmarshalText(b []byte) error {
	if err := (*Duration)(s).UnmarshalText(b); err != nil {
		return err
	}
	if *s <= 0 {
		return fmt.Errorf("duration %q: write a time greater than 0, such as 1.5s, or leave it out", b)
	}
	return nil
}

// CampaignSpec asks for a campaign.
type CampaignSpec struct {
	Target   string            `json:"target,omitempty" maxLength:"1024" doc:"Name of a target that comes with netsplit or was uploaded (see /v1/targets), with @ and a release of its software if needed; never a path; absent for a replay, or to play a script on the target that it names" example:"redis-sentinel"`
	Replay   string            `json:"replay,omitempty" pattern:"^[a-z0-9-]{1,128}$" doc:"Id of a run: repeat its scenario, runs times, on the same target"`
	Strategy string            `json:"strategy,omitempty" enum:"cofi,random,sequences,clean,steps,scripted" default:"cofi" doc:"How scenarios are chosen. sequences: crashes, isolations and lost messages at points of earlier runs, see depth, faults and policies. steps: by the given scenario. scripted: plays the given script; a campaign without one was played by netsplit script run or a Go test, and cannot be replayed"`
	Scenario *ScenarioSpec     `json:"scenario,omitempty" doc:"What each of runs runs does, instead of a search"`
	Script   *ScriptFile       `json:"script,omitempty" doc:"A scripted test that is played runs times, instead of a search"`
	Seed     uint64            `json:"seed,omitempty" doc:"Drives every random choice; 0 or absent: the daemon chooses and records one"`
	Labs     int               `json:"labs,omitempty" minimum:"0" maximum:"10000" doc:"Labs used at once, at most 64; of a daemon with runners: runs at once. 0 or absent: 1; with runners as many as they have"`
	Runs     int               `json:"runs,omitempty" minimum:"0" maximum:"1000000" doc:"Bound on the fault runs; 0 or absent: the daemon's default"`
	Clean    int               `json:"clean,omitempty" minimum:"0" maximum:"10000" doc:"Clean runs before the fault runs; 0 or absent: the daemon's default"`
	Budget   Span              `json:"budget,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Bound on the wall time of the campaign, such as 10m, greater than 0. Time in the queue, paused or failed does not count. Absent: none" example:"10m"`
	Effect   string            `json:"effect,omitempty" enum:"drop,reset" default:"drop" doc:"What a cut does: drop packets, or also reset the TCP connections across it"`
	Gate     string            `json:"gate,omitempty" enum:"port,packet-in" doc:"How held packets leave the switch and return: through a gate port, or by packet-in and packet-out; absent: port if the testbed has one"`
	Retries  int               `json:"retries,omitempty" minimum:"0" maximum:"1000" doc:"How often to try a state again that did not recur; 0 or absent: the daemon's default"`
	Args     map[string]string `json:"args,omitempty" doc:"Settings of the target"`
	Needs    []string          `json:"needs,omitempty" maxItems:"16" maxLength:"64" doc:"What a runner must have for the runs: tags, see /v1/runners, cores=N or memory=SIZE; of a daemon with runners only"`
	Depth    int               `json:"depth,omitempty" minimum:"0" maximum:"10" doc:"Of strategies sequences and random: the most faults in a run; 0 or absent: 1"`
	Faults   []string          `json:"faults,omitempty" maxItems:"22" enum:"crash,isolate,lose,silence,partial,isolate-with-client,isolate-leader,lose-answer,isolate-period,neat,isolate-both,pause,disk-error,disk-failure,corrupt,power-cut,disk,torn,crash-all,power-cut-all,shift-crash,shift-power-cut" doc:"Of strategies sequences and random: the kinds of faults, of random those that need no message; neat: crash, isolate and all from silence to isolate-period; isolate-both: two nodes are cut off together; disk: all of disks, and crashes before operations on files; torn: the end of a file is gone; crash-all, power-cut-all: of all nodes at once; shift-crash, shift-power-cut: the majority moves, and the node that both have fails; absent: crash, isolate and lose at messages, of random isolate"`
	Policies *PolicyFile       `json:"policies,omitempty" doc:"Of strategy sequences: what prunes the sequences; absent: nothing, all are run (brute force)"`

	Prioritised bool                `json:"prioritised,omitempty" doc:"Of strategy sequences: one sequence of each recovery behaviour (FATE), after the policies"`
	Only        map[string][]string `json:"only,omitempty" doc:"Of strategy sequences: keep faults with one of the values of each key, which is one of fault, place, side, node, peer, type, port, after, nth and stage; * stands for any text"`
	Keys        []string            `json:"keys,omitempty" maxItems:"8" enum:"side,node,peer,type,port,after,nth,stage" doc:"Of strategy sequences: what makes two points one; absent: as the target says"`

	MaxLost   *int      `json:"maxLost,omitempty" minimum:"0" maximum:"1000000000" doc:"Your bound on lost operations if the documentation admits losses; absent: none"`
	MaxWindow *Duration `json:"maxWindow,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Your bound on the time from the first to the last documented loss; absent: none" example:"10s"`

	StopWhenSuspect bool `json:"stopWhenSuspect,omitempty" doc:"Stop the search at the first sign of a wrong target file (warnings of the campaign)"`
	StopWhenBroken  bool `json:"stopWhenBroken,omitempty" doc:"End a search at the first broken promise that no run without a cut showed"`
	WithoutCut      bool `json:"withoutCut,omitempty" doc:"Replay without cutting anything or touching any message: the control"`
	Shrink          *int `json:"shrink,omitempty" minimum:"0" maximum:"100" doc:"Of a replay: instead of repeating the whole scenario, find which of its steps the failure needs; runs is not used. Of strategy sequences: do so at its end for the smallest sequence of each cause; 0: do not, absent: 3. The number is how often each scenario is tried that lacks steps"`
}

// ScriptFile is a file of a scripted test.
type ScriptFile struct {
	Name string `json:"name" minLength:"1" maxLength:"255" doc:"Its name, for messages; without a text, the name of one that comes with netsplit (see /v1/scripts)" example:"redis-sentinel/split-brain"`
	Text string `json:"text,omitempty" maxLength:"32768" doc:"What is in it (docs/scripted-tests.md); absent in lists of campaigns"`
}

// Script is a scripted test that comes with netsplit.
type Script struct {
	Name   string `json:"name" doc:"For a campaign" example:"redis-sentinel/split-brain"`
	Title  string `json:"title,omitempty" doc:"One line for people"`
	Target string `json:"target" doc:"What it is played on unless a campaign names another target"`
	Text   string `json:"text" doc:"What is in its file"`
}

// FromScript converts a scripted test.
func FromScript(k model.KnownScript) Script {
	return Script{Name: k.Name, Title: k.Title, Target: k.Target, Text: k.Text}
}

// Scripts are the scripted tests that come with netsplit, by name.
type Scripts struct {
	Items []Script `json:"items"`
}

// PolicyFile is a file of policies that prune sequences of faults.
type PolicyFile struct {
	Name string `json:"name" maxLength:"255" doc:"Its name: Starlark if it ends in .star, else YAML" example:"mine.yaml"`
	Text string `json:"text" maxLength:"65536" doc:"What is in it" example:"policy: [prioritised]"`
	// Files are what it names as {file: NAME}.
	Files map[string]string `json:"files,omitempty" doc:"The texts of the Starlark files that it names with file, by these names"`
}

// Campaign is a search and how far it got.
type Campaign struct {
	ID         string          `json:"id"`
	Schedule   string          `json:"schedule,omitempty" doc:"The schedule that made it"`
	State      string          `json:"state" enum:"queued,running,paused,done,cancelled,failed"`
	Reason     string          `json:"reason,omitempty" doc:"Why it is in this state"`
	Spec       CampaignSpec    `json:"spec"`
	Created    time.Time       `json:"created"`
	Ended      *time.Time      `json:"ended,omitempty" doc:"When it ended, or was paused"`
	Done       int             `json:"done" doc:"Runs finished, clean ones included"`
	Planned    int             `json:"planned" doc:"Bound on done; 0 if unknown"`
	Findings   int             `json:"findings"`
	Warnings   []model.Warning `json:"warnings" doc:"Signs of a wrong target file or scenario, in order of appearance"`
	Undecided  []string        `json:"undecided,omitempty" doc:"Why no fault run of an ended search could be judged, a line for each reason; absent if one could"`
	Reproduced int             `json:"reproduced,omitempty" doc:"For a replay: runs that showed the cause of the costliest failure of the original"`
	Shrunk     []Shrunk        `json:"shrunk,omitempty" doc:"Which steps failed runs need (shrink): of a search, one for each cause; absent in lists"`
	Running    []string        `json:"running" doc:"Ids of the current runs"`
	// Doing has no entry for a run that is not prepared yet.
	Doing map[string]string `json:"doing,omitempty" doc:"Phase of each current run, by its id: template (makes, or waits for, the state that runs start from), start, workload or recovery"`
}

// Campaigns is one page of campaigns, newest first.
type Campaigns struct {
	Items []Campaign `json:"items"`
	Next  string     `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// Failure is one failed check of a run.
type Failure struct {
	Check     string   `json:"check"`
	Signature string   `json:"signature" doc:"What failed and where, without times, counts or ids"`
	Class     string   `json:"class" doc:"broken, documented or broken-bound"`
	Severity  string   `json:"severity" doc:"What it costs a user: data (acknowledged data is lost, wrong, out of date or handed out twice), split-brain, not-recovered (it lasts after heal), crash, error or log"`
	Cause     string   `json:"cause" doc:"What caused it; failures of one cause are grouped"`
	Summary   string   `json:"summary"`
	Quote     string   `json:"quote,omitempty" doc:"The sentence of the documentation that admits or forbids it"`
	Detail    []string `json:"detail,omitempty"`
	Amount    int      `json:"amount,omitempty"`
	Known     string   `json:"known,omitempty" doc:"Id of the known failure with the same signature"`
	KnownBy   string   `json:"knownBy,omitempty" doc:"How that signature is known: symptom, if only the symptom of the known failure is known; absent: by the words of its report"`
	BeforeCut bool     `json:"beforeCut,omitempty" doc:"It occurred before the cut, which therefore did not cause it"`
}

// Excuse says why failed operations were legal.
type Excuse struct {
	F     string   `json:"f"`
	Error string   `json:"error,omitempty"`
	Node  string   `json:"node,omitempty"`
	Why   string   `json:"why" doc:"The rule, with what it found"`
	Count int      `json:"count"`
	First Duration `json:"first"`
	Last  Duration `json:"last"`
}

// ExcusedLine is a log line, or several, that a disturbance allowed.
type ExcusedLine struct {
	Host    string   `json:"host"`
	Process string   `json:"process"`
	Line    string   `json:"line" doc:"The first of them"`
	Why     string   `json:"why" doc:"The disturbance"`
	Count   int      `json:"count"`
	First   Duration `json:"first"`
	Last    Duration `json:"last"`
}

// Verdict is the outcome of a run. Only pass is a pass.
type Verdict struct {
	Value    string        `json:"value" doc:"pass, fail, unknown or vacuous"`
	Reason   string        `json:"reason"`
	Failures []Failure     `json:"failures"`
	Legal    int           `json:"legal" doc:"Operations that had a right to be refused or to time out"`
	Excuses  []Excuse      `json:"excuses,omitempty" doc:"Why they had this right, grouped"`
	Lines    []ExcusedLine `json:"lines,omitempty" doc:"Log lines that would be failures if no disturbance excused them"`
	Late     []Late        `json:"late,omitempty" doc:"What the first final reads missed and a second look found: late, not lost"`
}

// Late is what the first final reads lacked and a second look found.
type Late struct {
	Check   string   `json:"check"`
	Summary string   `json:"summary"`
	Detail  []string `json:"detail,omitempty"`
	Count   int      `json:"count"`
	Missing Duration `json:"missing" doc:"End of the first look"`
	There   Duration `json:"there" doc:"Start of the second look"`
}

// LinkProof counts packets on one directed link while it was cut.
type LinkProof struct {
	model.Link
	Wanted  int `json:"wanted"`
	Dropped int `json:"dropped"`
	Leaked  int `json:"leaked"`
}

// Proof says what the cut of a run really did. Offsets count from the start
// of the run.
type Proof struct {
	Links      []model.Link `json:"links"`
	CutAt      Duration     `json:"cutAt"`
	InForceAt  Duration     `json:"inForceAt"`
	HealAt     Duration     `json:"healAt"`
	HealedAt   Duration     `json:"healedAt"`
	Wanted     int          `json:"wanted" doc:"Packets that wanted to cross"`
	Dropped    int          `json:"dropped"`
	Leaked     int          `json:"leaked" doc:"Packets that crossed all the same, counted at the receiving hosts"`
	LeakKnown  bool         `json:"leakKnown" doc:"False: no host could count leaked packets"`
	ResetConns int          `json:"resetConns"`
	PerLink    []LinkProof  `json:"perLink"`
}

// Scenario is what a run was to do. The whole of it, as a replay needs it, is
// in the run's file meta.json.
type Scenario struct {
	ID          string              `json:"id"`
	Strategy    string              `json:"strategy"`
	Seed        uint64              `json:"seed"`
	Steps       []Step              `json:"steps" doc:"Its faults. Decisions and proofs name them by their places, from 1"`
	Or          []map[string]string `json:"or,omitempty" doc:"A step also begins if its state occurs with other nodes: each entry gives, for nodes by name, the names of others"`
	Substituted bool                `json:"substituted,omitempty" doc:"The nodes on which the state occurred; in holds those of the scenario"`
	Why         string              `json:"why,omitempty"`
}

// StepResult says how a step of a scenario went. Times count from the start of the run.
type StepResult struct {
	Step    int               `json:"step" doc:"Its place, from 1"`
	Text    string            `json:"text" doc:"What it was to do, in words"`
	By      string            `json:"by,omitempty" doc:"Why it began; absent: it never did. A message fault begins when it first acts"`
	Began   Duration          `json:"began,omitempty"`
	EndedBy string            `json:"endedBy,omitempty" doc:"Why a cut ended"`
	Ended   Duration          `json:"ended,omitempty"`
	Slip    int               `json:"slip,omitempty" doc:"Of a crash: packets with payload that its host sent later; absent: it was exact. Of the crash of a machine none of them left it"`
	Roles   map[string]string `json:"roles,omitempty" doc:"Who had the roles that its fault names, as it began"`
	Lacked  string            `json:"lacked,omitempty" doc:"Why it could not begin though its moment had come"`
	Failed  int               `json:"failed,omitempty" doc:"Of a disk fault: file operations that did not go on as asked"`
}

// Cost says where the wall time of a run went.
type Cost struct {
	Template Duration `json:"template" doc:"Time to make the template that runs start from; 0 if it existed"`
	Start    Duration `json:"start" doc:"Time until the last server was started"`
	Settle   Duration `json:"settle" doc:"Time from then until the target was stable"`
	Workload Duration `json:"workload"`
	Recover  Duration `json:"recover"`
	Ours     Duration `json:"ours"`
}

// Delay summarises how long packets were held at the gate.
type Delay struct {
	Count int      `json:"count"`
	P50   Duration `json:"p50"`
	P99   Duration `json:"p99"`
	Max   Duration `json:"max"`
}

// Run is one execution of a target under one scenario.
type Run struct {
	ID        string         `json:"id"`
	Campaign  string         `json:"campaign"`
	Target    string         `json:"target"`
	Lab       string         `json:"lab"`
	Tap       string         `json:"tap"`
	Gate      string         `json:"gate,omitempty" doc:"If tap is gate: how held packets left the switch and returned, port or packet-in; both, with a comma, if switches differed"`
	Version   string         `json:"version" doc:"Version of netsplit that made the run"`
	ReplayOf  string         `json:"replayOf,omitempty"`
	Started   time.Time      `json:"started"`
	Ended     *time.Time     `json:"ended,omitempty"`
	Scenario  Scenario       `json:"scenario"`
	Verdict   Verdict        `json:"verdict"`
	Proof     *Proof         `json:"proof,omitempty" doc:"Absent: no cut"`
	Faults    []FaultProof   `json:"faults,omitempty" doc:"What each message fault of the scenario did"`
	Steps     []StepResult   `json:"steps,omitempty" doc:"How each step of the scenario went; none for runs of earlier versions"`
	Reached   bool           `json:"reached" doc:"The cut took place"`
	CutState  *model.State   `json:"cutState,omitempty" doc:"State at which a cofi run cut"`
	HealClass *model.Class   `json:"healClass,omitempty"`
	Cost      Cost           `json:"cost"`
	Messages  map[string]int `json:"messages" doc:"Messages by type"`
	GateDelay *Delay         `json:"gateDelay,omitempty"`
	ProbeCost Duration       `json:"probeCost" doc:"Time spent waiting for probes"`
	Probes    int            `json:"probes" doc:"Number of probes"`
	Release   string         `json:"release,omitempty" doc:"Release of the target's software"`
	// Retransmits counts TCP retransmissions outside the cut.
	Retransmits int     `json:"retransmits"`
	CPUWait     float64 `json:"cpuWait,omitempty" doc:"Share of the run, 0 to 1, by which netsplit woke late from short sleeps: how long a process that is ready to run waits for a CPU of its machine"`
}

// RunRow is what a list says of a run: a part of Run.
type RunRow struct {
	ID        string      `json:"id"`
	Campaign  string      `json:"campaign"`
	Target    string      `json:"target"`
	Tap       string      `json:"tap" doc:"Empty: its daemon ended before it did"`
	ReplayOf  string      `json:"replayOf,omitempty"`
	Release   string      `json:"release,omitempty"`
	Started   time.Time   `json:"started"`
	Ended     *time.Time  `json:"ended,omitempty"`
	Scenario  RowScenario `json:"scenario"`
	Verdict   Verdict     `json:"verdict" doc:"Without excuses and log lines; failures without detail and quote"`
	Proof     *RowProof   `json:"proof,omitempty" doc:"Absent: no cut"`
	Reached   bool        `json:"reached" doc:"The cut took place"`
	Cost      Cost        `json:"cost"`
	ProbeCost Duration    `json:"probeCost" doc:"Time spent waiting for probes"`
	Probes    int         `json:"probes" doc:"Number of probes"`
	CutShort  bool        `json:"cutShort,omitempty" doc:"Its daemon, or its campaign, ended or was paused before it did"`
}

// RowScenario is a part of Scenario.
type RowScenario struct {
	ID       string `json:"id"`
	Strategy string `json:"strategy"`
	Isolate  string `json:"isolate,omitempty"`
}

// RowProof is a part of Proof.
type RowProof struct {
	CutAt     Duration `json:"cutAt"`
	HealAt    Duration `json:"healAt"`
	Wanted    int      `json:"wanted" doc:"Packets that wanted to cross"`
	Dropped   int      `json:"dropped"`
	Leaked    int      `json:"leaked" doc:"Packets that crossed all the same, counted at the receiving hosts"`
	LeakKnown bool     `json:"leakKnown" doc:"False: no host could count leaked packets"`
}

// Runs is one page of runs, the last one started first. The whole of a run is had by
// its id.
type Runs struct {
	Items []RunRow `json:"items"`
	Next  string   `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// LogFiles are the files that processes of a run wrote, by name.
type LogFiles struct {
	Items []model.LogFile `json:"items"`
}

// Finding is a distinct failure of a campaign.
type Finding struct {
	ID         string   `json:"id"`
	Campaign   string   `json:"campaign"`
	Target     string   `json:"target"`
	Class      string   `json:"class" doc:"broken, documented or broken-bound"`
	Severity   string   `json:"severity" doc:"What it costs a user: data (acknowledged data is lost, wrong, out of date or handed out twice), split-brain, not-recovered (it lasts after heal), crash, error or log"`
	Cause      string   `json:"cause" doc:"What caused it, in all runs that showed it"`
	CauseID    string   `json:"causeId" doc:"Findings of a campaign with one causeId are grouped"`
	Failure    Failure  `json:"failure"`
	Run        string   `json:"run" doc:"The run to replay"`
	Runs       []string `json:"runs,omitempty" doc:"All runs that showed it; absent in lists"`
	Seen       int      `json:"seen" doc:"Number of runs that showed it"`
	FirstAfter int      `json:"firstAfter" doc:"Number of runs of the campaign until the first that showed it"`
	Clean      bool     `json:"clean" doc:"A run also showed it without a partition, or before it"`
	Replays    int      `json:"replays"`
	Reproduced int      `json:"reproduced" doc:"Replays that showed its cause"`
	Replay     string   `json:"replay" doc:"The command that repeats it"`
}

// Findings is one page of findings: those of the newest campaign first, of each the
// costliest first. Their failures have no detail and no quote.
type Findings struct {
	Items []Finding `json:"items"`
	Next  string    `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// Invariant is a relation between two nodes' variables.
type Invariant struct {
	ID       string       `json:"id"`
	Target   string       `json:"target"`
	Kind     string       `json:"kind"`
	Relation string       `json:"relation"`
	A        model.VarRef `json:"a"`
	B        model.VarRef `json:"b"`
	Text     string       `json:"text" doc:"The invariant as text"`
	Status   string       `json:"status" doc:"mined, pinned or dropped"`
	Support  int          `json:"support" doc:"Samples in which it held"`
	Changes  int          `json:"changes"`
	Distinct int          `json:"distinct"`
	Runs     int          `json:"runs" doc:"Clean runs that support it"`
	Chance   float64      `json:"chance" doc:"Bound on the probability of a coincidence"`
	Like     int          `json:"like" doc:"Pairs of like nodes that were counted together with this one"`
	Example  *Example     `json:"example,omitempty"`
}

// Example is one sample in which an invariant held.
type Example struct {
	Run     string      `json:"run"`
	Message uint64      `json:"message"`
	Type    string      `json:"type"`
	From    string      `json:"from"`
	To      string      `json:"to"`
	State   model.State `json:"state"`
}

// Invariants are all requested invariants.
type Invariants struct {
	Items []Invariant `json:"items"`
}

// InvariantChange asks for another status.
type InvariantChange struct {
	Status string `json:"status" enum:"mined,pinned,dropped" doc:"pinned: kept whatever later runs say; dropped: left out of the search; mined: neither"`
}

// InvariantText is an invariant as a person writes it.
type InvariantText struct {
	Target string `json:"target" minLength:"1" maxLength:"1024" doc:"Name of the target, as for a campaign"`
	Text   string `json:"text" minLength:"1" maxLength:"4096" doc:"Two variables of one kind on two nodes, such as status[n1]@n2 == status[n1]@n3"`
}

// Flow is one rule of a switch.
type Flow struct {
	Table       uint8    `json:"table"`
	Priority    uint16   `json:"priority"`
	Cookie      string   `json:"cookie" doc:"Hexadecimal"`
	Match       string   `json:"match"`
	Actions     string   `json:"actions"`
	Packets     uint64   `json:"packets"`
	Bytes       uint64   `json:"bytes"`
	Age         Duration `json:"age"`
	HardTimeout Duration `json:"hardTimeout,omitempty"`
	Ours        bool     `json:"ours" doc:"Installed by netsplit"`
}

// Switch is a switch as the controller knows it.
type Switch struct {
	Datapath  string             `json:"datapath" doc:"Datapath id, 16 hex digits"`
	Connected bool               `json:"connected"`
	Since     *time.Time         `json:"since,omitempty"`
	Address   string             `json:"address,omitempty"`
	Role      string             `json:"role,omitempty" doc:"Role of this controller at the switch: master, equal or slave. A slave can neither cut nor heal"`
	Reason    string             `json:"reason,omitempty" doc:"Why it has no session, or what is wrong with it"`
	Hardware  string             `json:"hardware,omitempty"`
	Software  string             `json:"software,omitempty"`
	Cuts      string             `json:"cuts,omitempty" doc:"Mechanism of partitions by hand on this switch, and the reason if it is drop rules alone"`
	Ports     []model.PortStatus `json:"ports"`
	Flows     []Flow             `json:"flows"`
}

// Switches are all switches of the testbed.
type Switches struct {
	Items []Switch `json:"items"`
}

// Host is a host of the testbed.
type Host struct {
	Name     string `json:"name"`
	IP       string `json:"ip"`
	MAC      string `json:"mac"`
	Datapath string `json:"datapath"`
	Port     uint32 `json:"port" doc:"Current number of the port; 0: the switch has not said which port has the name"`
	PortName string `json:"port_name,omitempty" doc:"Name of the port in the testbed file; absent: the file gives its number"`
}

// Hosts are all hosts of the testbed.
type Hosts struct {
	Items []Host `json:"items"`
}

// Partition is a shape over groups of hosts.
type Partition struct {
	Shape  string     `json:"shape" enum:"complete,partial,simplex,isolate,bridge,ring,split,leader-in,leader-out" doc:"complete: the groups contain every host; partial: two groups, the other hosts reach both; simplex: packets pass from the first group to the second only; isolate: the group from all others; bridge: the first group reaches the second and the third, or two halves of the others; ring: each host reaches a majority, no two the same; split: hosts whose label differs; leader-in: all that have a role now, and others up to size, from the rest; leader-out: size hosts without the role, from the rest"`
	Effect string     `json:"effect,omitempty" enum:"drop,reset" default:"drop" doc:"drop: packets are lost; reset: TCP connections across are also ended at both ends, in a partition by hand when one of their packets tries to cross"`
	Groups [][]string `json:"groups,omitempty" maxItems:"64" doc:"Names of hosts; in answers, the resolved hosts" example:"[[\"r1\"],[\"r2\",\"r3\"]]"`
	Label  string     `json:"label,omitempty" maxLength:"63" doc:"split: the label to compare" example:"rack"`
	Role   string     `json:"role,omitempty" maxLength:"63" doc:"leader-in, leader-out: the role in the testbed file; absent: leader"`
	Size   int        `json:"size,omitempty" minimum:"1" doc:"leader-in, leader-out: number of hosts to cut off together; leader-in cuts off all that have the role, even if they are more; absent: 1"`
	Only   []Traffic  `json:"only,omitempty" maxItems:"16" doc:"Cut only this traffic between the groups"`
}

// Traffic selects packets between two hosts.
type Traffic struct {
	Proto   string `json:"proto" enum:"tcp,udp,icmp,arp" doc:"arp includes neighbour discovery"`
	Port    int    `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Port of the service, at either end; tcp and udp; absent: any"`
	Opening bool   `json:"opening,omitempty" doc:"Only packets that open a connection; tcp"`
	// Messages is of scenarios only.
	Messages bool `json:"messages,omitempty" doc:"Only packets with payload, SYN, FIN or RST, so that bare acknowledgements pass; tcp, and only in a scenario, where the gate of a run cuts"`
}

// PartitionSpec asks for a partition, in one piece: there is nothing to save
// or start afterwards.
type PartitionSpec struct {
	Name string `json:"name,omitempty" pattern:"^[a-z0-9-]{1,63}$" doc:"Absent: the daemon chooses one"`
	Partition
	For Span `json:"for,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Heal this long after the partition is in force, greater than 0; absent: when asked" example:"1.5s"`
}

// PartitionStatus is a manual partition and how far it got.
type PartitionStatus struct {
	PartitionSpec
	State        string       `json:"state" enum:"requested,in_force,healing,healed,failed" doc:"in_force and healed mean that it was proved"`
	Reason       string       `json:"reason,omitempty" doc:"What prevents the cut or heal, why it failed, or what remains cut after it"`
	Created      time.Time    `json:"created" doc:"When it was requested"`
	Installed    *time.Time   `json:"installed,omitempty" doc:"When every switch or host had confirmed the rules; this is not yet proof"`
	InForce      *time.Time   `json:"inForce,omitempty" doc:"From when nothing passed, by the first proof"`
	Lapses       []Lapse      `json:"lapses,omitempty" doc:"Times since then in which it was not in force, oldest first; the last 20"`
	Lapsed       int          `json:"lapsed,omitempty" doc:"Number of lapses"`
	RenewedUntil *time.Time   `json:"renewedUntil,omitempty" doc:"Lease expiry: when the first of its rules expires unless renewed (every second); absent once it is being healed"`
	Healed       *time.Time   `json:"healed,omitempty" doc:"When a packet had passed again over every link"`
	Links        []model.Link `json:"links" doc:"The directed links that it cuts"`
	Wanted       uint64       `json:"wanted" doc:"Packets that wanted to cross since the installation: dropped and leaked, netsplit's probe packets included"`
	Probes       uint64       `json:"probes" doc:"netsplit's probe packets among them, for this partition or others of the same traffic"`
	Dropped      uint64       `json:"dropped" doc:"Without broadcasts and multicasts that a switch dropped, except ARP requests: no rule counts them by link"`
	Leaked       uint64       `json:"leaked" doc:"Packets that arrived since it was in force, broadcasts and multicasts included"`
	LeakKnown    bool         `json:"leakKnown" doc:"False: leaked packets could not be counted"`
	Resets       uint64       `json:"resets,omitempty" doc:"Packets that netsplit sent to end TCP connections; effect reset"`
	CutBy        string       `json:"cutBy,omitempty" doc:"Its mechanism, and the reason if it is drop rules alone"`
}

// Lapse is a stretch in which a partition that had been in force was not: packets may
// have passed.
type Lapse struct {
	From time.Time  `json:"from" doc:"When its rules changed, or when that was noticed"`
	To   *time.Time `json:"to,omitempty" doc:"When it was proved again or ended; absent: it lasts"`
	Why  string     `json:"why"`
}

// Partitions is one page of manual partitions, newest first; those that stand are
// all on the first page.
type Partitions struct {
	Items []PartitionStatus `json:"items"`
	Next  string            `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// Reset says what a reset healed.
type Reset struct {
	Healed []string `json:"healed" doc:"Names of the partitions that were in force"`
}

// Annotation is a span to mark in a graph, in the shape that Grafana's
// Infinity data source reads.
type Annotation struct {
	Time    int64  `json:"time" doc:"Milliseconds since 1970"`
	TimeEnd int64  `json:"timeEnd" doc:"Milliseconds since 1970; the end of the requested range if it still lasts"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Tags    string `json:"tags" doc:"Separated by commas"`
}

// Alive says that the daemon answers.
type Alive struct {
	OK bool `json:"ok"`
}

// Version says what runs.
type Version struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// AccessPage is an address that opens the page once.
type AccessPage struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until" doc:"Until when it can be opened"`
}

// AccessToken is the token that allows reading.
type AccessToken struct {
	Token string `json:"token"`
}
