package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"netsplit/campaign/judge"
	"netsplit/campaign/points"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Points says which faults a search could make, by the recorded runs of a campaign, and which of
// them the policies of a query keep. One client at a time is answered.
func (s *Service) Points(ctx context.Context, campaign string, q model.PointsQuery) (out model.FaultPoints, err error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return out, err
	}
	if err := s.turn(ctx); err != nil {
		return out, err
	}
	defer s.querying.Unlock()
	p, err := judge.CleanProfiles([]string{filepath.Join(s.cfg.RunsDir, campaign)}, judge.AskedSetup{}, q.Keys)
	if err != nil {
		return out, noCleanRun(campaign, err)
	}
	return points.Of(p, q)
}

// MinedPairs mines the clean runs of a campaign again, and says of each pair of variables why it
// is an invariant or not. One client at a time is answered.
func (s *Service) MinedPairs(ctx context.Context, campaign, about string) (out model.MinedPairs, err error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return out, err
	}
	if err := s.turn(ctx); err != nil {
		return out, err
	}
	defer s.querying.Unlock()
	out, err = judge.Pairs(filepath.Join(s.cfg.RunsDir, campaign), about)
	return out, noCleanRun(campaign, err)
}

// noCleanRun makes judge.ErrNoCleanRun a conflict, without the folder.
func noCleanRun(campaign string, err error) error {
	if errors.Is(err, judge.ErrNoCleanRun) {
		return fmt.Errorf("%w: campaign %s has %w: it made none yet, or their records were deleted", model.ErrConflict, campaign, judge.ErrNoCleanRun)
	}
	return err
}

// Account says what became of all that a search could have run.
func (s *Service) Account(_ context.Context, campaign string) (out model.Account, err error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return out, err
	}
	err = rundir.ReadJSON(filepath.Join(s.cfg.RunsDir, campaign, rundir.AccountFile), &out)
	if errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("%w: campaign %s has no account of what it ran: a search writes it when it ends", model.ErrConflict, campaign)
	}
	return out, err
}
