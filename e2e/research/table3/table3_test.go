package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

// put writes the summary of a run that ended n seconds after the epoch; dropped
// -1: it was not cut.
func put(t *testing.T, dir string, n int, st model.Strategy, replayOf string, dropped int, failures ...model.Failure) {
	t.Helper()
	run := fmt.Sprintf("r%d", n)
	at := filepath.Join(dir, "c", run)
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	v := model.Verdict{Value: model.VerdictPass, Failures: failures}
	if len(failures) > 0 {
		v.Value = model.VerdictFail
	}
	s := model.RunSummary{RunMeta: model.RunMeta{Run: run, Version: "v1", Started: time.Unix(int64(n-1), 0), ReplayOf: replayOf, Scenario: model.Scenario{Strategy: st}},
		Ended: time.Unix(int64(n), 0), Cost: model.Cost{Start: time.Second, Workload: 2 * time.Second, Ours: time.Second}, Verdict: v, Proof: &model.Proof{Dropped: dropped}}
	s.Messages = map[string]int{"rpc x": 96, "rpc unknown": 1, "tcp syn :80": 50, "tcp data > 64": 3}
	if dropped < 0 {
		s.Proof = nil
	}
	if err := rundir.WriteJSON(filepath.Join(at, rundir.SummaryFile), s); err != nil {
		t.Fatal(err)
	}
}

func TestGatherCountsFaultRunsUntilFound(t *testing.T) {
	dir := t.TempDir()
	bug := model.Failure{Signature: "npe", Known: "X-1", Class: model.Broken}
	noise := model.Failure{Signature: "noise", Class: model.Broken}
	put(t, dir, 1, model.StrategyClean, "", 0, noise)
	put(t, dir, 2, model.StrategyCoFI, "", 5)
	put(t, dir, 3, model.StrategyCoFI, "", 7, bug)
	put(t, dir, 4, model.StrategyCoFI, "", 9, bug, noise)
	put(t, dir, 5, model.StrategyCoFI, "r3", 7, bug)
	put(t, dir, 6, model.StrategyCoFI, "r3", 7)
	var r result
	if err := gather(dir, &r); err != nil {
		t.Fatal(err)
	}
	if r.Clean != 1 || r.Faults != 3 || r.Seconds != 4 || r.Verdicts["fail"] != 2 || len(r.Findings) != 2 {
		t.Fatalf("%+v", r)
	}
	if got := costs(r.Cost); got != "25% 0% 50% 0% 25%" {
		t.Errorf("the time went to %s", got)
	}
	if r.Version != "v1" || r.Messages != 400 || r.Unknown != 4 {
		t.Errorf("version %q, %d of %d messages unknown", r.Version, r.Unknown, r.Messages)
	}
	n, b := r.Findings[0], r.Findings[1]
	if !n.Clean || n.First != 3 || n.Runs != 1 {
		t.Errorf("noise: %+v", n)
	}
	if b.Clean || b.First != 2 || b.Runs != 2 || b.Dropped != 7 || b.Replays != 1 || b.Tried != 2 || b.Known != "X-1" {
		t.Errorf("bug: %+v", b)
	}
}

func TestTableSaysWhatIsFoundNotFoundAndNotRun(t *testing.T) {
	dir := t.TempDir()
	for _, r := range []result{
		{Campaign: "a", Strategy: "cofi", Faults: 20, Findings: []found{{Known: "X-1", First: 4, Replays: 9, Tried: 10, Dropped: 12, Class: "broken"}}},
		{Campaign: "a", Strategy: "random", Faults: 20},
		{Campaign: "d", Strategy: "cofi", Faults: 20, Findings: []found{{Known: "X-4", First: 2, Clean: true, Class: "broken"}}},
	} {
		if err := appendResult(filepath.Join(dir, resultsFile), r); err != nil {
			t.Fatal(err)
		}
	}
	p := &plan{Bugs: []bug{{ID: "X-1", In: []string{"a"}}, {ID: "X-2", In: []string{"b"}}, {ID: "X-3", Why: "no such release"}, {ID: "X-4", In: []string{"d"}}}}
	var out strings.Builder
	if err := printTable(&out, p, dir); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"4, replayed 9 of 10 not in 20 12", "not run yet not run yet", "- - no such release", "2, also without a cut, not replayed not run yet"} {
		if got := strings.Join(strings.Fields(lines[i+1]), " "); !strings.Contains(got, want) {
			t.Errorf("row %q, want %q in it", got, want)
		}
	}
}

func TestThePlansAreReadable(t *testing.T) {
	for _, dir := range []string{".", "today"} {
		if _, err := readPlan(filepath.Join(dir, "plan.yaml")); err != nil {
			t.Error(err)
		}
	}
}

// TestThePlanAddsUpToThePapersNumbers: of Table 3 the text (§5.2, §5.3) says that
// 10 of the 16 bugs need the partition to stop, that random injection triggered
// 6 of the 12 unknown ones, and that developers confirmed 4 of these.
func TestThePlanAddsUpToThePapersNumbers(t *testing.T) {
	p, err := readPlan("plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, b := range p.Bugs {
		got["random "+b.Random]++
		got[b.Status]++
		if b.Stop {
			got["stop"]++
		}
	}
	want := map[string]int{"stop": 10, "random yes": 6, "random no": 6, "random N/A": 4, "Fixed": 4, "Confirmed": 4, "Pending": 8}
	if !maps.Equal(got, want) {
		t.Errorf("the plan has %v, the paper %v", got, want)
	}
}

// TestABugIsLookedForWhereItCanBe: its campaigns run a release for which the
// target describes it.
func TestABugIsLookedForWhereItCanBe(t *testing.T) {
	p, err := readPlan("plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]model.KnownFailure{} // by campaign
	for _, c := range p.Campaigns {
		if known[c.Name], err = c.known(); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range p.Bugs {
		for _, name := range b.In {
			if !slices.ContainsFunc(known[name], func(k model.KnownFailure) bool { return k.ID == b.ID }) {
				t.Errorf("%s is looked for in %s, whose target does not describe it for that release", b.ID, name)
			}
		}
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"-seeds -1: use 1 or more":   {"-seeds", "-1", "table"},
		`unknown strategy "cofy"`:    {"-strategies", "cofi,cofy", "run"},
		"usage: table3 [flags] run|": {"-dir", ".", "runs"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// TestACampaignWithNothingToExploreIsAResult, and one that failed is none.
func TestACampaignWithNothingToExploreIsAResult(t *testing.T) {
	for said, want := range map[string]string{
		"c-1-r0001  pass    all checks hold\n\ncampaign c-1 on hdfs: done after 6 runs (6 pass): no invariant can be told from chance: give it more; seed 1\na run took 1s\n": "no invariant can be told from chance: give it more",
		"campaign c-1 on hdfs: done after 9 runs (9 unknown): the budget of 20 fault runs is spent; seed 1\n":                                                                 "",
		"netsplit: the lab could not be made\n": "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, outcomeFile), []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := nothingToExplore(dir); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
	if got := nothingToExplore(t.TempDir()); got != "" {
		t.Errorf("without an outcome: %q", got)
	}
}
