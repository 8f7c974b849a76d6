package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
)

// TestAReplaySaysThatTheTargetWasChanged: what fails on another target file, or
// does not, says little of the run.
func TestAReplaySaysThatTheTargetWasChanged(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}}
	orig := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}}
	mine := func() *model.Target {
		return &model.Target{Name: "mine", Nodes: []model.NodeID{"n1"}, Checks: []model.CheckSpec{{Name: "double", Class: model.Broken, With: map[string]string{}}},
			Workloads: []model.Workload{{Name: "w", Command: []string{"w"}}}, Timing: model.Timing{Settle: time.Second}}
	}
	changed := func(change func(*model.Target)) []string {
		now := mine()
		change(now)
		return s.otherKeys(orig, now)
	}
	if got := changed(func(*model.Target) {}); got != nil {
		t.Errorf("without a record: %q", got)
	}
	if err := os.MkdirAll(s.runDir("c-1", "c-1-r0001"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(filepath.Join(s.runDir("c-1", "c-1-r0001"), rundir.TargetFile), mine()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*model.Target)
		want   []string
	}{
		{func(*model.Target) {}, nil},
		{func(t *model.Target) { t.Release = "2.0" }, nil}, // which a replay is told by itself
		{func(t *model.Target) { t.Checks[0].Class = model.Documented; t.Workloads[0].Command = []string{"v"} }, []string{"workloads", "checks"}},
	} {
		if got := changed(c.change); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	orig.Scripts = map[string]string{"a.py": "1"}
	now := mine()
	now.Checks = nil
	for _, c := range []struct {
		now     *model.Target
		scripts map[string]string
		want    string
	}{
		{mine(), orig.Scripts, ""},
		{mine(), nil, "files beside the target file (a.py) changed since c-1-r0001 was made, which may explain other results"},
		{now, nil, "the target file (checks) and files beside the target file (a.py) changed since c-1-r0001 was made, which may explain other results"},
	} {
		if got := s.changedSince(orig, c.now, c.scripts); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestAReplayTakesWhatTheTargetWas when its campaign was made, whatever is at the path
// now, and says so. A daemon opens the path for nobody.
func TestAReplayTakesWhatTheTargetWas(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir(), InProcess: true}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "target.yaml")
	say := func(word string) {
		write(t, file, "name: mine\nnodes: [n1, n2]\nclients: [c1]\nprocesses: [{name: s, hosts: [n1], command: [echo, "+word+"]}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
			"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n")
	}
	say("then")
	spec, _, err := s.complete(model.CampaignSpec{Target: file, Strategy: model.StrategyRandom})
	if err != nil || spec.Target != file || !strings.HasPrefix(spec.Kept, "mine:") {
		t.Fatalf("%+v, %v", spec, err)
	}
	for _, id := range []string{"kept", "old"} {
		if id == "old" { // from before targets were kept
			spec.Kept = ""
		}
		if err := errors.Join(s.store.PutCampaign(model.Campaign{ID: "c-" + id, Spec: spec}), s.store.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-" + id, Run: id}})); err != nil {
			t.Fatal(err)
		}
	}
	replay := func(id, command, changed string) {
		t.Helper()
		spec, tg, err := s.complete(model.CampaignSpec{Replay: id})
		if err != nil || spec.Target != file || tg.Processes[0].Command[1] != command {
			t.Errorf("replay of %s: %+v, %v", id, spec, err)
		} else if why := s.otherNow(spec); why != "" != (changed != "") || !strings.Contains(why, changed) {
			t.Errorf("%s: said %q, want %q", id, why, changed)
		}
	}
	replay("kept", "then", "")
	say("now")
	replay("kept", "then", file+" changed since; the target is the one that was kept, mine:")
	replay("old", "now", "")
	s.cfg.InProcess = false
	replay("kept", "then", "")
	if _, _, err := s.complete(model.CampaignSpec{Replay: "old"}); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "a daemon opens no path") {
		t.Errorf("by a daemon, of what was not kept: %v", err)
	}
	s.cfg.InProcess = true
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	replay("kept", "then", "cannot be read any more")
}

func TestAReplaySaysWhichScriptsWereChanged(t *testing.T) {
	then := map[string]string{"a.py": "1", "b.py": "2", "c.py": "3"}
	for _, c := range []struct {
		then, now map[string]string
		want      []string
	}{
		{then, then, nil},
		{then, map[string]string{"a.py": "1", "b.py": "9", "d.py": "4"}, []string{"b.py", "c.py", "d.py"}},
		{nil, then, nil}, // its record is older
	} {
		if got := otherFiles(c.then, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
