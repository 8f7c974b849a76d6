package service

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
	"netsplit/model"
)

// templateMade is less than it takes to make a template, which starts all servers in turn and
// awaits what they answer, and more than it takes to find one.
const templateMade = 200 * time.Millisecond

// TestSetUpTemplateAndNodeActions runs a target whose scripts fail where
// set-up commands, templates, host names or directories are not as they say.
func TestSetUpTemplateAndNodeActions(t *testing.T) {
	harness.LeavesNothing(t)
	cache := t.TempDir()
	t.Setenv("NETSPLIT_CACHE", cache)
	dir := t.TempDir()
	r := harness.Run(t, "campaign", "testdata/setup", "--strategy", "random", "--clean", "2", "--faults", "1", "--seed", "5", "--runs-dir", dir)
	id := harness.CampaignID(t, r)
	runs := harness.Records(t, dir, id)
	if len(runs) != 3 {
		t.Fatalf("%d runs: %s", len(runs), r)
	}
	for i, rec := range runs {
		v := rec.Verdict
		if v.Value != model.VerdictFail || len(v.Failures) != 1 || v.Failures[0].Check != "fatal-log" {
			t.Fatalf("run %d: only the marked line of the log file is to fail: %+v", i+1, v)
		}
		if i == 0 && rec.Cost.Template < templateMade || i > 0 && rec.Cost.Template > rec.Cost.Workload {
			t.Errorf("run %d: %v", i+1, rec.Cost)
		}
		var line struct {
			Host, File, Line string
			Context          []string
		}
		b, err := os.ReadFile(filepath.Join(dir, id, rec.Run, "loglines.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(strings.SplitN(string(b), "\n", 2)[0]), &line); err != nil || line.Line != "ERROR: marked" ||
			len(line.Context) != 2 || line.File != "log/sub/"+line.Host+".log" {
			t.Errorf("log line %s: %v", b, err)
		}
		events, err := os.ReadFile(filepath.Join(dir, id, rec.Run, "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(events), `"k":"node"`); n != 6 {
			t.Errorf("%d node actions in the record, want 6", n)
		}
	}

	// A replay says what it is made on, and is a run of the same target.
	r = harness.Run(t, "replay", runs[2].Run, "-n", "1", "--runs-dir", dir)
	if where, err := filepath.Abs("testdata/setup"); err != nil || !strings.Contains(r.Stdout, "1/1 replays of "+runs[2].Run) || !strings.Contains(r.Stdout, ", on "+where+"\n") || !strings.Contains(r.Stderr, " repeats "+runs[2].Run+" on "+where+"\n") {
		t.Errorf("replay: %s", r)
	}

	// What somebody changed beside the hosts' directories is made anew.
	shared, err := filepath.Glob(filepath.Join(cache, "work", "setup", "template-*", "cache", "n1"))
	if err != nil || len(shared) != 1 {
		t.Fatalf("caches of templates: %v %v", shared, err)
	}
	if err := os.WriteFile(shared[0], []byte("n7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r = harness.Run(t, "campaign", "testdata/setup", "--strategy", "clean", "--clean", "1", "--runs-dir", dir)
	if !strings.Contains(r.Stdout, "made again") || !strings.Contains(r.Stdout, "n1 was changed") {
		t.Errorf("with a damaged cache: %s", r)
	}
	for _, rec := range harness.Records(t, dir, harness.CampaignID(t, r)) {
		if rec.Verdict.Value != model.VerdictFail || rec.Cost.Template < templateMade {
			t.Errorf("with a damaged cache: %+v, %v", rec.Verdict, rec.Cost)
		}
	}

	// A template that somebody changed is not used, and the next run makes it anew.
	kept, err := filepath.Glob(filepath.Join(cache, "work", "setup", "template-*", "hosts", "n1", "data", "formatted"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("templates: %v %v", kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("n7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r = harness.Run(t, "campaign", "testdata/setup", "--strategy", "random", "--clean", "1", "--faults", "1", "--seed", "5", "--runs-dir", dir)
	made, judged := false, 0
	for i, rec := range harness.Records(t, dir, harness.CampaignID(t, r)) {
		made = made || i > 0 && rec.Cost.Template >= templateMade
		if i == 0 && (rec.Verdict.Value != model.VerdictUnknown || !strings.Contains(rec.Verdict.Reason, "was changed since it was made")) {
			t.Errorf("from a damaged template: %+v", rec.Verdict)
		}
		if i > 0 && strings.Contains(rec.Verdict.Reason, "did not become stable within") { // the machine is busy: it is made again
			continue
		}
		if i > 0 && rec.Verdict.Value != model.VerdictFail {
			t.Errorf("run %d after a damaged template: %+v, %v", i+1, rec.Verdict, rec.Cost)
		}
		judged += min(i, 1)
	}
	if !made || judged != 2 {
		t.Errorf("after a damaged template it is made: %v; %d runs were judged, want 2", made, judged)
	}
}

// TestAServerThatEndsAtItsStartIsNamed: at once, with its status and last words.
func TestAServerThatEndsAtItsStartIsNamed(t *testing.T) {
	harness.LeavesNothing(t)
	b, err := os.ReadFile("testdata/setup/target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	bad := strings.Replace(string(b), `exec "$@"`, "sleep 1; echo no such option >&2; exit 3", 1)
	bad = strings.Replace(bad, "{{if not .Building}}", "{{if .Building}}", 1)  // no template: the run starts from nothing
	bad = strings.Replace(bad, "head -c 3", "head -c 3; sleep 0.2; exit 1", 1) // never stable
	if err := os.WriteFile(filepath.Join(own, "target.yaml"), []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	r := harness.Run(t, "campaign", own, "--strategy", "clean", "--clean", "2", "--runs-dir", dir)
	if n := strings.Count(r.Stdout, "every run starts from nothing"); n != 1 || !strings.Contains(r.Stdout, "exit status 6") {
		t.Errorf("that no template could be made is said %d times: %s", n, r)
	}
	for _, rec := range harness.Records(t, dir, harness.CampaignID(t, r)) {
		if v := rec.Verdict; v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, "ended by itself") || !strings.Contains(v.Reason, "exit status 3") ||
			!strings.Contains(v.Reason, "no such option") {
			t.Errorf("%+v", v)
		}
	}
}
