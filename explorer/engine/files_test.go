package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// fileOp reads "n1 redis write 9 a.aof".
func fileOp(t *testing.T, s string) *model.FileOperation {
	t.Helper()
	var o model.FileOperation
	if _, err := fmt.Sscan(s, &o.Host, &o.Process, &o.Op, &o.Bytes, &o.Kind); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return &o
}

// TestStepsAboutFiles: an operation begins and ends steps before it goes on, and is answered.
func TestStepsAboutFiles(t *testing.T) {
	second := &model.FileTrigger{Op: model.FileWrite, Path: "*.aof", Host: "n1", Nth: 2}
	disk := func(k model.DiskFaultKind, host model.NodeID) model.Fault {
		return model.Fault{Disk: &model.DiskFault{Kind: k, Host: host}}
	}
	crash := model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}
	anyones := &model.FileTrigger{Op: model.FileWrite, Path: "*.aof", Nth: 2}
	ofFileHost := func(f model.Fault) model.Fault {
		f.Roles = []string{model.RoleFileHost}
		return f
	}
	for name, c := range map[string]struct {
		steps []model.Step
		want  string
	}{
		"the nth write fails, once": {[]model.Step{{When: model.Trigger{File: second}, Do: disk(model.DiskEIO, "n1")}}, `
			n1 redis write 9 a.aof      awaits
			workload
			n1 redis write 9 a.aof      awaits
			n1 redis sync 0 a.aof
			n2 redis write 9 a.aof
			n1 redis write 9 a.rdb
			n1 redis write 9 a.aof      awaits: 1 file-operation eio: fails with EIO
			n1 redis write 9 a.aof      awaits
			stop                        1 workload-ended eio start`},
		"a short write is one that can be": {[]model.Step{{When: model.Trigger{File: second}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskShort, Host: "n1", Bytes: 4}}}}, `
			workload
			n1 redis write 9 a.aof      awaits
			n1 redis write 4 a.aof      awaits
			n1 redis write 5 a.aof      awaits: 1 file-operation short: writes 4 bytes only`},
		"a crash before it": {[]model.Step{{When: model.Trigger{File: second}, Do: crash, Until: model.Trigger{After: time.Second}}}, `
			workload
			n1 redis write 9 a.aof      awaits
			n1 redis write 9 a.aof      awaits: 1 file-operation kill
			tick                        1 time start`},
		"a full disk, until something is synced": {[]model.Step{{When: model.Trigger{File: second}, Do: disk(model.DiskFull, "n1"), Until: model.Trigger{File: &model.FileTrigger{Op: model.FileSync, Nth: 2}}}}, `
			workload
			n1 redis write 9 a.aof      awaits
			n1 redis write 9 a.aof      awaits: 1 file-operation full; 1 disk-fault: fails with ENOSPC
			n1 redis sync 0 b           awaits
			n2 redis write 9 a.aof
			n1 redis create 0 b         : 1 disk-fault: fails with ENOSPC
			n1 redis unlink 0 b
			n3 redis sync 0 b           awaits: 1 file-operation full start
			n1 redis create 0 b`},
		"gone, of one server": {[]model.Step{{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: "n1", Process: "redis"}}, Max: time.Second}}, `
			workload                    1 time gone
			n1 redis sync 0 b           : 1 disk-fault: fails with EIO
			n1 other sync 0 b
			tick                        1 max-cut gone start
			n1 redis sync 0 b`},
		"of whichever host writes": {[]model.Step{
			{When: model.Trigger{File: anyones}, Do: ofFileHost(model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: model.RoleFileHost}})},
			{When: model.Trigger{Follows: model.FollowsBegin, File: anyones}, Do: ofFileHost(model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: model.RoleFileHost}}), Max: time.Second},
		}, `
			workload
			n1 redis write 9 a.aof      awaits
			n2 redis write 9 a.aof      awaits: 1 file-operation eio: fails with EIO
			n1 redis write 9 a.aof      awaits
			n3 redis write 9 a.aof      awaits: 2 file-operation gone; 2 disk-fault: fails with EIO
			n2 redis write 9 a.aof      awaits
			n3 redis sync 0 b           : 2 disk-fault: fails with EIO
			stop                        1 workload-ended eio start; 2 workload-ended gone start`},
		"a power cut behind a failed write": {[]model.Step{
			{When: model.Trigger{File: second}, Do: disk(model.DiskEIO, "n1")},
			{When: model.Trigger{Follows: model.FollowsBegin}, Do: disk(model.DiskPowerCut, "n2")},
		}, `
			workload
			n1 redis write 9 a.aof      awaits
			n1 redis write 9 a.aof      awaits: 1 file-operation eio: fails with EIO; 2 step-before power-cut kill
			n2 redis write 9 a.aof
			stop                        1 workload-ended eio start; 2 workload-ended power-cut start`},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine.New(model.Scenario{Steps: c.steps})
			var got, want strings.Builder
			for i, line := range strings.Split(strings.TrimSpace(c.want), "\n") {
				line = strings.TrimSpace(line)
				what, says, _ := strings.Cut(line, "  ")
				ev := model.Event{Num: uint64(i + 1), At: time.Duration(i) * 100 * time.Millisecond, Kind: model.EventKind(what)}
				said := ""
				switch what {
				case "tick":
					ev.At = time.Minute
				case "workload", "stop":
				default:
					ev.Kind, ev.File = model.EventFile, fileOp(t, what)
					if e.Awaits(ev.File) {
						said = "awaits: "
					}
				}
				for _, d := range e.Step(ev) {
					if d.Frame != 0 || d.Cut || d.Heal {
						t.Errorf("%+v", d)
					}
					said += strings.TrimSpace(fmt.Sprintf("%d %s %s", d.Step, d.Reason, d.Disk))
					if d.Verb != "" {
						said += " " + string(d.Verb)
					}
					if d.File != nil {
						said += ": " + d.File.String()
					}
					said += "; "
				}
				fmt.Fprintf(&got, "%s | %s\n", what, strings.TrimRight(said, ";: "))
				fmt.Fprintf(&want, "%s | %s\n", what, strings.TrimLeft(says, " :"))
			}
			// Before the workload starts nothing depends on files.
			w := strings.Replace(want.String(), "a.aof | awaits\nworkload", "a.aof | \nworkload", 1)
			if got.String() != w {
				t.Errorf("got\n%s\nwant\n%s", got.String(), w)
			}
		})
	}
}

// TestWhichServersAreHeld: those that a step of the scenario needs, to whichever nodes it comes
// about.
func TestWhichServersAreHeld(t *testing.T) {
	inv := model.Invariant{A: model.VarRef{Name: "x", Node: "n1"}, B: model.VarRef{Name: "x", Node: "n2"}}
	s := model.Scenario{Observe: []model.Invariant{inv}, Or: []model.Renaming{{"n1": "n2", "n2": "n1"}},
		Steps: []model.Step{{When: model.Trigger{State: &model.FaultCondition{Invariant: inv, State: &model.State{A: "1", B: "2"}}}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n1"}}}}}
	role := model.Scenario{Steps: []model.Step{{Do: ofRole(model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "leader"}})}}}
	for host, want := range map[model.NodeID]bool{"n1": true, "n2": true, "n3": false} {
		if engine.HoldsFiles(&s, host, "db") != want || engine.CutsPower(&s, host) != want {
			t.Errorf("%s: held %t, want %t", host, !want, want)
		}
		if !engine.HoldsFiles(&role, host, "db") || !engine.CutsPower(&role, host) {
			t.Errorf("%s, which may have the role, is not held", host)
		}
	}
}
