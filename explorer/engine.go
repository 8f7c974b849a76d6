package explorer

import (
	"slices"
	"time"

	"netsplit/model"
)

// phase is where a run stands between its start and its end.
type phase uint8

const (
	phaseIdle phase = iota // the workload has not started: nothing is armed
	phaseWait              // armed, waiting for the trigger
	phaseCut               // the partition is in force
	phaseOpen              // healed, or nothing will be cut any more
)

// observed is what the engine keeps of a message, so that the packet that carries
// it, now or once more, can be classed.
type observed struct {
	typ      string
	from, to model.NodeID
	step     uint64 // at which it was heard
}

// Engine decides one run: which packets pass, when the partition is cut and
// when it heals. Step it with the run's events in the order of their numbers: its
// decisions are a function of these events and the scenario. It is not safe for
// concurrent use.
type Engine struct {
	s        model.Scenario
	or       []model.Scenario      // what s.Or stands for; without Invariant where it is none
	mayCut   map[model.NodeID]bool // who is isolated, to whichever nodes it comes about
	phase    phase
	now      time.Duration // latest time an event carried
	armedAt  time.Duration
	stopped  bool // EventStop came
	cross    map[model.Link]bool
	track    *tracker
	observed map[uint64]observed
	// terms reads the classes of the run as those of the scenario.
	terms terms
	// steps are those so far, cutStep the one at which the cut was made.
	steps, cutStep uint64
	seen           map[model.Class]bool
	met            map[model.Class]bool // those in res.Classes
	faults         *faults
	res            EngineResult
}

// EngineResult is what a run showed the engine. Times are since the run
// started, as in model.Event.
type EngineResult struct {
	// States are the inconsistent states met while the workload ran, sorted by
	// invariant, then state.
	States []model.MetState `json:"states,omitempty"`
	// Reached says that the cut took place, Healed that it ended.
	Reached bool `json:"reached"`
	// CutState is the state at which a cofi cut was made; nil if none was.
	CutState *model.State `json:"cutState,omitempty"`
	// Or is the one of the scenario's Or whose state the cut was made at; none: at
	// the scenario's own.
	Or     model.Renaming `json:"or,omitempty"`
	Healed bool           `json:"healed"`
	CutAt  time.Duration  `json:"cutAt,omitempty"`
	HealAt time.Duration  `json:"healAt,omitempty"`
	// HealReason is the Reason of the decision to heal; "" if there was none.
	HealReason string `json:"healReason,omitempty"`
	// HealClass is the class of the message that healed; nil if none did.
	HealClass *model.Class `json:"healClass,omitempty"`
	// Classes are those that the run met during the cut, the one that healed
	// included, each once, in order of first appearance; cofi only. The message
	// that revealed the state is not among them: it cannot heal.
	Classes []model.Class `json:"classes,omitempty"`
	// Workload is the time from EventWorkload to EventStop (or to the last
	// event, if the run never stopped).
	Workload time.Duration `json:"workload"`
	// Faults says what the scenario's message faults did, in their order, except
	// what only the receiving hosts know.
	Faults []model.FaultProof `json:"faults,omitempty"`
}

// RunResult is the part of the result from which Core learns.
func (r EngineResult) RunResult(scenario string, v model.Verdict) model.RunResult {
	return model.RunResult{Scenario: scenario, Verdict: v, States: r.States, Reached: r.Reached, CutState: r.CutState, Or: r.Or, HealClass: r.HealClass, Classes: r.Classes, Duration: r.Workload}
}

// NewEngine returns the engine of one run of the scenario.
func NewEngine(s model.Scenario) *Engine {
	e := &Engine{
		cross:    map[model.Link]bool{},
		track:    newTracker(s),
		observed: map[uint64]observed{},
		seen:     map[model.Class]bool{},
		met:      map[model.Class]bool{},
	}
	e.play(s)
	e.mayCut = map[model.NodeID]bool{s.Isolate: true}
	for _, r := range s.Or {
		as, ok := substituted(&s, r)
		e.or = append(e.or, as)
		e.mayCut[as.Isolate] = e.mayCut[as.Isolate] || ok
	}
	e.faults = newFaults(e, s.Faults)
	return e
}

func (e *Engine) play(s model.Scenario) {
	e.s = s
	clear(e.cross)
	for _, l := range s.Partition.Links() {
		e.cross[l] = true
	}
	clear(e.seen)
	for _, c := range s.Seen {
		e.seen[c] = true
	}
}

// Scenario is the scenario as the run plays it: from the cut on with the nodes on
// which its state occurred, and with the message faults that have begun.
func (e *Engine) Scenario() model.Scenario { return e.s }

// Next is the time, as in model.Event, at which a message fault must act even if
// nothing else happens: step the engine with an EventTick then.
func (e *Engine) Next() (time.Duration, bool) { return e.faults.next() }

// Asks lists the roles whose holders the engine must know before it decides a held
// message: step it with an EventRole for each role, then with the message.
func (e *Engine) Asks(m *model.Message) []string { return e.faults.asks(m) }

// Acted says how many packets a message fault has acted on so far, and how many messages
// it met. fault is its place among the scenario's, from 1.
func (e *Engine) Acted(fault int) (acted, met int) {
	p := &e.faults.list[fault-1].proof
	return p.Acted, p.Met
}

// Step takes the next event and returns the decisions that follow from it, in
// order. An EventPacket gets exactly one decision with its Frame and an Action; a
// decision before it that has no other Frame changes the partition. Any event may
// bring decisions that change the partition, or decisions on packets held before,
// named by their Frame.
func (e *Engine) Step(ev model.Event) []model.Decision {
	e.now = max(e.now, ev.At)
	e.steps++
	var out []model.Decision
	if ev.Kind == model.EventWorkload {
		e.arm()
	}
	out = e.byTime(ev, out)
	if ev.Kind != model.EventStop {
		out = e.faults.due(ev, out)
	}
	switch ev.Kind {
	case model.EventWorkload:
		out = e.byState(ev, 0, out)
	case model.EventMessage:
		e.hear(ev.Message)
		e.faults.hear(ev.Message)
	case model.EventObserve:
		if ev.Observation != nil {
			e.track.observe(*ev.Observation, e.now)
			out = e.byState(ev, ev.Observation.Message, out)
		}
	case model.EventRole:
		if ev.Role != nil {
			e.faults.roles[ev.Role.Role] = ev.Role.Have
		}
	case model.EventFault:
		out = e.faults.change(ev, out)
	case model.EventRuleCut:
		e.faults.ruleCut(ev.RuleCut)
	case model.EventPacket:
		if ev.Packet != nil {
			out = append(out, e.packet(ev)...)
		}
	case model.EventStop:
		out = e.stop(ev, out)
	}
	return out
}

// Result is what the run has shown; call it after the last event.
func (e *Engine) Result() EngineResult {
	r := e.res
	r.States = e.track.met()
	r.Classes = slices.Clone(e.res.Classes)
	if !e.stopped && e.phase != phaseIdle {
		r.Workload = e.now - e.armedAt
	}
	r.Faults = e.faults.result()
	return r
}

func (e *Engine) arm() {
	if e.phase != phaseIdle {
		return // the workload starts once
	}
	e.armedAt = e.now
	e.track.arm(e.now)
	e.faults.on = true
	e.phase = phaseOpen
	switch e.s.Strategy {
	case model.StrategyCoFI:
		if e.s.Invariant != nil && e.s.State != nil {
			e.phase = phaseWait
		}
	case model.StrategyRandom:
		e.phase = phaseWait
	}
}

// byTime makes the decisions that the clock alone brings.
func (e *Engine) byTime(ev model.Event, out []model.Decision) []model.Decision {
	if ev.Kind == model.EventStop {
		return out // the end of the workload heals, whatever the clock says
	}
	random := e.s.Strategy == model.StrategyRandom
	if e.phase == phaseWait && random && e.now-e.armedAt >= e.s.CutAfter {
		out = append(out, e.cut(ev, model.ReasonTime, 0))
	}
	if e.phase == phaseCut && random && e.s.HealAfter > 0 && e.now-e.armedAt >= e.s.HealAfter {
		out = append(out, e.heal(ev, model.ReasonTime))
	}
	if e.phase == phaseCut && e.s.MaxCut > 0 && e.now-e.res.CutAt >= e.s.MaxCut {
		out = append(out, e.heal(ev, model.ReasonMaxCut))
	}
	return out
}

// byState cuts if the state waited for is the current one, or one that stands
// for it. It is CoFI Algorithm 1, lines 12 and 13.
func (e *Engine) byState(ev model.Event, message uint64, out []model.Decision) []model.Decision {
	if e.phase != phaseWait || e.s.Strategy != model.StrategyCoFI {
		return out
	}
	st, ok := e.reached(&e.s)
	for i := 0; !ok && i < len(e.or); i++ {
		if inv := e.or[i].Invariant; inv == nil || ev.Observation != nil && ev.Observation.Var != inv.A && ev.Observation.Var != inv.B {
			continue // it is as it was
		}
		if st, ok = e.reached(&e.or[i]); ok {
			e.res.Or = e.s.Or[i]
			e.play(e.or[i])
		}
	}
	if !ok {
		return out
	}
	e.res.CutState = &st
	e.terms = terms{from: st, to: *e.s.State}
	return append(out, e.cut(ev, model.ReasonState, message))
}

func (e *Engine) reached(s *model.Scenario) (model.State, bool) {
	st, known := e.track.current(s.Invariant)
	return st, known && (st == *s.State || e.standsFor(s.Invariant, *s.State, s.Nth, st))
}

// standsFor says that a state of the right shape is, by count, the one that was
// met: its numbers are others in this run.
func (e *Engine) standsFor(inv *model.Invariant, met model.State, nth int, st model.State) bool {
	if nth <= 0 || st.A == st.B || !met.Numbers() {
		return false
	}
	shape := met.Shape()
	return st.Shape() == shape && e.track.entered(inv, shape) >= nth
}

func (e *Engine) cut(ev model.Event, reason string, message uint64) model.Decision {
	e.phase = phaseCut
	e.cutStep = e.steps
	e.res.Reached = true
	e.res.CutAt = e.now
	return model.Decision{Event: ev.Num, At: ev.At, Cut: true, Reason: reason, Message: message}
}

func (e *Engine) heal(ev model.Event, reason string) model.Decision {
	e.phase = phaseOpen
	e.res.Healed = true
	e.res.HealAt = e.now
	e.res.HealReason = reason
	return model.Decision{Event: ev.Num, At: ev.At, Heal: true, Reason: reason}
}

func (e *Engine) stop(ev model.Event, out []model.Decision) []model.Decision {
	if e.phase == phaseIdle {
		e.armedAt = e.now // stopped before it started
	}
	if e.phase == phaseCut {
		out = append(out, e.heal(ev, model.ReasonStop))
	}
	if !e.stopped {
		e.stopped = true
		e.res.Workload = e.now - e.armedAt
	}
	e.track.disarm()
	e.phase = phaseOpen
	return e.faults.stop(ev, out)
}

// hear keeps what classing a message later takes. Only messages to or from
// the isolated host can ever decide.
func (e *Engine) hear(m *model.Message) {
	if m == nil || e.s.Strategy != model.StrategyCoFI || e.phase == phaseOpen {
		return
	}
	if e.mayCut[m.From] || e.mayCut[m.To] {
		e.observed[m.Num] = observed{typ: m.Type, from: m.From, to: m.To, step: e.steps}
	}
}

// packet answers a held packet.
func (e *Engine) packet(ev model.Event) []model.Decision {
	p := ev.Packet
	d := model.Decision{Event: ev.Num, At: ev.At, Frame: p.Frame, Action: model.Pass, Reason: model.ReasonOpen}
	if p.RuleCut {
		d.Action, d.Reason = model.Refuse, model.ReasonAcross
		return []model.Decision{d}
	}
	if e.phase != phaseCut {
		return e.faults.packet(ev, d)
	}
	link := model.Link{Src: p.From, Dst: p.To}
	if p.Spared || !e.cross[link] {
		d.Reason = model.ReasonNotCut
		return e.faults.packet(ev, d)
	}
	if num, class, reason, ok := e.healer(p); ok {
		h := e.heal(ev, reason)
		h.Frame, h.Action, h.Message, h.Class = p.Frame, model.Pass, num, &class
		e.res.HealClass = &class
		e.faults.forget(p)
		return []model.Decision{h}
	}
	d.Action, d.Reason = model.Refuse, model.ReasonAcross
	return []model.Decision{d}
}

// refuses says whether the cut is across the link of a packet, unless it spares that.
func (e *Engine) refuses(l model.Link, spared bool) bool {
	return e.phase == phaseCut && !spared && e.cross[l]
}

// healer finds the first message of the packet, in stream order, that heals,
// and notes the classes it meets. It is CoFI Algorithm 1, lines 14 to 16.
func (e *Engine) healer(p *model.HeldPacket) (uint64, model.Class, string, bool) {
	if e.s.Strategy != model.StrategyCoFI {
		return 0, model.Class{}, "", false
	}
	// The packet whose messages revealed the state, be it by what they show of other
	// nodes' answers before, would make it a run without a partition.
	if slices.ContainsFunc(p.Messages, func(num uint64) bool { m, ok := e.observed[num]; return ok && m.step < e.cutStep }) {
		return 0, model.Class{}, "", false
	}
	st, _ := e.track.current(e.s.Invariant)
	// What a packet carries once more precedes, in the stream, what is new.
	for _, list := range [][]uint64{p.Again, p.Messages} {
		for _, num := range list {
			m, ok := e.observed[num]
			if !ok || m.from != e.s.Isolate && m.to != e.s.Isolate {
				continue
			}
			c := model.Class{Type: m.typ, From: m.from, To: m.to, State: st}
			if !e.met[c] {
				e.met[c] = true
				e.res.Classes = append(e.res.Classes, c)
			}
			requested := e.terms.class(c)
			switch {
			case e.s.Never:
			case e.s.HealAt == nil && !e.seen[requested]:
				return num, c, model.ReasonNewClass, true
			case e.s.HealAt != nil && requested == *e.s.HealAt:
				return num, c, model.ReasonHealClass, true
			}
		}
	}
	return 0, model.Class{}, "", false
}
