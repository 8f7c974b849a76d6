package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// TestWhatACampaignHasNotRecorded is a conflict, and names no folder.
func TestWhatACampaignHasNotRecorded(t *testing.T) {
	s := bookkeeper(t)
	if err := s.store.PutCampaign(model.Campaign{ID: "c-1"}); err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func(campaign string) error{
		"points":  func(c string) error { _, err := s.Points(t.Context(), c, model.PointsQuery{}); return err },
		"pairs":   func(c string) error { _, err := s.MinedPairs(t.Context(), c, ""); return err },
		"account": func(c string) error { _, err := s.Account(t.Context(), c); return err },
	} {
		if err := ask("c-9"); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s of no campaign: %v", what, err)
		}
		if err := ask("c-1"); !errors.Is(err, model.ErrConflict) || strings.Contains(err.Error(), s.cfg.RunsDir) {
			t.Errorf("%s of one that has none: %v", what, err)
		}
	}
	dir := filepath.Join(s.cfg.RunsDir, "c-1")
	if err := errors.Join(os.MkdirAll(dir, 0o700), rundir.WriteJSON(filepath.Join(dir, rundir.AccountFile), model.Account{Why: "done", FaultRuns: 3})); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Account(t.Context(), "c-1"); err != nil || a.Why != "done" || a.FaultRuns != 3 {
		t.Errorf("%+v, %v", a, err)
	}
}
