package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// recordedRuns is a service with runs of an hour each, the first one the oldest, each with a
// record of 1000 bytes (997 in a file, and 1 for it and for each of two folders).
func recordedRuns(t *testing.T, state model.CampaignState, verdicts ...model.VerdictValue) *Service {
	t.Helper()
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler), cfg: Config{RunsDir: t.TempDir()}}
	if err := s.store.PutCampaign(model.Campaign{ID: "c-1", State: state}); err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		run := fmt.Sprintf("c-1-r%04d", i+1)
		ended := time.Now().Add(time.Duration(i-len(verdicts)) * time.Hour)
		if err := s.store.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: run}, Ended: ended, Verdict: model.Verdict{Value: v}}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.cfg.RunsDir, "c-1", run, "logs")
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "x.log"), make([]byte, 997), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// left lists the numbers of the runs with a record.
func left(t *testing.T, s *Service) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(s.cfg.RunsDir, "c-1", "c-1-r*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range dirs {
		out = append(out, strings.TrimLeft(strings.TrimPrefix(filepath.Base(d), "c-1-r"), "0"))
	}
	return strings.Join(out, " ")
}

const (
	vPass = model.VerdictPass
	vFail = model.VerdictFail
)

func TestRecordsArePrunedByAgeAndSize(t *testing.T) {
	verdicts := []model.VerdictValue{vFail, vPass, vFail, vPass, model.VerdictVacuous, vPass} // 6 to 1 hours old
	for name, c := range map[string]struct {
		model.Retention
		want string
		runs int
	}{
		"by age":                        {model.Retention{Age: 3*time.Hour + time.Minute}, "4 5 6", 3},
		"by size, dull ones first":      {model.Retention{Bytes: 4100}, "1 3 5 6", 2},
		"by size, then others":          {model.Retention{Bytes: 1500}, "3", 5},
		"by both":                       {model.Retention{Age: 5*time.Hour + time.Minute, Bytes: 2100}, "3 6", 4},
		"there is room and all are new": {model.Retention{Age: 100 * time.Hour, Bytes: 1 << 30}, "1 2 3 4 5 6", 0},
		"dry":                           {model.Retention{Age: 3*time.Hour + time.Minute, DryRun: true}, "1 2 3 4 5 6", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordedRuns(t, model.CampaignDone, verdicts...)
			out, err := s.Prune(t.Context(), c.Retention)
			got := left(t, s)
			if err != nil || got != c.want || out.Runs != c.runs || out.Failed != 0 {
				t.Errorf("left %s, want %s: %+v, %v", got, c.want, out, err)
			}
			if out.Bytes != int64(1000*c.runs) || out.Left != int64(1000*(6-c.runs)) {
				t.Errorf("%d bytes of %d runs, %d left", out.Bytes, c.runs, out.Left)
			}
			for i := range verdicts { // it is known what came of all
				if r, err := s.Run(t.Context(), fmt.Sprintf("c-1-r%04d", i+1)); err != nil || r.Verdict.Value != verdicts[i] {
					t.Errorf("run %d: %+v, %v", i+1, r.Verdict, err)
				}
			}
			if again, err := s.Prune(t.Context(), c.Retention); !c.DryRun && (err != nil || again.Runs != 0) {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		})
	}
}

// TestWhatIsNeededStays: the run of a finding, a run that is being repeated, and all runs of a
// campaign that goes on, even on a full disk.
func TestWhatIsNeededStays(t *testing.T) {
	all := model.Retention{Age: time.Minute, Bytes: 1}
	for state, want := range map[model.CampaignState]string{
		model.CampaignDone: "1 2", model.CampaignCancelled: "1 2", model.CampaignRunning: "1 2 3", model.CampaignPaused: "1 2 3", model.CampaignFailed: "1 2 3",
	} {
		s := recordedRuns(t, state, vFail, vPass, vPass)
		err := errors.Join(s.store.PutFinding(model.Finding{ID: "f-1", Campaign: "c-1", Run: "c-1-r0001", Runs: []string{"c-1-r0001", "c-1-r0003"}}),
			s.store.PutCampaign(model.Campaign{ID: "c-2", State: model.CampaignRunning, Spec: model.CampaignSpec{Replay: "c-1-r0002"}}))
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Prune(t.Context(), all)
		if got := left(t, s); err != nil || got != want || out.Kept != len(strings.Fields(want)) {
			t.Errorf("%s: left %s, want %s: %+v, %v", state, got, want, out, err)
		}
	}
}

// TestPruningFollowsNoLink out of the folder of records, and an empty retention deletes nothing.
func TestPruningFollowsNoLink(t *testing.T) {
	s := recordedRuns(t, model.CampaignDone, vPass)
	outside := filepath.Join(t.TempDir(), "precious")
	run := filepath.Join(s.cfg.RunsDir, "c-1", "c-1-r0001")
	if err := errors.Join(os.WriteFile(outside, []byte("x"), 0o600), os.RemoveAll(filepath.Join(run, "logs")), os.Symlink(filepath.Dir(outside), filepath.Join(run, "logs"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(t.Context(), model.Retention{DryRun: true}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("no bound: %v", err)
	}
	if out, err := s.Prune(t.Context(), model.Retention{Age: time.Second}); err != nil || out.Runs != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if _, err := s.RunFile(context.Background(), "c-1-r0001", "report.html"); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), "retention") {
		t.Errorf("the report: %v", err)
	}
}

// TestPruningEnds with its context, and what one that was killed left is deleted by the next.
func TestPruningEnds(t *testing.T) {
	s := recordedRuns(t, model.CampaignDone, vPass, vPass, vPass)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := s.Prune(ctx, model.Retention{Age: time.Minute}); !errors.Is(err, context.Canceled) || out.Runs != 0 || left(t, s) != "1 2 3" {
		t.Errorf("%+v, %v, left %s", out, err, left(t, s))
	}
	gone := filepath.Join(s.cfg.RunsDir, prunedDir, "c-1-r0009")
	if err := os.MkdirAll(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(t.Context(), model.Retention{Age: time.Hour + time.Minute}); err != nil || left(t, s) != "3" {
		t.Errorf("%v, left %s", err, left(t, s))
	}
	if _, err := os.Stat(filepath.Dir(gone)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was to be deleted is there: %v", err)
	}
}
