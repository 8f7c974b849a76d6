package campaign

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// TestTheReportOfACampaign is opened, while it goes on, too; where there is none, the answer says
// why, or when there will be one.
func TestTheReportOfACampaign(t *testing.T) {
	for _, c := range []struct {
		state    model.CampaignState
		verdicts []model.VerdictValue
		want     string
	}{
		{model.CampaignQueued, nil, "yet: the end of its next run writes it"},
		{model.CampaignRunning, []model.VerdictValue{vPass}, "yet"}, // somebody deleted it
		{model.CampaignPaused, nil, "yet"},
		{model.CampaignFailed, nil, "it ended before its first run"},
		{model.CampaignDone, []model.VerdictValue{vPass}, "judge a run of the campaign again"},
	} {
		s := recordedRuns(t, c.state, c.verdicts...)
		if _, err := s.CampaignReport(t.Context(), "c-1"); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.state, err, c.want)
		}
		if err := os.RemoveAll(s.cfg.RunsDir); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CampaignReport(t.Context(), "c-1"); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s without any record: %v, want %q", c.state, err, c.want)
		}
	}

	s := recordedRuns(t, model.CampaignRunning, vPass)
	file := filepath.Join(s.cfg.RunsDir, "c-1", rundir.ReportFile)
	write(t, file, "so far")
	f, err := s.CampaignReport(t.Context(), "c-1")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "so far" {
		t.Errorf("%q, %v", b, err)
	}
	write(t, filepath.Join(s.cfg.RunsDir, rundir.ReportFile), "of no campaign")
	for _, id := range []string{"c-2", "", ".", "..", "c-1/../c-1", "c-1/c-1-r0001"} {
		if _, err := s.CampaignReport(t.Context(), id); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	if err := errors.Join(os.Remove(file), os.Symlink(secret, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CampaignReport(t.Context(), "c-1"); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
}
