package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"netsplit/campaign/judge"
	"netsplit/campaign/points"
	"netsplit/model"
)

// Points says which single faults a search could make, by the recorded clean runs of a campaign,
// and which of them the policies of a query keep. One client at a time is answered.
func (s *Service) Points(ctx context.Context, campaign string, q model.PointsQuery) (out model.FaultPoints, err error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return out, err
	}
	if err := s.turn(ctx); err != nil {
		return out, err
	}
	defer s.querying.Unlock()
	p, err := judge.CleanProfiles([]string{filepath.Join(s.cfg.RunsDir, campaign)}, q.Keys)
	if errors.Is(err, judge.ErrNoCleanRun) {
		return out, fmt.Errorf("%w: campaign %s has %w: it made none yet, or their records were deleted", model.ErrConflict, campaign, judge.ErrNoCleanRun)
	}
	if err != nil {
		return out, err
	}
	return points.Of(p, q)
}
