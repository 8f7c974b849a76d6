package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/api/wire"
	"netsplit/model"
)

func shrunk() wire.Shrunk {
	return wire.FromShrunk(model.Shrunk{Run: "c-1-r0007", Campaign: "c-2", Cause: "gone: a block\nis gone", Tries: 3, Made: 12, All: model.Tally{Tries: 3, Failed: 3}, None: model.Tally{Tries: 3},
		Keep: []int{2}, Least: model.Tally{Tries: 3, Failed: 2},
		Steps: []model.StepNeed{
			{Step: 1, Text: "crash n1", Needed: model.NeededNo, Without: model.Tally{Tries: 3, Failed: 2}},
			{Step: 2, Text: "isolate n2", Needed: model.NeededYes, With: model.Tally{Tries: 3, Failed: 2}, Without: model.Tally{Tries: 3, Idle: 1}},
			{Step: 3, Text: "crash n3", Needed: model.NeededUnknown, Why: "it was not tried without the step"}},
		Smallest: &model.Scenario{Seed: 7, Steps: []model.Step{
			{When: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "json ack", From: "n2"}, Nth: 2, Side: model.SideReceive}},
				Do:  model.Fault{Isolate: "n2", Cut: &model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"n2"}, {"n1", "n3"}}}},
				Max: 700 * time.Millisecond}}}})
}

// TestTheSmallestScenarioIsAFileThatRunTakes.
func TestTheSmallestScenarioIsAFileThatRunTakes(t *testing.T) {
	x := shrunk()
	b, err := scenarioYAML(&x)
	if err != nil || !strings.HasPrefix(string(b), "# The smallest part of c-1-r0007 that failed, in 2 of 3 tries: steps 2 of 3.\n# gone: a block; is gone\nsteps:\n  - when:\n      message:\n        type: json ack\n") {
		t.Fatalf("%s, %v", b, err)
	}
	f, err := parseScenario("smallest.yaml", b)
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if diff := cmp.Diff(x.Smallest, f.spec); diff != "" {
		t.Errorf("%s\n%s", diff, b)
	}
}

// TestShrinkSaysOfEachStepWhetherItIsNeeded, where the file is, and by its status whether it
// knows anything.
func TestShrinkSaysOfEachStepWhetherItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	file, theirs := filepath.Join(dir, "smallest.yaml"), filepath.Join(dir, "theirs")
	if err := errors.Join(os.WriteFile(theirs, []byte("kept"), 0o600), os.Symlink(theirs, file)); err != nil {
		t.Fatal(err)
	}
	x := shrunk()
	var out bytes.Buffer
	if err := tellShrunk(&out, made{campaign: wire.Campaign{Shrunk: []wire.Shrunk{x}}}, file, outTable); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failed in 3 of 3 tries with all 3 steps, in 0 of 3 without any; 12 tries in all", "step 1: crash n1\n    not needed: failed in 2 of 3 without it\n",
		"step 2: isolate n2\n    needed: failed in 2 of 3 with it, in 0 of 3 (1 say nothing) without\n", "unknown: failed in 0 of 0 with it, in 0 of 0 without: it was not tried without the step",
		"smallest: 1 of 3 steps, failed in 2 of 3\n", "smallest scenario: " + file} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nwant %q", &out, want)
		}
	}
	if b, err := os.ReadFile(theirs); err != nil || string(b) != "kept" {
		t.Errorf("a link was followed: %q, %v", b, err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "steps:") {
		t.Errorf("%q, %v", b, err)
	}
	out.Reset()
	if err := tellShrunk(&out, made{campaign: wire.Campaign{Shrunk: []wire.Shrunk{x}}}, "-", outTable); err != nil || !strings.Contains(out.String(), "\nsteps:\n") {
		t.Errorf("%s, %v", &out, err)
	}
	x = wire.Shrunk{Run: "r", All: wire.Tally{Tries: 3}, Why: "it did not fail"}
	err := tellShrunk(&out, made{campaign: wire.Campaign{Shrunk: []wire.Shrunk{x}}}, file, outTable)
	if e, ok := err.(*exitError); !ok || e.code != exitUndecided || !strings.Contains(out.String(), "not all was tried: it did not fail") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestCausesAreToldAtTheEndOfASearch, the first of many.
func TestCausesAreToldAtTheEndOfASearch(t *testing.T) {
	x := shrunk()
	var out bytes.Buffer
	tellCauses(&out, wire.Causes{Next: "cause-9", Items: []wire.Cause{
		{Rule: "gone: gone", Fault: "crash", Missing: []string{"json ack"}, Seen: 12, Run: "c-1-r0007", Steps: []string{"isolate n2", "crash n1"}, Replays: 3, Reproduced: 2, Shrunk: &x},
		{Rule: "operations: failed with Timeout", Seen: 1, Run: "c-1-r0002", Clean: true}}})
	want := `
causes of failed runs, the costliest first, the first 10
  1. gone: gone
     after crash, missing json ack; in 12 runs, smallest c-1-r0007, replayed 2 of 3
     1) isolate n2
     2) crash n1
     of the 3 steps of its scenario it needs 2, may need 3, does not need 1; failed in 2 of 3 tries of the smallest part
  2. operations: failed with Timeout
     after no fault; in 1 run, smallest c-1-r0002; also without any fault
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", &out, want)
	}
}
