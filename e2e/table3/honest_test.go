package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
)

// table prints the table of some lines, by a plan.
func table(t *testing.T, dir string, p *plan, lines ...string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, resultsFile), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printTable(&out, p, dir); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.FieldsFunc(out.String(), func(r rune) bool { return r == ' ' }), " ")
}

func wants(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// TestWhatNoCutHadAPartInIsNoFind: a failure before the cut, or in a run that was
// not cut, neither of a search nor of a replay.
func TestWhatNoCutHadAPartInIsNoFind(t *testing.T) {
	dir := t.TempDir()
	bug := model.Failure{Signature: "npe", Known: "X-1", KnownBy: model.KnownBySymptom, Class: model.Broken, Summary: "after"}
	before := bug
	before.BeforeCut, before.Summary = true, "before"
	put(t, dir, 1, model.StrategyClean, "", -1)
	put(t, dir, 2, model.StrategyCoFI, "", 5, before)
	put(t, dir, 3, model.StrategyCoFI, "", -1, bug)
	var r result
	if err := gather(dir, &r); err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.First != 0 || f.Runs != 0 || f.Uncut != 2 || f.run != "" || f.Dropped != 0 {
		t.Errorf("%+v", f)
	}
	put(t, dir, 4, model.StrategyCoFI, "", 7, bug)
	put(t, dir, 5, model.StrategyCoFI, "r4", 7, before)
	put(t, dir, 6, model.StrategyCoFI, "r4", -1, bug)
	put(t, dir, 7, model.StrategyCoFI, "r4", 7, bug)
	if err := gather(dir, &r); err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.First != 3 || f.Runs != 1 || f.Uncut != 2 || f.Dropped != 7 || f.Replays != 1 || f.Tried != 3 || f.Summary != "after" || f.By != "symptom" {
		t.Errorf("%+v", f)
	}
}

// old are lines from before versions were recorded.
var old = []string{
	`{"campaign":"c","strategy":"cofi","seed":1,"labs":2,"clean":3,"faults":20,"wall":2300,"findings":[` +
		`{"signature":"a","known":"CASSANDRA-15758","class":"broken","summary":"cassandra on n2 logged at 43.1 s, before the cut: ERROR","first":14,"runs":1,"replays":0,"tried":10},` +
		`{"signature":"b","known":"CASSANDRA-15758","class":"broken","summary":"cassandra on n3 logged at 62.1 s: ERROR, before the cut: x","first":15,"runs":2,"replays":0,"tried":10},` +
		`{"signature":"c","known":"CASSANDRA-15437","class":"broken","summary":"cassandra on n3 logged at 62.1 s: hints","first":15,"runs":2,"replays":3,"tried":10},` +
		`{"signature":"write failed, without a cut","known":"CASSANDRA-11804","class":"broken","summary":"1 of 7","first":3,"runs":1,"replays":0,"tried":0}]}`,
	`{"campaign":"h","strategy":"random","seed":1,"labs":2,"clean":3,"faults":20,"wall":3600,"findings":[` +
		`{"signature":"x","class":"documented","summary":"s","first":1,"runs":1,"replays":0,"tried":0}]}`,
	`{"campaign":"h","strategy":"cofi","seed":1,"labs":2,"clean":3,"faults":20,"wall":3600,"replayWall":1800,"version":"abc","messages":2000,"unknown":1,"findings":[` +
		`{"signature":"x","class":"broken","summary":"60.0 s after the workload ended it","first":1,"runs":1,"replays":0,"tried":10},` +
		`{"signature":"y","class":"broken","summary":"s","first":2,"runs":1,"uncut":1,"replays":0,"tried":0}]}`,
}

func oldPlan() *plan {
	return &plan{Campaigns: []campaign{{Name: "c", Target: "cassandra@3.11.5"}, {Name: "h", Target: "hdfs-ha@3.3.0"}},
		Bugs: []bug{{ID: "CASSANDRA-15758", In: []string{"c"}}, {ID: "CASSANDRA-15437", In: []string{"c"}}, {ID: "CASSANDRA-11804", In: []string{"c"}}}}
}

func TestTheTableClaimsNoMoreThanWasSeen(t *testing.T) {
	dir := t.TempDir()
	out := table(t, dir, oldPlan(), old...)
	lines := strings.Split(out, "\n")
	for i, want := range []string{"15, by symptom, replayed 0 of 10", "15, replayed 3 of 10", "not in 20 but without a cut"} {
		wants(t, lines[i+1], want)
	}
	wants(t, out, "c, cofi: looks like CASSANDRA-15758, by its symptom: cassandra on n2 logged at 43.1 s, before the cut: ERROR; in 1 before the cut or without one\n",
		"h, cofi: not known: 60.0 s after", "first in run 1, in 1 runs, replayed 0 of 10\n", "h, cofi: not known: s; first in run 2, in 1 runs, not replayed, in 1 before the cut or without one\n")
}

// TestACampaignThatFailsDoesNotEndTheOthers: they are run, the table is printed,
// and the error is returned.
func TestACampaignThatFailsDoesNotEndTheOthers(t *testing.T) {
	dir := t.TempDir()
	plan := `
faults: 1
replays: 1
replay: known
seeds: [1]
campaigns: [{name: bad, target: bad@1}, {name: good, target: good@1}]
bugs: []
`
	program := `#!/bin/sh
[ "$2" = good@1 ] || { echo "no such target" >&2; exit 1; }
echo "campaign c-1 on good: done after 3 runs (3 pass): no invariant can be told from chance; seed 1"
`
	for name, text := range map[string]string{"plan.yaml": plan, "netsplit": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	err := run(t.Context(), []string{"-dir", dir, "-runs", filepath.Join(dir, "runs"), "-netsplit", filepath.Join(dir, "netsplit"), "-strategies", "cofi", "run"}, &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "campaign bad, cofi, seed 1 failed: ") {
		t.Errorf("error %v", err)
	}
	wants(t, errs.String(), "no such target", "going on with the next")
	wants(t, out.String(), "good, cofi: no fault run: no invariant can be told from chance")
	done, err := readResults(filepath.Join(dir, resultsFile))
	if err != nil || len(done) != 1 || done[0].Campaign != "good" {
		t.Errorf("%+v, %v", done, err)
	}
}
