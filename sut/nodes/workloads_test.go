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
	"netsplit/record/rundir"
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
		`{"f":"move"}`:                 `"type" is "", want invoke, ok, fail or info`,
		`{"type":"failed","f":"move"}`: `"type" is "failed", want invoke, ok, fail or info`,
		`connected to n1`:              `all else on standard error`,
		`["ok"]`:                       `want a JSON object on each line`,
	} {
		if _, err := readOperation(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	op, err := readOperation(`{"process":1,"type":"ok","f":"write","key":"a","value":"1","time":1201000000,"node":"n1"}`)
	if err != nil || op.Type != model.OpOK || op.Value != "1" {
		t.Errorf("%+v, %v", op, err)
	}
}

// TestAWorkloadThatHungNamesItsLimit: it is the keys of the target file that say
// how long it may take, for final ones another.
func TestAWorkloadThatHungNamesItsLimit(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{rundir.LogsDir, filepath.Join("work", "c1")} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := []model.Workload{{Name: "w", Host: "c1", Command: []string{"cat"}}}
	tg := &model.Target{Timing: model.Timing{Workload: 50 * time.Millisecond, Hang: 50 * time.Millisecond, Final: 200 * time.Millisecond}}
	p := New(Config{Dir: dir, Start: time.Now(), Journal: new(heard), Kit: &Kit{Target: tg},
		Bed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "c1"}}}}})
	p.plans = map[model.NodeID]*model.Target{"c1": {Workloads: w, Final: w}}
	p.Workloads(context.Background(), w, "workload")
	p.Workloads(context.Background(), w, "final")
	want := []string{"final w on c1 did not end within 200ms of its start (timing.final)",
		"workload w on c1 did not end within 100ms of its start (timing.workload and timing.hang)"}
	if _, hung := p.Exits(); !slices.Equal(hung, want) {
		t.Errorf("%q\n%v", hung, p.c.Journal)
	}
}

// TestAWorkloadRunsUnderItsSettings, and under no others.
func TestAWorkloadRunsUnderItsSettings(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{rundir.LogsDir, filepath.Join("work", "c1")} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var ws []model.Workload
	for _, name := range []string{"writes", "failover"} {
		ws = append(ws, model.Workload{Name: name, Host: "c1", Command: []string{"touch", filepath.Join(dir, name)}, When: model.When{"workload": {name}}})
	}
	tg := &model.Target{Args: map[string]model.TargetArg{"workload": {Default: "failover"}}, Timing: model.Timing{Workload: 10 * time.Second}}
	p := New(Config{Dir: dir, Start: time.Now(), Journal: new(heard), Kit: &Kit{Target: tg},
		Bed: &testbed.Testbed{Testbed: model.Testbed{Name: "t", Hosts: []model.TestbedHost{{Name: "c1"}}}}})
	p.plans = map[model.NodeID]*model.Target{"c1": {Workloads: ws}}
	p.Workloads(context.Background(), ws, "workload")
	if _, err := os.Stat(filepath.Join(dir, "failover")); err != nil {
		t.Errorf("the workload of this setting did not run: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "writes")); err == nil {
		t.Error("the workload of another setting ran")
	}
}
