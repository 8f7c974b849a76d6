package engine

import (
	"slices"

	"netsplit/model"
)

// change begins a message fault of a script, or ends one.
func (e *Engine) change(ev model.Event, out []model.Decision) []model.Decision {
	switch c := ev.Fault; {
	case c == nil:
	case c.Begin != nil:
		e.extend(model.Fault{Message: c.Begin}).phase = phaseActive
	case c.End >= 1 && c.End <= len(e.steps) && e.steps[c.End-1].fault != nil:
		e.steps[c.End-1].phase = phaseDone
		out = e.faults.end(ev, e.steps[c.End-1].fault, out)
	}
	return out
}

// ruleCut begins a cut of a script, or ends one.
func (e *Engine) ruleCut(ev model.Event, out []model.Decision) []model.Decision {
	switch a := ev.RuleCut; {
	case a == nil:
	case a.Step == 0:
		e.faults.ruleCut(a)
	case a.Partition != nil:
		x := e.extend(model.Fault{Cut: a.Partition})
		e.faults.spare(x.num, a.Spared)
		out = e.begin(ev, x, model.ReasonScript, 0, out)
	case a.Step <= len(e.steps) && e.steps[a.Step-1].cuts():
		out = append(out, e.end(ev, e.steps[a.Step-1], model.ReasonScript))
	}
	return out
}

// extend appends a step to the scenario.
func (e *Engine) extend(do model.Fault) *step {
	st := model.Step{Do: do}
	e.s.Steps = append(slices.Clip(e.s.Steps), st)
	return e.add(st)
}

// spare enters that packets that wait are of none of the traffic of a cut.
func (f *faults) spare(step int, frames []uint64) {
	all := [][]*waiting{f.waits}
	for _, q := range f.queues {
		all = append(all, q)
	}
	for _, w := range slices.Concat(all...) {
		if slices.Contains(frames, w.frame) {
			p := *w.packet // the log has the packet as it came
			p.SparedBy = append(slices.Clip(p.SparedBy), step)
			w.packet = &p
		}
	}
}

// end ends a fault: what it kept goes on now, in the order in which it would have.
func (f *faults) end(ev model.Event, x *fault, out []model.Decision) []model.Decision {
	var own []*waiting
	f.waits = slices.DeleteFunc(f.waits, func(w *waiting) bool {
		if w.hit.f == x {
			own = append(own, w)
		}
		return w.hit.f == x
	})
	for _, w := range own {
		switch {
		case w.copies > 0: // those not sent yet are not sent
			x.proof.Early++
			out = append(out, f.about(ev, w.frame, w.hit, model.Skip, model.ReasonEnded))
		case w.hit.Stream != "" && x.Kind != model.FaultReorder: // it may wait behind another fault's
			out = f.drain(ev, w.flow, out)
		default:
			w.behind = 0
			out = f.goOn(ev, w, model.ReasonEnded, out)
		}
	}
	return out
}

// ruleCut begins or ends a cut of a script in earlier records.
func (f *faults) ruleCut(a *model.RuleCut) {
	switch {
	case a == nil:
	case a.Partition == nil:
		delete(f.ruleCuts, a.Name)
	default:
		f.ruleCuts[a.Name] = a.Kept
	}
}

// refuses says whether a cut is across a packet that is to go on.
func (f *faults) refuses(w *waiting) bool {
	if f.e.refuses(w.packet) {
		return true
	}
	for _, kept := range f.ruleCuts {
		if slices.Contains(kept, w.frame) {
			return true
		}
	}
	return false
}
