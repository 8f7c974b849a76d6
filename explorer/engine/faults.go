package engine

import (
	"slices"
	"time"

	"netsplit/model"
)

// faults decides what becomes of single messages: the part of an Engine that
// acts on single messages.
type faults struct {
	e    *Engine
	list []*fault
	// fresh are messages that a fault selects and whose packet is not decided.
	fresh map[uint64]observed
	// waits are packets that were kept, by the time they go on at the latest;
	// those of one time in the order in which they were kept.
	waits []*waiting
	// queues hold, by TCP stream, the packets that wait in order: the first one
	// is delayed. Those behind it have no time of their own, unless they are too.
	queues   map[string][]*waiting
	lost     map[uint64]*hit           // by message: lost with a packet and not through since
	reset    map[string]*hit           // by TCP stream: what was lost for good on it
	roles    map[string][]model.NodeID // who had a role when it was last asked
	answers  answers
	ruleCuts map[string][]uint64 // by cut that is made by rules: packets that are kept and that it cuts
}

// fault is a step's message fault with what it did so far.
type fault struct {
	model.MessageFault
	step  *step
	proof model.FaultProof
	hits  []*hit // the first model.MaxHits
}

// ended says that it acts no more, though the workload may run.
func (f *fault) ended() bool { return f.step.phase == phaseDone }

// spent says that it has acted on as many messages as it is to.
func (f *fault) spent() bool { most := f.Most(); return most > 0 && f.proof.Acted >= most }

// result is when it acted, as a step.
func (f *fault) result(r model.StepResult) model.StepResult {
	if r.Began = 0; len(f.hits) > 0 {
		r.By, r.Began = model.ReasonMessage, f.hits[0].At
	}
	return r
}

// hit is one packet that a fault acted on.
type hit struct {
	f *fault
	model.FaultHit
}

// waiting is a packet that was kept, or one more copy of a packet that passed.
type waiting struct {
	hit    *hit // that keeps it; nil: it only waits behind another
	frame  uint64
	packet *model.HeldPacket
	flow   string
	due    time.Duration
	timed  bool // due counts
	behind int  // reorder: packets that must overtake it still
	copies int  // copy: how many are still to be sent, this one included
	data   bool // it carries bytes or messages
}

func newFaults(e *Engine) *faults {
	return &faults{e: e, fresh: map[uint64]observed{}, queues: map[string][]*waiting{}, lost: map[uint64]*hit{}, reset: map[string]*hit{}, roles: map[string][]model.NodeID{}, ruleCuts: map[string][]uint64{}}
}

func (f *faults) add(x *step, m model.MessageFault) *fault {
	f.list = append(f.list, &fault{MessageFault: m, step: x, proof: model.FaultProof{Fault: x.num}})
	return f.list[len(f.list)-1]
}

// hear keeps a message that some fault selects, or whose request some fault selects, until its
// packet comes.
func (f *faults) hear(m *model.Message) {
	if !f.e.on {
		return
	}
	o := observed{typ: m.Type, from: m.From, to: m.To}
	o.answers, o.byPlace = f.answers.of(m)
	meant, asked := o.answers != nil, false
	for i := range f.list {
		if x := f.list[i]; x.step.phase == phaseActive && x.Match.Selects(m.Type, m.From, m.To, f.has) {
			meant, asked = meant || !x.Answer, asked || x.Answer
		}
	}
	if asked {
		f.answers.asked(m)
	}
	if meant {
		f.fresh[m.Num] = o
	}
}

// selects says whether the fault is about a message that was heard.
func (f *faults) selects(x *fault, m observed) bool {
	if !x.Answer {
		return x.Match.Selects(m.typ, m.from, m.to, f.has)
	}
	return m.answers != nil && x.Match.Selects(m.answers.typ, m.answers.from, m.answers.to, f.has)
}

func (f *faults) has(role string, h model.NodeID) bool { return slices.Contains(f.roles[role], h) }

// forget leaves the messages of a packet alone: it heals.
func (f *faults) forget(p *model.HeldPacket) {
	for _, n := range p.Messages {
		delete(f.fresh, n)
	}
}

// holds says whether a fault's condition is met now.
func (f *faults) holds(c *model.FaultCondition) bool {
	if c == nil {
		return true
	}
	_, ok := f.e.reached(c)
	return ok
}

// turn finds the fault that acts on the packet: the first whose turn comes at
// one of its messages. Every fault counts every message.
func (f *faults) turn(p *model.HeldPacket, behind bool) *hit {
	var got *hit
	// What comes again and is fresh still, a cut has refused before.
	for _, num := range slices.Concat(p.Again, p.Messages) {
		m, ok := f.fresh[num]
		if !ok {
			continue
		}
		delete(f.fresh, num)
		for i := range f.list {
			x := f.list[i]
			if x.step.phase != phaseActive || !f.selects(x, m) || !f.holds(x.While) || f.e.now-f.e.armedAt < x.After {
				continue
			}
			x.proof.Met++
			if !x.Turn(x.proof.Met, x.proof.Acted) {
				continue
			}
			if got != nil && got.f == x {
				continue // the packet is acted on once
			}
			if got != nil || x.Kind == model.FaultReorder && (behind || f.reordering(x, p)) {
				x.proof.Taken++
				continue
			}
			x.proof.Acted++
			got = &hit{f: x, FaultHit: model.FaultHit{Frame: p.Frame, Message: num, Type: m.typ, From: p.From, To: p.To, Stream: p.Stream, At: f.e.now}}
			if x.Answer {
				got.Request = m.answers.num
				if m.byPlace {
					x.proof.ByPlace++
				}
			}
			for _, o := range p.Messages {
				if o != num {
					got.With = append(got.With, o)
				}
			}
		}
	}
	return got
}

// reordering: a packet of the flow waits for others to overtake it, and this is
// one of them.
func (f *faults) reordering(x *fault, p *model.HeldPacket) bool {
	return slices.ContainsFunc(f.waits, func(w *waiting) bool { return w.behind > 0 && w.hit.f == x && w.flow == flowOf(p) })
}

// flowOf names the direction of a TCP connection, or all else from one host to
// another.
func flowOf(p *model.HeldPacket) string {
	if p.Stream != "" {
		return p.Stream
	}
	return string(p.From) + ">" + string(p.To)
}

// packet answers a held packet that no cut refuses. Of what it returns exactly
// one decision is about this packet.
func (f *faults) packet(ev model.Event, open model.Decision) []model.Decision {
	p := ev.Packet
	if !f.e.on {
		return []model.Decision{open}
	}
	w := &waiting{frame: p.Frame, packet: p, flow: flowOf(p), data: p.Payload > 0 || len(p.Messages) > 0 || len(p.Again) > 0}
	if h := f.reset[p.Stream]; h != nil && (p.Payload > 0 || slices.Contains(p.Again, h.Message)) {
		h.After++
		h.f.proof.Lost++
		h.f.proof.Resets++
		return []model.Decision{f.about(ev, w.frame, h, model.ResetConn, model.ReasonAfterReset)}
	}
	queue := f.queues[p.Stream]
	reason, again := open.Reason, f.again(p)
	if again != nil {
		reason = model.ReasonCameAgain
		if again.LostAgain < again.f.Again && !again.f.ended() {
			again.LostAgain++
			again.f.proof.Lost++
			return []model.Decision{f.about(ev, w.frame, again, model.DropPacket, model.ReasonLostAgain)}
		}
		delete(f.lost, again.Message)
		again.Through = f.e.now
	}
	behind := p.Stream != "" && len(queue) > 0
	h := f.turn(p, behind)
	if h == nil {
		if behind {
			f.queues[p.Stream] = append(queue, w)
			queue[0].count()
			return []model.Decision{f.about(ev, w.frame, queue[0].hit, model.Hold, model.ReasonBehind)}
		}
		d := open
		d.Reason = reason
		if again != nil {
			d = f.about(ev, w.frame, again, model.Pass, reason)
		}
		return f.overtake(ev, w, p.Again, []model.Decision{d})
	}
	w.hit = h
	switch h.f.Kind {
	case model.FaultLose:
		h.f.proof.Lost++
		if h.f.Lose == model.LoseMessage && p.Stream != "" {
			h.Reset = true
			h.f.proof.Resets++
			f.reset[p.Stream] = h
			f.book(h)
			return append(f.give(ev, p.Stream, h), f.about(ev, w.frame, h, model.ResetConn, model.ReasonReset))
		}
		if p.Stream != "" {
			f.lost[h.Message] = h
		}
		f.book(h)
		return []model.Decision{f.about(ev, w.frame, h, model.DropPacket, model.ReasonLose)}
	case model.FaultDelay:
		w.due, w.timed = f.e.now+h.f.For, true
		for _, q := range queue { // a stream keeps its order
			w.due = max(w.due, q.due)
		}
		h.Due = w.due
		f.wait(w)
		if p.Stream != "" {
			f.queues[p.Stream] = append(queue, w)
		}
		f.book(h)
		return []model.Decision{f.about(ev, w.frame, h, model.Hold, model.ReasonDelay)}
	case model.FaultReorder:
		limit := h.f.Limit
		if limit == 0 {
			limit = model.DefaultLimit
		}
		w.due, w.timed, w.behind = f.e.now+limit, true, max(h.f.Behind, model.DefaultBehind)
		h.Due = w.due
		f.wait(w)
		f.book(h)
		return []model.Decision{f.about(ev, w.frame, h, model.Hold, model.ReasonReorder)}
	}
	// FaultDuplicate
	f.book(h)
	if behind {
		f.queues[p.Stream] = append(queue, w)
		queue[0].count()
		return []model.Decision{f.about(ev, w.frame, h, model.Hold, model.ReasonBehind)}
	}
	d := f.about(ev, w.frame, h, model.Pass, model.ReasonDuplicate)
	d.Keep = true
	h.Passed, h.Why = f.e.now, d.Reason
	f.copies(w)
	return f.due(ev, f.overtake(ev, w, nil, []model.Decision{d}))
}

// count books a packet that waits behind a delayed one.
func (w *waiting) count() {
	if w.hit != nil {
		w.hit.Behind++
	}
}

// again finds what the packet carries once more: a message that was lost, or one
// that is kept. It returns the lost one.
func (f *faults) again(p *model.HeldPacket) *hit {
	var lost *hit
	for _, n := range p.Again {
		if h := f.lost[n]; h != nil && lost == nil {
			h.Returned++
			h.f.proof.Returned++
			lost = h
		}
		for _, w := range f.waits {
			if w.hit.Message == n && w.copies == 0 {
				w.hit.Returned++
				w.hit.f.proof.Returned++
			}
		}
	}
	return lost
}

func (f *faults) about(ev model.Event, frame uint64, h *hit, a model.Action, reason string) model.Decision {
	d := model.Decision{Event: ev.Num, At: ev.At, Frame: frame, Action: a, Reason: reason}
	if h != nil {
		d.Fault, d.Message = h.f.proof.Fault, h.Message
	}
	return d
}

// book keeps a hit for the proof. The first ones are kept by place, since they
// change until they have passed.
func (f *faults) book(h *hit) {
	if len(h.f.hits) < model.MaxHits {
		h.f.hits = append(h.f.hits, h)
	}
}

// wait puts a packet among those that have a time.
func (f *faults) wait(w *waiting) {
	i, _ := slices.BinarySearchFunc(f.waits, w.due, func(o *waiting, t time.Duration) int {
		if o.due <= t {
			return -1
		}
		return 1
	})
	f.waits = slices.Insert(f.waits, i, w)
}

// copies has the copies of a packet that passes now sent in time.
func (f *faults) copies(w *waiting) {
	c := *w
	c.copies, c.timed, c.behind, c.due = max(w.hit.f.Copies, 1), true, 0, f.e.now+w.hit.f.Gap
	f.wait(&c)
}

// next is when a packet goes on because its time has come.
func (f *faults) next() (time.Duration, bool) {
	if len(f.waits) == 0 {
		return 0, false
	}
	return f.waits[0].due, true
}

// due lets go what has waited for long enough.
func (f *faults) due(ev model.Event, out []model.Decision) []model.Decision {
	for len(f.waits) > 0 && f.waits[0].due <= f.e.now {
		w := f.waits[0]
		f.waits = f.waits[1:]
		switch {
		case w.copies > 0:
			out = f.copy(ev, w, out)
		case w.hit.f.Kind == model.FaultReorder:
			out = f.goOn(ev, w, model.ReasonLimit, out)
		case w.hit.Stream != "":
			out = f.drain(ev, w.flow, out)
		default:
			out = f.goOn(ev, w, model.ReasonDue, out)
		}
	}
	return out
}

// drain lets go, in order, the packets of a stream whose time has come.
func (f *faults) drain(ev model.Event, stream string, out []model.Decision) []model.Decision {
	for q := f.queues[stream]; len(q) > 0; q = f.queues[stream] {
		w := q[0]
		ended := w.hit != nil && w.hit.f.ended()
		if w.timed && w.due > f.e.now && !ended {
			break
		}
		if f.queues[stream] = q[1:]; len(q) == 1 {
			delete(f.queues, stream)
		}
		reason := model.ReasonDue
		switch {
		case ended && w.due > f.e.now:
			reason = model.ReasonEnded
		case !w.timed:
			reason = model.ReasonBehind
		}
		out = f.goOn(ev, w, reason, out)
	}
	return out
}

// goOn lets a kept packet pass, or drops it if a cut is across by now.
func (f *faults) goOn(ev model.Event, w *waiting, reason string, out []model.Decision) []model.Decision {
	d := f.about(ev, w.frame, w.hit, model.Pass, reason)
	if f.refuses(w) {
		d.Action, d.Reason = model.DropPacket, model.ReasonAcross
		if w.hit != nil {
			w.hit.f.proof.Cut++
			w.hit.Why = d.Reason
		}
		return append(out, d)
	}
	if h := w.hit; h != nil {
		h.Passed, h.Why = f.e.now, reason
		switch {
		case h.f.Kind == model.FaultDuplicate && !h.f.ended():
			d.Keep = true
			f.copies(w)
		case (reason == model.ReasonStop || reason == model.ReasonEnded) && f.e.now < w.due:
			h.f.proof.Early++
		case f.e.now > w.due+model.FaultSlack:
			h.f.proof.Late++
		}
		if h.f.Kind == model.FaultReorder && h.Behind == 0 {
			h.f.proof.InOrder++
		}
	}
	return f.overtake(ev, w, nil, append(out, d))
}

func (f *faults) copy(ev model.Event, w *waiting, out []model.Decision) []model.Decision {
	d := f.about(ev, w.frame, w.hit, model.Copy, model.ReasonDuplicate)
	w.copies--
	if f.refuses(w) {
		d.Action, d.Reason = model.Skip, model.ReasonAcross
		w.hit.f.proof.Cut++
	} else {
		w.hit.f.proof.Copies++
		w.hit.Copies = append(w.hit.Copies, f.e.now)
	}
	if d.Keep = w.copies > 0; d.Keep {
		w.due += w.hit.f.Gap
		f.wait(w)
	}
	return append(out, d)
}

// overtake books a packet that passes as one that overtakes those of its flow
// that wait for it, and lets go those that have waited for enough. A packet
// that is itself what waits, sent again, ends the waiting: nothing new came.
func (f *faults) overtake(ev model.Event, w *waiting, again []uint64, out []model.Decision) []model.Decision {
	if !w.data {
		return out
	}
	var free []*waiting
	for _, o := range f.waits {
		if o.behind == 0 || o.flow != w.flow || o == w {
			continue
		}
		if slices.Contains(again, o.hit.Message) {
			o.behind = 0
			o.hit.Why = model.ReasonCameAgain
			free = append(free, o)
			continue
		}
		o.hit.Behind++
		if o.behind--; o.behind == 0 {
			o.hit.Why = model.ReasonOvertaken
			free = append(free, o)
		}
	}
	for _, o := range free {
		f.waits = slices.DeleteFunc(f.waits, func(x *waiting) bool { return x == o })
		out = f.goOn(ev, o, o.hit.Why, out)
	}
	return out
}

// give drops what is kept of a connection that is reset: in this direction all
// that waits, in order.
func (f *faults) give(ev model.Event, stream string, h *hit) []model.Decision {
	var out []model.Decision
	drop := func(w *waiting) {
		d := f.about(ev, w.frame, h, model.DropPacket, model.ReasonAfterReset)
		switch {
		case w.copies > 0:
			d.Action = model.Skip
		case w.hit != nil:
			w.hit.Why = d.Reason
			fallthrough
		default:
			h.After++
			h.f.proof.Lost++
		}
		out = append(out, d)
	}
	for _, w := range f.queues[stream] {
		drop(w)
	}
	for _, w := range f.waits {
		if w.flow == stream && (w.copies > 0 || w.hit.f.Kind == model.FaultReorder) {
			drop(w)
		}
	}
	delete(f.queues, stream)
	f.waits = slices.DeleteFunc(f.waits, func(w *waiting) bool { return w.flow == stream })
	for n, l := range f.lost {
		if l.Stream == stream {
			delete(f.lost, n)
		}
	}
	return out
}

// stop ends all faults: what is kept goes on now, in the order in which it would
// have.
func (f *faults) stop(ev model.Event, out []model.Decision) []model.Decision {
	for len(f.waits) > 0 {
		w := f.waits[0]
		f.waits = f.waits[1:]
		switch {
		case w.copies > 0: // those not sent yet are not sent
			w.hit.f.proof.Early++
			out = append(out, f.about(ev, w.frame, w.hit, model.Skip, model.ReasonStop))
		case w.hit.Stream != "" && w.hit.f.Kind != model.FaultReorder:
			q := f.queues[w.flow]
			delete(f.queues, w.flow)
			for _, x := range q {
				out = f.goOn(ev, x, model.ReasonStop, out)
			}
			f.waits = slices.DeleteFunc(f.waits, func(x *waiting) bool { return slices.Contains(q, x) })
		default:
			w.behind = 0
			out = f.goOn(ev, w, model.ReasonStop, out)
		}
	}
	clear(f.fresh)
	return out
}

// result is what the faults did, in their order.
func (f *faults) result() []model.FaultProof {
	var out []model.FaultProof
	for i := range f.list {
		p := f.list[i].proof
		p.Hits = nil
		for _, h := range f.list[i].hits {
			x := h.FaultHit
			x.Copies = slices.Clone(x.Copies)
			p.Hits = append(p.Hits, x)
		}
		out = append(out, p)
	}
	return out
}
