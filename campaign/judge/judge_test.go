package judge

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/explorer/check"
	"netsplit/internal/onecut"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// TestARecordThatMakesNoSenseIsAnError: it names the record and ends nobody.
func TestARecordThatMakesNoSenseIsAnError(t *testing.T) {
	dir := written(t, model.RunMeta{Run: "r1"}, record.Evidence{}, `{"n":1,"k":"node"}`+"\n")
	if _, err := Dir(dir, ""); err == nil || !strings.Contains(err.Error(), dir+" cannot be judged") || !strings.Contains(err.Error(), "judge.go:") {
		t.Errorf("judged: %v", err)
	}
}

// TestARunIsJudgedByTheNodesItCameAboutTo, not by those that were asked for.
func TestARunIsJudgedByTheNodesItCameAboutTo(t *testing.T) {
	leader := func(n model.NodeID) model.VarRef { return model.VarRef{Name: "leader", Node: n} }
	equal := func(a, b model.NodeID) model.Invariant {
		return model.Invariant{ID: string(a + b), Relation: model.RelationEqual, A: leader(a), B: leader(b)}
	}
	inv := equal("n1", "n2")
	nodes := []model.NodeID{"n1", "n2", "n3"}
	requested := onecut.Scenario{Strategy: model.StrategyCoFI, Isolate: "n1", Partition: model.Isolate("n1", nodes, model.Drop), Invariant: &inv,
		State: &model.State{A: "n1", B: "n2"}, Observe: []model.Invariant{inv, equal("n2", "n3")}, Or: []model.Renaming{{"n1": "n3", "n3": "n1"}}}.Model()
	dir := written(t, model.RunMeta{Run: "r1", Scenario: requested}, record.Evidence{Result: model.RunResult{Reached: true, Or: requested.Or[0]}}, "")
	f, err := readRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for of, m := range map[string]model.Scenario{"checks": f.checkRecord().Scenario, "summary": f.summary(model.Verdict{}).Scenario} {
		sc := onecut.Of(m)
		if sc.Isolate != "n3" || sc.Invariant.ID != "n2n3" || *sc.State != (model.State{A: "n2", B: "n3"}) || sc.Partition.Groups[0][0] != "n3" {
			t.Errorf("the %s have %s of %s, isolating %s by %s", of, sc.State, sc.Invariant, sc.Isolate, sc.Partition)
		}
	}
}

// TestARecordWithoutAllItsLinesIsUnknown: copied in part, or twice.
func TestARecordWithoutAllItsLinesIsUnknown(t *testing.T) {
	for lines, want := range map[int]string{
		2: "",
		3: "events.jsonl holds 2 of 3 lines",
		1: "events.jsonl holds 2 lines, 1 were written",
	} {
		ev := record.Evidence{Lines: map[string]int{rundir.EventsFile: lines}}
		f, err := readRun(written(t, model.RunMeta{}, ev, "{\"n\":1}\n{\"n\":2}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if rec := f.checkRecord(); strings.Join(rec.Incomplete, "; ") != want {
			t.Errorf("incomplete %q, want %q", rec.Incomplete, want)
		}
	}
	f, err := readRun(written(t, model.RunMeta{}, record.Evidence{Lines: map[string]int{rundir.LinesFile: 1}}, ""))
	if err != nil || strings.Join(f.torn, "; ") != "lines.jsonl holds 0 of 1 lines" {
		t.Errorf("%v, %v: want to miss a log line, which relations may ask for", f.torn, err)
	}
}

// TestWhatWorkloadsDidNotTellIsJudgedAsSuch: not as a record that lacks something.
func TestWhatWorkloadsDidNotTellIsJudgedAsSuch(t *testing.T) {
	f, err := readRun(written(t, model.RunMeta{}, record.Evidence{Unread: []string{"a reader ended"}, Incomplete: []string{"a tap ended"}}, ""))
	if err != nil {
		t.Fatal(err)
	}
	if rec := f.checkRecord(); len(rec.Unread) != 1 || rec.Unread[0] != "a reader ended" || len(rec.Incomplete) != 1 || rec.Incomplete[0] != "a tap ended" {
		t.Errorf("unheard %q, incomplete %q", rec.Unread, rec.Incomplete)
	}
}

// TestAScriptsFaultsAreJudged: they stand in its events alone.
func TestAScriptsFaultsAreJudged(t *testing.T) {
	meta := model.RunMeta{Run: "r1", Scenario: model.Scenario{Strategy: model.StrategyScripted}}
	ev := record.Evidence{Faults: []model.FaultProof{{Fault: 1, Acted: 1, Known: true, Checked: 1}, {Fault: 2}}}
	f, err := readRun(written(t, meta, ev, `{"n":1,"k":"fault","fault":{"name":"a","begin":{"kind":"lose","match":{"type":"A"}}}}
{"n":2,"k":"fault","fault":{"name":"a","end":1}}
{"n":3,"k":"fault","fault":{"name":"a","begin":{"kind":"delay","for":5,"match":{"type":"B","fromRole":"leader"}}}}
{"n":4,"k":"step","step":{"num":1,"do":"assert","text":"x","outcome":"done"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	rec := f.checkRecord()
	rec.Target.Checks = []model.CheckSpec{{Name: check.Script}}
	v := check.Judge(rec)
	if v.Value != model.VerdictVacuous || v.Reason != "message fault 2 (delay by 5ns: B leader>*, number 1) never met its message" {
		t.Errorf("%+v", v)
	}
	if sc := f.summary(v).Scenario; len(sc.Steps) != 2 || sc.Fault(1).Kind != model.FaultLose {
		t.Errorf("the summary has %+v", sc.Steps)
	}
}

// TestAScriptsCutsAreSteps, in their place among its message faults. Those of earlier records
// come behind them.
func TestAScriptsCutsAreSteps(t *testing.T) {
	p := model.Isolate("n1", []model.NodeID{"n1", "n2"}, model.Drop)
	for step, want := range map[int]string{1: "[cut lose]", 0: "[lose cut]"} {
		meta := model.RunMeta{Run: "r1", Scenario: model.Scenario{Strategy: model.StrategyScripted}}
		ev := record.Evidence{Cuts: []model.CutProof{{Name: "a", Step: step, Partition: p}}}
		partition, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readRun(written(t, meta, ev, fmt.Sprintf(`{"n":1,"k":"rule-cut","ruleCut":{"name":"a","step":%d,"partition":%s}}
{"n":2,"k":"rule-cut","ruleCut":{"name":"a","step":%[1]d}}
{"n":3,"k":"fault","fault":{"name":"b","begin":{"kind":"lose","match":{"type":"A"}}}}
`, step, partition)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, st := range f.summary(model.Verdict{}).Scenario.Steps {
			got = append(got, map[bool]string{true: "cut", false: "lose"}[st.Do.Cut != nil])
		}
		if fmt.Sprint(got) != want {
			t.Errorf("step %d: %v, want %s", step, got, want)
		}
	}
}

// TestASummaryHasTheVersionThatRan, for the pages that show it.
func TestASummaryHasTheVersionThatRan(t *testing.T) {
	f, err := readRun(written(t, model.RunMeta{Run: "r1"}, record.Evidence{Version: "server v=3.10.8"}, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.summary(model.Verdict{}).TargetVersion; got != "server v=3.10.8" {
		t.Errorf("%q", got)
	}
}

// TestARunOnABusyMachineIsUnknown: what was measured reaches the judge and the summary.
func TestARunOnABusyMachineIsUnknown(t *testing.T) {
	for wait, want := range map[float64]model.VerdictValue{model.Busy: model.VerdictUnknown, 0: model.VerdictFail} {
		f, err := readRun(written(t, model.RunMeta{Run: "r1"}, record.Evidence{CPUWait: wait, Hung: []string{"writer"}}, ""))
		if err != nil {
			t.Fatal(err)
		}
		f.target.Checks = []model.CheckSpec{{Name: "workload-hang", Class: model.Broken}}
		v := check.Judge(f.checkRecord())
		if got := f.summary(v).CPUWait; v.Value != want || got != wait {
			t.Errorf("%v: %+v; the summary has %v", wait, v, got)
		}
	}
}

// written is a directory with the record of a run.
func written(t *testing.T, meta model.RunMeta, ev record.Evidence, events string) string {
	t.Helper()
	dir := t.TempDir()
	for name, what := range map[string]any{rundir.MetaFile: meta, rundir.TargetFile: model.Target{}, rundir.TestbedFile: model.Testbed{}, rundir.EvidenceFile: ev} {
		if err := rundir.WriteJSON(filepath.Join(dir, name), what); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{rundir.EventsFile: events, rundir.DecisionsFile: "", rundir.HistoryFile: "", rundir.LogLinesFile: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
