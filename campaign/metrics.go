package campaign

import (
	"slices"
	"time"

	"netsplit/model"
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
	return err
}
