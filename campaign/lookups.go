package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"netsplit/explorer/check"
	"netsplit/internal/regular"
	"netsplit/model"
	"netsplit/record/export"
	"netsplit/record/relation"
	"netsplit/record/rundir"
)

// page is how many rows a walk over a whole list asks for at once.
const page = 200

// all walks a paged list to its end.
func all[T any](next func(cursor string) ([]T, string, error)) ([]T, error) {
	var out []T
	for cursor := ""; ; {
		rows, after, err := next(cursor)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if after == "" {
			return out, nil
		}
		cursor = after
	}
}

func (s *Service) allCampaigns() ([]model.Campaign, error) {
	return all(func(c string) ([]model.Campaign, string, error) {
		return s.listCampaigns(model.CampaignFilter{}, page, c)
	})
}

func (s *Service) allRuns(campaign string) ([]model.RunSummary, error) {
	rows, err := all(func(c string) ([]model.RunRow, string, error) {
		return s.store.ListRuns(model.RunFilter{Campaign: campaign}, page, c)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b model.RunRow) int { return model.CompareRuns(a.Run, b.Run) })
	return whole(rows, func(r model.RunRow) (model.RunSummary, error) { return s.store.GetRun(r.Run) })
}

func whole[R, T any](rows []R, get func(R) (T, error)) ([]T, error) {
	out := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = get(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) allPartitions() ([]model.PartitionStatus, error) {
	return all(func(c string) ([]model.PartitionStatus, string, error) { return s.store.ListPartitions(page, c) })
}

func (s *Service) allFindings(campaign string) ([]model.Finding, error) {
	rows, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings(campaign, page, c) })
	if err != nil {
		return nil, err
	}
	return whole(rows, func(f model.Finding) (model.Finding, error) { return s.store.GetFinding(f.ID) })
}

// completeFindings gives the findings of older versions what they lack.
func (s *Service) completeFindings() error {
	rows, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings("", page, c) })
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Rank > 0 {
			continue
		}
		f, err := s.store.GetFinding(row.ID)
		if err != nil {
			return err
		}
		check.Complete(&f)
		if err := s.store.PutFinding(f); err != nil {
			return err
		}
	}
	return nil
}

// replaysOf lists the runs that repeat a run, its cut included, and were made to
// their end.
func (s *Service) replaysOf(run string) ([]model.RunSummary, error) {
	campaigns, err := s.allCampaigns()
	if err != nil {
		return nil, err
	}
	var out []model.RunSummary
	for _, c := range campaigns {
		if c.Spec.Replay != run || c.Spec.WithoutCut || c.Spec.Shrink > 0 {
			continue
		}
		runs, err := s.allRuns(c.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, made(runs)...)
	}
	return out, nil
}

// lastRunNumber is the highest number given to a run of a campaign, finished, under way
// or found half-done on the disk.
func (s *Service) lastRunNumber(campaign string, runs []model.RunSummary, under []model.WorkItem) int {
	last := 0
	see := func(run string) {
		last = max(last, model.RunNumber(run))
	}
	for _, r := range runs {
		see(r.Run)
	}
	for _, w := range under {
		see(w.Run)
	}
	entries, err := os.ReadDir(filepath.Join(s.cfg.RunsDir, campaign))
	if err == nil {
		for _, e := range entries {
			see(e.Name())
		}
	}
	return last
}

// Campaign returns one campaign as it stands.
func (s *Service) Campaign(ctx context.Context, id string) (model.Campaign, error) {
	return s.getCampaign(id)
}

// Campaigns lists campaigns, newest first.
func (s *Service) Campaigns(ctx context.Context, f model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	return s.listCampaigns(f, limit, cursor)
}

// Runs lists runs: the newest campaign's first, and of each the last one started first.
func (s *Service) Runs(ctx context.Context, f model.RunFilter, limit int, cursor string) ([]model.RunRow, string, error) {
	if f.Campaign != "" {
		if _, err := s.getCampaign(f.Campaign); err != nil {
			return nil, "", err
		}
	}
	runs, next, err := s.store.ListRuns(f, limit, cursor)
	for i := range runs {
		check.CompleteVerdict(&runs[i].Verdict)
	}
	return runs, next, err
}

// Run returns one run.
func (s *Service) Run(ctx context.Context, id string) (model.RunSummary, error) {
	sum, err := s.store.GetRun(id)
	check.CompleteVerdict(&sum.Verdict)
	return sum, err
}

// RunFile opens a file of a run's record.
func (s *Service) RunFile(ctx context.Context, id, name string) (*os.File, error) {
	return s.openOfRun(id, filepath.Base(name))
}

// RunLogs lists the files that processes of a run wrote.
func (s *Service) RunLogs(ctx context.Context, id string) ([]model.LogFile, error) {
	sum, err := s.store.GetRun(id)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.cfg.RunsDir, sum.Campaign, sum.Run, rundir.LogsDir)
	out := []model.LogFile{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // it follows no links
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out = append(out, model.LogFile{Name: name, Bytes: i.Size()})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && len(out) == 0 {
		return out, nil
	}
	return out, err
}

// RunLog opens a file that processes of a run wrote.
func (s *Service) RunLog(ctx context.Context, id, name string) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%w: %q is no name of a log file: list those of the run", model.ErrInvalid, name)
	}
	sum, err := s.store.GetRun(id)
	if err != nil {
		return nil, err
	}
	if st, err := os.Lstat(filepath.Join(s.runDir(sum.Campaign, sum.Run), rundir.LogsDir, name)); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%w: %q is a folder: list the log files of the run", model.ErrInvalid, name)
	}
	return s.openOfRun(id, filepath.Join(rundir.LogsDir, name))
}

func (s *Service) openOfRun(id, name string) (*os.File, error) {
	sum, err := s.store.GetRun(id)
	if err != nil {
		return nil, err
	}
	f, err := regular.Open(s.cfg.RunsDir, filepath.Join(sum.Campaign, sum.Run, name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ENOTDIR):
		if _, err := os.Lstat(filepath.Join(s.cfg.RunsDir, sum.Campaign, sum.Run)); err != nil {
			return nil, fmt.Errorf("%w: the record of run %s is there no more: retention or somebody deleted it", model.ErrNotFound, id)
		}
		return nil, fmt.Errorf("%w: run %s left no %s: it ended before", model.ErrNotFound, id, name)
	case errors.Is(err, regular.Err):
		return nil, fmt.Errorf("%w: %s of run %s is not opened: %w; netsplit does not write such a file, so somebody changed the record", model.ErrConflict, name, id, err)
	}
	return f, err
}

// Bounds of questions about the record of a run.
const (
	queryTime  = 10 * time.Second
	queryBytes = 8 << 20
	// askAgain is how often one who waits looks whether it is his turn.
	askAgain = 20 * time.Millisecond
	// exportRows bounds an export: the daemon has them all in memory.
	exportRows = 500000
)

// QueryRun asks the record of a run one SQL query, one query at a time.
func (s *Service) QueryRun(ctx context.Context, id, sql string, rows int) (out model.QueryResult, err error) {
	err = s.ask(ctx, id, func(dir string) (err error) {
		out, err = relation.Query(ctx, dir, sql, relation.Limits{Time: queryTime, Rows: rows, Bytes: queryBytes})
		return err
	})
	return out, err
}

// ask calls f with the folder of a run's record, for one client at a time.
func (s *Service) ask(ctx context.Context, id string, f func(dir string) error) error {
	if err := s.turn(ctx); err != nil {
		return err
	}
	defer s.querying.Unlock() // until then nobody deletes the record
	meta, err := s.RunFile(ctx, id, rundir.MetaFile)
	if err != nil {
		return err
	}
	if err := meta.Close(); err != nil {
		return err
	}
	err = f(filepath.Dir(meta.Name()))
	if errors.Is(err, regular.Err) {
		err = fmt.Errorf("%w: the record of run %s is not read: %w; netsplit does not write such a file, so somebody changed it", model.ErrConflict, id, err)
	}
	return err
}

// turn waits for the turn to read records whole, which is over when querying is unlocked.
func (s *Service) turn(ctx context.Context) error {
	for !s.querying.TryLock() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
	return nil
}

// ExportRun writes the record of a run in a format of another tool to a file that has no
// name any more. The caller closes it.
func (s *Service) ExportRun(ctx context.Context, id string, f model.ExportFormat) (out *os.File, err error) {
	err = s.ask(ctx, id, func(dir string) error {
		if out, err = os.CreateTemp("", "netsplit-export-"); err != nil {
			return err
		}
		err := errors.Join(os.Remove(out.Name()), export.Write(ctx, out, dir, f, exportRows))
		if err == nil {
			_, err = out.Seek(0, io.SeekStart)
		}
		if err != nil {
			err = errors.Join(err, out.Close())
		}
		return err
	})
	return out, err
}

// Findings lists rows of the findings of a campaign, or of all, newest first.
func (s *Service) Findings(ctx context.Context, campaign string, limit int, cursor string) ([]model.Finding, string, error) {
	return s.store.ListFindings(campaign, limit, cursor)
}

// Finding returns one finding.
func (s *Service) Finding(ctx context.Context, id string) (model.Finding, error) {
	return s.store.GetFinding(id)
}

// Invariants lists what was mined, pinned and dropped.
func (s *Service) Invariants(ctx context.Context, target string) ([]model.TargetInvariant, error) {
	return s.store.ListInvariants(target)
}

// Invariant finds one; target "" stands for the only target that has one of this id.
func (s *Service) Invariant(ctx context.Context, target, id string) (model.TargetInvariant, error) {
	return s.store.GetInvariant(target, id)
}

// SetInvariant pins or drops an invariant, or leaves it to the miner again.
func (s *Service) SetInvariant(ctx context.Context, target, id string, st model.InvariantStatus) (model.TargetInvariant, error) {
	inv, err := s.store.SetInvariantStatus(target, id, st)
	if err == nil {
		s.tell("invariant", id, string(st), inv.String())
	}
	return inv, err
}

// targetOf finds a target by its name: that of a campaign there was, the newest first, or
// one that a campaign could name.
func (s *Service) targetOf(name string) (*model.Target, error) {
	campaigns, err := s.allCampaigns()
	if err != nil {
		return nil, err
	}
	tried := map[string]bool{}
	for _, c := range campaigns {
		if tried[c.Spec.Target] {
			continue
		}
		tried[c.Spec.Target] = true
		if t, _, err := s.load(c.Spec); err == nil && t.Name == name {
			return t, nil
		}
	}
	known, err := s.named(name)
	if err != nil {
		return nil, err
	}
	t, _, err := s.uploads().Load(known)
	if err != nil {
		return nil, fmt.Errorf("%w: no campaign ran on a target named %q, and it cannot be loaded: %w", model.ErrNotFound, name, err)
	}
	return t, nil
}

// PinInvariant pins an invariant that a person wrote down, mined or not. Campaigns on the
// target of that name use it from then on.
func (s *Service) PinInvariant(ctx context.Context, target, text string) (model.TargetInvariant, error) {
	bad := func(err error) (model.TargetInvariant, error) {
		return model.TargetInvariant{}, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	inv, _, err := model.ParseInvariant(text)
	if err != nil {
		return bad(err)
	}
	if inv.A.Name == "" {
		return bad(fmt.Errorf("%s is an id: set the status of that invariant, or write two variables, such as status[n1]@n2 == status[n1]@n3", inv.ID))
	}
	t, err := s.targetOf(target)
	if err != nil {
		return model.TargetInvariant{}, err
	}
	if err := complete(&inv, t); err != nil {
		return bad(err)
	}
	inv.Status = model.InvariantPinned
	out, err := s.store.PinInvariant(t.Name, inv)
	if err == nil {
		s.tell("invariant", inv.ID, string(model.InvariantPinned), inv.String())
	}
	return out, err
}

// Hosts lists the hosts of the testbed; without one of its own the daemon has
// hosts only while a campaign has labs.
func (s *Service) Hosts(ctx context.Context) ([]model.TestbedHost, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []model.TestbedHost
	for _, b := range s.testbeds {
		out = append(out, b.Located().Hosts...)
	}
	return out, nil
}

// Annotations lists the cuts that overlap a span of time, by their start: the last
// limit of them, and whether there are more.
func (s *Service) Annotations(ctx context.Context, from, to time.Time, limit int) ([]model.Annotation, bool, error) {
	return s.store.Annotations(from, to, limit)
}
