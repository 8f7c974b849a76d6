package judge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/inference/invariant"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

func TestRemineTakesTheRunsTheCampaignMined(t *testing.T) {
	dir := t.TempDir()
	put := func(run string, s model.Strategy, v model.VerdictValue) {
		at := filepath.Join(dir, run)
		meta := model.RunMeta{Run: run, Scenario: model.Scenario{Strategy: s}}
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, what := range map[string]any{rundir.MetaFile: meta, rundir.SummaryFile: model.RunSummary{RunMeta: meta, Verdict: model.Verdict{Value: v}},
			rundir.TargetFile: model.Target{}, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: record.Evidence{}} {
			if err := rundir.WriteJSON(filepath.Join(at, name), what); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{rundir.EventsFile, rundir.DecisionsFile, rundir.HistoryFile, rundir.LogLinesFile} {
			if err := os.WriteFile(filepath.Join(at, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("r1", model.StrategyClean, model.VerdictPass)
	put("r2", model.StrategyClean, model.VerdictUnknown)
	put("r3", model.StrategyClean, model.VerdictFail)
	put("r4", model.StrategyCoFI, model.VerdictPass)
	if err := os.WriteFile(filepath.Join(dir, "r3", rundir.EventsFile), []byte(`{"kind":"wor`), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Remine(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"r1", "r3"}; !slices.Equal(r.Runs, want) {
		t.Errorf("mined %v, want %v", r.Runs, want)
	}
	if want := []string{"r3: " + rundir.EventsFile + " ends in the middle of a line"}; !slices.Equal(r.Torn, want) {
		t.Errorf("said that %q is missing, want %q", r.Torn, want)
	}
}

func TestRemineSaysThatThereIsNothingToMine(t *testing.T) {
	if _, err := Remine(t.TempDir()); err == nil || !strings.Contains(err.Error(), "give the directory of a campaign") {
		t.Errorf("got %v, want an error that says what to give", err)
	}
}

// TestMoreRunsAreAskedForWhereTheyMayHelp: where as many pairs as were mined never
// differed. Those that did are no invariants, though there be a rare message at which
// they did not, and what never changes shows none, however often they are seen.
func TestMoreRunsAreAskedForWhereTheyMayHelp(t *testing.T) {
	rejected := []invariant.Rejected{{Lack: invariant.LackRuns, Changes: 1}, {Lack: invariant.LackChance, Changes: 3},
		{Lack: invariant.LackAgreement, Changes: 3, Apart: 1}, {Lack: invariant.LackRuns, Changes: 2, Apart: 1}, {Lack: invariant.LackChanges}}
	scarce := Scarce(rejected)
	logs := map[string][]model.Event{"r1": nil, "r2": nil, "r3": nil}
	for mined, want := range map[int]string{0: "2 pairs of variables changed and never differed, but were seen too seldom in 3 clean runs", 2: "(--clean 6)", 3: ""} {
		m := Mined{Significant: mined, Logs: logs, Scarce: scarce}
		if got := m.MoreRuns(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%d invariants: %q, want %q", mined, got, want)
		}
	}
	if got := (&Mined{Logs: logs}).MoreRuns(); got != "" {
		t.Errorf("nothing to see: %q", got)
	}
}

// TestWhatIsSearchedWithForWantOfBetterAsksForMoreRuns: that it may be chance is just
// what more of them can settle.
func TestWhatIsSearchedWithForWantOfBetterAsksForMoreRuns(t *testing.T) {
	m, logs := invariant.NewMiner(), map[string][]model.Event{}
	for _, run := range []string{"r1", "r2", "r3"} {
		var samples []model.Sample
		for i, v := range []string{"a", "a", "z", "z"} {
			samples = append(samples, model.Sample{Run: run, Message: uint64(i), Point: model.ProgramPoint{From: "n1", To: "n2", Type: "beat"},
				Values: []model.VarValue{{Var: model.VarRef{Name: "x", Node: "n1"}, Kind: "k", Value: v}, {Var: model.VarRef{Name: "x", Node: "n2"}, Kind: "k", Value: v}}})
		}
		m.Add(run, samples)
		logs[run] = nil
	}
	strong := mined(m, logs, invariant.Options{MaxChance: 1e-9})
	if len(strong.Invariants) != 0 || strong.MoreRuns() == "" {
		t.Fatalf("%d invariants, %q", len(strong.Invariants), strong.MoreRuns())
	}
	weak := mined(m, logs, invariant.Options{MaxChance: 1e-9, Weak: true})
	if len(weak.Invariants) != 1 || weak.MoreRuns() != strong.MoreRuns() {
		t.Errorf("%d weak invariants, %q; want one, %q", len(weak.Invariants), weak.MoreRuns(), strong.MoreRuns())
	}
}

// TestNodesWithTheSameProcessesAreAlike, clients and others like none.
func TestNodesWithTheSameProcessesAreAlike(t *testing.T) {
	like := Like(&model.Target{Nodes: []model.NodeID{"n1", "n2", "n3", "n4", "n5"}, Processes: []model.Process{
		{Name: "server", Hosts: []model.NodeID{"n1", "n2", "n3"}},
		{Name: "agent", Hosts: []model.NodeID{"n1", "n2"}},
		{Name: "balancer", Hosts: []model.NodeID{"c1"}},
	}})
	if like("n1") != like("n2") || like("n1") == like("n3") || like("n3") == "" || like("n4") != "" || like("c1") != "" {
		t.Errorf("n1 %q, n2 %q, n3 %q, n4 %q, c1 %q", like("n1"), like("n2"), like("n3"), like("n4"), like("c1"))
	}
}

// TestLikeNodesAreMinedTogether by the processes of the target, from records.
func TestLikeNodesAreMinedTogether(t *testing.T) {
	alike := &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Processes: []model.Process{
		{Name: "coordinator", Hosts: []model.NodeID{"n1"}}, {Name: "member", Hosts: []model.NodeID{"n2", "n3"}}},
		Variables: []model.Variable{{Name: "x", Kind: "k", MaxAge: time.Hour}}}
	apart := *alike
	apart.Processes = []model.Process{{Name: "one", Hosts: []model.NodeID{"n2"}}, {Name: "other", Hosts: []model.NodeID{"n3"}}}
	dir := t.TempDir()
	runs := []string{"r1", "r2", "r3"}
	for i, on := range []model.NodeID{"n2", "n3", "n2"} {
		events := []model.Event{{Kind: model.EventWorkload}}
		for j := range 24 {
			at := time.Duration(j) * 10 * time.Second
			for _, n := range []model.NodeID{"n1", on} {
				events = append(events, model.Event{At: at, Kind: model.EventObserve,
					Observation: &model.Observation{At: at, Kind: "k", Var: model.VarRef{Name: "x", Node: n}, Value: strconv.Itoa(j / 2)}})
			}
			at += 5 * time.Second
			events = append(events, model.Event{At: at, Kind: model.EventMessage,
				Message: &model.Message{Num: uint64(j + 1), At: at, From: "n1", To: on, Type: "beat", Bytes: 1}})
		}
		var lines []byte
		for _, e := range events {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, b...), '\n')
		}
		if err := os.Mkdir(filepath.Join(dir, runs[i]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, runs[i], rundir.EventsFile), lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		target *model.Target
		want   int
	}{{alike, 2}, {&apart, 0}} {
		m, err := Mine(c.target, runs, func(run string) string { return filepath.Join(dir, run) }, invariant.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Invariants) != c.want {
			t.Errorf("%d invariants, want %d: %v", len(m.Invariants), c.want, m.Invariants)
		}
	}
}
