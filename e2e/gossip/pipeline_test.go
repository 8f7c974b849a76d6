package gossip

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"go.yaml.in/yaml/v3"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestThePipelineOfTheExample runs the steps of the workflow that people copy: a finding fails
// it, and none that was accepted does.
func TestThePipelineOfTheExample(t *testing.T) {
	harness.LeavesNothing(t)
	b, err := os.ReadFile("../../deploy/examples/ci/github.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ ID, Run string }
		}
	}
	if err := yaml.Unmarshal(b, &workflow); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, s := range workflow.Jobs["search"].Steps {
		scripts[s.ID] = s.Run
	}
	dir, bin := t.TempDir(), t.TempDir()
	abs, err := filepath.Abs(target)
	if err != nil {
		t.Fatal(err)
	}
	// This test is root already; and it asks for fewer runs, of the program with the bug.
	const more = ` --set bug=true --seed 1 --clean 5 --faults 18 --labs 6`
	if err := os.Symlink(harness.Bin("netsplit"), filepath.Join(bin, "netsplit")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\ncase $1 in --*) shift;; esac\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	step := func(id, script string) (int, string) {
		t.Helper()
		if script == "" {
			t.Fatalf("the workflow has no step %s", id)
		}
		c := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TARGET="+abs, "BASELINE=baseline.json", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=summary.md")
		out, err := c.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	found := func() (list []wire.Finding) {
		t.Helper()
		if code, out := step("findings", scripts["findings"]); code != 0 {
			t.Fatalf("status %d: %s", code, out)
		}
		if err := json.Unmarshal(read("findings.json"), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if err := os.WriteFile(filepath.Join(dir, "baseline.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := step("search", scripts["search"]+more)
	if code != 3 || !strings.Contains(out, "::error title=netsplit%3A ") || !strings.Contains(string(read("summary.md")), "| **counts** |") {
		t.Fatalf("status %d: %s", code, out)
	}
	var report struct {
		Suites []junit.Testsuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(read("netsplit.xml"), &report); err != nil || len(report.Suites) != 1 || report.Suites[0].Failures == 0 || report.Suites[0].Tests <= report.Suites[0].Failures {
		t.Errorf("%v: %s", err, read("netsplit.xml"))
	}
	accepted := map[[2]string]bool{}
	for _, f := range found() {
		accepted[[2]string{f.Failure.Check, f.Failure.Signature}] = true
	}
	if err := os.Rename(filepath.Join(dir, "findings.json"), filepath.Join(dir, "baseline.json")); err != nil {
		t.Fatal(err)
	}
	code, out = step("search", scripts["search"]+more)
	want := 0
	for _, f := range found() {
		if f.Class != string(model.Documented) && !accepted[[2]string{f.Failure.Check, f.Failure.Signature}] {
			want = 3
		}
	}
	if code != want || !strings.Contains(out, "not new") {
		t.Errorf("status %d, want %d: %s", code, want, out)
	}
}
