package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/sut/nodes"
)

// diskServers are servers of which some run.
type diskServers struct {
	s    *session
	did  []string
	runs map[string]bool
	fail error
	busy error // why nothing is done to a server
}

func (f *diskServers) ActNow(a model.NodeAction) (model.NodeAction, error) {
	if f.busy != nil {
		return a, f.busy
	}
	f.did = append(f.did, fmt.Sprintf("%s %s", a.Verb, a.Process))
	f.runs[a.Process] = a.Verb != model.NodeKill
	return a, nil
}

func (f *diskServers) Act(a model.NodeAction) error {
	f.did = append(f.did, fmt.Sprintf("%s %s", a.Verb, a.Process))
	f.s.NodeDone(a)
	return nil
}

func (f *diskServers) Runs(_ model.NodeID, process string) bool { return f.runs[process] }

func (f *diskServers) PowerCut(h model.NodeID) ([]model.FileDamage, error) {
	f.did = append(f.did, "cut "+string(h))
	return []model.FileDamage{{Path: "a.aof", Size: 9, Kept: 4}}, f.fail
}

func (f *diskServers) Corrupt(h model.NodeID, pattern string, bytes int, seed uint64) (model.FileDamage, error) {
	f.did = append(f.did, fmt.Sprintf("corrupt %d of %s with seed %d", bytes, pattern, seed))
	return model.FileDamage{Path: "x.blk", Size: 9, Kept: 9, Changed: []int64{3}}, f.fail
}

func (f *diskServers) Tear(h model.NodeID, pattern string, bytes int) (model.FileDamage, error) {
	f.did = append(f.did, fmt.Sprintf("tear %d off %s", bytes, pattern))
	return model.FileDamage{Path: "x.blk", Size: 9, Kept: 4}, f.fail
}

func diskSession(t *testing.T, steps ...model.Step) (*session, *diskServers) {
	s := testSession(t, model.Scenario{Seed: 7, Steps: steps}, &fakeGate{})
	f := &diskServers{s: s, runs: map[string]bool{"db1": true, "db2": true}}
	s.damager, s.nodes.procs, s.nodes.names = f, f, map[model.NodeID][]string{"n2": {"db1", "idle", "db2"}}
	return s, f
}

func (f *diskServers) write(path string) model.FileAnswer {
	return f.s.File(model.FileOperation{Host: "n2", Process: "db1", Op: model.FileWrite, Kind: path, Path: path, Bytes: 10})
}

func recorded(t *testing.T, s *session) (out []string) {
	t.Helper()
	events := logged(t, s)
	for _, e := range events {
		switch {
		case e.Node != nil:
			out = append(out, string(e.Node.Verb)+" "+e.Node.Process)
		case e.Disk != nil:
			out = append(out, string(e.Disk.Kind)+" "+e.Disk.Files[0].Path)
		case e.File != nil:
			out = append(out, string(e.File.Op)+" "+e.File.Path)
		default:
			out = append(out, string(e.Kind))
		}
	}
	return out
}

// TestAnOperationFailsInItsTurn: it is an event of its own, what it is answered is decided
// before it goes on, and a server that ended of it starts again as the step ends.
func TestAnOperationFailsInItsTurn(t *testing.T) {
	s, f := diskSession(t, model.Step{When: model.Trigger{File: &model.FileTrigger{Path: "a.*", Nth: 2}}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "n2"}}})
	early := f.write("a.aof") // before the workload
	s.Mark(model.EventWorkload)
	got := []model.FileAnswer{early, f.write("a.aof"), f.write("b"), f.write("a.aof"), f.write("a.aof")}
	if want := []model.FileAnswer{{}, {}, {}, {Errno: "EIO"}, {}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	f.runs["db1"] = false // it gave up
	s.Mark(model.EventStop)
	s.lifted.Wait()
	if want := []string{"start db1"}; !slices.Equal(f.did, want) || len(s.incomplete) != 0 {
		t.Errorf("%q, want %q; %v", f.did, want, s.incomplete)
	}
	if got, want := strings.Join(recorded(t, s), ", "), "workload, write a.aof, write b, write a.aof, write a.aof, stop, start db1"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// TestAPowerCut kills all servers of the host, takes what was not synced, and starts them
// again; a dead server's operations are none.
func TestAPowerCut(t *testing.T) {
	s, f := diskSession(t, model.Step{When: model.Trigger{File: &model.FileTrigger{Nth: 2}}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n2"}}})
	s.Mark(model.EventWorkload)
	f.write("a")
	f.write("b")
	f.write("c") // of a thread that was waiting its turn
	gossip(t, s, "n2", "n3", "late")
	s.Mark(model.EventStop)
	s.lifted.Wait()
	f.write("d")
	if want := []string{"kill db2", "kill db1", "cut n2", "start db1", "start db2"}; !slices.Equal(f.did, want) || s.nodes.slips[1] != 1 {
		t.Errorf("%q, want %q; slip %d", f.did, want, s.nodes.slips[1])
	}
	got := slices.DeleteFunc(recorded(t, s), func(e string) bool { return !strings.Contains(e, " ") })
	if want := "write a, write b, kill db2, kill db1, power-cut a.aof, start db1, start db2, write d"; strings.Join(got, ", ") != want {
		t.Errorf("events %q, want %s", got, want)
	}
}

// TestCorruptionBetweenCrashAndRestart: one step has the server down, another damages its file,
// and only the first starts it again.
func TestCorruptionBetweenCrashAndRestart(t *testing.T) {
	s, f := diskSession(t,
		model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}},
		model.Step{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskCorrupt, Host: "n2", Path: "*.blk", Bytes: 2}}},
		model.Step{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskTorn, Host: "n2", Path: "*.log", Bytes: 5}}})
	s.Mark(model.EventWorkload)
	f.write("late") // it is dead
	s.Mark(model.EventStop)
	s.lifted.Wait()
	if got := recorded(t, s); slices.Contains(got, "write late") {
		t.Errorf("events %q", got)
	}
	if want := []string{"kill db2", "kill db1", "corrupt 2 of *.blk with seed 9", "tear 5 off *.log", "start db1", "start db2"}; !slices.Equal(f.did, want) || len(s.incomplete) != 0 {
		t.Errorf("%q, want %q; %v", f.did, want, s.incomplete)
	}
}

// TestAFaultOfAllNodesLeavesIdleHostsAlone: those without a server that runs, or that ran.
func TestAFaultOfAllNodesLeavesIdleHostsAlone(t *testing.T) {
	for _, all := range []bool{true, false} {
		s, f := diskSession(t,
			model.Step{Do: model.Fault{IfRunning: all, Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n1"}}},
			model.Step{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{IfRunning: all, Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}})
		f.fail = nodes.ErrNeverStarted
		s.Mark(model.EventWorkload)
		s.Mark(model.EventStop)
		s.lifted.Wait()
		if all != (len(s.incomplete) == 0) || !all && len(s.incomplete) != 2 {
			t.Errorf("as one of all: %t: %q", all, s.incomplete)
		}
	}
}

// TestAFaultOfManyLeavesAServerAloneThatStartsOrEnded, with its files; a fault of one does not.
func TestAFaultOfManyLeavesAServerAloneThatStartsOrEnded(t *testing.T) {
	for _, busy := range []error{nodes.ErrBusy, nodes.ErrNotRunning, errors.New("no such process")} {
		for _, many := range []bool{true, false} {
			s, f := diskSession(t,
				model.Step{Do: model.Fault{IfRunning: many, Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n2"}}},
				model.Step{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{IfRunning: many, Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}})
			f.busy = busy
			s.Mark(model.EventWorkload)
			spared := many && (busy == nodes.ErrBusy || busy == nodes.ErrNotRunning)
			if spared && (len(s.nodes.down) > 0 || len(s.nodes.on[1])+len(s.nodes.on[2]) > 0) {
				t.Errorf("%v: down %v, by steps %v", busy, s.nodes.down, s.nodes.on)
			}
			s.Mark(model.EventStop)
			s.lifted.Wait()
			if spared != (len(s.incomplete) == 0) || len(s.disks.damaged) > 0 || slices.ContainsFunc(f.did, func(d string) bool { return strings.HasPrefix(d, "cut") }) {
				t.Errorf("%v, of many %t: %q, did %q", busy, many, s.incomplete, f.did)
			}
		}
	}
}

// TestAStepThatLeftAHostAloneDoesNotBringItBack: another step has its servers down.
func TestAStepThatLeftAHostAloneDoesNotBringItBack(t *testing.T) {
	kill := model.Fault{IfRunning: true, Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}
	s, f := diskSession(t, model.Step{Do: kill},
		model.Step{When: model.Trigger{Follows: model.FollowsBegin}, Do: kill, Until: model.Trigger{File: &model.FileTrigger{Path: "end"}}})
	s.Mark(model.EventWorkload)
	f.s.File(model.FileOperation{Host: "n1", Process: "db", Op: model.FileWrite, Kind: "end", Path: "end"})
	if got := s.engine.Result().Steps; got[1].EndedBy == "" || s.nodes.down["n2"] != 1 || len(s.incomplete) > 0 {
		t.Errorf("n2 is down by step %d; %+v, %q", s.nodes.down["n2"], got, s.incomplete)
	}
	s.Mark(model.EventStop)
	s.lifted.Wait()
}

// TestDamageThatCannotBeDoneMakesTheRunUnknown.
func TestDamageThatCannotBeDoneMakesTheRunUnknown(t *testing.T) {
	s, f := diskSession(t, model.Step{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskCorrupt, Host: "n2", Path: "*.blk"}}})
	f.fail = errors.New("host n2 has no file *.blk")
	s.Mark(model.EventWorkload)
	if got := strings.Join(s.incomplete, "; "); got != "step 1 (crash, and corrupt 1 byte of *.blk on n2): host n2 has no file *.blk" {
		t.Error(got)
	}
}

// TestARecordHoldsSoManyFileOperations, and all that a step waits for.
func TestARecordHoldsSoManyFileOperations(t *testing.T) {
	s, f := diskSession(t, model.Step{When: model.Trigger{File: &model.FileTrigger{Path: "a"}}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskGone, Host: "n2"}}})
	s.Mark(model.EventWorkload)
	s.disks.recorded = maxFiles
	if f.write("b") != (model.FileAnswer{}) || f.write("a") != (model.FileAnswer{Errno: "EIO"}) || f.write("b") != (model.FileAnswer{Errno: "EIO"}) || s.disks.left != 2 {
		t.Errorf("%d were left out", s.disks.left)
	}
	if got := strings.Join(recorded(t, s), ", "); got != "workload, write a" {
		t.Errorf("events %s", got)
	}
}

// TestAServerThatIsAskedMayWrite: who has a role is asked while a message is held, and the
// server's operations are decided before it answers.
func TestAServerThatIsAskedMayWrite(t *testing.T) {
	s, f := diskSession(t,
		model.Step{Do: model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "text G", FromRole: "leader"}}}},
		model.Step{When: model.Trigger{File: &model.FileTrigger{Path: "a", Nth: 2}}, Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "n2"}}})
	s.disks.waiting = make(chan waitingFile)
	var got []model.FileAnswer
	s.holders = func(string) (model.Holders, error) {
		got = append(got, f.write("a"), f.write("a"))
		return model.Holders{Have: []model.NodeID{"n1"}}, nil
	}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n2", "G")
	f.write("b")
	if want := []model.FileAnswer{{}, {Errno: "EIO"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := strings.Join(recorded(t, s), ", "); got != "workload, write a, write a, role, message, observe, observe, observe, packet, write b" {
		t.Errorf("events %s", got)
	}
}
