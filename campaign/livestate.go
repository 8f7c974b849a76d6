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
	s.mu.Lock()
	live := s.views[run]
	var under *model.Campaign
	for _, j := range s.jobs {
		if slices.Contains(j.c.Running, run) {
			under = &model.Campaign{ID: j.c.ID, Spec: j.c.Spec, Doing: map[string]string{run: j.c.Doing[run]}}
		}
	}
	s.mu.Unlock()
	if under == nil {
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
	out.Campaign, out.Run, out.Target, out.Phase = under.ID, run, under.Spec.Target, under.Doing[run]
	return out, nil
}
