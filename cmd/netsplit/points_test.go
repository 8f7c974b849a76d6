package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// cleanRuns writes the records of two clean runs of a target: a client writes, n1 copies
// to n2, and the nodes ping each other all the time. The second run has one point more.
func cleanRuns(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for i := range 2 {
		run := fmt.Sprintf("c-1-r000%d", i+1)
		dir := filepath.Join(root, "c-1", run)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		meta := model.RunMeta{Campaign: "c-1", Run: run, Target: "pair", Scenario: model.Scenario{Strategy: model.StrategyClean}}
		target := model.Target{Name: "pair", Nodes: []model.NodeID{"n1", "n2"}, Protocols: []model.Protocol{{Port: 7000}}}
		for file, v := range map[string]any{rundir.MetaFile: meta, rundir.TargetFile: target, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: record.Evidence{},
			rundir.SummaryFile: model.RunSummary{RunMeta: meta, Verdict: model.Verdict{Value: model.VerdictPass}}} {
			if err := rundir.WriteJSON(filepath.Join(dir, file), v); err != nil {
				t.Fatal(err)
			}
		}
		var lines []string
		num, msgs := 0, 0
		event := func(at time.Duration, kind model.EventKind, msg string) {
			num++
			lines = append(lines, fmt.Sprintf(`{"n":%d,"t":%d,"k":%q%s}`, num, at, kind, msg))
		}
		for at := time.Duration(0); at < 12*time.Second; at += 500 * time.Millisecond {
			say := func(from, to, typ string) {
				msgs++
				event(at, model.EventMessage, fmt.Sprintf(`,"msg":{"num":%d,"at":%d,"from":%q,"to":%q,"fromPort":50000,"toPort":7000,"type":%q}`, msgs, at, from, to, typ))
			}
			say("n1", "n2", "ping")
			switch {
			case at == 3*time.Second:
				event(at, model.EventWorkload, "")
			case at == 4*time.Second:
				say("c1", "n1", "write")
				say("n1", "n2", "copy")
			case at == 5*time.Second && i == 1:
				say("n2", "c1", "late")
			case at == 6*time.Second:
				event(at, model.EventStop, "")
			}
		}
		if err := os.WriteFile(filepath.Join(dir, rundir.EventsFile), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPointsOfCleanRuns(t *testing.T) {
	root := cleanRuns(t)
	for _, of := range []string{"c-1", "pair", filepath.Join(root, "c-1")} {
		code, out, errs := cli(t, "points", of, "--runs-dir", root, "--fault", "crash")
		if code != 0 {
			t.Fatalf("status %d: %s", code, errs)
		}
		for _, want := range []string{
			`2/2   crash before receive c1>n1 "write" :7000, number 1`,
			`2/2   crash before send n1>n2 "copy" :7000 after "write", number 1`,
			`1/2   crash after send n2>c1 "late" :7000 after "copy", number 1`,
			"pair: read from 2 clean runs", "periodic, no point: ping, every 500ms",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("points %s lacks %q:\n%s", of, want, out)
			}
		}
		if strings.Contains(out, `"ping"`) || strings.Contains(out, "isolate") {
			t.Errorf("points %s:\n%s", of, out)
		}
	}
}

func TestPolicyTry(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(root, "p.yaml")
	star := filepath.Join(root, "mine.star")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "policy: [crash-before-send, {file: mine.star}]\n")
	write(star, "def filter(s):\n  print('asked')\n  return s[0]['failure'] == 'crash'\ndef key(s):\n  return s[0]['node']\n")
	code, out, errs := cli(t, "policy", "try", file, "--on", "pair", "--runs-dir", root)
	if code != 0 || !strings.Contains(out, "2 of 12 single faults would be run") || !strings.Contains(errs, "mine.star:2:8: asked") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"crash-before-send: a crash after send", "mine.star: filter returns False"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	write(star, "def filter(s):\n  return s[0]['colour'] == 'red'\n")
	if code, _, errs := cli(t, "policy", "try", file, "--on", "pair", "--runs-dir", root); code != exitUsage || !strings.Contains(errs, `mine.star:2:14: a fit has no key "colour"`) {
		t.Errorf("status %d: %s", code, errs)
	}
}

func TestPointsAndPoliciesRefuse(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(root, "p.yaml")
	if err := os.WriteFile(file, []byte("policy:\n  - nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"points nobody":                      "is no campaign below",
		"points pair --keys stack":           `no key "stack"`,
		"points pair --keys type":            "lack side or type",
		"points pair --fault fire":           `no kind of fault "fire"`,
		"policy try " + file:                 "needs --on",
		"policy try " + file + " --on pair":  "p.yaml:2: no policy has the name",
		"policy try " + file + "x --on pair": "no such file",
	} {
		code, _, errs := cli(t, append(strings.Fields(args), "--runs-dir", root)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", args, code, errs)
		}
	}
}

func TestNamedPoliciesAreListed(t *testing.T) {
	if code, out, _ := cli(t, "policy", "list"); code != 0 || !strings.Contains(out, "crash-before-send") || !strings.Contains(out, "PreFail Figure 14") {
		t.Errorf("status %d: %s", code, out)
	}
}
