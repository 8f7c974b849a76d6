package campaign

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"

	"netsplit/explorer/report"
	"netsplit/model"
	"netsplit/record/rundir"
)

// reportCampaign writes the page of a campaign as far as it got. One is written
// after the other, so that the last one is the newest.
func (s *Service) reportCampaign(id string) error {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	in := report.CampaignInput{Reports: map[string]string{}, Replays: map[string]string{}}
	var err error
	if in.Campaign, err = s.store.GetCampaign(id); err != nil {
		return err
	}
	if in.Findings, err = s.allFindings(id); err != nil {
		return err
	}
	if in.Runs, err = s.allRuns(id); err != nil {
		return err
	}
	if t, _, err := s.uploads().Load(in.Campaign.Spec.Target); err == nil {
		in.Title, in.Known = t.Title, t.Known
	}
	slices.SortStableFunc(in.Runs, func(a, b model.RunSummary) int { return a.Ended.Compare(b.Ended) })
	seen := map[string]bool{}
	for _, r := range in.Runs {
		in.Title = cmp.Or(in.Title, r.Target)
		in.Replays[r.Run] = s.repeat(model.WorkItem{Run: r.Run, Scenario: r.Scenario})
		if _, err := os.Stat(filepath.Join(s.runDir(id, r.Run), rundir.ReportFile)); err == nil {
			in.Reports[r.Run] = r.Run + "/" + rundir.ReportFile
		}
		for _, inv := range r.Scenario.Observe {
			if !seen[inv.ID] {
				seen[inv.ID] = true
				in.Invariants = append(in.Invariants, inv)
			}
		}
	}
	slices.SortFunc(in.Invariants, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	return rundir.WriteFile(filepath.Join(s.cfg.RunsDir, id, rundir.ReportFile), func(w io.Writer) error { return report.Campaign(w, in) })
}

// tryReportCampaign is reportCampaign where a failure must not stop the work.
func (s *Service) tryReportCampaign(id string) {
	if _, err := os.Stat(filepath.Join(s.cfg.RunsDir, id)); err != nil {
		return // no run was recorded
	}
	if err := s.reportCampaign(id); err != nil {
		s.log.Warn("the campaign's report could not be written", "campaign", id, "err", err)
	}
}
