package engine

import "netsplit/model"

// bound ends, once, the steps that have not begun when the scenario's LastFault is over, and
// the message faults, which would act on further messages. Cuts and crashes that have begun
// go on to their ends.
func (e *Engine) bound(ev model.Event) (out []model.Decision) {
	if e.bounded || !e.on || e.s.LastFault == 0 || e.now-e.armedAt < e.s.LastFault {
		return nil
	}
	e.bounded = true
	for _, x := range e.steps {
		switch {
		case x.phase < phaseActive:
			x.phase = phaseDone
		case x.phase == phaseActive && x.fault != nil:
			x.phase = phaseDone
			out = e.faults.end(ev, x.fault, out)
		}
	}
	return out
}
