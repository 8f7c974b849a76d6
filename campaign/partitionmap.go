package campaign

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"netsplit/model"
	"netsplit/record/rundir"
)

// PartitionMap says for each type of message on each directed link of a campaign whether
// faults met it, and how those runs ended. It is sorted by type, from and to.
func (s *Service) PartitionMap(ctx context.Context, campaign string) ([]model.MapCell, error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return nil, err
	}
	s.mu.Lock()
	j := s.jobs[campaign]
	s.mu.Unlock()
	if j != nil {
		s.booking.Lock()
		defer s.booking.Unlock()
		b, err := s.booksOf(j)
		if err != nil {
			return nil, err
		}
		return b.parts.Cells(), nil
	}
	var out []model.MapCell
	err := rundir.ReadJSON(s.mapFile(campaign), &out)
	if errors.Is(err, fs.ErrNotExist) { // of an earlier version, or its folder is gone
		var b *books
		if b, err = s.readBooks(campaign); err == nil {
			out = b.parts.Cells()
		}
	}
	return out, err
}

// countMap keeps the counts of the map for metrics. The caller holds booking.
func (s *Service) countMap(b *books) {
	n := model.CountMap(b.parts.Cells())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mapCount = n
}

func (s *Service) mapFile(campaign string) string {
	return filepath.Join(s.cfg.RunsDir, campaign, rundir.MapFile)
}
