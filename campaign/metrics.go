package campaign

import (
	"time"

	"netsplit/model"
)

// shownFindings is how many findings are shown again after a restart, the last ones.
const shownFindings = 500

func (s *Service) restoreMetrics() error {
	counts, err := s.store.CountRuns()
	if err != nil {
		return err
	}
	for k, n := range counts {
		s.metrics.RunsDone(k.Target, k.Strategy, k.Verdict, n)
	}
	var last []model.Finding
	for cursor := ""; len(last) < shownFindings; {
		rows, next, err := s.store.ListFindings("", page, cursor)
		if err != nil {
			return err
		}
		last = append(last, rows...)
		if cursor = next; next == "" {
			break
		}
	}
	for i := min(len(last), shownFindings) - 1; i >= 0; i-- { // the newest last: it is shown longest
		s.metrics.Finding(last[i])
	}
	cuts, _, err := s.store.Annotations(time.Time{}, time.Now(), 1)
	if err == nil && len(cuts) > 0 {
		s.metrics.LastCut(cuts[0].From)
	}
	return err
}
