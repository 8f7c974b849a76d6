package campaign

import (
	"slices"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

// shownFindings is how many findings are shown again after a restart, the last ones. All are
// counted: a counter that falls would look like new findings.
const shownFindings = 500

func (s *Service) restoreMetrics() error {
	counts, err := s.store.CountRuns()
	if err != nil {
		return err
	}
	for k, n := range counts {
		s.metrics.RunsDone(k.Target, k.Strategy, k.Verdict, n)
	}
	found, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings("", page, c) }) // the newest first
	if err != nil {
		return err
	}
	for i, f := range slices.Backward(found) { // the newest last: it is shown longest
		if i < shownFindings {
			s.metrics.Finding(f)
		} else {
			s.metrics.FoundBefore(f.Target, f.Class)
		}
	}
	cuts, _, err := s.store.Annotations(time.Time{}, time.Now(), 1)
	if err == nil && len(cuts) > 0 {
		s.metrics.LastCut(cuts[0].From)
	}
	if err != nil {
		return err
	}
	return s.restoreMap()
}

// restoreMap counts the map of the last campaign that has runs. While that one goes on it has no
// file, and its next run counts the map.
func (s *Service) restoreMap() error {
	rows, err := all(func(c string) ([]model.Campaign, string, error) {
		return s.store.ListCampaigns(model.CampaignFilter{}, page, c)
	})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(c model.Campaign) bool { return c.Done > 0 && c.Spec.Replay == "" })
	if i < 0 {
		return nil
	}
	var m model.PartitionMap
	err = rundir.ReadJSON(s.mapFile(rows[i].ID), &m)
	if err != nil { // it goes on, or its map could not be written
		return nil
	}
	s.mapCount = m.Count()
	return nil
}
