package check

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestADiskFaultIsJudged: one that acted is a fault and excuses the end of its server; one that
// nothing came to makes the run vacuous, and says what is not seen.
func TestADiskFaultIsJudged(t *testing.T) {
	write := model.Trigger{File: &model.FileTrigger{Op: model.FileWrite, Host: "n1"}}
	began := model.StepResult{Step: 1, By: model.ReasonFile, Began: 2 * time.Second, EndedBy: model.ReasonStop, Ended: 4 * time.Second, Failed: 1}
	idle := began
	idle.Failed = 0
	exit := func(host model.NodeID, at time.Duration) []record.Exit {
		return []record.Exit{{Host: host, Process: "db", At: at, Status: 1}}
	}
	for name, c := range map[string]struct {
		when  model.Trigger
		disk  model.DiskFault
		went  model.StepResult
		exits []record.Exit
		want  model.VerdictValue
		says  string
	}{
		"acted":                    {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, began, nil, model.VerdictPass, "all checks hold; fail it with EIO on n1 at 2.0 s"},
		"its server gave up":       {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, began, exit("n1", 3*time.Second), model.VerdictPass, "all checks hold"},
		"it ended before":          {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, began, exit("n1", time.Second), model.VerdictFail, "db on n1 ended with status 1"},
		"it ended behind the step": {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, began, exit("n1", 5*time.Second), model.VerdictFail, "db on n1 ended with status 1"},
		"another server gave up":   {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, began, exit("n2", 3*time.Second), model.VerdictFail, "db on n2 ended with status 1"},
		"never came":               {write, model.DiskFault{Kind: model.DiskEIO, Host: "n1"}, model.StepResult{Step: 1}, nil, model.VerdictVacuous, "its file operation did not come"},
		"nothing was written":      {model.Trigger{}, model.DiskFault{Kind: model.DiskGone, Host: "n1"}, idle, nil, model.VerdictVacuous, "step 1 (disk gone on n1): nothing wanted to be written there"},
		"a power cut":              {model.Trigger{}, model.DiskFault{Kind: model.DiskPowerCut, Host: "n1"}, idle, nil, model.VerdictPass, "power cut on n1 at 2.0 s"},
	} {
		r := Record{Target: &model.Target{Processes: []model.Process{{Name: "db", Hosts: []model.NodeID{"n1", "n2"}}}, Checks: []model.CheckSpec{{Name: processDied().name, Class: model.Broken}}},
			Scenario: model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{{When: c.when, Do: model.Fault{Disk: &c.disk}}}},
			Results:  []model.StepResult{c.went}, Exits: c.exits, WorkloadEnd: 4 * time.Second, Bounds: noBounds}
		if v := Judge(r); v.Value != c.want || !strings.Contains(v.Reason, c.says) {
			t.Errorf("%s: %s: %s; want %s and %q", name, v.Value, v.Reason, c.want, c.says)
		}
		if len(c.exits) > 0 && r.Exits[0].Expected {
			t.Errorf("%s: the record was changed", name)
		}
	}
	// Who depends on the host meanwhile is excused.
	r := Record{Target: &model.Target{}, Results: []model.StepResult{began}, Scenario: model.Scenario{Steps: []model.Step{{When: write, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "n1"}}}}}}
	ds := disturbances(&r, 0, 0)
	if len(ds) != 1 || !ds[0].apart("c1", "n1") || ds[0].apart("c1", "n2") || !ds[0].holds(3*time.Second) || ds[0].holds(4*time.Second) {
		t.Errorf("%+v", ds)
	}
}

// TestWhatAServerLogsOfItsFailedDisk is listed and no failure; a power cut excuses nothing that
// is logged afterwards.
func TestWhatAServerLogsOfItsFailedDisk(t *testing.T) {
	went := model.StepResult{Step: 1, By: model.ReasonFile, Began: 2 * time.Second, EndedBy: model.ReasonMaxCut, Ended: 4 * time.Second, Failed: 1}
	for _, c := range []struct {
		kind    model.DiskFaultKind
		process string // whose disk fails
		host    model.NodeID
		at      time.Duration
		excused bool
	}{
		{model.DiskEIO, "", "n1", 3 * time.Second, true}, {model.DiskGone, "db", "n1", 3 * time.Second, true},
		{model.DiskEIO, "", "n1", time.Second, false}, {model.DiskEIO, "", "n1", 5 * time.Second, false},
		{model.DiskEIO, "", "n2", 3 * time.Second, false}, {model.DiskEIO, "sentinel", "n1", 3 * time.Second, false},
		{model.DiskPowerCut, "", "n1", 3 * time.Second, false},
	} {
		r := Record{Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"PANIC"}}}, Results: []model.StepResult{went},
			Scenario: model.Scenario{Strategy: model.StrategySteps, Steps: []model.Step{{Do: model.Fault{Disk: &model.DiskFault{Kind: c.kind, Host: "n1", Process: c.process}}}}},
			LogLines: []record.LogLine{{Host: c.host, Process: "db", At: c.at, Line: "PANIC: could not write"}}}
		o := fatalLog().run(&r, settings{"packages": ""})
		if c.excused != (len(o.failures) == 0) || c.excused != (len(o.lines) == 1 && strings.Contains(o.lines[0].Why, "the disk fault of step 1")) {
			t.Errorf("%s of %q, a line on %s at %v: failures %v, excused %v", c.kind, c.process, c.host, c.at, o.failures, o.lines)
		}
	}
}
