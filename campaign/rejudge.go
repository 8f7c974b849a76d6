package campaign

import (
	"context"
	"fmt"

	"netsplit/campaign/judge"
	"netsplit/inference/store"
	"netsplit/model"
)

// JudgeRun judges the record of a run again, as with a newer netsplit, and brings the findings,
// causes, partition map and report of its campaign up to date. The campaign must not be queued
// or under way: its search has taken the verdict that there was.
func (s *Service) JudgeRun(ctx context.Context, id string) (sum model.RunSummary, err error) {
	old, err := s.store.GetRun(id)
	if err != nil {
		return sum, err
	}
	if old.CutShort {
		return sum, fmt.Errorf("%w: run %s was cut short, so there is nothing to judge: its scenario was run again", model.ErrConflict, id)
	}
	if err := s.campaignRests(old.Campaign); err != nil {
		return sum, err
	}
	var c model.Campaign
	err = s.ask(ctx, id, func(dir string) error {
		if sum, err = judge.Dir(dir, s.replayCommand(id)); err != nil {
			return err
		}
		sum.Cost, sum.Result.GivenUp = old.Cost, old.Result.GivenUp
		c, err = s.bookAgain(sum)
		return err
	})
	if err != nil {
		return sum, err
	}
	if sum.ReplayOf != "" {
		orig, err := s.store.GetRun(sum.ReplayOf)
		if err == nil {
			err = s.bookReplay(orig)
		}
		if err != nil {
			s.log.Warn("the findings of the replayed run keep their numbers of replays", "run", sum.ReplayOf, "err", err)
		}
	}
	s.tryReportCampaign(&job{c: c}, true)
	text := "judged again"
	if old.Verdict.Value != sum.Verdict.Value {
		text += fmt.Sprintf(", it was %s", old.Verdict.Value)
	}
	s.tell("run", id, string(sum.Verdict.Value), text+": "+sum.Verdict.Reason)
	return sum, nil
}

// campaignRests refuses a campaign that is queued or under way.
func (s *Service) campaignRests(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[id] != nil {
		return fmt.Errorf("%w: campaign %s is queued or under way: wait for its end, or pause it", model.ErrConflict, id)
	}
	return nil
}

// bookAgain stores a run that was judged again, in place of what was stored of it, and what
// that changes of its campaign.
func (s *Service) bookAgain(sum model.RunSummary) (c model.Campaign, err error) {
	s.booking.Lock()
	defer s.booking.Unlock()
	if err := s.campaignRests(sum.Campaign); err != nil { // it may have been resumed
		return c, err
	}
	if c, err = s.getCampaign(sum.Campaign); err != nil {
		return c, err
	}
	b, err := s.readBooks(sum.Campaign, &sum)
	if err != nil {
		return c, err
	}
	before, err := s.allFindings(sum.Campaign)
	if err != nil {
		return c, err
	}
	gone, now := map[string]bool{}, map[string]model.Finding{}
	for _, f := range before {
		gone[f.ID], now[f.ID] = true, f
	}
	if c.Spec.Replay == "" {
		var found []model.Finding
		c.Findings, found = b.merge(c.ID) // all, as b knows of none that are stored
		for _, f := range found {
			if old := now[f.ID]; old.Run == f.Run { // else those are replays of another run
				f.Replays, f.Reproduced = old.Replays, old.Reproduced
			}
			delete(gone, f.ID)
			now[f.ID] = f
		}
	}
	err = s.store.Update(func(tx *store.Tx) error {
		if err := tx.PutRun(sum); err != nil {
			return err
		}
		for id, f := range now {
			if gone[id] {
				err = tx.DeleteFinding(id)
			} else {
				err = tx.PutFinding(f)
			}
			if err != nil {
				return err
			}
		}
		return tx.PutCampaign(c)
	})
	if err != nil {
		return c, err
	}
	s.judging.Delete(c.ID)
	s.keepEnd(&job{c: c, books: b})
	return c, nil
}
