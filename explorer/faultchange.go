package explorer

import (
	"slices"

	"netsplit/model"
)

// change begins a fault, or ends one: what that kept goes on now, in the order in which
// it would have.
func (f *faults) change(ev model.Event, out []model.Decision) []model.Decision {
	c := ev.Fault
	switch {
	case c != nil && c.Begin != nil:
		f.e.s.Faults = append(slices.Clip(f.e.s.Faults), *c.Begin)
		f.begin(*c.Begin)
		return out
	case c == nil || c.End < 1 || c.End > len(f.list):
		return out
	}
	x := f.list[c.End-1]
	x.ended = true
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
	if f.e.refuses(w.link, w.spared) {
		return true
	}
	for _, kept := range f.ruleCuts {
		if slices.Contains(kept, w.frame) {
			return true
		}
	}
	return false
}
