package report

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"

	"netsplit/model"
)

func shrunkExample() model.Shrunk {
	return model.Shrunk{Run: "c-1-r0007", Campaign: "c-1", Cause: "gone: gone", Tries: 3, Made: 12, All: model.Tally{Tries: 3, Failed: 3}, None: model.Tally{Tries: 3}, Keep: []int{2},
		Least: model.Tally{Tries: 3, Failed: 2}, Smallest: &model.Scenario{},
		Steps: []model.StepNeed{
			{Step: 1, Text: "crash n1", Needed: model.NeededNo, With: model.Tally{Tries: 3, Failed: 3}, Without: model.Tally{Tries: 3, Failed: 2}},
			{Step: 2, Text: "isolate n2", Needed: model.NeededYes, With: model.Tally{Tries: 3, Failed: 2}, Without: model.Tally{Tries: 3, Idle: 1}},
			{Step: 3, Text: "crash n3", Needed: model.NeededUnknown, Why: "it fails too seldom to tell: try more often"}}}
}

// triaged is a search of many runs whose failures have two causes.
func triaged(t testing.TB, many int) CampaignInput {
	in := searched(t)
	in.Campaign.Spec.Strategy = model.StrategySequences
	x := shrunkExample()
	a := model.Cause{ID: "cause-1", Campaign: "c-1", Class: model.Broken, Severity: model.SeverityData, Rule: "lost-acknowledged-writes: acknowledged writes lost", Summary: "2 of 9 acknowledged writes lost",
		Fault: "crash", Missing: []string{"json complete-ok", "json list-ok"}, Seen: 1, Runs: []string{"c-1-r0007"}, Run: "c-1-r0007", FirstAfter: 5, Replays: 13, Reproduced: 12, Shrunk: &x,
		Steps: []string{`lose before receive n1>c1 "json allocate-ok" :7400, number 1`, `crash before send n2>n1 "json received" :7400 after "json close", number 1`}}
	b := model.Cause{ID: "cause-2", Campaign: "c-1", Class: model.Documented, Rule: "operations: failed with Timeout", Summary: "1 operation failed", Clean: true, Run: "c-1-r0005", FirstAfter: 6,
		Unsure: "no type of message is missing: the rule and the kind of the fault alone put these runs together"}
	base := in.Runs[6]
	for i := range many {
		r := base
		r.Run = fmt.Sprintf("c-1-r%04d", i+8)
		in.Runs = append(in.Runs, r)
		in.Reports[r.Run] = r.Run + "/report.html"
		b.Runs = append(b.Runs, r.Run)
	}
	b.Runs = append(b.Runs, "c-1-r0005")
	in.Causes = []model.Cause{a, b}
	return in
}

func pageOf(t testing.TB, in CampaignInput) string {
	t.Helper()
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCausesAreToldStepByStep, with what they need and links to their runs.
func TestCausesAreToldStepByStep(t *testing.T) {
	page := pageOf(t, triaged(t, 2))
	causes := section(t, page, "causes")
	wants(t, "causes", causes, "lost-acknowledged-writes: acknowledged writes lost", "last fault: crash", "missing: json complete-ok, json list-ok", "in 1 run<", "first seen after 5 runs", "failed again in 12 of 13 replays",
		`<ol><li>lose before receive n1>c1 "json allocate-ok" :7400, number 1</li><li>crash before send n2>n1`, "after no fault", "also without any fault", "It may be more than one: no type of message is missing",
		`<a href="c-1-r0007/report.html">report of c-1-r0007</a>`, `<a href="c-1-r0008/report.html">r0008</a>`, "netsplit replay c-1-r0007 -n 10",
		"Failed in 3 of 3 with all 3 steps, in 0 of 3 without any. The smallest scenario has 1 of 3 steps and failed in 2 of 3.", "not needed", "0 of 3 (1 say nothing)", "it fails too seldom to tell: try more often")
	if !strings.Contains(page, "<details open><summary>Runs: 9</summary>") {
		t.Error("the table of a few runs is closed")
	}
}

// TestThousandsOfRunsHaveNoRowsInTheFirstView: their table is closed, a cause links to the
// first of its runs, and of many causes the first are told.
func TestThousandsOfRunsHaveNoRowsInTheFirstView(t *testing.T) {
	in := triaged(t, 2000)
	for i := range 100 {
		c := in.Causes[0]
		c.ID, c.Rule = fmt.Sprintf("cause-x%d", i), fmt.Sprintf("rule %d", i)
		in.Causes = append(in.Causes, c)
	}
	page := pageOf(t, in)
	if !strings.Contains(page, "<details><summary>Runs: 2007</summary>") {
		t.Error("the table of thousands of runs is open")
	}
	causes := section(t, page, "causes")
	wants(t, "causes", causes, "Runs: 2001", "and 1701 more, which netsplit's API lists", "42 more causes", "<li>rule 99; last fault: crash; missing: json complete-ok, json list-ok; in 1 run;")
	if n := strings.Count(causes, "<article"); n != maxCauses {
		t.Errorf("%d causes are told, want %d", n, maxCauses)
	}
}

// TestRunsThatLeaveOutStepsAreNoneOfTheSearch, nor a search without causes has a section.
func TestRunsThatLeaveOutStepsAreNoneOfTheSearch(t *testing.T) {
	in := triaged(t, 0)
	in.Runs[6].ReplayOf = "c-1-r0005"
	page := pageOf(t, in)
	wants(t, "page", page, "<summary>Runs: 6</summary>", "3 clean runs, then 3 fault runs", "Then 1 run left out steps of the smallest run of each cause.")
	if strings.Contains(pageOf(t, searched(t)), `id="causes"`) {
		t.Error("a search without causes has a section of them")
	}
}

// TestPageOfARunThatWasShrunk.
func TestPageOfARunThatWasShrunk(t *testing.T) {
	in := searched(t)
	in.Findings = nil
	in.Campaign.Spec.Replay, in.Campaign.Spec.Shrink = "c-0-r0007", 3
	in.Campaign.Shrunk = []model.Shrunk{shrunkExample()}
	page := pageOf(t, in)
	wants(t, "page", page, "✕ 1 of 3 steps suffice", "netsplit tried run c-0-r0007 of Redis + Sentinel, 3 nodes without its steps: 7 tries.")
	wants(t, "needed", section(t, page, "needed"), "isolate n2", "needed", "2 of 3")
	in.Campaign.Shrunk[0].Smallest, in.Campaign.Shrunk[0].Why = nil, "the run's scenario did not fail for this cause in 3 tries"
	wants(t, "what did not fail again", pageOf(t, in), "? Did not fail again", "Not all was tried: the run's scenario did not fail")
}

// TestHostileCausesAreText.
func TestHostileCausesAreText(t *testing.T) {
	in := triaged(t, 0)
	c := &in.Causes[0]
	c.ID, c.Rule, c.Summary, c.Fault, c.Missing, c.Steps, c.Unsure, c.Run = attack, attack, attack, attack, []string{attack}, []string{attack}, attack, attack
	c.Runs = []string{attack}
	in.Reports[attack] = "javascript:alert(1)"
	c.Shrunk.Run, c.Shrunk.Why, c.Shrunk.Steps[0].Text, c.Shrunk.Steps[0].Why = attack, attack, attack, attack
	page := pageOf(t, in)
	if strings.Contains(page, attack) || strings.Contains(page, `href="javascript:`) || !strings.Contains(page, html.EscapeString("<img src=x")) {
		t.Error("text of a target is markup")
	}
}
