package campaign

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"netsplit/model"
)

// kept is a run with a record.
type kept struct {
	model.RunRow
	bytes   int64
	needed  bool
	counted bool // in Pruned.Kept or Failed
}

// prunedDir is where records are while they are deleted, so that nobody sees half a record.
const prunedDir = ".pruned"

// Prune deletes records of runs by age and size: a run's folder with packets, logs and
// report. The store keeps the run with its verdict. The record that a finding names, that an
// open replay repeats, or whose campaign has not ended, stays. For size the oldest runs that passed or
// were vacuous go first, then others.
func (s *Service) Prune(ctx context.Context, r model.Retention) (out model.Pruned, err error) {
	if r.None() {
		return out, fmt.Errorf("%w: give an age, a size or both", model.ErrInvalid)
	}
	s.pruning.Lock()
	defer s.pruning.Unlock()
	root, err := os.OpenRoot(s.cfg.RunsDir)
	if err != nil {
		return out, err
	}
	defer root.Close()
	if !r.DryRun {
		if err := root.RemoveAll(prunedDir); err != nil { // what one that was killed left
			return out, err
		}
	}
	runs, err := s.recorded(ctx, root)
	if err != nil {
		return out, err
	}
	for i := range runs {
		out.Left += runs[i].bytes
	}
	drop := func(k *kept) {
		switch {
		case k.bytes == 0 || k.counted || ctx.Err() != nil:
			return
		case k.needed:
			k.counted = true
			out.Kept++
			return
		}
		if !r.DryRun {
			if err := s.remove(root, k); err != nil {
				k.counted = true
				out.Failed++
				out.Why = cmp.Or(out.Why, err.Error())
				return
			}
		}
		out.Runs, out.Bytes, out.Left = out.Runs+1, out.Bytes+k.bytes, out.Left-k.bytes
		k.bytes = 0
	}
	slices.SortStableFunc(runs, func(a, b kept) int { return a.Ended.Compare(b.Ended) })
	if r.Age > 0 {
		before := time.Now().Add(-r.Age)
		for i := range runs {
			if runs[i].Ended.Before(before) {
				drop(&runs[i])
			}
		}
	}
	if r.Bytes > 0 {
		dull := func(k *kept) bool {
			return k.Verdict.Value == model.VerdictPass || k.Verdict.Value == model.VerdictVacuous
		}
		for _, now := range []bool{true, false} {
			for i := range runs {
				if out.Left > r.Bytes && dull(&runs[i]) == now {
					drop(&runs[i])
				}
			}
		}
	}
	if out.Runs > 0 && !r.DryRun {
		s.tell("retention", "records", "pruned", fmt.Sprintf("the records of %s were deleted, %s", model.Count(out.Runs, "run", "runs"), humanize.Bytes(uint64(out.Bytes))))
	}
	return out, ctx.Err()
}

// remove takes the lock of those who read whole records, moves the record to prunedDir and
// deletes it there. os.Root follows no link out of the folder.
func (s *Service) remove(root *os.Root, k *kept) error {
	s.querying.Lock()
	err := root.MkdirAll(prunedDir, 0o700)
	if err == nil {
		err = root.Rename(filepath.Join(k.Campaign, k.Run), filepath.Join(prunedDir, k.Run))
	}
	s.querying.Unlock()
	if err != nil {
		return err
	}
	return root.RemoveAll(prunedDir)
}

// recorded lists the runs whose record is there.
func (s *Service) recorded(ctx context.Context, root *os.Root) ([]kept, error) {
	rows, err := all(func(c string) ([]model.RunRow, string, error) { return s.store.ListRuns(model.RunFilter{}, page, c) })
	if err != nil {
		return nil, err
	}
	found, err := all(func(c string) ([]model.Finding, string, error) { return s.store.ListFindings("", page, c) })
	if err != nil {
		return nil, err
	}
	campaigns, err := s.allCampaigns()
	if err != nil {
		return nil, err
	}
	named, open := map[string]bool{}, map[string]bool{}
	for _, f := range found {
		named[f.Run] = true
	}
	for _, c := range campaigns {
		open[c.ID] = c.State != model.CampaignDone && c.State != model.CampaignCancelled
		if c.Spec.Replay != "" && open[c.ID] {
			named[c.Spec.Replay] = true
		}
	}
	var out []kept
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if row.Ended.IsZero() { // of an earlier version
			row.Ended = row.Started
		}
		k := kept{RunRow: row, needed: named[row.Run] || open[row.Campaign]}
		if k.bytes, err = sizeOf(root, filepath.Join(row.Campaign, row.Run)); err != nil {
			return nil, err
		}
		if k.bytes > 0 {
			out = append(out, k)
		}
	}
	return out, nil
}

// sizeOf is what the files below a folder take, 0 if it is not there. Files that go
// meanwhile count as nothing.
func sizeOf(root *os.Root, dir string) (n int64, err error) {
	if _, err := root.Lstat(dir); err != nil {
		return 0, nil
	}
	err = fs.WalkDir(root.FS(), dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		n++ // a folder or an empty file takes something, too
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n, err
}

// retentionEvery is how often the daemon prunes.
const retentionEvery = time.Hour

// retain prunes at once and then every hour until ctx ends.
func (s *Service) retain(ctx context.Context) {
	if s.cfg.Retention.None() {
		return
	}
	for {
		out, err := s.Prune(ctx, s.cfg.Retention)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("records could not be pruned", "err", err)
		case out.Failed > 0:
			s.log.Warn("some records could not be deleted", "runs", out.Failed, "why", out.Why, "deleted", out.Runs)
		case out.Runs > 0:
			s.log.Info("records were deleted, by age or size", "runs", out.Runs, "bytes", out.Bytes)
		}
		if b := s.cfg.Retention.Bytes; err == nil && b > 0 && out.Left > b && out.Failed == 0 {
			s.log.Warn("the records take more than --keep-size: findings or campaigns that have not ended need them", "bytes", out.Left)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retentionEvery):
		}
	}
}
