package explorer_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netsplit/explorer"
	"netsplit/explorer/engine"
	"netsplit/internal/sim"
	"netsplit/model"
)

// recorded holds logs of one run and one campaign, as a record keeps them, and
// what the core answered: golden files. -rewrite writes the answers anew; the
// logs are written only where they do not exist.
const recorded = "testdata/recorded"

// TestRecordedRun: what the engine decides is a function of the event log.
func TestRecordedRun(t *testing.T) {
	record(t)
	var s model.Scenario
	readJSON(t, "run.scenario.json", &s)
	events := readLines[model.Event](t, "run.events.jsonl")
	golden(t, "run.decisions.jsonl", func(want []byte) []byte { return want }, func() []byte {
		var b bytes.Buffer
		e := engine.New(s)
		for _, ev := range events {
			for _, d := range e.Step(ev) {
				appendJSON(t, &b, d)
			}
		}
		appendJSON(t, &b, e.Result())
		return b.Bytes()
	})
}

// TestRecordedCampaign: what the search hands out is a function of the log of
// its inputs and the seed. The scenarios of the recorded answers are of the form before
// steps, which says that the search has not changed with the form.
func TestRecordedCampaign(t *testing.T) {
	record(t)
	var c explorer.Config
	readJSON(t, "campaign.config.json", &c)
	inputs := readLines[explorer.Input](t, "campaign.inputs.jsonl")
	inSteps := func(want []byte) []byte {
		var b bytes.Buffer
		for _, line := range bytes.Split(bytes.TrimSpace(want), []byte("\n")) {
			var r explorer.Ready
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			appendJSON(t, &b, r)
		}
		return b.Bytes()
	}
	golden(t, "campaign.readies.jsonl", inSteps, func() []byte {
		var b bytes.Buffer
		core := explorer.NewCore(c)
		for _, in := range inputs {
			appendJSON(t, &b, core.Step(in))
		}
		return b.Bytes()
	})
}

func golden(t *testing.T, name string, read func(want []byte) []byte, run func() []byte) {
	t.Helper()
	first, second := run(), run()
	if !bytes.Equal(first, second) {
		t.Fatalf("%s: two runs over one log differ", name)
	}
	path := filepath.Join(recorded, name)
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, first, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want = read(want); bytes.Equal(first, want) {
		return
	}
	a, b := bytes.Split(first, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range a {
		if i >= len(b) || !bytes.Equal(a[i], b[i]) {
			w := []byte("nothing")
			if i < len(b) {
				w = b[i]
			}
			t.Fatalf("%s line %d:\n got %s\nwant %s\nIf the change is meant, run with -rewrite and read the diff.", name, i+1, a[i], w)
		}
	}
	t.Fatalf("%s: %d lines, want %d", name, len(a), len(b))
}

// record writes logs of simulated runs where there are none yet.
func record(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(recorded); err == nil {
		return
	} else if !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if flag.Lookup("rewrite").Value.String() != "true" {
		t.Fatal(fs.ErrNotExist, recorded)
	}
	hosts := []model.NodeID{"n1", "n2", "n3"}
	c := sim.Campaign{Labs: 2,
		Options: sim.Options{Bug: true, Interval: 100 * time.Millisecond, Workload: 2500 * time.Millisecond, Recover: 500 * time.Millisecond},
		Config: explorer.Config{Strategy: model.StrategyCoFI, Seed: 11, Nodes: hosts, Hosts: hosts, Effect: model.Drop,
			Retries: 1, Runs: 40, Clean: 2, MaxCut: 1500 * time.Millisecond, Workload: 2500 * time.Millisecond}}
	rep := c.Run()
	i := slices.IndexFunc(rep.Runs, func(r sim.Run) bool {
		return r.Verdict.Value == model.VerdictFail && r.Engine.HealClass != nil
	})
	if i < 0 {
		t.Fatal("no run failed that a message healed: choose another seed")
	}
	if err := os.MkdirAll(recorded, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "run.scenario.json", rep.Runs[i].Scenario)
	write(t, "run.events.jsonl", rep.Runs[i].Log...)
	write(t, "campaign.config.json", c.Config)
	write(t, "campaign.inputs.jsonl", rep.Inputs...)
}

func write[T any](t *testing.T, name string, vs ...T) {
	t.Helper()
	var b bytes.Buffer
	for _, v := range vs {
		appendJSON(t, &b, v)
	}
	if err := os.WriteFile(filepath.Join(recorded, name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func appendJSON(t *testing.T, b *bytes.Buffer, v any) {
	t.Helper()
	x, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "%s\n", x)
}

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recorded, name))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recorded, name))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}
