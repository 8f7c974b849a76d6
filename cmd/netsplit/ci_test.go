package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"netsplit/api/wire"
	"netsplit/model"
)

const hostile = "lost \x1b[31m<b>]]>|`%\xff"

func failure(check, class string) wire.Failure {
	return wire.Failure{Check: check, Signature: check, Class: class, Severity: "data", Cause: check, Summary: check + " " + hostile}
}

func aCampaign() made {
	ended := time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC)
	return made{place: (&daemonFlags{}).place("runs"), campaign: wire.Campaign{ID: "c-1", State: "done", Done: 5, Created: ended.Add(-time.Minute), Ended: &ended,
		Spec: wire.CampaignSpec{Target: "gossip", Seed: 7}}}
}

// baselineOf is the flags of somebody who knows one failure of the target.
func baselineOf(t *testing.T, check string) *ciFlags {
	t.Helper()
	f := &ciFlags{failOn: failOnNew, baseline: filepath.Join(t.TempDir(), "known.json")}
	text := "[]"
	if check != "" {
		text = `[{"target":"gossip","failure":{"check":"` + check + `","signature":"` + check + `"}}]`
	}
	if err := os.WriteFile(f.baseline, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestJUnit: a run is a test case; only what counts fails it, and whatever a target wrote, a
// reader of XML reads it.
func TestJUnit(t *testing.T) {
	m, f := aCampaign(), baselineOf(t, "known")
	f.junit = filepath.Join(t.TempDir(), "out.xml")
	run := func(id, verdict string, failures ...wire.Failure) wire.RunRow {
		return wire.RunRow{ID: id, Campaign: "c-1", Target: "gossip", Started: m.campaign.Created, Ended: m.campaign.Ended,
			Scenario: wire.RowScenario{ID: "s-" + strings.Trim(id, "r6"), Strategy: "cofi", Isolate: "n1"}, Verdict: wire.Verdict{Value: verdict, Reason: verdict + hostile, Failures: failures}}
	}
	short := run("r6", "unknown")
	short.CutShort = true
	err := f.writeJUnit(m, []wire.RunRow{run("r1", "pass"), run("r2", "fail", failure("admitted", "documented"), failure("known", "broken")),
		run("r3", "fail", failure("known", "broken"), failure("new", "broken")), run("r4", "unknown"), run("r5", "vacuous"), short}, &exitError{code: exitFindings})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.junit)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Suites []junit.Testsuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b, &got); err != nil || len(got.Suites) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	s := got.Suites[0]
	if s.Tests != 6 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 2 || s.Time != "60.000" || s.Name != "netsplit gossip" {
		t.Errorf("%+v", s)
	}
	var cases []string
	for _, c := range s.Testcases {
		how, text := "passes", ""
		for name, r := range map[string]*junit.Result{"fails": c.Failure, "errs": c.Error, "skipped": c.Skipped} {
			if r != nil {
				how, text = name+" "+r.Type, r.Data
			}
		}
		if c.SystemOut != nil {
			text = c.SystemOut.Data
		}
		if !strings.Contains(text, fmt.Sprintf("replay r%d -n 10 --runs-dir runs", len(cases)+1)) || !strings.Contains(text, "<b>]]>|`%") {
			t.Errorf("%s: %q", c.Name, text)
		}
		cases = append(cases, c.Name+" "+how)
	}
	want := []string{"cofi s-1 isolates n1 passes", "cofi s-2 isolates n1 passes", "cofi s-3 isolates n1 fails new", "cofi s-4 isolates n1 errs unknown", "cofi s-5 isolates n1 skipped vacuous", "cofi s- isolates n1 skipped unknown"}
	if !cmp.Equal(cases, want) {
		t.Error(cmp.Diff(want, cases))
	}
	clean := run("r7", "pass")
	clean.Scenario = wire.RowScenario{ID: "clean-9", Strategy: "clean"}
	if err := f.writeJUnit(m, []wire.RunRow{clean, clean, run("r1", "pass"), run("r1", "unknown")}, nil); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(f.junit); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clean", "clean #2", "cofi s-1 isolates n1", "cofi s-1 isolates n1 #2"} { // as in the next campaign
		if !strings.Contains(string(b), `name="`+name+`"`) {
			t.Errorf("no test case %q in %s", name, b)
		}
	}
	for _, outcome := range []error{errors.New("no disk"), &exitError{exitUndecided, errors.New("nothing is known")}, &exitError{code: exitInterrupted}} {
		if err := f.writeJUnit(m, []wire.RunRow{run("r1", "pass")}, outcome); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(f.junit); err != nil || !strings.Contains(string(b), `errors="1"`) || !strings.Contains(string(b), `<testcase name="campaign"`) {
			t.Errorf("a campaign that ended with %v: %v, %s", outcome, err, b)
		}
	}
	f.junit = filepath.Join(t.TempDir(), "none", "out.xml")
	if err := f.writeJUnit(m, nil, nil); err == nil || !strings.Contains(err.Error(), "JUnit report") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// TestACampaignThatWasCancelledIsNoPass, and a finding of it counts.
func TestACampaignThatWasCancelledIsNoPass(t *testing.T) {
	m := made{campaign: wire.Campaign{State: string(model.CampaignCancelled), Reason: "cancelled by a user"}}
	broken := []wire.Finding{{Failure: wire.Failure{Class: string(model.Broken)}}}
	for _, c := range []struct {
		err  error
		code int
	}{{outcome(m, nil, verdictCount{"pass": 3}, &ciFlags{}), exitInterrupted}, {m.ended("the replay"), exitInterrupted}, {outcome(m, broken, verdictCount{"fail": 1}, &ciFlags{}), exitFindings}} {
		if e := (*exitError)(nil); !errors.As(c.err, &e) || e.code != c.code {
			t.Errorf("%v, want status %d", c.err, c.code)
		}
	}
	if m.campaign.State = string(model.CampaignDone); outcome(m, nil, verdictCount{"pass": 3}, &ciFlags{}) != nil || m.ended("the replay") != nil {
		t.Error("one that is done is one")
	}
}

// TestGitHub: an annotation for each cause, one line each, and a table that shows what a
// target wrote as text.
func TestGitHub(t *testing.T) {
	m, f := aCampaign(), baselineOf(t, "known")
	m.campaign.Warnings = nil
	var found []wire.Finding
	for _, x := range []wire.Failure{failure("known", "broken"), failure("new", "broken"), failure("admitted", "documented")} {
		found = append(found, wire.Finding{ID: x.Check, CauseID: x.Check, Target: "gossip", Class: x.Class, Severity: x.Severity, Failure: x, Run: "c-1-r0003", FirstAfter: 3})
	}
	file := filepath.Join(t.TempDir(), "summary.md")
	if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := f.tellGitHub(&out, file, m, found, verdictCount{"fail": 2, "pass": 3}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "::warning title=netsplit%3A known on gossip::") || !strings.HasPrefix(lines[1], "::error title=netsplit%3A new on gossip::data (broken): new lost ") ||
		!strings.HasPrefix(lines[2], "::notice ") || !strings.Contains(lines[1], "`%25") || !strings.HasSuffix(lines[1], "replay c-1-r0003 -n 10 --runs-dir runs") {
		t.Errorf("%s", &out)
	}
	b, err := os.ReadFile(file)
	text := string(b)
	if err != nil || !strings.HasPrefix(text, "before\n### netsplit: c-1 on gossip\n\ndone after 5 runs (3 pass, 2 fail)\n") || strings.Contains(text, "<b>") || strings.Count(text, "\n| ") != 4 {
		t.Errorf("%v: %s", err, text)
	}
	if err := f.tellGitHub(&out, t.TempDir(), m, nil, nil); err == nil || !strings.Contains(err.Error(), "GITHUB_STEP_SUMMARY") {
		t.Errorf("a summary that cannot be written: %v", err)
	}
}

// TestBaseline: what is wrong with it is said before anything is run; it leaves nothing new
// out.
func TestBaseline(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		flags ciFlags
		says  string
	}{
		{ciFlags{failOn: failOnAny, junit: filepath.Join(dir, "none", "x.xml")}, "--junit: "},
		{ciFlags{failOn: "never"}, `--fail-on "never": use any or new`},
		{ciFlags{failOn: failOnNew}, "belong together"},
		{ciFlags{failOn: failOnAny, baseline: "x"}, "belong together"},
		{ciFlags{failOn: failOnNew, baseline: filepath.Join(dir, "none")}, "no such file"},
		{ciFlags{failOn: failOnNew, baseline: file("object.json", "{}")}, "JSON array"},
		{ciFlags{failOn: failOnNew, baseline: file("lacks.json", `[{"target":"gossip"}]`)}, "element 1 is no finding"},
	} {
		if err := c.flags.read(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %s", c.flags, err, c.says)
		}
	}
	f := baselineOf(t, "known")
	for _, c := range []struct {
		target string
		x      wire.Failure
		counts bool
	}{
		{"gossip", failure("known", "broken"), false},
		{"gossip", failure("known", "broken-bound"), false},
		{"gossip", failure("other", "documented"), false},
		{"gossip", failure("other", "broken"), true},
		{"raft", failure("known", "broken"), true},
		{"gossip", wire.Failure{Check: "known", Signature: "elsewhere", Class: "broken"}, true},
	} {
		if got := f.counts(c.target, c.x); got != c.counts {
			t.Errorf("%s %s: counts %v", c.target, c.x.Signature, got)
		}
	}
}
