package campaign

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestHistoryOfAFailure: what the newest campaign like the last one with it shows.
func TestHistoryOfAFailure(t *testing.T) {
	// A campaign a letter, the oldest first. x: shows it; o: judged and does not; v: judged
	// nothing; r: random, and does not; X: is under way and shows it; c: cancelled.
	for campaigns, want := range map[string]model.FindingState{
		"x": model.FindingNew, "ox": model.FindingNew, "oX": model.FindingNew, "xx": model.FindingKnown, "xX": model.FindingKnown, "xo": model.FindingGone, "xox": model.FindingBack,
		"xoX": model.FindingBack, "xvx": model.FindingKnown, "xv": model.FindingNew, "xr": model.FindingNew, "xrx": model.FindingKnown, "xc": model.FindingNew, "xoo": model.FindingGone,
		"xoxx": model.FindingKnown, "xxv": model.FindingKnown,
		// b: shows it as a scenario of a user's; s: a script, d: another release, k: other
		// settings, e: another effect, none of which shows it.
		"xos": model.FindingGone, "xs": model.FindingNew, "xd": model.FindingNew, "xk": model.FindingNew, "xe": model.FindingNew, "xob": model.FindingKnown, "xobo": model.FindingGone,
		"b": model.FindingNew, "bo": model.FindingNew, "bs": model.FindingNew, "xb": model.FindingKnown,
	} {
		s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler)}
		shows := 0
		for i, kind := range campaigns {
			id := fmt.Sprintf("c-%d", i+1)
			c := model.Campaign{ID: id, State: model.CampaignDone, Created: time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC), Spec: model.CampaignSpec{Target: "redis@7", Strategy: model.StrategyCoFI}}
			run := model.RunSummary{RunMeta: model.RunMeta{Campaign: id, Run: id + "-r0001", Scenario: model.Scenario{Strategy: model.StrategyCoFI}}, Verdict: model.Verdict{Value: vPass}}
			switch kind {
			case 'v':
				run.Verdict.Value = model.VerdictVacuous
			case 'r':
				c.Spec.Strategy = model.StrategyRandom
			case 'X':
				c.State = model.CampaignRunning
			case 'c':
				c.State = model.CampaignCancelled
			case 'b':
				c.Spec.Scenario = &model.Scenario{}
			case 's':
				c.Spec.Strategy = model.StrategyScripted
			case 'd':
				c.Spec.Target = "redis@8"
			case 'k':
				c.Spec.Args = map[string]string{"rate": "1"}
			case 'e':
				c.Spec.Effect = model.Reset
			}
			err := errors.Join(s.store.PutCampaign(c), s.store.PutRun(run))
			if strings.ContainsRune("xXb", kind) {
				shows++
				f := model.Failure{Check: "lost", Signature: "acknowledged writes lost", Summary: id}
				err = errors.Join(err, s.store.PutFinding(model.Finding{ID: "f-" + id, Campaign: id, Run: run.Run, Failure: f}))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // what is remembered is the same
			got, err := s.FindingHistories(t.Context(), "redis")
			if err != nil || len(got) != 1 || got[0].State != want || len(got[0].Campaigns) != shows || got[0].Newest.Campaign != got[0].Campaigns[0] || got[0].First.Day() != 1+strings.IndexAny(campaigns, "xXb") {
				t.Errorf("%s: %+v, %v; want %s", campaigns, got, err, want)
			}
		}
		if got, err := s.FindingHistories(t.Context(), "nats"); err != nil || len(got) != 0 {
			t.Errorf("of another target: %+v, %v", got, err)
		}
	}
}

// TestANoteIsForAllCampaigns, until it is forgotten.
func TestANoteIsForAllCampaigns(t *testing.T) {
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler)}
	for _, id := range []string{"c-1", "c-2"} {
		f := model.Finding{ID: "f-" + id, Campaign: id, Failure: model.Failure{Check: "lost", Signature: "s"}}
		if err := errors.Join(s.store.PutCampaign(model.Campaign{ID: id, State: model.CampaignDone, Spec: model.CampaignSpec{Target: "redis"}}), s.store.PutFinding(f)); err != nil {
			t.Fatal(err)
		}
	}
	id := model.HistoryID("redis", "lost", "s")
	for _, text := range []string{" upstream issue 7 ", "mended", ""} {
		h, err := s.NoteFinding(t.Context(), id, text)
		if err != nil || h.Note.Text != strings.TrimSpace(text) || h.Note.At.IsZero() != (text == "") {
			t.Errorf("%q: %+v, %v", text, h.Note, err)
		}
		if got, err := s.FindingHistories(t.Context(), ""); err != nil || len(got) != 1 || got[0].Note != h.Note || got[0].ID != id {
			t.Errorf("%q: listed %+v, %v", text, got, err)
		}
	}
	if _, err := s.NoteFinding(t.Context(), id, strings.Repeat("x", model.MaxNote+1)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a long note: %v", err)
	}
	if _, err := s.NoteFinding(t.Context(), "h-none", "x"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
}
