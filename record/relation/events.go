package relation

import (
	"fmt"
	"time"

	"netsplit/model"
)

// decided reads what was decided about packets. What passes while nothing is cut has no
// decision in the record.
func (b *builder) decided(ds []model.Decision) {
	for _, d := range ds {
		b.decidedFiles(d)
		switch _, known := b.frames[d.Frame]; {
		case d.Frame == 0 || known: // what comes later is about copies of it
		case d.Action == model.Hold:
			b.holds[d.Frame] = true
		case d.Action != "":
			b.frames[d.Frame] = d
		}
		if d.Frame != 0 {
			b.held[d.Frame] = model.HeldPacket{}
		}
	}
}

func (b *builder) event(e model.Event) {
	b.events, b.times = append(b.events, e.Num), append(b.times, e.At)
	b.scenario.Extend(&e)
	text := e.Note
	switch e.Kind {
	case model.EventStart, model.EventWorkload, model.EventStop, model.EventInForce:
		b.row("moment", e.Num, e.At, e.Kind)
	case model.EventMessage:
		b.message(e.Num, e)
	case model.EventPacket:
		b.packet(e.Num, e.Packet)
	case model.EventObserve:
		o := e.Observation
		b.row("obs", e.Num, e.At, o.Var.Node, o.Var.Name, o.Var.About, o.Kind, o.Value, nullIfZero(o.Message), o.Probe)
	case model.EventNode:
		b.row("node", e.Num, e.At, e.Node.Host, e.Node.Process, e.Node.Verb, nil)
		if e.Node.Verb == model.NodeStart {
			b.starts = append(b.starts, e)
		}
	case model.EventFile:
		b.file(e)
	case model.EventDisk:
		b.damaged(e)
	case model.EventStep:
		text = fmt.Sprintf("%s: %s", e.Step.Text, e.Step.Outcome)
	case model.EventRole:
		text = fmt.Sprintf("%s: %v", e.Role.Role, e.Role.Have)
		for _, h := range e.Role.Have {
			b.row("role", e.Num, e.At, e.Role.Role, h)
		}
		if len(e.Role.Have) == 0 {
			b.row("role", e.Num, e.At, e.Role.Role, nil)
		}
	case model.EventRuleCut:
		b.healed(e.RuleCut.Name, e.Num)
		if p := e.RuleCut.Partition; p != nil {
			b.cut(e.Num, e.At, e.RuleCut.Name, *p, nil)
		}
	}
	b.row("event", e.Num, e.At, e.Kind, nullIfZero(text))
}

// message enters a message as one that passed with its event, as at the mirror. At the
// gate its packet follows, and says more.
func (b *builder) message(n uint64, e model.Event) {
	m := e.Message
	b.messages[m.Num] = n
	b.row("message", n, m.Num, e.At, m.From, m.To, m.FromPort, m.ToPort, m.Type, m.Stream, m.Bytes, model.Pass, n)
	for _, f := range m.Fields {
		b.row("field", n, m.Num, f.Name, f.Value)
	}
}

// packet gives the messages of a packet their fate.
func (b *builder) packet(n uint64, p *model.HeldPacket) {
	if _, ok := b.held[p.Frame]; ok {
		b.held[p.Frame] = *p
	}
	fate, passed := model.Pass, any(n)
	switch d, ok := b.frames[p.Frame]; {
	case ok && d.Action == model.Pass:
		passed = d.Event
	case ok:
		fate, passed = d.Action, nil
	case b.holds[p.Frame]:
		fate, passed = model.Hold, nil
	}
	for _, num := range p.Messages {
		b.update(fateOf, fate, passed, b.messages[num])
	}
	if passed != nil {
		for _, num := range p.Again {
			b.update(fateAgain, fate, passed, b.messages[num])
		}
	}
}

const (
	fateOf    = `UPDATE message SET fate = ?, passed_n = ? WHERE n = ?`
	fateAgain = fateOf + ` AND passed_n IS NULL`
)

func (b *builder) update(sql string, values ...any) {
	if b.err != nil {
		return
	}
	if b.inserts[sql] == nil {
		if b.inserts[sql], _, b.err = b.db.Prepare(sql); b.err != nil {
			return
		}
	}
	b.run(b.inserts[sql], values)
}

func (b *builder) cut(n uint64, at time.Duration, name string, p model.Partition, came model.Renaming) {
	b.cuts[name] = n
	b.row("moment", n, at, "cut")
	b.row("cut", n, at, name, p.Shape, p.Effect, nil)
	for _, l := range p.Links() {
		b.row("cut_link", n, name, came.Node(l.Src), came.Node(l.Dst))
	}
}

// stepName names the cut of a decision. Earlier records have one cut, and no step.
func stepName(d model.Decision) string {
	if d.Step == 0 {
		return ""
	}
	return model.StepName(d.Step)
}

func (b *builder) healed(name string, n uint64) {
	if at, ok := b.cuts[name]; ok {
		delete(b.cuts, name)
		b.update(`UPDATE cut SET until_n = ? WHERE n = ? AND name = ?`, n, at, name)
	}
}

// end enters what decisions did, whose packets are known now, and the last moment.
func (b *builder) end(ds []model.Decision) {
	for _, d := range ds {
		if d.Cut && d.Reason != model.ReasonScript { // those of scripts are events
			step := b.scenario.Cut()
			if d.Step > 0 && d.Step <= len(b.scenario.Steps) {
				step = b.scenario.Steps[d.Step-1]
			}
			if p := step.Do.Cut; p != nil {
				b.cut(d.Event, d.At, stepName(d), *p, b.renaming)
			}
		}
		if d.Heal {
			b.row("moment", d.Event, d.At, "heal")
			if d.Reason != model.ReasonScript {
				b.healed(stepName(d), d.Event)
			}
		}
		b.decision(d)
	}
}

// decision enters a decision, and what a message fault did by it.
func (b *builder) decision(d model.Decision) {
	p := b.held[d.Frame]
	num, what := d.Message, string(d.Verb)
	if num == 0 && len(p.Messages) > 0 {
		num = p.Messages[0]
	}
	switch {
	case d.Cut:
		what = "cut"
	case d.Heal:
		what = "heal"
	}
	b.row("decision", d.Event, d.At, nullIfZero(p.From), nullIfZero(p.To), nullIfZero(num), d.Action, what, d.Step, d.Reason)
	if d.Fault == 0 {
		return
	}
	var kind any
	if f := b.scenario.Fault(d.Fault); f != nil {
		kind = f.Kind
	}
	b.row("fault", d.Event, d.At, d.Fault, kind, nullIfZero(p.From), nullIfZero(p.To), nullIfZero(num), d.Action, d.Reason)
}
