package campaign

import (
	"errors"
	"slices"

	"netsplit/explorer/check"
	"netsplit/model"
)

var (
	errSuspect = errors.New("stopped at the first sign of a wrong target file, as requested")
	errBroken  = errors.New("stopped at the first broken promise, as requested")
)

// watch is what a search is looked at for, run by run.
type watch struct {
	target *model.Target
	tally  check.Tally
}

// watched begins to look at a search of which some runs were made. Its warnings
// from before a restart stay.
func (s *Service) watched(j *job, t *model.Target, runs []model.RunSummary) {
	s.booking.Lock()
	j.watch = &watch{target: t}
	s.change(j, func(c *model.Campaign) { c.Undecided = nil }) // of a search that goes on
	for i := range runs {
		j.watch.tally.Add(&runs[i])
	}
	s.booking.Unlock()
	s.warn(j, nil)
}

// warn enters a finished run (nil: none) and tells of the marks of a wrong target
// file that are new; a search that was asked to ends at the first, or at the first
// broken promise that a cut brought.
func (s *Service) warn(j *job, sum *model.RunSummary) {
	s.booking.Lock()
	defer s.booking.Unlock()
	if j.watch == nil {
		return
	}
	if sum != nil {
		j.watch.tally.Add(sum)
	}
	findings, err := s.allFindings(j.c.ID)
	if err != nil {
		s.log.Error("a campaign could not be looked at for marks of a wrong target file", "campaign", j.c.ID, "err", err)
		return
	}
	if j.c.Spec.StopWhenBroken && slices.ContainsFunc(findings, func(f model.Finding) bool { return f.Class != model.Documented && !f.Clean }) {
		j.cancel(errBroken)
	}
	now := j.watch.tally.Suspect(j.watch.target, findings)
	warnings := slices.DeleteFunc(slices.Clone(j.c.Warnings), func(w model.Warning) bool { // later runs could be judged
		return w.Kind == model.WarnUnjudged && !slices.ContainsFunc(now, func(o model.Warning) bool { return o.Kind == w.Kind && o.About == w.About })
	})
	var fresh []model.Warning
	for _, w := range now {
		i := slices.IndexFunc(warnings, func(o model.Warning) bool { return o.Kind == w.Kind && o.About == w.About })
		if i < 0 {
			warnings, fresh = append(warnings, w), append(fresh, w)
			continue
		}
		warnings[i] = w // the same with other numbers
	}
	if slices.Equal(warnings, j.c.Warnings) {
		return
	}
	s.change(j, func(c *model.Campaign) { c.Warnings = warnings })
	for _, w := range fresh {
		s.tell("warning", j.c.ID, string(w.Kind), w.Text+"; "+w.Advice)
	}
	fileIsWrong := func(w model.Warning) bool { return w.Kind != model.WarnUnjudged } // that may be the machine's doing
	if j.c.Spec.StopWhenSuspect && slices.ContainsFunc(fresh, fileIsWrong) {
		j.cancel(errSuspect)
	}
}

// whyMissed says why states of a variable may not have occurred in fault runs.
func (s *Service) whyMissed(j *job, variable string, recurs bool) string {
	s.booking.Lock()
	defer s.booking.Unlock()
	return j.watch.tally.WhyMissed(j.watch.target.Nodes, variable, recurs)
}

// undecided books why no fault run of a search that is over could be judged.
func (s *Service) undecided(j *job, missed string) {
	if j.c.Spec.Strategy == model.StrategyClean {
		return
	}
	s.update(j, func(c *model.Campaign) { c.Undecided = j.watch.tally.Undecided(missed) })
}
