package campaign

import (
	"context"
	"log/slog"
	"testing"

	"netsplit/inference/store"
	"netsplit/model"
)

// TestFindingsOfAnOlderVersionAreListedLikeOthers: with severity and cause, by what
// they cost, each once; so are the failures of its runs.
func TestFindingsOfAnOlderVersionAreListedLikeOthers(t *testing.T) {
	s := &Service{store: store.NewMemory(), log: slog.New(slog.DiscardHandler)}
	failures := []model.Failure{
		{Check: "operations", Signature: "get failed with Timeout although all it needs was reached, while cut", Class: model.Broken},
		{Check: "operations", Signature: "put failed with Timeout although all it needs was reached, after heal", Class: model.Broken},
		{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost", Class: model.Broken},
	}
	run := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}, Verdict: model.Verdict{Value: model.VerdictFail, Failures: failures}}
	if err := s.store.PutRun(run); err != nil {
		t.Fatal(err)
	}
	for i, f := range failures {
		old := model.Finding{ID: []string{"f-1", "f-2", "f-3"}[i], Campaign: "c-1", Class: f.Class, Failure: f, FirstAfter: i + 1, Reproduced: 4}
		if err := s.store.PutFinding(old); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // twice is harmless
		if err := s.completeFindings(); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := s.Findings(context.Background(), "c-1", 0, "")
	if err != nil || len(got) != 3 {
		t.Fatalf("%d findings, %v", len(got), err)
	}
	for i, want := range []struct {
		id, cause string
		severity  model.Severity
	}{
		{"f-3", "lost-acknowledged-writes: acknowledged writes lost", model.SeverityData},
		{"f-1", "operations: failed with Timeout", model.SeverityError},
		{"f-2", "operations: failed with Timeout", model.SeverityError},
	} {
		if f := got[i]; f.ID != want.id || f.Cause != want.cause || f.Severity != want.severity || f.Reproduced != 4 {
			t.Errorf("finding %d: %+v", i, f)
		}
	}
	if got[0].CauseID == got[1].CauseID || got[1].CauseID != got[2].CauseID || got[0].CauseID == "" {
		t.Errorf("causes %s, %s, %s", got[0].CauseID, got[1].CauseID, got[2].CauseID)
	}
	sum, err := s.Run(context.Background(), run.Run)
	if err != nil || sum.Verdict.Failures[0].Cause != "operations: failed with Timeout" || sum.Verdict.Failures[2].Severity != model.SeverityData {
		t.Errorf("run: %+v, %v", sum.Verdict.Failures, err)
	}
}
