package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"netsplit/internal/onecut"
	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestFindingsOfAnOlderVersionAreListedLikeOthers: with severity and cause, by what
// they cost, each once; so are the failures of its runs.
func TestFindingsOfAnOlderVersionAreListedLikeOthers(t *testing.T) {
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler)}
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

// TestReplaysAreCountedByCause: of ten replays of a lost write eight lose it, two of
// them in other words; one fails otherwise, which is no loss.
func TestReplaysAreCountedByCause(t *testing.T) {
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler)}
	run := func(c, id string, failures ...model.Failure) model.RunSummary {
		sum := model.RunSummary{RunMeta: model.RunMeta{Campaign: c, Run: id}, Verdict: model.Verdict{Value: model.VerdictFail, Failures: failures}}
		if err := s.store.PutRun(sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	lost := func(when string) model.Failure {
		return model.Failure{Check: "lost-acknowledged-writes", Signature: "acknowledged writes lost: acknowledged " + when + " by the isolated node", Class: model.Broken}
	}
	slow := model.Failure{Check: "operations", Signature: "get failed with Timeout although all it needs was reached", Class: model.Broken}
	orig := run("c-1", "r0", slow, lost("before the cut")) // as an older version sorted them
	for c, spec := range map[string]model.CampaignSpec{"c-1": {}, "c-2": {Replay: "r0"}, "c-3": {Replay: "r0", WithoutCut: true}} {
		if err := s.store.PutCampaign(model.Campaign{ID: c, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	run("c-3", "control", lost("before the cut")) // repeats no cut
	for id, f := range map[string]model.Failure{"f-1": lost("before the cut"), "f-2": slow} {
		if err := s.store.PutFinding(model.Finding{ID: id, Campaign: "c-1", Run: "r0", Failure: f}); err != nil {
			t.Fatal(err)
		}
	}
	reproduced := 0
	for i := range 10 {
		failures := []model.Failure{lost("before the cut")}
		switch {
		case i < 2:
			failures = []model.Failure{lost("during the cut")}
		case i == 8:
			failures = []model.Failure{slow}
		case i == 9:
			failures = nil
		}
		if reproduces(orig, run("c-2", "again"+string(rune('0'+i)), failures...)) {
			reproduced++
		}
	}
	if err := s.bookReplay(orig); err != nil {
		t.Fatal(err)
	}
	f1, _ := s.store.GetFinding("f-1")
	f2, _ := s.store.GetFinding("f-2")
	if reproduced != 8 || f1.Reproduced != 8 || f1.Replays != 10 || f2.Reproduced != 1 {
		t.Errorf("%d replays of 10 failed as the run did, want 8; of its loss %d, want 8; of its error %d, want 1", reproduced, f1.Reproduced, f2.Reproduced)
	}
}

// TestASearchWarnsOfAWrongTargetFile: as soon as runs show it, once, with an event;
// it goes on, unless it was asked to stop.
func TestASearchWarnsOfAWrongTargetFile(t *testing.T) {
	for _, stop := range []bool{false, true} {
		s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
			jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
		j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{StopWhenSuspect: stop}}}
		j.ctx, j.cancel = context.WithCancelCause(context.Background())
		first := failedPut(1)
		if err := s.store.PutRun(first); err != nil {
			t.Fatal(err)
		}
		s.watched(j, &model.Target{}, []model.RunSummary{first}) // made before a restart
		for i := 2; i <= 7; i++ {
			sum := failedPut(i)
			if i > 3 {
				sum.Verdict = model.Verdict{Value: model.VerdictPass}
			}
			s.runFinished(j, sum)
			c, err := s.store.GetCampaign("c-1")
			if want := i >= 6; err != nil || (len(c.Warnings) == 1) != want || j.ctx.Err() != nil != (want && stop) {
				t.Errorf("after run %d, to stop %v: %+v, %v, %v", i, stop, c.Warnings, context.Cause(j.ctx), err)
			}
		}
		if w := j.c.Warnings; len(w) != 1 || w[0].Kind != model.WarnHalf || !strings.Contains(w[0].Text, "3 of 6 fault runs") {
			t.Errorf("%+v", w)
		}
		logged := 0
		for _, e := range s.events {
			if e.Kind == "warning" && e.ID == "c-1" && e.State == "half" {
				logged++
			}
		}
		if logged != 1 {
			t.Errorf("%d events of a warning, want 1", logged)
		}
		s.ended(j, context.Cause(j.ctx))
		if want := map[bool]model.CampaignState{false: model.CampaignDone, true: model.CampaignCancelled}[stop]; j.c.State != want {
			t.Errorf("it ended as %s: %s", j.c.State, j.c.Reason)
		}
	}
}

// TestASearchStopsAtTheFirstBrokenPromise that a cut brought, where it was asked to:
// what the documentation admits is none, nor is what also comes without a cut.
func TestASearchStopsAtTheFirstBrokenPromise(t *testing.T) {
	clean, documented, same, broken := failedPut(1), failedPut(2), failedPut(3), failedPut(4)
	clean.Scenario.Strategy, clean.Proof = model.StrategyClean, nil
	documented.Verdict.Failures = []model.Failure{{Check: "lost-acknowledged-writes", Class: model.Documented, Signature: "lost"}}
	broken.Verdict.Failures = []model.Failure{{Check: "two-leaders", Class: model.Broken, Signature: "two leaders"}}
	for _, requested := range []bool{false, true} {
		s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
			jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
		j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{StopWhenBroken: requested}}}
		j.ctx, j.cancel = context.WithCancelCause(context.Background())
		s.watched(j, &model.Target{}, nil)
		for i, sum := range []model.RunSummary{clean, documented, same, broken} {
			s.runFinished(j, sum)
			if want := requested && i == 3; j.ctx.Err() != nil != want {
				t.Errorf("asked to stop %v: after run %d: %v", requested, i+1, context.Cause(j.ctx))
			}
		}
		s.ended(j, context.Cause(j.ctx))
		if j.c.State != model.CampaignDone || strings.Contains(j.c.Reason, "broken promise") != requested {
			t.Errorf("asked to stop %v: it is %s: %s", requested, j.c.State, j.c.Reason)
		}
	}
}

func failedPut(n int) model.RunSummary {
	return model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n), Scenario: onecut.Scenario{Strategy: model.StrategyRandom}.Model()}, Proof: &model.Proof{},
		Verdict: model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "operations", Class: model.Broken, Signature: "put failed", Summary: "put failed"}}}}
}

// TestRunsThatCouldNotBeJudgedAreNoMarkOfTheFile: the warning comes, stops no search, and goes when
// the others could be judged.
func TestRunsThatCouldNotBeJudgedAreNoMarkOfTheFile(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning, Spec: model.CampaignSpec{StopWhenSuspect: true}}}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	s.watched(j, &model.Target{}, nil)
	for i := 1; i <= 10; i++ {
		sum := failedPut(i)
		sum.Verdict = model.Verdict{Value: model.VerdictPass}
		if i <= 3 {
			sum.Verdict = model.Verdict{Value: model.VerdictUnknown, Reason: "a switch was lost"}
		}
		s.runFinished(j, sum)
		if want := i >= 6 && i <= 9; (len(j.c.Warnings) == 1) != want || j.ctx.Err() != nil {
			t.Errorf("after run %d: %+v, %v", i, j.c.Warnings, context.Cause(j.ctx))
		}
	}
}
