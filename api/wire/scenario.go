package wire

import (
	"cmp"
	"fmt"
	"time"

	"netsplit/model"
)

// ScenarioSpec is what a run is to do, in place of a search: what is done to
// single messages, and a cut. At least one of them.
type ScenarioSpec struct {
	Faults []MessageFault `json:"faults,omitempty" maxItems:"32" doc:"Faults of single messages. If several select one packet, the first acts"`
	Cut    *CutSpec       `json:"cut,omitempty" doc:"Absent: no cut"`
	Seed   uint64         `json:"seed,omitempty" doc:"Seed of every run; 0 or absent: each run has its own"`
}

// MessageFault does something to single messages.
type MessageFault struct {
	Kind  string          `json:"kind" enum:"delay,duplicate,reorder,lose" doc:"delay: hold it for a time, and on TCP everything behind it in its stream; duplicate: pass it and send copies; reorder: hold it until others have passed; lose: drop it"`
	Match MessageMatch    `json:"match" doc:"Which messages"`
	While *FaultCondition `json:"while,omitempty" doc:"Count only messages that come while an invariant is violated"`
	After Duration        `json:"after,omitempty" pattern:"^([0-9]{1,5}(\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$" maxLength:"30" doc:"Count only messages that come this long after the start of the workload, or later"`
	Nth   int             `json:"nth,omitempty" minimum:"0" doc:"The first message to act on, from 1; absent: the first that matches"`
	Every int             `json:"every,omitempty" minimum:"0" doc:"From there on act on every message (1), every second one (2) and so on; absent: on nth alone, or on times in a row"`
	Times int             `json:"times,omitempty" minimum:"0" doc:"Act on at most this many; absent: one, or no bound if every is set"`

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
	out := &model.Scenario{Strategy: model.StrategyMessages, Seed: s.Seed}
	for _, f := range s.Faults {
		m := model.MessageFault{
			Kind: model.FaultKind(f.Kind), After: time.Duration(f.After), Nth: f.Nth, Every: f.Every, Times: f.Times,
			Match: model.MessageMatch{Type: f.Match.Type, From: model.NodeID(f.Match.From), To: model.NodeID(f.Match.To)},
			For:   time.Duration(f.For), Copies: f.Copies, Gap: time.Duration(f.Gap), Behind: f.Behind, Limit: time.Duration(f.Limit),
			Lose: model.Loss(f.Lose), Again: f.Again,
		}
		var err error
		if m.While, err = f.While.model(); err != nil {
			return nil, err
		}
		out.Faults = append(out.Faults, m)
	}
	c := s.Cut
	if c == nil {
		return out, nil
	}
	out.Isolate, out.MaxCut = model.NodeID(c.Isolate), time.Duration(c.AtMost)
	if c.Partition != nil {
		out.Partition = PartitionSpec{Partition: *c.Partition}.Model().Partition
	}
	if c.Effect != "" {
		out.Partition.Effect = model.Effect(c.Effect)
	}
	when, err := c.When.model()
	if err != nil {
		return nil, err
	}
	if when == nil {
		out.Strategy, out.CutAfter = model.StrategyRandom, time.Duration(c.After)
		return out, nil
	}
	if c.After != 0 {
		return nil, fmt.Errorf("%w: a cut starts either at a state (when) or after a time (after): leave out one of them", model.ErrInvalid)
	}
	out.Strategy, out.Invariant, out.State, out.Nth = model.StrategyCoFI, &when.Invariant, when.State, when.Nth
	if h := c.HealAt; h != nil {
		out.HealAt = h
	} else {
		out.Never = true
	}
	return out, nil
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

func fromFault(f model.MessageFault) MessageFault {
	return MessageFault{
		Kind: string(f.Kind), Match: MessageMatch{Type: f.Match.Type, From: cmp.Or(f.Match.FromRole, string(f.Match.From)), To: cmp.Or(f.Match.ToRole, string(f.Match.To))},
		While: fromCondition(f.While), After: Duration(f.After), Nth: f.Nth, Every: f.Every, Times: f.Times, For: Span(f.For), Copies: f.Copies, Gap: Duration(f.Gap),
		Behind: f.Behind, Limit: Span(f.Limit), Lose: string(f.Lose), Again: f.Again,
	}
}

func fromScenarioSpec(s *model.Scenario) *ScenarioSpec {
	if s == nil {
		return nil
	}
	out := &ScenarioSpec{Faults: each(s.Faults, fromFault), Seed: s.Seed}
	if !s.Cuts() {
		return out
	}
	p := fromPartition(s.Partition)
	c := &CutSpec{Isolate: string(s.Isolate), Partition: &p, HealAt: s.HealAt, After: Duration(s.CutAfter), AtMost: Span(s.MaxCut)}
	if s.Invariant != nil {
		c.When = fromCondition(&model.FaultCondition{Invariant: *s.Invariant, State: s.State, Nth: s.Nth})
	}
	out.Cut = c
	return out
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
		Late: p.Late, Early: p.Early, Cut: p.Cut, InOrder: p.InOrder, Checked: p.Checked, Wrong: p.Wrong, Known: p.Known, Trouble: p.Trouble,
		Hits: each(p.Hits, func(h model.FaultHit) FaultHit {
			return FaultHit{Message: h.Message, Type: h.Type, From: string(h.From), To: string(h.To), Stream: h.Stream, At: Duration(h.At), With: h.With,
				Due: Duration(h.Due), Passed: Duration(h.Passed), Why: h.Why, Behind: h.Behind, Copies: times(h.Copies), Returned: h.Returned,
				LostAgain: h.LostAgain, Through: Duration(h.Through), Reset: h.Reset, After: h.After, Arrived: times(h.Arrived), Known: h.Known}
		}),
	}
}
