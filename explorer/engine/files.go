package engine

import (
	"slices"

	"netsplit/model"
)

// played lists the steps of the scenario, to whichever nodes it comes about.
func played(s *model.Scenario) []model.Step {
	all := s.Steps
	for _, r := range s.Or {
		as, _ := substituted(s, r)
		all = append(slices.Clip(all), as.Steps...)
	}
	return all
}

// HoldsFiles says whether the scenario needs a server's file operations held.
func HoldsFiles(s *model.Scenario, host model.NodeID, process string) bool {
	return slices.ContainsFunc(played(s), func(st model.Step) bool { return st.HoldsFiles(host, process) })
}

// CutsPower says whether the scenario may cut a host's power.
func CutsPower(s *model.Scenario, host model.NodeID) bool {
	return slices.ContainsFunc(played(s), func(st model.Step) bool {
		return st.Do.Disk != nil && st.Do.Disk.Kind == model.DiskPowerCut && (st.Do.Disk.Host == host || slices.Contains(st.Do.Roles, string(st.Do.Disk.Host)))
	})
}

// Awaits says whether a step may begin or end with a file operation. What others change is only
// how many a disk fault failed (Lasting): the engine need not be stepped with all of them.
func (e *Engine) Awaits(o *model.FileOperation) bool {
	return e.on && slices.ContainsFunc(e.steps, func(x *step) bool {
		return x.phase != phaseDone && slices.ContainsFunc([]*model.FileTrigger{x.When.File, x.Until.File}, func(t *model.FileTrigger) bool { return t != nil && t.Matches(o) })
	})
}

// Lasting is what becomes of a file operation by disk faults that act now; the zero value: it
// goes on.
func (e *Engine) Lasting(o *model.FileOperation) model.FileAnswer {
	a, _ := e.lasting(o)
	return a
}

func (e *Engine) lasting(o *model.FileOperation) (model.FileAnswer, *step) {
	for _, x := range e.steps {
		if x.phase != phaseActive || !x.lasts() || !x.Do.Disk.Of(o.Host, o.Process) {
			continue
		}
		if a := x.Do.Disk.Answer(o); a != (model.FileAnswer{}) {
			return a, x
		}
	}
	return model.FileAnswer{}, nil
}

// lasts says whether it is a disk fault that acts on all operations while the step lasts.
func (x *step) lasts() bool { return x.Do.Disk != nil && !x.Do.Disk.Once() && !x.Do.Disk.Kills() }

// fileTurn counts a file operation for a trigger that the step awaits, and says whether it
// comes with it.
func (x *step) fileTurn(t *model.FileTrigger, o *model.FileOperation) bool {
	if t == nil || !t.Matches(o) || x.phase == phaseArmed && x.Do.Disk != nil && x.Do.Disk.Once() && !x.Do.Disk.Takes(o) {
		return false
	}
	x.met++
	return x.met == max(t.Nth, 1)
}

// file ends and begins what a file operation ends and begins before it goes on, and answers
// it: no decision has a File where it goes on as asked.
func (e *Engine) file(ev model.Event, out []model.Decision) []model.Decision {
	if !e.on {
		return out
	}
	o, changed := ev.File, false
	for _, x := range e.steps {
		if x.phase == phaseActive && x.fault == nil && e.passed(&x.Until, x.res.Began) && x.fileTurn(x.Until.File, o) {
			out, changed = append(out, e.end(ev, x, model.ReasonFile)), true
		}
	}
	for _, x := range e.steps {
		if x.phase == phaseArmed && e.passed(&x.When, x.armedAt) && x.fileTurn(x.When.File, o) {
			out, changed = e.begin(ev, x, model.ReasonFile, 0, out), true
		}
	}
	if changed {
		out = e.advance(ev, false, out)
	}
	if slices.ContainsFunc(out, func(d model.Decision) bool { return d.File != nil }) {
		return out
	}
	if a, x := e.lasting(o); x != nil {
		x.res.Failed++
		out = append(out, model.Decision{Event: ev.Num, At: ev.At, Step: x.num, Reason: model.ReasonDisk, File: &a})
	}
	return out
}

// disk completes the decision with which a disk fault begins.
func (x *step) disk(ev model.Event, d model.Decision) model.Decision {
	f := x.Do.Disk
	d.Disk = f.Kind
	switch {
	case f.Kills():
		d.Verb = model.NodeKill
	case f.Once():
		a := f.Answer(ev.File)
		d.File = &a
		x.res.Failed = 1
	}
	return d
}
