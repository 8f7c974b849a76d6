package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/inference/store"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/testbed/lab"
)

// document decodes what a command printed as one document.
func document[T any](t *testing.T, args ...string) (code int, out T, errs string) {
	t.Helper()
	code, text, errs := cli(t, append(args, "-o", "json")...)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil || d.More() {
		t.Errorf("%q: %v: %s%s", args, err, text, errs)
	}
	return code, out, errs
}

// TestTheEndOfACampaignIsForProgramsToo: one document, whatever else is told on the way.
func TestTheEndOfACampaignIsForProgramsToo(t *testing.T) {
	const camp = `{"id":"c-1","state":"done","done":3,"reproduced":2,"spec":{"target":"gossip","replay":"c-0-r0001"},"shrunk":[{"run":"c-0-r0001","all":{"tries":3,"failed":3},"smallest":{"steps":[{"do":{"isolate":"n1"}}]}}]}`
	const finding = `{"id":"f-1","target":"gossip","class":"broken","severity":"data","failure":{"check":"lost","signature":"s","class":"broken"},"runs":["c-1-r0001"]}`
	d := daemonWith(t, map[string]string{
		"GET /v1/version": `{}`, "GET /v1/campaigns/c-1": camp, "POST /v1/campaigns": camp, "POST /v1/campaigns/c-1/resume": strings.Replace(camp, `,"replay":"c-0-r0001"`, "", 1),
		"GET /v1/runs":     `{"items":[{"id":"c-1-r0001","target":"gossip","verdict":{"value":"fail","failures":[{"check":"lost","class":"broken"}]}}]}`,
		"GET /v1/findings": `{"items":[` + finding + `]}`, "GET /v1/findings/f-1": finding,
	})
	dir := t.TempDir()
	scenario, script, known, smallest := filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "script.yaml"), filepath.Join(dir, "known.json"), filepath.Join(dir, "smallest.yaml")
	for file, text := range map[string]string{scenario: "steps:\n  - do: {isolate: n1}\n", script: "name: a\ntarget: gossip\nsteps: []\n", known: "[" + finding + "]"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GITHUB_ACTIONS", "true") // which is told on the way
	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(dir, "summary.md"))
	for _, c := range []struct {
		args string
		code int
	}{
		{"campaign gossip", exitFindings},
		{"campaign gossip --fail-on new --baseline " + known, exitPass},
		{"campaign resume c-1", exitFindings},
		{"run gossip --scenario " + scenario, exitFindings},
		{"script run " + script, exitFindings},
		{"replay c-0-r0001", exitPass},
		{"shrink c-0-r0001 --out " + smallest, exitPass},
	} {
		code, x, errs := document[map[string]any](t, append(strings.Fields(c.args), "--api", d.address)...)
		if code != c.code || x["id"] != "c-1" || x["state"] != "done" || x["done"] != 3.0 {
			t.Errorf("%s: status %d, want %d: %v, %s", c.args, code, c.code, x, errs)
		}
	}
	if b, err := os.ReadFile(smallest); err != nil || !strings.Contains(string(b), "isolate: n1") {
		t.Errorf("%q, %v", b, err)
	}
	if code, _, errs := cli(t, "shrink", "c-0-r0001", "--out", "-", "-o", "jsonl", "--api", d.address); code != exitUsage || !strings.Contains(errs, "--out - and -o jsonl both print") {
		t.Errorf("status %d: %s", code, errs)
	}
	if code, _, errs := cli(t, "script", "run", script, "-o", "json"); code != exitUsage || !strings.Contains(errs, "--output is for plays of a daemon") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// TestChecksAreForProgramsToo: what is right, what is wrong, and the exit status of the words.
func TestChecksAreForProgramsToo(t *testing.T) {
	dir := t.TempDir()
	good, bad, config, rules := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "netsplit.yaml"), filepath.Join(dir, "rules.yaml")
	for file, text := range map[string]string{
		good: "name: a\ntarget: redis-sentinel\nsteps:\n  - sleep: 1s\n", bad: "name: a\ntarget: redis-sentinel\nsteps:\n  - slep: 1s\n",
		config: "cluster: true\nallowed-host: [a, b]\nruns-dir: x\n",
		rules:  "checks:\n  - {name: no-note, class: broken, quote: q, select: select n from event where kind = 'note'}\n  - {name: no-heal, class: documented, quote: q, select: select n from event where kind = 'heal'}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, scripts, errs := document[[]checkedScript](t, "script", "check", good, bad)
	if code != exitUsage || len(scripts) != 2 || scripts[0] != (checkedScript{File: good, Target: "redis-sentinel", Steps: 1}) || !strings.Contains(scripts[1].Error, "slep") || !strings.Contains(errs, "slep") {
		t.Errorf("status %d: %+v, %s", code, scripts, errs)
	}
	code, conf, errs := document[checkedConfig](t, "config", "check", config)
	if list, ok := conf.Keys["allowed-host"].([]any); code != exitPass || conf.File != config || len(conf.Keys) != 3 || conf.Keys["cluster"] != "true" || !ok || len(list) != 2 {
		t.Errorf("status %d: %+v, %s", code, conf, errs)
	}
	w, err := rundir.Create(filepath.Join(dir, "c-1", "c-1-r0001"), model.RunMeta{Run: "c-1-r0001"})
	if err != nil {
		t.Fatal(err)
	}
	w.Append(rundir.EventsFile, model.Event{Num: 1, At: 5, Kind: model.EventStart})
	w.Append(rundir.EventsFile, model.Event{Num: 2, At: 6, Kind: model.EventNote, Note: "x"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	code, checks, errs := document[relationChecks](t, "check", "c-1-r0001", "--runs-dir", dir, "--relations", rules)
	if code != exitFindings || len(checks.Checks) != 2 || checks.Checks[0].Result != resultViolated || checks.Checks[1].Result != resultHeld || checks.Checks[1].Violations == nil {
		t.Fatalf("status %d: %+v, %s", code, checks, errs)
	}
	if v := checks.Checks[0].Violations; len(v) != 1 || v[0].N != 2 || v[0].Row["n"] != 2.0 || len(v[0].Events) != 1 || v[0].Messages == nil {
		t.Errorf("%+v", v)
	}
	file := own(t, "memory: 1\n")
	if code, _, errs := cli(t, "target", "check", file, "-o", "json"); code != exitFailed || !strings.Contains(errs, "mine 1.0 is not in the cache") {
		t.Errorf("status %d: %s", code, errs)
	}
	code, got, errs := document[[]fetchedRelease](t, "target", "get", file)
	if code != exitPass || len(got) != 1 || got[0].Software != "mine 1.0" || got[0].Files != 1 || got[0].Lib == "" {
		t.Errorf("status %d: %+v, %s", code, got, errs)
	}
	code, target, errs := document[checkedTarget](t, "target", "check", file)
	if code != exitPass || target.Name != "mine" || target.Release != "1.0" || target.Nodes != 1 || target.Clients != 1 || len(target.Notes) < 3 || target.Run != nil {
		t.Errorf("status %d: %+v, %s", code, target, errs)
	}
	if code, _, errs := cli(t, "target", "get", file, "--write-lock", "-o", "json"); code == exitPass || !strings.Contains(errs, "write-lock") {
		t.Errorf("status %d: %s", code, errs)
	}
	run := t.TempDir()
	for file, v := range map[string]any{rundir.MetaFile: model.RunMeta{}, rundir.TargetFile: model.Target{}, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: record.Evidence{}} {
		if err := rundir.WriteJSON(filepath.Join(run, file), v); err != nil {
			t.Fatal(err)
		}
	}
	code, x, errs := document[examined](t, "judge", run, "--examine")
	if code != exitFindings || len(x.Problems) == 0 || !strings.HasPrefix(x.Problems[0], "the workload did not start") || x.Facts == nil {
		t.Errorf("status %d: %+v, %s", code, x, errs)
	}
	code, policies, _ := document[[]namedPolicy](t, "policy", "list")
	if code != exitPass || len(policies) < 10 || policies[0].Name != "crash-before-send" || policies[0].Does == "" {
		t.Errorf("status %d: %+v", code, policies)
	}
	if code, known, _ := document[[]map[string]any](t, "script", "list"); code != exitPass || len(known) == 0 || known[0]["text"] == "" {
		t.Errorf("status %d: %v", code, known)
	}
}

// TestAStoreIsForProgramsToo: what was written, and how long it is.
func TestAStoreIsForProgramsToo(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(storePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	size := func(path string) int64 {
		s, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return s.Size()
	}
	was, file := size(storePath(dir)), filepath.Join(dir, "copy")
	if code, x, errs := document[storeFile](t, "store", "compact", "--runs-dir", dir); code != exitPass || x != (storeFile{File: storePath(dir), Bytes: size(storePath(dir)), Before: was}) {
		t.Errorf("status %d: %+v, %s", code, x, errs)
	}
	if code, x, errs := document[storeFile](t, "store", "backup", file, "--runs-dir", dir); code != exitPass || x != (storeFile{File: file, Bytes: size(file)}) {
		t.Errorf("status %d: %+v, %s", code, x, errs)
	}
	code, x, errs := document[storeFile](t, "store", "restore", file, "--runs-dir", dir)
	if code != exitPass || x.File != storePath(dir) || x.From != file || size(x.Kept) == 0 {
		t.Errorf("status %d: %+v, %s", code, x, errs)
	}
}

// TestLabsAreARowEach, with what is wrong with them, and below the way to their switches.
func TestLabsAreARowEach(t *testing.T) {
	list := []lab.Status{
		{Name: "a", Phase: "up", Bridge: "ns1", OVSRunDir: "/run/x", Controller: "tcp:127.0.0.1:6653", Hosts: []lab.HostStatus{{Name: "n1"}, {Name: "n2"}}},
		{Name: "b", Phase: "creating", Bridge: "ns2", OVSRunDir: "/run/x", Owner: 7},
	}
	var out strings.Builder
	if err := printAll(outTable, &out, list, printLabs); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "n1,n2  tcp:127.0.0.1:6653 (not connected)  none") || !strings.Contains(lines[2], "process 7 (dead") || !strings.Contains(lines[3], "unix:/run/x/db.sock") {
		t.Errorf("%s", out.String())
	}
}
