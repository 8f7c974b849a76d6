package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"netsplit/campaign/judge"
	"netsplit/explorer"
	"netsplit/explorer/check"
	"netsplit/model"
)

const (
	defaultShrink = 3 // tries of each scenario
	maxShrink     = 100
	// shrinkRuns is how many tries a search may make for its causes, or as many as it made
	// runs with faults, if those are more.
	shrinkRuns = 60
	// maxSteps bounds the steps of which each is left out.
	maxSteps = 32
)

// completeShrink fills in how often each scenario is tried, and refuses an impossible spec.
func (s *Service) completeShrink(spec model.CampaignSpec) (model.CampaignSpec, error) {
	bad := func(format string, args ...any) (model.CampaignSpec, error) {
		return spec, fmt.Errorf("%w: shrink: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
	}
	sequences := spec.Replay == "" && spec.Strategy == model.StrategySequences
	switch {
	case spec.Shrink > maxShrink:
		return bad("%d tries of each scenario: use at most %d", spec.Shrink, maxShrink)
	case sequences && spec.Shrink == 0:
		spec.Shrink = defaultShrink
	case spec.Shrink != 0 && spec.Replay == "" && !sequences:
		return bad("it takes a failed run to replay, or strategy sequences")
	case spec.Replay == "" || spec.Shrink == 0:
	case spec.Shrink < 0:
		return bad("%d tries: use 1 to %d", spec.Shrink, maxShrink)
	case spec.WithoutCut:
		return bad("it makes the runs without a cut itself: leave withoutCut out")
	default:
		sum, err := s.store.GetRun(spec.Replay)
		if err != nil {
			return spec, err
		}
		n := len(sum.Scenario.Steps)
		switch _, failed := check.Costliest(sum.Verdict); {
		case !failed:
			return bad("run %s did not fail (%s), so there is nothing to look for", spec.Replay, sum.Verdict.Value)
		case n == 0:
			return bad("run %s failed without any fault: it has no steps to leave out", spec.Replay)
		case n > maxSteps:
			return bad("run %s has %d steps: at most %d can be left out one by one", spec.Replay, n, maxSteps)
		}
		spec.Runs = 0 // as many as it takes
	}
	return spec, nil
}

// shrinkReplay finds what the failure of a run needs of its steps.
func (s *Service) shrinkReplay(ctx context.Context, j *job, r place) error {
	orig, err := s.store.GetRun(j.c.Spec.Replay)
	if err != nil {
		return err
	}
	if err := s.tellChanged(j, r, orig); err != nil {
		return err
	}
	if _, err := s.underWay(j, func(model.RunMeta) bool { return false }); err != nil { // of the last daemon: they are tried anew
		return err
	}
	got, err := s.shrink(j, orig, nil, s.triesOn(ctx, j, r))
	s.update(j, func(c *model.Campaign) { c.Shrunk = []model.Shrunk{got} })
	return err
}

// shrinkCauses tries the smallest sequence of each cause without each of its steps. It skips
// causes that clean runs show, too: they need no step.
func (s *Service) shrinkCauses(j *job, makes tries) error {
	if j.c.Spec.Shrink <= 0 || j.c.Spec.Strategy != model.StrategySequences {
		return nil
	}
	causes, left, err := s.bookedCauses(j)
	if err != nil {
		return err
	}
	left = max(left, shrinkRuns)
	todo := slices.DeleteFunc(causes, func(c model.Cause) bool { return c.Clean || len(c.Steps) == 0 })
	for i, c := range todo {
		if slices.ContainsFunc(j.c.Shrunk, func(x model.Shrunk) bool { return x.Run == c.Run }) {
			continue
		}
		orig, err := s.store.GetRun(c.Run)
		if err != nil {
			return err
		}
		s.tell("cause", c.ID, "shrinking", fmt.Sprintf("run %s, the smallest of cause %d of %d, is tried without each of its steps: %s", c.Run, i+1, len(todo), c.Rule))
		got, err := s.shrink(j, orig, &left, makes)
		if err != nil && !errors.Is(err, errBudget) {
			return err
		}
		s.update(j, func(c *model.Campaign) {
			if got.All.Tries > 0 {
				c.Shrunk = append(c.Shrunk, got)
			}
			if n := len(todo) - i; got.Why != "" && got.Smallest == nil && got.All.Tries == 0 || err != nil {
				what := "the tries that a search makes for its causes"
				if err != nil {
					what = errBudget.Error() + ", which"
				}
				c.Reason = joinReasons(c.Reason, fmt.Sprintf("%s ended before %d of %d causes had been tried without each step: netsplit shrink RUN goes on", what, n, len(todo)))
			}
		})
		if err != nil || got.All.Tries == 0 {
			break
		}
	}
	return nil
}

// shrink tries the scenario of a failed run without its steps. Tries that the campaign has
// made count, so that it can continue after a restart. left, if set, is how many tries it may
// make; shrink counts it down. On an error it also returns what it found before.
func (s *Service) shrink(j *job, orig model.RunSummary, left *int, makes tries) (model.Shrunk, error) {
	f, _ := check.Costliest(orig.Verdict)
	sc := explorer.Replay(orig.Scenario, orig.Result)
	sc.ID = orig.Scenario.ID
	past, err := judge.Past(s.runDir(orig.Campaign, orig.Run))
	if err != nil { // its record is gone, so the times of some steps are not known
		s.log.Info("a run is shrunk without its record", "run", orig.Run, "err", err)
	}
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return model.Shrunk{}, err
	}
	earlier := map[string][]model.RunSummary{} // by what they lack
	for _, o := range made(runs) {
		if o.ReplayOf == orig.Run {
			earlier[o.Scenario.Why] = append(earlier[o.Scenario.Why], o)
		}
	}
	each, all := j.c.Spec.Shrink, 0
	try := func(places []int) (model.Tally, error) {
		only, _ := explorer.Only(sc, places, past)
		sums := earlier[only.Why]
		for n := missing(sums, each); n > 0; n = missing(sums, each) {
			if left != nil && n > *left {
				return model.Tally{}, explorer.ErrTries
			}
			more, err := makes(orig.Run, only, n)
			if err != nil {
				return model.Tally{}, err
			}
			if left != nil {
				*left -= n
			}
			sums = append(sums, more...)
		}
		all += len(sums)
		return tally(sums, f), nil
	}
	out, err := explorer.Shrink(sc, past, try)
	if out.Smallest != nil {
		out.Smallest.Observe, out.Smallest.Or = nil, nil // only searches need these
	}
	out.Run, out.Campaign, out.Cause, out.Tries, out.Made = orig.Run, j.c.ID, check.CauseOf(f), each, all
	return out, err
}

// missing is how many tries a scenario still needs. Tries that could not be judged are
// repeated, up to twice as many tries in all.
func missing(sums []model.RunSummary, tries int) int {
	judged := 0
	for _, r := range sums {
		if r.Verdict.Value != model.VerdictUnknown {
			judged++
		}
	}
	return min(tries-judged, 2*tries-len(sums))
}

// tries makes n runs of a scenario that repeats a run in part, and books them.
type tries func(of string, sc model.Scenario, n int) ([]model.RunSummary, error)

func (s *Service) triesOn(ctx context.Context, j *job, r place) tries {
	return func(of string, sc model.Scenario, n int) (out []model.RunSummary, err error) {
		runs, err := s.allRuns(j.c.ID)
		if err != nil {
			return nil, err
		}
		last := s.lastRunNumber(j.c.ID, runs, nil)
		var mu sync.Mutex
		err = s.several(ctx, j, r, n, func(i int) model.WorkItem {
			one := sc
			one.ID = fmt.Sprintf("try%04d", last+i)
			return model.WorkItem{Campaign: j.c.ID, Run: fmt.Sprintf("%s-r%04d", j.c.ID, last+i), Spec: j.c.Spec, Scenario: one, ReplayOf: of}
		}, func(sum model.RunSummary) {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, sum)
		})
		return out, err
	}
}

// tally counts the runs that show the cause of f.
func tally(runs []model.RunSummary, f model.Failure) model.Tally {
	t := model.Tally{Tries: len(runs)}
	for _, r := range runs {
		switch {
		case check.Shows(r.Verdict, f):
			t.Failed++
		case r.Verdict.Value == model.VerdictUnknown || r.Verdict.Value == model.VerdictVacuous:
			t.Idle++
		}
	}
	return t
}
