package campaign

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/explorer/report"
	"netsplit/model"
)

// writeRunReport writes the page of a judged run into its directory.
func writeRunReport(dir string, f *runFiles, in report.Input) error {
	in.Title, in.Nodes, in.Hosts = f.target.Title, f.target.Nodes, f.testbed.Names()
	in.Events, in.Decisions = f.events, f.decisions
	for _, h := range f.history {
		in.History = append(in.History, report.Op{Workload: h.Workload, Operation: h.Operation})
	}
	rec := f.evidence.Recovery
	in.Recovery = report.Recovery{HealedAt: rec.HealedAt, StableAt: rec.StableAt, Limit: rec.Limit, Pending: rec.Pending}
	for _, v := range rec.Violated {
		in.Recovery.Violated = append(in.Recovery.Violated, v.String())
	}
	for _, x := range f.evidence.Exits {
		if !x.Expected {
			in.Exits = append(in.Exits, fmt.Sprintf("%s on %s ended with status %d at %.3f s", x.Process, x.Host, x.Status, x.At.Seconds()))
		}
	}
	for _, l := range f.logLines {
		in.FatalLines = append(in.FatalLines, fmt.Sprintf("%s on %s at %.3f s: %s", l.Process, l.Host, l.At.Seconds(), l.Line))
	}
	in.Incomplete, in.Known = f.evidence.Incomplete, f.target.Known
	return writePage(filepath.Join(dir, record.ReportFile), func(w *bufio.Writer) error { return report.Write(w, in) })
}

// writePage writes a page that appears whole or not at all.
func writePage(path string, write func(*bufio.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	w := bufio.NewWriter(tmp)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// reportCampaign writes the page of a campaign as far as it got.
func (s *Service) reportCampaign(id string) error {
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
	if t, _, err := target.Load(in.Campaign.Spec.Target); err == nil {
		in.Title, in.Known = t.Title, t.Known
	}
	slices.SortStableFunc(in.Runs, func(a, b model.RunSummary) int { return a.Ended.Compare(b.Ended) })
	seen := map[string]bool{}
	for _, r := range in.Runs {
		in.Title = cmp.Or(in.Title, r.Target)
		in.Replays[r.Run] = s.repeat(Work{Run: r.Run, Scenario: r.Scenario})
		if _, err := os.Stat(filepath.Join(s.runDir(id, r.Run), record.ReportFile)); err == nil {
			in.Reports[r.Run] = r.Run + "/" + record.ReportFile
		}
		for _, inv := range r.Scenario.Observe {
			if !seen[inv.ID] {
				seen[inv.ID] = true
				in.Invariants = append(in.Invariants, inv)
			}
		}
	}
	slices.SortFunc(in.Invariants, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	return writePage(filepath.Join(s.cfg.RunsDir, id, record.ReportFile), func(w *bufio.Writer) error { return report.Campaign(w, in) })
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
