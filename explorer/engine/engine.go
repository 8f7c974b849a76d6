package engine

import (
	"slices"
	"time"

	"netsplit/model"
)

// observed is what the engine keeps of a message, to find its class when a packet carries
// it, the first time or again.
type observed struct {
	typ      string
	from, to model.NodeID
	event    uint64 // number of the event that carried it
	// answers is the request that this message answers, if a fault selects that request.
	// byPlace: no id matched; the order of the messages shows it.
	answers *request
	byPlace bool
}

// Engine decides one run: which packets pass, when each step of the scenario begins and
// when it ends. Step it with the run's events in the order of their numbers: its
// decisions are a function of these events and the scenario. It is not safe for
// concurrent use.
type Engine struct {
	s        model.Scenario
	variants []model.Scenario      // s on other nodes, in the order of s.Or; without steps if that is impossible; nil once a state occurred
	mayCut   map[model.NodeID]bool // the nodes that a step at a state may isolate, on these or other nodes
	steps    []*step
	now      time.Duration // latest time an event carried
	armedAt  time.Duration
	on       bool // the workload runs
	started  bool
	bounded  bool // no step begins any more
	stopped  bool // EventStop came
	track    *tracker
	observed map[uint64]observed  // messages whose class may matter
	noted    map[model.Class]bool // the classes in res.Classes
	awaited  map[uint64]observed  // messages that a trigger selects and whose packet is undecided
	events   uint64               // so far
	firstCut *step                // first step that cut
	// firstAtState is the first step that began at a state: res has its state and classes.
	firstAtState  *step
	roleCheckedAt map[string]time.Duration // by role: when it was last answered who has it
	since         map[roleOf]uint64        // the event at which a host was first known to have a role
	faults        *faults
	res           Result
}

// Result is what a run showed the engine. Times are since the run
// started, as in model.Event.
type Result struct {
	// States are the inconsistent states met while the workload ran, sorted by
	// invariant, then state.
	States []model.MetState `json:"states,omitempty"`
	// Reached says that a cut took place, Healed that the first one ended.
	Reached bool `json:"reached"`
	// CutState is the first state at which a step began; nil if none did.
	CutState *model.State `json:"cutState,omitempty"`
	// Or is the renaming whose state began the first cut that a state triggered; empty: the
	// scenario's own state began it.
	Or     model.Renaming `json:"or,omitempty"`
	Healed bool           `json:"healed"`
	CutAt  time.Duration  `json:"cutAt,omitempty"`
	HealAt time.Duration  `json:"healAt,omitempty"`
	// HealReason is the Reason of the decision to heal; "" if there was none.
	HealReason string `json:"healReason,omitempty"`
	// HealClass is the class of the message that healed the cut of CutState; nil if none did.
	HealClass *model.Class `json:"healClass,omitempty"`
	// Classes are those that the run met during the cut of CutState, the one that healed
	// included, each once, in order of first appearance. They do not include the message
	// that revealed the state: it cannot heal.
	Classes []model.Class `json:"classes,omitempty"`
	// Workload is the time from EventWorkload to EventStop (or to the last
	// event, if the run never stopped).
	Workload time.Duration `json:"workload"`
	// Steps says how each step went.
	Steps []model.StepResult `json:"steps,omitempty"`
	// Faults says what the scenario's message faults did, in their order, except
	// what only the receiving hosts know.
	Faults []model.FaultProof `json:"faults,omitempty"`
}

// RunResult is the part of the result from which Core learns.
func (r Result) RunResult(scenario string, v model.Verdict) model.RunResult {
	return model.RunResult{Scenario: scenario, Verdict: v, States: r.States, Reached: r.Reached, CutState: r.CutState, Or: r.Or, HealClass: r.HealClass, Classes: r.Classes, Steps: r.Steps, Duration: r.Workload}
}

// New returns the engine of one run of the scenario.
func New(s model.Scenario) *Engine {
	e := &Engine{
		mayCut:        map[model.NodeID]bool{},
		track:         newTracker(s),
		observed:      map[uint64]observed{},
		noted:         map[model.Class]bool{},
		awaited:       map[uint64]observed{},
		roleCheckedAt: map[string]time.Duration{},
		since:         map[roleOf]uint64{},
	}
	e.faults = newFaults(e)
	for _, st := range s.Steps {
		e.add(st)
	}
	e.play(s)
	for _, r := range s.Or {
		as, _ := substituted(&s, r)
		e.variants = append(e.variants, as)
	}
	for _, as := range append(e.variants, s) {
		for i := range as.Steps {
			if as.Steps[i].When.State != nil {
				e.mayCut[as.Steps[i].Do.Isolate] = true
			}
		}
	}
	return e
}

// Scenario is the scenario as the run plays it: with the nodes on which its state occurred,
// and with the message faults and cuts that a script began.
func (e *Engine) Scenario() model.Scenario { return e.s }

// Next is the time, as in model.Event, at which a message fault must act even if
// nothing else happens: step the engine with an EventTick then.
func (e *Engine) Next() (time.Duration, bool) { return e.faults.next() }

// Asks lists the roles whose holders the engine must know before it decides a held
// message: step it with an EventRole for each role, then with the message.
func (e *Engine) Asks(m *model.Message) []string {
	if !e.on {
		return nil
	}
	var out []string
	for _, x := range e.steps {
		if match := x.roleQuery(); match != nil && match.Selects(m.Type, m.From, m.To, anyRole) {
			out = append(out, match.Roles()...)
		}
		if t := x.When.Message; x.phase == phaseArmed && t != nil && t.Match.Selects(m.Type, m.From, m.To, anyRole) {
			out = append(out, x.Do.Asked()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func anyRole(string, model.NodeID) bool { return true }

// Acted says how many packets a message fault has acted on so far, and how many messages
// it met. fault is its place among the scenario's steps, from 1.
func (e *Engine) Acted(fault int) (acted, met int) {
	p := &e.steps[fault-1].fault.proof
	return p.Acted, p.Met
}

// Step takes the next event and returns the decisions that follow from it, in order. An
// EventPacket gets exactly one decision with its Frame and an Action. Any event may bring
// more decisions: one with the Frame of a packet held before decides on that packet, one
// without a Frame changes a partition.
func (e *Engine) Step(ev model.Event) []model.Decision {
	e.now = max(e.now, ev.At)
	e.events++
	var out []model.Decision
	if ev.Kind == model.EventWorkload && !e.started { // it starts once
		e.on, e.started, e.armedAt = true, true, e.now
		e.track.arm(e.now)
	}
	out = e.bound(ev)
	if ev.Kind != model.EventStop { // the end of the workload ends all, whatever the clock says
		out = e.faults.due(ev, e.advance(ev, false, out))
	}
	switch ev.Kind {
	case model.EventWorkload:
		out = e.advance(ev, true, out)
	case model.EventMessage:
		e.noteMessage(ev.Message)
	case model.EventObserve:
		if ev.Observation != nil {
			e.track.observe(*ev.Observation, e.now)
			out = e.advance(ev, true, out)
		}
	case model.EventRole:
		if ev.Role != nil {
			out = e.role(ev, out)
		}
	case model.EventFault:
		out = e.change(ev, out)
	case model.EventRuleCut:
		out = e.ruleCut(ev, out)
	case model.EventPacket:
		if ev.Packet != nil {
			out = e.packet(ev, out)
		}
	case model.EventFile:
		if ev.File != nil {
			out = e.file(ev, out)
		}
	case model.EventStop:
		out = e.stop(ev, out)
	}
	return out
}

// Result is what the run has shown; call it after the last event.
func (e *Engine) Result() Result {
	r := e.res
	r.States = e.track.met()
	r.Classes = slices.Clone(e.res.Classes)
	if !e.stopped && e.started {
		r.Workload = e.now - e.armedAt
	}
	for _, x := range e.steps {
		r.Steps = append(r.Steps, x.result())
	}
	r.Faults = e.faults.result()
	return r
}

func (e *Engine) stop(ev model.Event, out []model.Decision) []model.Decision {
	if !e.started {
		e.armedAt = e.now // stopped before it started
	}
	for _, x := range e.steps {
		if x.phase == phaseActive && x.fault == nil {
			out = append(out, e.end(ev, x, model.ReasonStop))
		}
	}
	if !e.stopped {
		e.stopped, e.started = true, true
		e.res.Workload = e.now - e.armedAt
	}
	e.track.disarm()
	e.on = false
	out = e.faults.stop(ev, out)
	for _, x := range e.steps {
		x.phase = phaseDone
	}
	return out
}

// noteMessage stores what the later decision on the message's packet needs. Only messages to or from an
// isolated host need a class.
func (e *Engine) noteMessage(m *model.Message) {
	if m == nil {
		return
	}
	if (e.mayCut[m.From] || e.mayCut[m.To]) && slices.ContainsFunc(e.steps, (*step).classes) {
		e.observed[m.Num] = observed{typ: m.Type, from: m.From, to: m.To, event: e.events}
	}
	if e.on && slices.ContainsFunc(e.steps, func(x *step) bool {
		t := x.awaits()
		return t != nil && t.Match.Selects(m.Type, m.From, m.To, e.faults.has)
	}) {
		e.awaited[m.Num] = observed{typ: m.Type, from: m.From, to: m.To, event: e.events}
	}
	e.faults.hear(m)
}

// packet decides on a held packet.
func (e *Engine) packet(ev model.Event, out []model.Decision) []model.Decision {
	p := ev.Packet
	d := model.Decision{Event: ev.Num, At: ev.At, Frame: p.Frame, Action: model.Pass, Reason: model.ReasonOpen}
	if p.RuleCut { // in earlier records
		d.Action, d.Reason = model.DropPacket, model.ReasonAcross
		return append(out, d)
	}
	came := e.awaitedIn(p)
	out = e.before(ev, came, out)
	cut, across, acted := false, false, false
	heal := -1 // index in out of the decision that heals
	for _, x := range e.steps {
		if !x.cuts() {
			continue
		}
		cut = true
		if !x.crossedBy(p) {
			continue
		}
		if h, ok := e.healsCut(ev, x, came); ok {
			heal, out = len(out), append(out, h)
		} else {
			across = true
		}
	}
	switch {
	case across:
		d.Action, d.Reason = model.DropPacket, model.ReasonAcross
		out = append(out, d)
	case heal >= 0: // the message that heals is the first to pass
		out[heal].Frame, out[heal].Action = p.Frame, model.Pass
		e.faults.forget(p)
	default:
		if cut {
			d.Reason = model.ReasonNotCut
		}
		did := e.faults.packet(ev, d)
		acted = slices.ContainsFunc(did, func(d model.Decision) bool { return d.Fault > 0 })
		out = append(out, did...)
	}
	if len(came) > 0 || heal >= 0 || acted { // a step may follow the message fault
		out = e.behind(ev, came, out)
	}
	return out
}

// refuses says whether a cut is across a packet.
func (e *Engine) refuses(p *model.HeldPacket) bool {
	return slices.ContainsFunc(e.steps, func(x *step) bool { return x.cuts() && x.crossedBy(p) })
}
