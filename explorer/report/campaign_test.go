package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

func searched(t testing.TB) CampaignInput {
	base := failing(t).Summary
	in := CampaignInput{Title: "Redis + Sentinel, 3 nodes", Invariants: base.Scenario.Observe, Reports: map[string]string{}, Replays: map[string]string{}}
	in.Campaign = model.Campaign{ID: "c-1", State: model.CampaignDone, Done: 7, Planned: 12, Created: base.Started, Ended: base.Started.Add(4 * time.Minute),
		Spec: model.CampaignSpec{Target: "redis-sentinel", Strategy: model.StrategyCoFI, Seed: 7, Labs: 2, Runs: 9, Clean: 3, Budget: 5 * time.Minute, MaxLost: 10, MaxWindow: -1, Args: map[string]string{"writers": "2", "rate": "70"}}}
	for i := range 7 {
		r := base
		r.Run = fmt.Sprintf("c-1-r%04d", i+1)
		r.Verdict.Value = []model.VerdictValue{model.VerdictPass, model.VerdictPass, model.VerdictPass, model.VerdictVacuous, model.VerdictFail, model.VerdictUnknown, model.VerdictFail}[i]
		r.Verdict.Reason = "because"
		if i < 3 {
			r.Scenario, r.Proof = model.Scenario{Strategy: model.StrategyClean}, nil
		}
		in.Runs = append(in.Runs, r)
		in.Reports[r.Run] = r.Run + "/report.html"
		in.Replays[r.Run] = "netsplit replay " + r.Run + " -n 10"
	}
	in.Map.Cells = []model.MapCell{
		{Type: "resp PING", From: "n1", To: "n2", Runs: 7, Outcomes: []model.MapOutcome{{Kind: model.MetCut, First: "c-1-r0004", Failed: 2, Passed: 1, Undecided: 1}}},
		{Type: "resp INFO", From: "n1", To: "n2", Runs: 9, Outcomes: []model.MapOutcome{{Kind: model.MetCut, First: "c-1-r0004", Passed: 1, Undecided: 8}}},
		{Type: "resp PING", From: "n2", To: "n1", Runs: 7},
		{Type: "resp PONG", From: "n2", To: "n1", Runs: 5, Outcomes: []model.MapOutcome{{Kind: model.MetCut, First: "c-1-r0005", Documented: 1}, {Kind: model.MetCrash, First: "c-1-r0005", Undecided: 1}}},
	}
	for i, c := range []model.FailureClass{model.Documented, model.Broken, model.BrokenBound} {
		f := base.Verdict.Failures[0]
		f.Class, f.Signature = c, fmt.Sprintf("%s %d", f.Signature, i)
		in.Findings = append(in.Findings, model.Finding{ID: fmt.Sprintf("f-%d", i), Class: c, Failure: f, Run: in.Runs[4+i].Run, Runs: []string{in.Runs[4+i].Run}, FirstAfter: 5 + i, Clean: i == 0, Replays: 10, Reproduced: 9 - i})
	}
	return in
}

func hostileCampaign(t testing.TB) CampaignInput {
	in := searched(t)
	in.Title, in.Campaign.Reason = attack, attack
	for i := range in.Findings {
		f := &in.Findings[i].Failure
		f.Check, f.Signature, f.Summary, f.Quote = attack, attack, attack, attack
	}
	in.Map.Cells[0].Type, in.Map.Cells[1].From = attack, attack
	for i := range in.Runs {
		in.Runs[i].Verdict.Reason = attack
		in.Reports[in.Runs[i].Run] = "javascript:alert(1)"
	}
	return in
}

// TestCampaignPageOfThousandsOfRuns: a failed run among thousands is seen, and the picture does
// not grow.
func TestCampaignPageOfThousandsOfRuns(t *testing.T) {
	in := searched(t)
	base := in.Runs[0]
	in.Runs = nil
	for i := range 5000 {
		r := base
		r.Run = fmt.Sprintf("c-1-r%04d", i+1)
		r.Verdict = model.Verdict{Value: model.VerdictPass, Reason: "all checks hold"}
		if i == 2345 {
			r.Verdict.Value = model.VerdictFail
		}
		in.Runs = append(in.Runs, r)
	}
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	wants(t, "marks", b.String(), "runs 2341 to 2360: 19 pass and 1 fail", "runs 4981 to 5000: 20 pass")
	if n := strings.Count(b.String(), `class="run-mark"`); n != 250 || strings.Count(b.String(), `class="cross"`) != 1 || b.Len() > 1<<20 {
		t.Errorf("%d marks, %d bytes", n, b.Len())
	}
}

// TestCampaignPageMapsWhatWasCut: a field for each type on each link, and how its runs ended.
func TestCampaignPageMapsWhatWasCut(t *testing.T) {
	in := searched(t)
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	wants(t, "map", b.String(), "Cut: 3 of 4 cells met, 1 of them in runs that broke a promise", `<td class="fail" title="resp PING, n1 → n2, in 4 runs: 2 broke a promise, 1 passed, 1 unknown or vacuous; first c-1-r0004">✕ 2/4`,
		`<td class="never">·`, `>△ 1/1`, "A server crashed at it: 1 of 4 cells met, 0 of them", `>?`, "cells of the map that a fault has met: 3 of 4 after 7 runs", `<td class="pass" title="resp INFO, n1 → n2, in 9 runs: 1 passed, 8 unknown or vacuous; first c-1-r0004">1/9<`)
	if strings.Contains(b.String(), "Delayed:") {
		t.Error("a table of a fault that met nothing")
	}
	for i := range in.Map.Cells {
		in.Map.Cells[i].Outcomes = nil
	}
	b.Reset()
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "Partition map") {
		t.Error("a map of which nothing was met")
	}
}

// TestCampaignPageOfReplays: failures that the original did not show are no
// silence.
func TestCampaignPageOfReplays(t *testing.T) {
	for again, want := range map[int][]string{
		0: {"✕ 2 runs failed otherwise", "0 failed as the original did, 2 in another way"},
		1: {"✕ Failed again 1 of 4 times", "1 failed as the original did, 1 in another way"},
		2: {"✕ Failed again 2 of 4 times", "2 failed as the original did."},
	} {
		in := searched(t)
		in.Campaign.Spec.Replay, in.Campaign.Reproduced = "c-0-r0007", again
		in.Runs, in.Findings = in.Runs[3:], nil
		var b bytes.Buffer
		if err := Campaign(&b, in); err != nil {
			t.Fatal(err)
		}
		wants(t, fmt.Sprint(again), b.String(), want...)
	}
}

// TestCampaignPageOfCutsThatNoMessageHealed: a search whose messages do not come
// is a poor one, though each of its runs passed.
func TestCampaignPageOfCutsThatNoMessageHealed(t *testing.T) {
	in := searched(t)
	for i := range in.Runs {
		r := &in.Runs[i]
		r.Result.Reached = r.Proof != nil
		if r.Proof != nil {
			r.Scenario.Steps = []model.Step{{Do: model.Fault{Cut: &model.Partition{}}, Until: model.Trigger{Unseen: &model.Unseen{}}}}
			r.Result.HealClass = &model.Class{Type: "x"}
		}
	}
	page := func() string {
		var b bytes.Buffer
		if err := Campaign(&b, in); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if strings.Contains(page(), "to heal at") {
		t.Error("messages are missed that came")
	}
	in.Runs[3].Result.HealClass, in.Runs[4].Result.HealClass, in.Runs[5].Result.HealClass = nil, nil, nil
	in.Runs[5].Scenario.Steps[0].Until.Unseen = nil
	got := page()
	wants(t, "page", got, "2 of 3 cuts waited for a message to heal at, but none came: they ended at the longest time allowed, or with the workload.")
	if n := strings.Count(got, ", no message to heal at arrived"); n != 2 {
		t.Errorf("%d runs are marked, want 2", n)
	}
	in.Runs[3].Verdict.Value = model.VerdictUnknown
	wants(t, "page", page(), "1 of 2 cuts waited")
}

// TestCampaignPageOfAScenario: what a person gave was not searched for.
func TestCampaignPageOfAScenario(t *testing.T) {
	in := searched(t)
	in.Campaign.Spec.Scenario = &in.Runs[6].Scenario
	in.Runs = in.Runs[3:]
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	wants(t, "page", b.String(), "The given scenario ran on Redis + Sentinel, 3 nodes 4 times, 4 of them cut.")
	if strings.Contains(b.String(), "netsplit searched") {
		t.Error("the page says that it was searched")
	}
}

func TestCampaignPage(t *testing.T) {
	var b bytes.Buffer
	if err := Campaign(&b, searched(t)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	wants(t, "page", page, "✕ 3 findings", "Broken promises", "Beyond the stated bound", "Documented",
		"first seen after 5 runs", "also without any fault", "only where a fault acted", "replayed 9 of 10",
		"netsplit replay c-1-r0005 -n 10", `href="c-1-r0005/report.html"`, "○ Vacuous", "? Unknown", "✓ Pass",
		"redis_master@n1 == redis_master@n2", "5 min 0 s", "10 operations", "waiting for recovery")
	broken, documented := strings.Index(page, "Broken promises"), strings.Index(page, `<h2>Documented`)
	if broken < 0 || documented < broken {
		t.Error("broken promises do not come first")
	}
	if strings.Contains(page, "<script") {
		t.Error("the campaign's page has script; it needs none")
	}
	var again bytes.Buffer
	if err := Campaign(&again, searched(t)); err != nil || again.String() != page {
		t.Error("two pages of one campaign differ")
	}
}

// TestCampaignPageTellsCausesByWhatTheyCost: the costliest finding stands first, on
// top of the page too; what it brought stands with it.
func TestCampaignPageTellsCausesByWhatTheyCost(t *testing.T) {
	in := searched(t)
	in.Findings = nil
	for i, f := range []struct {
		rank            int
		severity, cause string
	}{{6, "log", "cause-1"}, {5, "error", "cause-2"}, {1, "data", "cause-3"}, {4, "crash", "cause-1"}} {
		in.Findings = append(in.Findings, model.Finding{ID: fmt.Sprint("f-", i), Class: model.Broken, Rank: f.rank, Severity: model.Severity(f.severity), CauseID: f.cause, FirstAfter: 1 + i,
			Run: "c-1-r0005", Failure: model.Failure{Signature: f.severity + " signature", Summary: f.severity + " summary"}})
	}
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	wants(t, "page", page, "✕ 4 findings of 3 causes</strong><span>data: data summary")
	at := 0
	for _, next := range []string{"</span> data signature", "</span> crash signature", "1 more of this cause", "log, broken promise: log summary", "</span> error signature"} {
		i := strings.Index(page[at:], next)
		if i < 0 {
			t.Fatalf("%q does not stand where it should", next)
		}
		at += i
	}
}

func TestCampaignWithoutAPassIsNotGoodNews(t *testing.T) {
	in := searched(t)
	in.Findings = nil
	for i := range in.Runs {
		in.Runs[i].Verdict.Value = model.VerdictUnknown
	}
	for _, in := range []CampaignInput{in, {}} {
		if word, tone := campaignWord(&in); tone == "pass" {
			t.Errorf("a campaign in which nothing was judged says %q", word)
		}
	}
}

// TestACampaignOfRunsThatCouldNotBeJudgedIsNotGreen, though it found nothing.
func TestACampaignOfRunsThatCouldNotBeJudgedIsNotGreen(t *testing.T) {
	in := searched(t)
	in.Findings, in.Runs = nil, in.Runs[:4]
	if word, tone := campaignWord(&in); word != "✓ No finding" || tone != "pass" {
		t.Errorf("%s, %s", word, tone)
	}
	in.Campaign.Warnings = []model.Warning{{Kind: model.WarnUnjudged}}
	if word, tone := campaignWord(&in); tone != "unknown" || !strings.Contains(word, "could not be judged") {
		t.Errorf("%s, %s", word, tone)
	}
}
