package campaign

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record/rundir"
)

func (b *books) causes(campaign string) []model.Cause {
	return check.Causes(campaign, slices.Collect(maps.Values(b.marks)))
}

// bookedCauses are the causes of a campaign under way, and how many runs with faults its
// search made.
func (s *Service) bookedCauses(j *job) ([]model.Cause, int, error) {
	s.booking.Lock()
	defer s.booking.Unlock()
	b, err := s.booksOf(j)
	if err != nil {
		return nil, 0, err
	}
	faulty := 0
	for i := range b.runs {
		if b.runs[i].ReplayOf == "" && b.runs[i].Scenario.Faulty() {
			faulty++
		}
	}
	return b.causes(j.c.ID), faulty, nil
}

// Causes are what the failed runs of a campaign are of, the costliest first, with what
// replays of these runs showed since.
func (s *Service) Causes(ctx context.Context, campaign string) ([]model.Cause, error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return nil, err
	}
	s.mu.Lock()
	j := s.jobs[campaign]
	s.mu.Unlock()
	var out []model.Cause
	var err error
	if j != nil {
		out, _, err = s.bookedCauses(j)
	} else if err = rundir.ReadJSON(s.causesFile(campaign), &out); errors.Is(err, fs.ErrNotExist) { // of an earlier version, or its folder is gone
		var b *books
		if b, err = s.readBooks(campaign, nil); err == nil {
			out = b.causes(campaign)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, s.addTries(out)
}

func (s *Service) causesFile(campaign string) string {
	return filepath.Join(s.cfg.RunsDir, campaign, rundir.CausesFile)
}

// addTries enters what replays of the runs of causes showed.
func (s *Service) addTries(causes []model.Cause) error {
	campaigns, err := s.allCampaigns() // the newest first
	if err != nil {
		return err
	}
	type tried struct {
		replays, reproduced int
		shrunk              *model.Shrunk
	}
	by := map[string]*tried{}
	of := func(run string) *tried {
		if by[run] == nil {
			by[run] = &tried{}
		}
		return by[run]
	}
	for _, c := range campaigns {
		if c.Spec.Replay != "" && !c.Spec.WithoutCut && c.Spec.Shrink == 0 {
			t := of(c.Spec.Replay)
			t.replays, t.reproduced = t.replays+c.Done, t.reproduced+c.Reproduced
		}
		for _, x := range c.Shrunk {
			t := of(x.Run)
			t.replays, t.reproduced = t.replays+x.All.Tries, t.reproduced+x.All.Failed
			if t.shrunk == nil || t.shrunk.Smallest == nil {
				t.shrunk = &x
			}
		}
	}
	for i := range causes {
		c := &causes[i]
		for _, run := range c.Runs {
			t := by[run]
			if t == nil {
				continue
			}
			c.Replays, c.Reproduced = c.Replays+t.replays, c.Reproduced+t.reproduced
			if t.shrunk != nil && (c.Shrunk == nil || smaller(t.shrunk, c.Shrunk)) {
				c.Shrunk = t.shrunk
			}
		}
	}
	return nil
}

func smaller(a, b *model.Shrunk) bool {
	return a.Smallest != nil && (b.Smallest == nil || len(a.Keep) < len(b.Keep))
}
