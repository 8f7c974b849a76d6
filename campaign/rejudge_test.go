package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// TestARunIsJudgedAgain: what its record says replaces what was stored of it, with the findings
// that only it showed, the campaign's report, causes and map.
func TestARunIsJudgedAgain(t *testing.T) {
	s := bookkeeper(t)
	record := os.DirFS("judge/testdata/earlier/cofi-came")
	var meta model.RunMeta
	if err := rundir.ReadJSON("judge/testdata/earlier/cofi-came/meta.json", &meta); err != nil {
		t.Fatal(err)
	}
	dir := s.runDir(meta.Campaign, meta.Run)
	if err := os.CopyFS(dir, record); err != nil {
		t.Fatal(err)
	}
	c := model.Campaign{ID: meta.Campaign, State: model.CampaignDone, Findings: 1}
	other := failedRun(2)
	other.Campaign, other.Run = meta.Campaign, meta.Campaign+"-r9999"
	wrong := other
	wrong.RunMeta = meta
	wrong.Cost.Ours = 7
	wrong.Verdict.Failures = []model.Failure{{Signature: "never was", Summary: "never was"}, {Signature: "lost", Summary: "lost"}}
	other.Verdict.Failures = append(other.Verdict.Failures, model.Failure{Signature: "its own", Summary: "its own"})
	j := &job{c: c}
	s.jobs[c.ID] = j
	s.runFinished(j, wrong)
	s.runFinished(j, other)
	if _, err := s.JudgeRun(t.Context(), meta.Run); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a run of a campaign under way: %v", err)
	}
	delete(s.jobs, c.ID)
	s.judging.Store(c.ID, false)
	before, err := s.allFindings(c.ID)
	if err != nil || len(before) != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	for _, f := range before {
		f.Replays = 10
		if err := s.store.PutFinding(f); err != nil {
			t.Fatal(err)
		}
	}

	sum, err := s.JudgeRun(t.Context(), meta.Run)
	if err != nil || sum.Cost.Ours != 7 {
		t.Fatalf("%+v, %v", sum, err)
	}
	stored, err := s.store.GetRun(meta.Run)
	if err != nil || stored.Verdict.Reason != sum.Verdict.Reason || stored.Verdict.Reason == wrong.Verdict.Reason {
		t.Errorf("%+v, %v", stored.Verdict, err)
	}
	after, err := s.allFindings(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, f := range after {
		if f.Failure.Signature == "never was" {
			t.Errorf("a finding stays that no run shows: %+v", f)
		}
		if f.Run == other.Run && (f.Replays == 10) == (f.Failure.Signature == "its own") { // the others were of the other run
			kept++
		}
	}
	got, err := s.getCampaign(c.ID)
	if did, derr := s.didJudge(c.ID); !did || derr != nil {
		t.Errorf("it is remembered that no fault run was judged, %v", derr)
	}
	if kept != 2 || err != nil || got.Findings != len(after) || got.State != model.CampaignDone {
		t.Errorf("findings %+v, campaign %+v, %v", after, got, err)
	}
	for _, f := range []string{s.causesFile(c.ID), s.mapFile(c.ID), filepath.Join(s.cfg.RunsDir, c.ID, rundir.ReportFile), filepath.Join(dir, rundir.SummaryFile)} {
		if st, err := os.Stat(f); err != nil || st.Size() == 0 {
			t.Errorf("%v", err)
		}
	}

	cut := failedRun(3)
	cut.CutShort = true
	for want, run := range map[error]string{model.ErrConflict: cut.Run, model.ErrNotFound: other.Run} { // one without a record
		if err := s.store.PutRun(cut); err != nil {
			t.Fatal(err)
		}
		if _, err := s.JudgeRun(t.Context(), run); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", run, err, want)
		}
	}
}
