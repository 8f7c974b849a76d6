package campaign

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// mapped is a service with a run whose cut met a ping, a try of a part of its scenario, and
// the job of their campaign.
func mapped(t *testing.T) (*Service, *job) {
	t.Helper()
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler), jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1), cfg: Config{RunsDir: t.TempDir()}}
	rows := []model.MapRow{{Type: "ping", From: "n1", To: "n2", Seen: 3, Met: map[model.MetKind]int{model.MetCut: 1}}}
	for run, of := range map[string]string{"c-1-r0001": "", "c-1-r0002": "c-1-r0001"} {
		dir := filepath.Join(s.cfg.RunsDir, "c-1", run)
		r := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: run, ReplayOf: of}, Verdict: model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Class: model.Broken}}}}
		if err := errors.Join(os.MkdirAll(dir, 0o700), rundir.WriteJSON(filepath.Join(dir, rundir.MapFile), rows), s.store.PutRun(r)); err != nil {
			t.Fatal(err)
		}
	}
	s.enqueue(model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{Target: "gossip"}})
	return s, s.queue[0]
}

// TestTriesAreNotInTheMap: they repeat a part of a run that is there already.
func TestTriesAreNotInTheMap(t *testing.T) {
	s, _ := mapped(t)
	m, err := s.PartitionMap(t.Context(), "c-1")
	if !errors.Is(err, model.ErrNotFound) { // the store has no such campaign yet
		t.Fatal(err)
	}
	b, err := s.readBooks("c-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m = b.parts.All(); len(m.Cells) != 1 || m.Cells[0].Runs != 1 || m.Cells[0].Of(model.MetCut).Failed != 1 || b.parts.Count().Failed != 1 {
		t.Errorf("%+v, counted %+v", m, b.parts.Count())
	}
}

// TestTheMapIsThereWhenACampaignIsDone, also if it cannot be kept: then it is read from the
// runs, and not from an older file.
func TestTheMapIsThereWhenACampaignIsDone(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		s, j := mapped(t)
		file := s.mapFile("c-1")
		var err error
		if keeps {
			err = rundir.WriteJSON(file, model.PartitionMap{LeftOut: 7}) // of an earlier report
		} else {
			err = os.Mkdir(file, 0o700) // no file can take its name
		}
		if err != nil {
			t.Fatal(err)
		}
		s.ended(j, nil)
		if len(s.jobs) != 0 {
			t.Fatal("it has not ended")
		}
		m, err := s.PartitionMap(t.Context(), "c-1")
		if err != nil || m.LeftOut != 0 || len(m.Cells) != 1 {
			t.Errorf("keeps %v: %+v, %v", keeps, m, err)
		}
		if st, err := os.Stat(file); keeps != (err == nil && st.Mode().IsRegular()) {
			t.Errorf("keeps %v: %v, %v", keeps, st, err)
		}
	}
}
