package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netsplit/explorer/report"
	"netsplit/internal/regular"
	"netsplit/model"
	"netsplit/record/rundir"
)

// reportShare bounds the time that goes into reports of a campaign under way: the
// next one is written when this many times what the last one took has passed.
const reportShare = 20

// reportCampaign writes the page of a campaign as far as it got: of one that has not
// ended, unless the last page is too new. One is written after the other, so that the
// last one is the newest.
func (s *Service) reportCampaign(j *job, end bool) error {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	in, b, err := s.reportInput(j, end)
	if err != nil || b == nil {
		return err
	}
	began := time.Now()
	if in.Findings, err = s.allFindings(j.c.ID); err != nil {
		return err
	}
	if !end { // at the end they were kept before anybody was told
		if err := s.keepDerived(&in.Campaign, in.Causes, in.Map); err != nil {
			return err
		}
	}
	if err := s.addTries(in.Causes); err != nil {
		return err
	}
	if end {
		if in.Others, err = s.otherStrategies(&in.Campaign); err != nil {
			s.log.Warn("the campaign's report lacks other strategies", "campaign", j.c.ID, "err", err)
		}
	}
	if t, _, err := s.load(in.Campaign.Spec); err == nil {
		in.Title, in.Known = t.Title, t.Known
	}
	slices.SortStableFunc(in.Runs, func(a, b model.RunSummary) int { return a.Ended.Compare(b.Ended) })
	for _, r := range in.Runs {
		in.Title = cmp.Or(in.Title, r.Target)
		in.Replays[r.Run] = s.repeat(model.WorkItem{Run: r.Run, Scenario: r.Scenario})
		if _, err := os.Stat(filepath.Join(s.runDir(j.c.ID, r.Run), rundir.ReportFile)); err == nil {
			in.Reports[r.Run] = r.Run + "/" + rundir.ReportFile
		}
	}
	slices.SortFunc(in.Invariants, func(a, b model.Invariant) int { return cmp.Compare(a.ID, b.ID) })
	err = rundir.WriteFile(filepath.Join(s.cfg.RunsDir, j.c.ID, rundir.ReportFile), func(w io.Writer) error { return report.Campaign(w, in) })
	b.reported, b.took = time.Now(), time.Since(began)
	return err
}

// CampaignReport opens the report of a campaign; of one under way it says how far the
// campaign was when a run ended.
func (s *Service) CampaignReport(ctx context.Context, id string) (*os.File, error) {
	c, err := s.getCampaign(id)
	if err != nil {
		return nil, err
	}
	f, err := regular.Open(s.cfg.RunsDir, filepath.Join(c.ID, rundir.ReportFile))
	switch {
	case errors.Is(err, regular.Err):
		return nil, fmt.Errorf("%w: the report of campaign %s is not opened: %w; netsplit does not write such a file, so somebody changed it", model.ErrConflict, id, err)
	case !errors.Is(err, fs.ErrNotExist):
		return f, err
	case c.State == model.CampaignQueued || c.State == model.CampaignRunning || c.State == model.CampaignPaused:
		return nil, fmt.Errorf("%w: campaign %s has no report yet: the end of its next run writes it", model.ErrNotFound, id)
	}
	switch runs, _, err := s.store.ListRuns(model.RunFilter{Campaign: id}, 1, ""); {
	case err != nil:
		return nil, err
	case len(runs) == 0:
		return nil, fmt.Errorf("%w: campaign %s has no report: it ended before its first run", model.ErrNotFound, id)
	}
	return nil, fmt.Errorf("%w: the report of campaign %s is not there: somebody deleted it, or it could not be written (see the log); to have it written, judge a run of the campaign again", model.ErrNotFound, id)
}

// reportInput is what the books and the campaign give to its report; no books: none is
// due. Runs go on being booked while the report is written.
func (s *Service) reportInput(j *job, end bool) (in report.CampaignInput, b *books, err error) {
	s.booking.Lock()
	defer s.booking.Unlock()
	b, err = s.booksOf(j)
	if err != nil || !end && time.Since(b.reported) < reportShare*b.took {
		return in, nil, err
	}
	in = report.CampaignInput{Reports: map[string]string{}, Replays: map[string]string{}}
	in.Campaign = s.changed(j, func(*model.Campaign) {})
	in.Runs, in.Invariants = slices.Clone(b.runs), slices.Collect(maps.Values(b.observed))
	in.Map = b.parts.All()
	if in.Campaign.Spec.Replay == "" {
		in.Causes = b.causes(j.c.ID)
	}
	return in, b, nil
}

// keepEnd keeps what the books say of a campaign at its end. The caller holds booking.
func (s *Service) keepEnd(j *job) {
	if _, err := os.Stat(filepath.Join(s.cfg.RunsDir, j.c.ID)); err != nil {
		return // no run was recorded
	}
	b, err := s.booksOf(j)
	if err == nil {
		err = s.keepDerived(&j.c, b.causes(j.c.ID), b.parts.All())
	}
	if err != nil {
		s.log.Warn("the campaign's causes and partition map are not kept: they are read from its runs when they are asked for", "campaign", j.c.ID, "err", err)
	}
}

// keepDerived keeps the causes and the partition map of a campaign in its folder: both or,
// where that fails, none, so that they are read from its runs.
func (s *Service) keepDerived(c *model.Campaign, causes []model.Cause, m model.PartitionMap) error {
	err := rundir.WriteJSON(s.mapFile(c.ID), m)
	if c.Spec.Replay == "" {
		err = errors.Join(err, rundir.WriteJSON(s.causesFile(c.ID), causes))
	}
	if err == nil {
		return nil
	}
	for _, file := range []string{s.mapFile(c.ID), s.causesFile(c.ID)} {
		if gone := os.Remove(file); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// tryReportCampaign is reportCampaign where a failure must not stop the work.
func (s *Service) tryReportCampaign(j *job, end bool) {
	if _, err := os.Stat(filepath.Join(s.cfg.RunsDir, j.c.ID)); err != nil {
		return // no run was recorded
	}
	if err := s.reportCampaign(j, end); err != nil {
		s.log.Warn("the campaign's report could not be written", "campaign", j.c.ID, "err", err)
	}
}
