package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
)

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
	wants(t, out, "c, cofi: open, looks like CASSANDRA-15758, by its symptom: cassandra on n2 logged at 43.1 s, before the cut: ERROR; in 1 before the cut or without one\n",
		"h, cofi: open, not known: 60.0 s after", "first in run 1, in 1 runs, replayed 0 of 10\n", "h, cofi: open, not known: s; first in run 2, in 1 runs, not replayed, in 1 before the cut or without one\n")
}

func TestTheTableSumsUpSystems(t *testing.T) {
	dir := t.TempDir()
	judged := `
- {campaign: h, signature: x, judgment: true, cause: it, why: the machine}
- {campaign: c, signature: c, judgment: ours, cause: it, why: seen in the code}
- {campaign: h, signature: y, judgment: true, cause: it, why: the same}
- {campaign: h, signature: "not there", judgment: open, why: of a line that was replaced}
`
	if err := os.WriteFile(filepath.Join(dir, "judgments.yaml"), []byte(judged), 0o644); err != nil {
		t.Fatal(err)
	}
	out := table(t, dir, oldPlan(), old...)
	// 20 replays (the one before the cut has no first run now) as long as the 23
	// runs of 2300 s.
	wants(t, out, "cassandra 1 0, 1, 0, 3 cofi 0.6 h 0.6 h, 0.6 of it by their number 1.2 h not counted yet\n",
		"hdfs 2 2 of 1 causes, 0, 0, 0 cofi 1.0 h, random 1.0 h 0.5 h 2.5 h 1 of 2000 (0.05 %), in 1 of 2 campaigns\n",
		"c, cofi: ours, known as CASSANDRA-15437: ", "\n seen in the code\n", "h, random: true, not known: s;")
	if j := judgments(nil).of("h", &found{Class: string(model.Documented)}); j.Judgment != isDocumented {
		t.Errorf("what the documentation admits is %s", j.Judgment)
	}
}

func TestBadJudgmentsAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "judgments.yaml")
	for said, want := range map[string]string{
		"- {campaign: a, signature: s, judgment: yes, why: w}":                                                           `judgment "yes": use one of true, ours, documented, open`,
		"- {campaign: a, signature: s, judgment: true}":                                                                  "say why",
		"- {campaign: a, judgment: true, why: w}":                                                                        "needs a campaign and a signature",
		"- {campaign: a, signature: s, judgment: true, because: w}":                                                      "because",
		"- {campaign: a, signature: s, judgment: ours, why: w}\n- {campaign: a, signature: s, judgment: true, why: w}\n": "stands twice",
	} {
		if err := os.WriteFile(file, []byte(said), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readJudgments(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", said, err, want)
		}
	}
}

// TestTheJudgmentsAreOfThePlansCampaigns, and the tables of the repository can be
// printed.
func TestTheJudgmentsAreOfThePlansCampaigns(t *testing.T) {
	for _, dir := range []string{".", "today"} {
		p, err := readPlan(filepath.Join(dir, "plan.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		js, err := readJudgments(filepath.Join(dir, "judgments.yaml"))
		if err != nil || len(js) == 0 {
			t.Fatalf("%d judgments, %v", len(js), err)
		}
		for _, j := range js {
			if !slices.ContainsFunc(p.Campaigns, func(c campaign) bool { return c.Name == j.Campaign }) {
				t.Errorf("%s: a judgment of campaign %q, which there is not", dir, j.Campaign)
			}
		}
		if err := printTable(io.Discard, p, dir); err != nil {
			t.Error(err)
		}
	}
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

// TestALineSaysWhatItsReplaysTook: of the replays of a finding that the campaign's
// program says it made.
func TestALineSaysWhatItsReplaysTook(t *testing.T) {
	dir, search, replays := t.TempDir(), t.TempDir(), t.TempDir()
	bug := model.Failure{Signature: "npe", Known: "X-1", Class: model.Broken}
	put(t, search, 1, model.StrategyCoFI, "", 5, bug)
	put(t, replays, 2, model.StrategyCoFI, "r1", 5, bug)
	program := `#!/bin/sh
case "$1" in
campaign) echo "$@" >> ` + dir + `/asked; cp -r ` + search + `/. "$4" ;; # campaign TARGET --runs-dir DIR
replay) cp -r ` + replays + `/. "$8" ;; # replay RUN -n N --labs N --runs-dir DIR
esac
exit 3
`
	file := filepath.Join(dir, "netsplit")
	if err := os.WriteFile(file, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	w := worker{plan: &plan{Faults: 1, Replays: 1, Replay: "known"}, file: filepath.Join(dir, resultsFile), runs: filepath.Join(dir, "runs"), program: file, labs: 1, errs: io.Discard}
	if err := w.campaign(t.Context(), campaign{Name: "c", Target: "c@1"}, "cofi", 1); err != nil {
		t.Fatal(err)
	}
	done, err := readResults(w.file)
	if err != nil || len(done) != 1 || done[0].ReplayWall <= 0 || done[0].Findings[0].Tried != 1 || done[0].Findings[0].Replays != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := w.campaign(t.Context(), campaign{Name: "more", Target: "c@1", Faults: 7}, "cofi", 1); err != nil {
		t.Fatal(err)
	}
	requested, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || !strings.Contains(string(requested), "--faults 1 ") || !strings.Contains(string(requested), "--faults 7 ") {
		t.Errorf("asked for %q (%v), want the plan's budget of 1 and the campaign's own of 7", requested, err)
	}
}
