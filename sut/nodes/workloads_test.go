package nodes

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed"
)

// TestALineThatIsNoOperationIsExplained: whoever writes a workload learns which
// word of the line is wrong, and what to write.
func TestALineThatIsNoOperationIsExplained(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"ok","f":"move","value":{}}`:            `"value" is a JSON object, want a text, in quotes`,
		`{"type":"ok","f":"move","key":7}`:               `"key" is a JSON number, want a text, in quotes`,
		`{"type":"ok","f":"move","time":1.5}`:            `"time" is a JSON number 1.5, want a whole number`,
		`{"type":"ok","f":"move","process":"a"}`:         `"process" is a JSON string, want a whole number`,
		`{"type":"invoke","f":"move","needs":{"a":"b"}}`: `"needs" is a JSON object, want a list`,
		`{"f":"move"}`:                                     `"type" is "", want invoke, ok, fail or info`,
		`{"type":"failed","f":"move"}`:                     `"type" is "failed", want invoke, ok, fail or info`,
		`{"type":"ok","f":"a","time":-61000000000}`:        `"time" is -61000000000, and it is 60000000000 now: count nanoseconds since the start of the run`,
		`{"type":"ok","f":"a","time":1795974920000000000}`: `"time" is 1795974920000000000, and`,
		`connected to n1`:                                  `all else on standard error`,
		`["ok"]`:                                           `print only JSON objects`,
	} {
		if _, err := readOperation(line, time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	op, err := readOperation(`{"process":1,"type":"ok","f":"write","key":"a","value":"1","time":1201000000,"node":"n1"}`, time.Second)
	if err != nil || op.Type != model.OpOK || op.Value != "1" {
		t.Errorf("%+v, %v", op, err)
	}
}

// TestAWorkloadThatHungNamesItsLimit: it is the keys of the target file that say
// how long it may take, for final ones another.
func TestAWorkloadThatHungNamesItsLimit(t *testing.T) {
	dir := t.TempDir()
	rec, err := rundir.Create(dir, model.RunMeta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "work", "c1"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := []model.Workload{{Name: "w", Host: "c1", Command: []string{"cat"}}}
	tg := &model.Target{Timing: model.Timing{Workload: 50 * time.Millisecond, Hang: 50 * time.Millisecond, Final: 200 * time.Millisecond}}
	p := New(Config{Dir: dir, Record: rec, Start: time.Now(), Journal: new(recorder), Kit: &Kit{Target: tg, expand: sut.ExpandInput{Netsplit: self}},
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "c1"}}}}})
	p.plans = map[model.NodeID]*model.Target{"c1": {Workloads: w, Final: w}}
	p.Workloads(context.Background(), w, "workload")
	p.Workloads(context.Background(), w, "final")
	want := []string{"final w on c1 did not end within 200ms of its start (timing.final)",
		"workload w on c1 did not end within 100ms of its start (timing.workload and timing.hang)"}
	if _, hung := p.Exits(); !slices.Equal(hung, want) {
		t.Errorf("%q\n%v", hung, p.c.Journal)
	}
}

func TestAWorkloadRunsUnderItsSettings(t *testing.T) {
	dir := t.TempDir()
	rec, err := rundir.Create(dir, model.RunMeta{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "work", "c1"), 0o755); err != nil {
		t.Fatal(err)
	}
	var ws []model.Workload
	for _, name := range []string{"writes", "failover"} {
		ws = append(ws, model.Workload{Name: name, Host: "c1", Command: []string{"touch", name}, When: model.When{"workload": {name}}})
	}
	tg := &model.Target{Rights: asRoot, Args: map[string]model.TargetArg{"workload": {Default: "failover"}}, Timing: model.Timing{Workload: 10 * time.Second}}
	p := New(Config{Dir: dir, Record: rec, Start: time.Now(), Journal: new(recorder), Kit: &Kit{Target: tg, expand: sut.ExpandInput{Netsplit: self}},
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "c1"}}}}})
	p.plans = map[model.NodeID]*model.Target{"c1": {Workloads: ws}}
	p.Workloads(context.Background(), ws, "workload")
	if _, err := os.Stat(filepath.Join(dir, "work", "c1", "failover")); err != nil {
		t.Errorf("the workload of this setting did not run: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "work", "c1", "writes")); err == nil {
		t.Error("the workload of another setting ran")
	}
}

// TestFinalWorkloadsRunAgain: what they print is distinguished and numbered in the record, each
// run has a log of its own, and one that ends with an error says so to whoever
// asked, not to the whole run.
func TestFinalWorkloadsRunAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	rec, err := rundir.Create(dir, model.RunMeta{Run: "c-1-r0001"})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{rundir.LogsDir, filepath.Join("work", "c1")} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const script = `echo "look $NETSPLIT_LOOK" >&2; echo '{"type":"ok","f":"final-read","key":"k'$NETSPLIT_LOOK'"}'; [ -z "$NETSPLIT_LOOK" ]`
	w := []model.Workload{{Name: "reader", Host: "c1", Command: []string{"sh", "-c", script}}}
	j := new(recorder)
	p := New(Config{Dir: dir, Start: time.Now(), Record: rec, Journal: j, Kit: &Kit{Target: &model.Target{}, expand: sut.ExpandInput{Netsplit: self}},
		Testbed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "c1"}}}}})
	p.plans = map[model.NodeID]*model.Target{"c1": {Final: w}}
	p.Workloads(t.Context(), w, "final")
	trouble := p.Again(t.Context(), w)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if len(trouble) != 1 || !strings.Contains(trouble[0], "reader on c1: it ended with exit status 1") || len(j.text) > 0 {
		t.Errorf("trouble %q, heard %q", trouble, j.text)
	}
	got, _, err := rundir.ReadLines[record.Entry](dir, rundir.HistoryFile)
	if err != nil || len(got) != 2 || got[0].Look != 1 || got[0].Key != "k" || got[0].Num != 1 || got[1].Look != 2 || got[1].Key != "k2" || got[1].Num != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for file, want := range map[string]string{"c1-reader.log": "look \n", "c1-reader-again.log": "look 2\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, rundir.LogsDir, file)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
}
