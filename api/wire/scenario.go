package wire

import (
	"cmp"
	"fmt"
	"time"

	"netsplit/model"
)

// ScenarioSpec is what a run is to do, in place of a search: a list of steps. Files of before
// there were steps have faults and a cut instead, which are read as steps.
type ScenarioSpec struct {
	Steps  []Step         `json:"steps,omitempty" maxItems:"32" doc:"The faults of the run. If message faults of several select one packet, the first acts"`
	Seed   uint64         `json:"seed,omitempty" doc:"Seed of every run; 0 or absent: each run has its own"`
	Faults []MessageFault `json:"faults,omitempty" maxItems:"32" doc:"Instead of steps: faults of single messages, each a step from the start of the workload"`
	Cut    *CutSpec       `json:"cut,omitempty" doc:"Instead of steps, with or without faults: one cut, the step behind them"`
}

// Step is one fault: when it begins, what it does, and until when. It ends with the
// workload at the latest.
type Step struct {
	When  *When  `json:"when,omitempty" doc:"Absent: as the workload starts"`
	Do    Do     `json:"do" doc:"A cut (cut or isolate), a message fault, a crash or pause of servers, or a disk fault"`
	Until *Until `json:"until,omitempty" doc:"Absent: until max"`
	Max   Span   `json:"max,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"End it after this long at the latest; absent: a cut as the target file says (max_cut), unless until is a time"`
}

// When is the moment at which a step begins: it follows, then its times pass, and then it comes
// at the state, message or file operation, if it has one.
type When struct {
	Follows string          `json:"follows,omitempty" enum:"begin,end" doc:"Wait until the step before has begun, or ended. A message fault has begun once it acted, and ended once it will act no more. Absent: from the start of the workload"`
	At      Duration        `json:"at,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"This long after the start of the workload"`
	After   Duration        `json:"after,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"This long after what it follows" example:"2s"`
	State   *FaultCondition `json:"state,omitempty" doc:"When an invariant is violated"`
	Message *MessageTrigger `json:"message,omitempty" doc:"When a message wants to cross, or is delivered"`
	File    *FileTrigger    `json:"file,omitempty" doc:"Before an operation on a file of a server, in a lab"`
	Role    *RoleTrigger    `json:"role,omitempty" doc:"When a host is found to have a role"`
}

// RoleTrigger is the moment at which a host is found to have a role, as the target is asked
// every 100 ms.
type RoleTrigger struct {
	Name    string `json:"name" minLength:"1" maxLength:"63" doc:"Role of the target file, or of the testbed file" example:"leader"`
	Changes bool   `json:"changes,omitempty" doc:"A host has it that did not have it when the trigger was armed"`
	Is      string `json:"is,omitempty" maxLength:"63" doc:"Instead of changes: this host has it"`
}

// Until is the moment at which a step ends: its times pass, and then it comes at the message or
// file operation, if it has one. A message that crosses the cut that it ends is the first to pass.
type Until struct {
	At      Duration        `json:"at,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"This long after the start of the workload"`
	After   Duration        `json:"after,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"This long after the step began" example:"2s"`
	Role    *RoleTrigger    `json:"role,omitempty" doc:"When a host is found to have a role"`
	Message *MessageTrigger `json:"message,omitempty" doc:"At a message, counted from the beginning of the step"`
	Class   *model.Class    `json:"class,omitempty" doc:"Of a cut at a state: at a message of this class, to or from the host it isolates"`
	Unseen  *Unseen         `json:"unseen,omitempty" doc:"Of a cut at a state: at a message of a class that is not listed"`
	File    *FileTrigger    `json:"file,omitempty" doc:"Before an operation on a file, counted from the beginning of the step"`
}

// Unseen is the first message of a class that is not in seen.
type Unseen struct {
	Seen []model.Class `json:"seen,omitempty" doc:"Absent: any message"`
}

// MessageTrigger is a message at which a step begins or ends.
type MessageTrigger struct {
	Type string `json:"type" minLength:"1" maxLength:"500" doc:"Message type as runs show it; * is any text" example:"text G*"`
	From string `json:"from,omitempty" maxLength:"63" doc:"Sending host, or a role: the host that has it when the message is held; absent: any"`
	To   string `json:"to,omitempty" maxLength:"63" doc:"Receiving host, or a role; absent: any"`
	Nth  int    `json:"nth,omitempty" minimum:"0" doc:"The nth that matches, from 1; absent: the first"`
	Side string `json:"side,omitempty" enum:"send,receive" doc:"In when. send: before it passes, so that the step acts on it too; receive: behind it, once it has passed. Absent: send"`
}

// Do is what a step does.
type Do struct {
	Isolate string `json:"isolate,omitempty" maxLength:"63" doc:"Host to cut off from the other nodes, and from clients if the target says so; or a role: whoever has it as the step begins. sender and receiver are the ends of the message of when, or of the message fault that the step follows"`
	// What becomes of packets that want to cross to or from the isolated host.
	Effect  string        `json:"effect,omitempty" enum:"drop,reset" default:"drop"`
	Cut     *Partition    `json:"cut,omitempty" doc:"Instead of isolate: the partition to put in force; roles may stand in its groups in place of hosts"`
	Message *MessageFault `json:"message,omitempty" doc:"Instead of a cut: act on the messages that match, while the step lasts"`
	Crash   string        `json:"crash,omitempty" maxLength:"63" doc:"Instead of a cut: kill the servers of this host or role (SIGKILL), while the message of when waits; they start again as the step ends"`
	Pause   string        `json:"pause,omitempty" maxLength:"63" doc:"Instead of a cut: stop the servers of this host or role (SIGSTOP) until the step ends"`
	Silent  bool          `json:"silent,omitempty" doc:"crash: of the machine. The host is cut off from all others in the same moment, so that nobody gets a RST or FIN; it comes back as the step ends"`
	Process string        `json:"process,omitempty" maxLength:"63" doc:"crash, pause: only this server; absent: all that run on the host"`
	// IfRunning is for a fault that strikes several hosts, a step for each.
	IfRunning bool       `json:"ifRunning,omitempty" doc:"crash, pause, and the disk faults that kill: leave a host alone if no server of it runs; absent: the run is then unknown"`
	Disk      *DiskFault `json:"disk,omitempty" doc:"Instead of a cut: what happens to the disk of a host, in a lab"`
}

// MessageFault does something to single messages.
type MessageFault struct {
	Kind   string          `json:"kind" enum:"delay,duplicate,reorder,lose" doc:"delay: hold it for a time, and on TCP everything behind it in its stream; duplicate: pass it and send copies; reorder: hold it until others have passed; lose: drop it"`
	Answer bool            `json:"answer,omitempty" doc:"match selects requests; act on their answers, of which nth, every and times count"`
	Match  MessageMatch    `json:"match" doc:"Which messages"`
	While  *FaultCondition `json:"while,omitempty" doc:"Count only messages that come while an invariant is violated"`
	After  Duration        `json:"after,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Count only messages that come this long after the start of the workload, or later"`
	Nth    int             `json:"nth,omitempty" minimum:"0" doc:"The first message to act on, from 1; absent: the first that matches"`
	Every  int             `json:"every,omitempty" minimum:"0" doc:"From there on act on every message (1), every second one (2) and so on; absent: on nth alone, or on times in a row"`
	Times  int             `json:"times,omitempty" minimum:"0" doc:"Act on at most this many; absent: one, or no bound if every is set"`

	For    Span     `json:"for,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"delay: how long" example:"500ms"`
	Copies int      `json:"copies,omitempty" minimum:"0" maximum:"1000" doc:"duplicate: number of copies; absent: one"`
	Gap    Duration `json:"gap,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"duplicate: time before each copy; absent: none"`
	Behind int      `json:"behind,omitempty" minimum:"0" maximum:"1000" doc:"reorder: number of packets of the same flow that must overtake it; absent: one"`
	Limit  Span     `json:"limit,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"reorder: hold it no longer than this; absent: 1s"`
	Lose   string   `json:"lose,omitempty" enum:"packet,message" doc:"lose, on TCP. packet: TCP retransmits it, and that passes; message: lose it for good and reset its connection at both ends. Absent: packet. Datagrams are lost for good either way"`
	Again  int      `json:"again,omitempty" minimum:"0" maximum:"1000" doc:"lose packet, on TCP: number of its retransmissions to lose too"`
}

// MessageMatch selects messages.
type MessageMatch struct {
	Type string `json:"type" minLength:"1" maxLength:"500" doc:"Message type as runs show it; * is any text" example:"text G*"`
	From string `json:"from,omitempty" maxLength:"63" doc:"Sending host, or a role: the host that has it when the message is held; absent: any"`
	To   string `json:"to,omitempty" maxLength:"63" doc:"Receiving host, or a role; absent: any"`
}

// FaultCondition is a moment at which an invariant does not hold.
type FaultCondition struct {
	Invariant string       `json:"invariant" minLength:"1" maxLength:"500" doc:"Id of a mined invariant, or two variables" example:"status[n1]@n2 == status[n1]@n3"`
	State     *model.State `json:"state,omitempty" doc:"Only these values of the two variables; absent: any that differ"`
	Nth       int          `json:"nth,omitempty" minimum:"0" doc:"Also from the nth state on that differs from state in numbers only"`
}

// CutSpec is the cut of a scenario: of a host from the others, or a partition;
// when a state occurs, or at a time.
type CutSpec struct {
	Isolate string `json:"isolate,omitempty" maxLength:"63" doc:"Host to cut off from the other nodes, and from clients if the target says so"`
	// What becomes of packets that want to cross: they are lost, or their TCP connections are reset too.
	Effect    string          `json:"effect,omitempty" enum:"drop,reset" default:"drop"`
	Partition *Partition      `json:"partition,omitempty" doc:"Instead of isolate"`
	When      *FaultCondition `json:"when,omitempty" doc:"Cut when the invariant's variables have the values of state"`
	HealAt    *model.Class    `json:"healAt,omitempty" doc:"With when: heal at a message of this class, which passes first; absent: at atMost"`
	After     Duration        `json:"after,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Instead of when: cut this long after the start of the workload"`
	AtMost    Span            `json:"atMost,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Heal after this long; absent: as the target file says"`
}

// Model converts what a user requested. Invariants named by id have nothing but
// that.
func (s *ScenarioSpec) Model() (*model.Scenario, error) {
	if s == nil {
		return nil, nil
	}
	out := &model.Scenario{Strategy: model.StrategySteps, Seed: s.Seed}
	steps := s.Steps
	if len(s.Faults) > 0 || s.Cut != nil {
		if len(steps) > 0 {
			return nil, fmt.Errorf("%w: scenario: steps say all: leave out faults and cut", model.ErrInvalid)
		}
		for i := range s.Faults {
			steps = append(steps, Step{Do: Do{Message: &s.Faults[i]}})
		}
		if s.Cut != nil {
			st, err := s.Cut.step()
			if err != nil {
				return nil, err
			}
			steps = append(steps, st)
		}
	}
	for i := range steps {
		st, err := steps[i].model()
		if err != nil {
			return nil, fmt.Errorf("%w: scenario: step %d: %w", model.ErrInvalid, i+1, err)
		}
		out.Steps = append(out.Steps, st)
	}
	return out, nil
}

// step is the cut as a step.
func (c *CutSpec) step() (Step, error) {
	st := Step{Do: Do{Isolate: c.Isolate, Effect: c.Effect, Cut: c.Partition}, Max: c.AtMost}
	if c.Partition != nil && c.Effect == string(model.Reset) {
		p := *c.Partition
		p.Effect, st.Do.Cut = c.Effect, &p
	}
	switch {
	case c.When == nil:
		st.When = &When{At: c.After}
	case c.After != 0:
		return st, fmt.Errorf("%w: a cut starts either at a state (when) or after a time (after): leave out one of them", model.ErrInvalid)
	case c.When.State == nil:
		return st, fmt.Errorf("%w: scenario: the cut waits for %s but names no inconsistent state of it: write two values that differ", model.ErrInvalid, c.When.Invariant)
	default:
		st.When = &When{State: c.When}
		if c.HealAt != nil {
			st.Until = &Until{Class: c.HealAt}
		}
	}
	return st, nil
}

func (s *Step) model() (out model.Step, err error) {
	out.Max = time.Duration(s.Max)
	if w := s.When; w != nil {
		out.When = model.Trigger{Follows: model.Follows(w.Follows), At: time.Duration(w.At), After: time.Duration(w.After), Message: w.Message.model(), Role: w.Role.model(), File: w.File.model()}
		if out.When.State, err = w.State.model(); err != nil {
			return out, err
		}
	}
	if u := s.Until; u != nil {
		out.Until = model.Trigger{At: time.Duration(u.At), After: time.Duration(u.After), Message: u.Message.model(), Role: u.Role.model(), File: u.File.model(), Class: u.Class}
		if u.Unseen != nil {
			out.Until.Unseen = &model.Unseen{Seen: u.Unseen.Seen}
		}
	}
	out.Do.Isolate = model.NodeID(s.Do.Isolate)
	switch {
	case s.Do.Cut != nil: // which has an effect of its own
		p := PartitionSpec{Partition: *s.Do.Cut}.Model().Partition
		out.Do.Cut = &p
	case s.Do.Isolate != "":
		out.Do.Cut = &model.Partition{Effect: model.Effect(s.Do.Effect)}
	}
	switch {
	case s.Do.Crash != "" && s.Do.Pause != "":
		return out, fmt.Errorf("a step does one thing: leave out crash or pause")
	case s.Do.Crash != "":
		out.Do.Node = &model.NodeFault{Verb: model.NodeKill, Host: model.NodeID(s.Do.Crash), Process: s.Do.Process}
	case s.Do.Pause != "":
		out.Do.Node = &model.NodeFault{Verb: model.NodePause, Host: model.NodeID(s.Do.Pause), Process: s.Do.Process}
	case s.Do.Silent:
		return out, fmt.Errorf("silent belongs to crash: leave it out")
	case s.Do.Process != "":
		return out, fmt.Errorf("process belongs to crash or pause: leave it out")
	}
	if s.Do.Silent {
		if out.Do.Node.Verb != model.NodeKill || out.Do.Cut != nil {
			return out, fmt.Errorf("silent belongs to crash, which cuts the host off itself: leave out isolate and cut, or silent")
		}
		out.Do.Cut, out.Do.Isolate = &model.Partition{}, out.Do.Node.Host
	}
	out.Do.Disk = s.Do.Disk.model(out.When.File)
	if out.Do.IfRunning = s.Do.IfRunning; out.Do.IfRunning && out.Do.Node == nil && (out.Do.Disk == nil || !out.Do.Disk.Kills()) {
		return out, fmt.Errorf("ifRunning belongs to crash, pause, or a disk fault that kills servers: leave it out")
	}
	if s.Do.Message != nil {
		out.Do.Message, err = s.Do.Message.model()
	}
	return out, err
}

func (f *MessageFault) model() (*model.MessageFault, error) {
	m := &model.MessageFault{
		Kind: model.FaultKind(f.Kind), After: time.Duration(f.After), Nth: f.Nth, Every: f.Every, Times: f.Times,
		Answer: f.Answer, Match: f.Match.model(),
		For: time.Duration(f.For), Copies: f.Copies, Gap: time.Duration(f.Gap), Behind: f.Behind, Limit: time.Duration(f.Limit),
		Lose: model.Loss(f.Lose), Again: f.Again,
	}
	var err error
	m.While, err = f.While.model()
	return m, err
}

// model has hosts where there may be roles: who knows them tells.
func (m MessageMatch) model() model.MessageMatch {
	return model.MessageMatch{Type: m.Type, From: model.NodeID(m.From), To: model.NodeID(m.To)}
}

func (t *MessageTrigger) model() *model.MessageTrigger {
	if t == nil {
		return nil
	}
	return &model.MessageTrigger{Match: MessageMatch{t.Type, t.From, t.To}.model(), Nth: t.Nth, Side: model.Side(t.Side)}
}

func (t *RoleTrigger) model() *model.RoleTrigger {
	if t == nil {
		return nil
	}
	return &model.RoleTrigger{Name: t.Name, Changes: t.Changes, Is: model.NodeID(t.Is)}
}

func fromRoleTrigger(t *model.RoleTrigger) *RoleTrigger {
	if t == nil {
		return nil
	}
	return &RoleTrigger{Name: t.Name, Changes: t.Changes, Is: string(t.Is)}
}

func (c *FaultCondition) model() (*model.FaultCondition, error) {
	if c == nil {
		return nil, nil
	}
	inv, swapped, err := model.ParseInvariant(c.Invariant)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	out := &model.FaultCondition{Invariant: inv, Nth: c.Nth}
	if c.State != nil {
		st := *c.State
		if swapped {
			st.A, st.B = st.B, st.A
		}
		out.State = &st
	}
	return out, nil
}

func fromCondition(c *model.FaultCondition) *FaultCondition {
	if c == nil {
		return nil
	}
	return &FaultCondition{Invariant: c.Invariant.String(), Nth: c.Nth, State: c.State}
}

func fromMatch(m model.MessageMatch) MessageMatch {
	return MessageMatch{Type: m.Type, From: cmp.Or(m.FromRole, string(m.From)), To: cmp.Or(m.ToRole, string(m.To))}
}

func fromMessageTrigger(t *model.MessageTrigger) *MessageTrigger {
	if t == nil {
		return nil
	}
	m := fromMatch(t.Match)
	return &MessageTrigger{Type: m.Type, From: m.From, To: m.To, Nth: t.Nth, Side: string(t.Side)}
}

func fromFault(f model.MessageFault) MessageFault {
	return MessageFault{
		Kind: string(f.Kind), Answer: f.Answer, Match: fromMatch(f.Match),
		While: fromCondition(f.While), After: Duration(f.After), Nth: f.Nth, Every: f.Every, Times: f.Times, For: Span(f.For), Copies: f.Copies, Gap: Duration(f.Gap),
		Behind: f.Behind, Limit: Span(f.Limit), Lose: string(f.Lose), Again: f.Again,
	}
}

func fromStep(s model.Step) Step {
	out := Step{Max: Span(s.Max)}
	if w := s.When; w != (model.Trigger{}) {
		out.When = &When{Follows: string(w.Follows), At: Duration(w.At), After: Duration(w.After), State: fromCondition(w.State), Message: fromMessageTrigger(w.Message), Role: fromRoleTrigger(w.Role), File: fromFileTrigger(w.File)}
	}
	if u := s.Until; u != (model.Trigger{}) {
		out.Until = &Until{At: Duration(u.At), After: Duration(u.After), Message: fromMessageTrigger(u.Message), Role: fromRoleTrigger(u.Role), File: fromFileTrigger(u.File), Class: u.Class}
		if u.Unseen != nil {
			out.Until.Unseen = &Unseen{Seen: u.Unseen.Seen}
		}
	}
	out.Do.Silent, out.Do.IfRunning = s.Do.Silent(), s.Do.IfRunning
	if p := s.Do.Cut; p != nil && !s.Do.Silent() {
		out.Do.Isolate = string(s.Do.Isolate)
		switch {
		case p.Shape != "":
			cut := fromPartition(*p)
			out.Do.Cut = &cut
		default:
			out.Do.Effect = string(p.Effect)
		}
	}
	if n := s.Do.Node; n != nil {
		out.Do.Process = n.Process
		if out.Do.Crash = string(n.Host); n.Verb == model.NodePause {
			out.Do.Crash, out.Do.Pause = "", out.Do.Crash
		}
	}
	out.Do.Disk = fromDiskFault(s.Do.Disk)
	if m := s.Do.Message; m != nil {
		f := fromFault(*m)
		out.Do.Message = &f
	}
	return out
}

func fromScenarioSpec(s *model.Scenario) *ScenarioSpec {
	if s == nil {
		return nil
	}
	return &ScenarioSpec{Steps: each(s.Steps, fromStep), Seed: s.Seed}
}

// FaultProof says what a message fault of a run really did.
type FaultProof struct {
	Fault    int        `json:"fault" doc:"Place of the fault in the scenario, from 1"`
	Met      int        `json:"met" doc:"Messages that matched"`
	Acted    int        `json:"acted" doc:"Packets that it acted on; 0 makes the run vacuous"`
	Taken    int        `json:"taken,omitempty" doc:"Packets on which an earlier fault acted instead"`
	Lost     int        `json:"lost,omitempty" doc:"Packets lost, retransmissions included"`
	Returned int        `json:"returned,omitempty" doc:"Retransmissions of packets that it lost or held"`
	Copies   int        `json:"copies,omitempty" doc:"Copies sent"`
	Resets   int        `json:"resets,omitempty" doc:"Connections reset; again, if more packets came on one"`
	Late     int        `json:"late,omitempty" doc:"Packets released more than 20 ms later than decided"`
	Early    int        `json:"early,omitempty" doc:"Packets released early, at the end of the workload or of the fault"`
	Cut      int        `json:"cut,omitempty" doc:"Packets that a cut dropped at their release"`
	InOrder  int        `json:"inOrder,omitempty" doc:"reorder: messages that nothing overtook"`
	ByPlace  int        `json:"byPlace,omitempty" doc:"answer: messages that nothing but their place told to be the answer: the next one back"`
	Checked  int        `json:"checked" doc:"Packets that were looked for at the receiving hosts"`
	Wrong    int        `json:"wrong" doc:"Packets that arrived more or less often than decided; must be 0"`
	Known    bool       `json:"known" doc:"False: the receiving hosts could not be asked"`
	Trouble  string     `json:"trouble,omitempty"`
	Hits     []FaultHit `json:"hits" doc:"The first 200 packets that it acted on"`
}

// FaultHit is one packet that a message fault acted on. Times count from the
// start of the run.
type FaultHit struct {
	Message   uint64     `json:"message"`
	Type      string     `json:"type"`
	From      string     `json:"from"`
	To        string     `json:"to"`
	Stream    string     `json:"stream,omitempty" doc:"TCP"`
	At        Duration   `json:"at" doc:"When it came to the gate"`
	With      []uint64   `json:"with,omitempty" doc:"Other messages in the packet"`
	Request   uint64     `json:"request,omitempty" doc:"Message that it answers"`
	Due       Duration   `json:"due,omitempty" doc:"Latest planned release"`
	Passed    Duration   `json:"passed,omitempty" doc:"Release; absent: never released"`
	Why       string     `json:"why,omitempty" doc:"Why it was released, or why not"`
	Behind    int        `json:"behind,omitempty" doc:"Packets that waited behind it (delay) or overtook it (reorder)"`
	Copies    []Duration `json:"copies,omitempty" doc:"When copies were sent"`
	Returned  int        `json:"returned,omitempty" doc:"Its retransmissions that came"`
	LostAgain int        `json:"lostAgain,omitempty" doc:"Its retransmissions that were lost too"`
	Through   Duration   `json:"through,omitempty" doc:"When a retransmission passed"`
	Reset     bool       `json:"reset,omitempty" doc:"Its connection was reset at both ends"`
	After     int        `json:"after,omitempty" doc:"Packets lost with its connection"`
	Arrived   []Duration `json:"arrived,omitempty" doc:"When it, and packets equal to it, arrived at the receiving host"`
	Known     bool       `json:"known" doc:"The receiving host was asked"`
}

func fromFaultProof(p model.FaultProof) FaultProof {
	times := func(ds []time.Duration) []Duration {
		return each(ds, func(d time.Duration) Duration { return Duration(d) })
	}
	return FaultProof{
		Fault: p.Fault, Met: p.Met, Acted: p.Acted, Taken: p.Taken, Lost: p.Lost, Returned: p.Returned, Copies: p.Copies, Resets: p.Resets,
		Late: p.Late, Early: p.Early, Cut: p.Cut, InOrder: p.InOrder, ByPlace: p.ByPlace, Checked: p.Checked, Wrong: p.Wrong, Known: p.Known, Trouble: p.Trouble,
		Hits: each(p.Hits, func(h model.FaultHit) FaultHit {
			return FaultHit{Message: h.Message, Type: h.Type, From: string(h.From), To: string(h.To), Stream: h.Stream, At: Duration(h.At), With: h.With, Request: h.Request,
				Due: Duration(h.Due), Passed: Duration(h.Passed), Why: h.Why, Behind: h.Behind, Copies: times(h.Copies), Returned: h.Returned,
				LostAgain: h.LostAgain, Through: Duration(h.Through), Reset: h.Reset, After: h.After, Arrived: times(h.Arrived), Known: h.Known}
		}),
	}
}
