package engine

import (
	"slices"
	"time"

	"netsplit/model"
)

// phase is where a step stands.
type phase uint8

const (
	phaseWaiting   phase = iota // for the workload, or for the step before: not armed
	phaseArmed                  // its When may come
	phaseResolving              // its When came; it begins when it is known who has its roles
	phaseActive                 // it has begun
	phaseDone
	phaseFailed // it could not begin
)

// step is a step of the scenario with its state in the run.
type step struct {
	model.Step
	num     int // from 1
	phase   phase
	armedAt time.Duration // when it was
	// looked says that the state was checked after the times of When had passed.
	looked bool
	event  uint64 // at which it began
	met    int    // messages so far that match the awaited trigger
	links  map[model.Link]bool
	seen   map[model.Class]bool // classes that do not end it
	// roles has the hosts found for the roles of its fault and its triggers.
	roles stepRoles
	// terms reads the classes of the run as those of the scenario.
	terms terms
	fault *fault // what acts on messages; nil: nothing does
	res   model.StepResult
}

// add appends a step.
func (e *Engine) add(st model.Step) *step {
	x := &step{num: len(e.steps) + 1}
	x.play(st)
	if st.Do.Message != nil {
		x.fault = e.faults.add(x, *st.Do.Message)
	}
	e.steps = append(e.steps, x)
	return x
}

// play has the engine go on with a scenario of the same steps on other nodes.
func (e *Engine) play(s model.Scenario) {
	e.s = s
	for i, x := range e.steps {
		if x.phase < phaseActive {
			x.play(s.Steps[i])
		}
	}
}

func (x *step) play(st model.Step) {
	x.Step, x.links, x.seen = st, map[model.Link]bool{}, map[model.Class]bool{}
	if st.Do.Cut != nil {
		for _, l := range st.Do.Cut.Links() {
			x.links[l] = true
		}
	}
	if st.Until.Unseen != nil {
		for _, c := range st.Until.Unseen.Seen {
			x.seen[c] = true
		}
	}
}

// cuts says whether it is a cut that has begun and not ended.
func (x *step) cuts() bool { return x.phase == phaseActive && x.Do.Cut != nil }

// classes says whether it is a cut, begun or still to begin, that a class may heal.
func (x *step) classes() bool { return x.phase < phaseDone && x.Do.Cut != nil && x.When.State != nil }

func (x *step) crossedBy(p *model.HeldPacket) bool {
	return !p.Spared && x.links[model.Link{Src: p.From, Dst: p.To}] && !slices.Contains(p.SparedBy, x.num)
}

// awaits is the message that begins or ends the step next; nil: none does.
func (x *step) awaits() *model.MessageTrigger {
	switch x.phase {
	case phaseArmed:
		return x.When.Message
	case phaseActive:
		return x.Until.Message
	}
	return nil
}

// roleQuery selects the messages at which the engine must know who has a role; nil: none.
func (x *step) roleQuery() *model.MessageMatch {
	var m *model.MessageMatch
	if t := x.awaits(); t != nil {
		m = &t.Match
	} else if x.fault != nil && x.phase == phaseActive && !x.fault.spent() {
		m = &x.fault.Match
	}
	if m == nil || len(m.Roles()) == 0 {
		return nil
	}
	return m
}

// passed says whether the times of a trigger have passed, given when it was armed.
func (e *Engine) passed(t *model.Trigger, armed time.Duration) bool {
	return e.now-e.armedAt >= t.At && e.now-armed >= t.After
}

// advance arms, begins and ends steps, for every reason except messages. It goes in their
// order, since a step may follow the one before it. states: states may have changed.
func (e *Engine) advance(ev model.Event, states bool, out []model.Decision) []model.Decision {
	if !e.on {
		return out
	}
	for i, x := range e.steps {
		if x.phase == phaseWaiting && (i == 0 || x.When.Follows == "" || e.steps[i-1].releases(x.When.Follows)) {
			x.phase, x.armedAt = phaseArmed, e.now
		}
		if x.phase == phaseArmed && x.When.Message == nil && x.When.File == nil && e.passed(&x.When, x.armedAt) {
			message, ok := uint64(0), x.When.State == nil && (x.When.Role == nil || e.held(x, x.When.Role))
			if x.When.State != nil && (states || !x.looked) {
				x.looked = true
				if ok = e.byState(ev, x); ok && ev.Observation != nil {
					message = ev.Observation.Message
				}
			}
			if ok {
				out = e.begin(ev, x, x.reason(), message, out)
			}
		}
		if x.phase != phaseActive {
			continue
		}
		reason := ""
		switch u := &x.Until; {
		case u.Timed() && e.passed(u, x.res.Began):
			reason = model.ReasonTime
		case x.Max > 0 && e.now-x.res.Began >= x.Max:
			reason = model.ReasonMaxCut
		case u.Role != nil && e.passed(u, x.res.Began) && e.held(x, u.Role):
			reason = model.ReasonRole
		default:
			continue
		}
		if x.fault != nil {
			x.phase = phaseDone
			out = e.faults.end(ev, x.fault, out)
		} else {
			out = append(out, e.end(ev, x, reason))
		}
	}
	return out
}

// releases says whether a step that follows this one may be armed.
func (x *step) releases(f model.Follows) bool {
	if f == model.FollowsBegin {
		return x.phase == phaseDone || x.phase == phaseActive && (x.fault == nil || x.fault.proof.Acted > 0)
	}
	return x.phase == phaseDone || x.phase == phaseActive && x.fault != nil && x.fault.spent()
}

// reason is why it begins where no message does it.
func (x *step) reason() string {
	switch w := &x.When; {
	case w.State != nil:
		return model.ReasonState
	case w.Role != nil:
		return model.ReasonRole
	case w.Follows != "" && !w.Timed():
		return model.ReasonFollows
	}
	return model.ReasonTime
}

func (e *Engine) begin(ev model.Event, x *step, reason string, message uint64, out []model.Decision) []model.Decision {
	if wait, ds := e.name(ev, x, reason, message); wait {
		return append(out, ds...)
	}
	x.phase, x.event, x.met = phaseActive, e.events, 0
	x.res.Began, x.roles.known = e.now, false
	if x.fault != nil {
		return out
	}
	x.res.By = reason
	d := model.Decision{Event: ev.Num, At: ev.At, Step: x.num, Reason: reason, Message: message}
	if x.Do.Node != nil {
		d.Verb = x.Do.Node.Verb
	}
	if x.Do.Disk != nil {
		return append(out, x.disk(ev, d))
	}
	if x.Do.Cut == nil {
		return append(out, d)
	}
	if e.firstCut == nil {
		e.firstCut, e.res.Reached, e.res.CutAt = x, true, e.now
	}
	d.Cut = true
	return append(out, d)
}

func (e *Engine) end(ev model.Event, x *step, reason string) model.Decision {
	x.phase = phaseDone
	x.res.EndedBy, x.res.Ended = reason, e.now
	if x == e.firstCut {
		e.res.Healed, e.res.HealAt, e.res.HealReason = true, e.now, reason
	}
	d := model.Decision{Event: ev.Num, At: ev.At, Heal: x.Do.Cut != nil, Step: x.num, Reason: reason}
	if x.Do.Node != nil {
		d.Verb = x.Do.Node.Undo()
	}
	if x.Do.Disk != nil {
		d.Verb, d.Disk = model.NodeStart, x.Do.Disk.Kind
	}
	return d
}

func (x *step) result() model.StepResult {
	r := x.res
	r.Step = x.num
	if x.fault != nil {
		r = x.fault.result(r)
	}
	return r
}

// byState says whether the state waited for is the current one, or one that stands
// for it. It is CoFI Algorithm 1, lines 12 and 13.
func (e *Engine) byState(ev model.Event, x *step) bool {
	c := x.When.State
	st, ok := e.reached(c)
	for i := 0; !ok && i < len(e.variants); i++ {
		if len(e.variants[i].Steps) == 0 {
			continue
		}
		c := e.variants[i].Steps[x.num-1].When.State
		if ev.Observation != nil && ev.Observation.Var != c.Invariant.A && ev.Observation.Var != c.Invariant.B {
			continue // this observation did not change the state
		}
		if st, ok = e.reached(c); ok {
			e.res.Or = e.s.Or[i]
			e.play(e.variants[i])
		}
	}
	if !ok {
		return false
	}
	e.variants = nil
	if e.firstAtState == nil {
		e.firstAtState, e.res.CutState = x, &st
	}
	if to := x.When.State.State; to != nil {
		x.terms = terms{from: st, to: *to}
	}
	return true
}

// reached says whether a condition is met now, and by which state.
func (e *Engine) reached(c *model.FaultCondition) (model.State, bool) {
	st, known := e.track.current(&c.Invariant)
	if !known || st.A == st.B {
		return st, false
	}
	return st, c.State == nil || st == *c.State || e.standsFor(&c.Invariant, *c.State, c.Nth, st)
}

// standsFor says whether a state stands for the one that an earlier run met: it has the same
// shape and is at least the nth of that shape. Only its numbers differ in this run.
func (e *Engine) standsFor(inv *model.Invariant, met model.State, nth int, st model.State) bool {
	if nth <= 0 || !met.Numbers() {
		return false
	}
	shape := met.Shape()
	return st.Shape() == shape && e.track.entered(inv, shape) >= nth
}

// awaitedIn lists the awaited messages that a packet carries, in stream order.
func (e *Engine) awaitedIn(p *model.HeldPacket) []uint64 {
	if len(e.awaited) == 0 {
		return nil
	}
	var out []uint64
	for _, list := range [][]uint64{p.Again, p.Messages} {
		for _, num := range list {
			if _, ok := e.awaited[num]; ok {
				out = append(out, num)
			}
		}
	}
	return out
}

// turn counts messages for the trigger that a step awaits, and returns the message at which
// the trigger comes; 0: none of these.
func (e *Engine) turn(x *step, t *model.MessageTrigger, came []uint64) uint64 {
	for _, num := range came {
		m := e.awaited[num]
		if m.event < x.event || !t.Match.Selects(m.typ, m.from, m.to, e.faults.has) {
			continue // it came before the step began, or does not match
		}
		if x.met++; x.met == max(t.Nth, 1) {
			return num
		}
	}
	return 0
}

// before ends and begins the steps whose trigger comes before a packet passes. It leaves
// cuts that the packet itself crosses to healed.
func (e *Engine) before(ev model.Event, came []uint64, out []model.Decision) []model.Decision {
	if len(came) == 0 {
		return out
	}
	changed := false
	for _, x := range e.steps {
		if x.phase != phaseActive || x.cuts() && x.crossedBy(ev.Packet) {
			continue
		}
		if num := e.byMessage(x, came); num != 0 {
			d := e.end(ev, x, model.ReasonMessage)
			d.Message = num
			out, changed = append(out, d), true
		}
	}
	for _, x := range e.steps {
		if t := x.When.Message; x.phase == phaseArmed && t != nil && t.Side != model.SideReceive && e.passed(&x.When, x.armedAt) {
			if num := e.turn(x, t, came); num != 0 {
				out, changed = e.begin(ev, x, model.ReasonMessage, num, out), true
			}
		}
	}
	if changed {
		out = e.advance(ev, false, out)
	}
	return out
}

// behind begins the steps whose trigger comes after a packet has passed, and those that
// follow a cut that it has healed.
func (e *Engine) behind(ev model.Event, came []uint64, out []model.Decision) []model.Decision {
	passed := slices.ContainsFunc(out, func(d model.Decision) bool { return d.Frame == ev.Packet.Frame && d.Action == model.Pass })
	for _, x := range e.steps {
		if t := x.When.Message; passed && x.phase == phaseArmed && t != nil && t.Side == model.SideReceive && e.passed(&x.When, x.armedAt) {
			if num := e.turn(x, t, came); num != 0 {
				out = e.begin(ev, x, model.ReasonMessage, num, out)
			}
		}
	}
	for _, num := range came {
		delete(e.awaited, num)
	}
	return e.advance(ev, false, out)
}

// healsCut says whether a packet across a cut heals this cut, and notes the classes that it meets.
func (e *Engine) healsCut(ev model.Event, x *step, came []uint64) (model.Decision, bool) {
	var h model.Decision
	num, reason, class := e.byMessage(x, came), model.ReasonMessage, (*model.Class)(nil)
	if x.When.State != nil && num == 0 {
		num, reason, class = e.byClass(x, ev.Packet)
	}
	if num == 0 {
		return h, false
	}
	h = e.end(ev, x, reason)
	if h.Message, h.Class = num, class; x == e.firstAtState {
		e.res.HealClass = class
	}
	return h, true
}

// byMessage is the message that ends a step; 0: none of these.
func (e *Engine) byMessage(x *step, came []uint64) uint64 {
	if t := x.Until.Message; t != nil && e.passed(&x.Until, x.res.Began) {
		return e.turn(x, t, came)
	}
	return 0
}

// byClass finds the first message of the packet, in stream order, that heals by its class,
// and notes the classes it meets. It is CoFI Algorithm 1, lines 14 to 16.
func (e *Engine) byClass(x *step, p *model.HeldPacket) (uint64, string, *model.Class) {
	// The packet that revealed the state must not heal: it would make this a run without a
	// partition.
	if slices.ContainsFunc(p.Messages, func(num uint64) bool { m, ok := e.observed[num]; return ok && m.event < x.event }) {
		return 0, "", nil
	}
	st, _ := e.track.current(&x.When.State.Invariant)
	// In the stream, retransmitted messages come before new ones.
	for _, list := range [][]uint64{p.Again, p.Messages} {
		for _, num := range list {
			m, ok := e.observed[num]
			if !ok || m.from != x.Do.Isolate && m.to != x.Do.Isolate {
				continue
			}
			c := model.Class{Type: m.typ, From: m.from, To: m.to, State: st}
			if x == e.firstAtState && !e.noted[c] {
				e.noted[c] = true
				e.res.Classes = append(e.res.Classes, c)
			}
			class := x.terms.class(c)
			switch {
			case !e.passed(&x.Until, x.res.Began):
			case x.Until.Unseen != nil && !x.seen[class]:
				return num, model.ReasonNewClass, &c
			case x.Until.Class != nil && class == *x.Until.Class:
				return num, model.ReasonHealClass, &c
			}
		}
	}
	return 0, "", nil
}
