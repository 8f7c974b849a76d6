package explorer

import (
	"slices"

	"netsplit/model"
)

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
