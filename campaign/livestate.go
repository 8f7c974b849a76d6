package campaign

import (
	"context"
	"fmt"
	"slices"

	"netsplit/model"
)

// setView notes what shows the live state of a run; nil: the run is over.
func (s *Service) setView(run string, live func(after uint64) model.LiveState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live == nil {
		delete(s.views, run)
		return
	}
	s.views[run] = live
}

// LiveState is what a run under way shows. Of its events it has those after the given number.
// A run that has ended is a conflict.
func (s *Service) LiveState(ctx context.Context, run string, after uint64) (model.LiveState, error) {
	about := func() (campaign, target, phase string, under bool) {
		for id, j := range s.jobs {
			if slices.Contains(j.c.Running, run) {
				return id, j.c.Spec.Target, j.c.Doing[run], true
			}
		}
		return "", "", "", false
	}
	s.mu.Lock()
	live := s.views[run]
	campaign, target, phase, under := about()
	s.mu.Unlock()
	if !under {
		sum, err := s.store.GetRun(run)
		if err != nil {
			return model.LiveState{}, err
		}
		return model.LiveState{}, fmt.Errorf("%w: run %s has ended (%s): read its record or its report", model.ErrConflict, run, sum.Verdict.Value)
	}
	var out model.LiveState
	if live != nil { // else it waits for its lab
		out = live(after)
	}
	out.Campaign, out.Run, out.Target, out.Phase = campaign, run, target, phase
	return out, nil
}
