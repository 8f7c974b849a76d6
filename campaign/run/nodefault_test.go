package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

// fakeServers are two servers on n2, of which db2 cannot be acted on.
type fakeServers struct {
	s       *session
	did     []string
	gate    *fakeGate
	fail    bool
	restart string // why a start fails
	killed  map[string]bool
	others  bool // they start again what was killed
}

func (f *fakeServers) ActNow(a model.NodeAction) (model.NodeAction, error) {
	f.did = append(f.did, fmt.Sprintf("%s %s, %d released", a.Verb, a.Process, len(f.gate.released)))
	if f.fail {
		return a, errors.New("it does not run")
	}
	if a.Verb == model.NodeKill && !f.others {
		if f.killed == nil {
			f.killed = map[string]bool{}
		}
		f.killed[a.Process] = true
	}
	return a, nil
}

func (f *fakeServers) Act(a model.NodeAction) error {
	f.did = append(f.did, fmt.Sprintf("%s %s", a.Verb, a.Process))
	if f.restart != "" {
		return errors.New(f.restart)
	}
	f.s.NodeDone(a)
	return nil
}

func (f *fakeServers) Runs(_ model.NodeID, process string) bool {
	return process != "idle" && !f.killed[process]
}

// TestACrashIsDoneWhileItsMessageWaits: all servers of the host that run, the last one first;
// it is entered behind the packet, what the host sent later is counted, and they start again.
func TestACrashIsDoneWhileItsMessageWaits(t *testing.T) {
	gate := &fakeGate{}
	s := testSession(t, model.Scenario{Steps: []model.Step{
		{When: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text B"}}}, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}},
	}}, gate)
	f := &fakeServers{s: s, gate: gate}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db1", "idle", "db2"}}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n2", "A")
	gossip(t, s, "n2", "n1", "B") // its sender crashes before it leaves
	gossip(t, s, "n2", "n3", "C") // on its way already
	gossip(t, s, "n3", "n2", "D")
	s.Mark(model.EventStop)
	s.lifted.Wait()
	gossip(t, s, "n2", "n3", "E")
	if want := []string{"kill db2, 1 released", "kill db1, 1 released", "start db1", "start db2"}; !slices.Equal(f.did, want) {
		t.Errorf("%q, want %q", f.did, want)
	}
	if n := s.nodes.slips[1]; n != 1 || len(gate.released) != 5 || len(s.incomplete) != 0 {
		t.Errorf("slip %d, want 1; released %v; %v", n, gate.released, s.incomplete)
	}
	events := logged(t, s)
	var order []string
	for _, e := range events {
		switch {
		case e.Node != nil:
			order = append(order, string(e.Node.Verb))
		case e.Packet != nil:
			order = append(order, "packet")
		}
	}
	if got := strings.Join(order, " "); got != "packet packet kill kill packet packet start start packet" {
		t.Errorf("events %s", got)
	}
}

// TestWhatOthersStartedAgainIsNotStarted: a workload restarts the server that a step crashed.
func TestWhatOthersStartedAgainIsNotStarted(t *testing.T) {
	s := testSession(t, model.Scenario{Steps: []model.Step{{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}}}}, &fakeGate{})
	f := &fakeServers{s: s, gate: &fakeGate{}, others: true}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db1"}}
	s.Mark(model.EventWorkload)
	s.Mark(model.EventStop)
	s.lifted.Wait()
	if len(f.did) != 1 || len(s.incomplete) != 0 {
		t.Errorf("%q; %v", f.did, s.incomplete)
	}
}

// TestACrashThatCannotBeDoneMakesTheRunUnknown.
func TestACrashThatCannotBeDoneMakesTheRunUnknown(t *testing.T) {
	for want, names := range map[string][]string{"no server of n2 runs that it could crash: it has ended already, or was never started": {"idle"}, "kill of db1: it does not run": {"db1"}} {
		s := testSession(t, model.Scenario{Steps: []model.Step{{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}}}}, &fakeGate{})
		s.nodes.procs, s.nodes.names = &fakeServers{s: s, gate: &fakeGate{}, fail: true}, map[model.NodeID][]string{"n2": names}
		s.Mark(model.EventWorkload)
		if got := strings.Join(s.incomplete, "; "); !strings.Contains(got, "step 1 (crash n2): ") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRecoveryIsWatchedOnceServersAreBack: what crashed is started before anybody asks whether
// the target is stable; a start that does not end leaves the run unknown.
func TestRecoveryIsWatchedOnceServersAreBack(t *testing.T) {
	s := testSession(t, model.Scenario{}, &fakeGate{})
	r := &run{s: s, target: &model.Target{Timing: model.Timing{Settle: time.Minute}}}
	if r.started(context.Background()) {
		t.Error("waited for servers though none had crashed")
	}
	s.nodes.starting.Add(1)
	r.target.Timing.Settle = 0
	if !r.started(context.Background()) || len(s.incomplete) != 1 {
		t.Errorf("a start that does not end: %v", s.incomplete)
	}
}

// TestAPauseLastsUntilTheLastStepThatAskedForIt: of two that overlap, the one that ends first
// resumes nothing.
func TestAPauseLastsUntilTheLastStepThatAskedForIt(t *testing.T) {
	gate := &fakeGate{}
	pause := model.Fault{Node: &model.NodeFault{Verb: model.NodePause, Host: "n2", Process: "db1"}}
	s := testSession(t, model.Scenario{Steps: []model.Step{
		{Do: pause, Until: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text B"}}}},
		{When: model.Trigger{Follows: model.FollowsBegin}, Do: pause},
	}}, gate)
	f := &fakeServers{s: s, gate: gate}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db1"}}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "B")
	if got := strings.Join(f.did, "; "); strings.Contains(got, "resume") || strings.Count(got, "pause db1") != 2 {
		t.Errorf("while the second lasts: %s", got)
	}
	s.Mark(model.EventStop)
	s.lifted.Wait()
	if got := strings.Join(f.did, "; "); strings.Count(got, "resume db1") != 1 {
		t.Errorf("behind both: %s", got)
	}
}

// TestAStepResumesNoServerThatAnotherOneHasKilled, and each of two steps that killed servers of one
// host keeps its own down.
func TestAStepResumesNoServerThatAnotherOneHasKilled(t *testing.T) {
	gate := &fakeGate{}
	do := func(verb model.NodeVerb, process string) model.Fault {
		return model.Fault{Node: &model.NodeFault{Verb: verb, Host: "n2", Process: process}}
	}
	until := model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text B"}}}
	next := model.Trigger{Follows: model.FollowsBegin}
	s := testSession(t, model.Scenario{Steps: []model.Step{
		{Do: do(model.NodePause, "db1"), Until: until}, {When: next, Do: do(model.NodeKill, "db1")}, {When: next, Do: do(model.NodeKill, "db2")},
	}}, gate)
	f := &fakeServers{s: s, gate: gate}
	s.nodes.procs, s.nodes.names = f, map[model.NodeID][]string{"n2": {"db1", "db2"}}
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n3", "B")
	s.mu.Lock()
	if !s.killed("n2", "db1") || !s.killed("n2", "db2") || s.killed("n1", "db1") || s.paused("n2", "db1") {
		t.Errorf("by steps %v", s.nodes.on)
	}
	s.mu.Unlock()
	s.Mark(model.EventStop)
	s.lifted.Wait()
	if got := strings.Join(f.did, "; "); strings.Contains(got, "resume") || strings.Count(got, "start") != 2 || len(s.incomplete) > 0 {
		t.Errorf("%s; %v", got, s.incomplete)
	}
}

// TestAClientHasNoServers: a fault of whoever sends the message does nothing to a client, and
// counts as one that did not begin.
func TestAClientHasNoServers(t *testing.T) {
	when := model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text A"}}}
	for name, do := range map[string]model.Fault{
		"crash":     {Node: &model.NodeFault{Verb: model.NodeKill, Host: model.RoleSender}},
		"power cut": {Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: model.RoleSender}},
	} {
		do.Roles = []string{model.RoleSender}
		for from, want := range map[model.NodeID]string{"n1": `"" "sender was n1, without servers"`, "n2": `"message" ""`} {
			s, f := diskSession(t, model.Step{When: when, Do: do})
			s.Mark(model.EventWorkload)
			gossip(t, s, from, "n3", "A")
			s.Mark(model.EventStop)
			s.lifted.Wait()
			s.mu.Lock()
			r := s.stepResults(s.engine.Result().Steps)[0]
			s.mu.Unlock()
			if err := s.rec.Flush(); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(filepath.Join(s.rec.Dir, rundir.DecisionsFile)); from == "n1" && strings.Contains(string(b), `"step":1`) || from == "n2" && !strings.Contains(string(b), `"step":1`) {
				t.Errorf("%s of %s: decided %s, %v", name, from, b, err)
			}
			if got := fmt.Sprintf("%q %q", r.By, r.Lacked); got != want || len(s.incomplete) != 0 || (from == "n1") != (len(f.did) == 0) {
				t.Errorf("%s of %s: %s, want %s; did %q; %q", name, from, got, want, f.did, s.incomplete)
			}
		}
	}
}
