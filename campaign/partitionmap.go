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
func (s *Service) PartitionMap(ctx context.Context, campaign string) (out model.PartitionMap, err error) {
	if _, err := s.getCampaign(campaign); err != nil {
		return out, err
	}
	s.mu.Lock()
	j := s.jobs[campaign]
	s.mu.Unlock()
	if j != nil {
		s.booking.Lock()
		defer s.booking.Unlock()
		b, err := s.booksOf(j)
		if err != nil {
			return out, err
		}
		return b.parts.All(), nil
	}
	err = rundir.ReadJSON(s.mapFile(campaign), &out)
	if errors.Is(err, fs.ErrNotExist) { // of an earlier version, or it could not be written
		var b *books
		if b, err = s.readBooks(campaign, nil); err == nil {
			out = b.parts.All()
		}
	}
	return out, err
}

// countMap keeps the counts of the map for metrics. The caller holds booking.
func (s *Service) countMap(b *books) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mapCount = b.parts.Count()
}

func (s *Service) mapFile(campaign string) string {
	return filepath.Join(s.cfg.RunsDir, campaign, rundir.MapFile)
}
