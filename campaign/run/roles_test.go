package run

import (
	"errors"
	"fmt"
	"testing"

	"netsplit/model"
)

// TestARoleIsAskedForAsTheMessageIsHeld: whoever has it then is meant, as the record says,
// from which alone the same is decided again.
func TestARoleIsAskedForAsTheMessageIsHeld(t *testing.T) {
	scn := messageScenario(model.MessageFault{Kind: model.FaultLose, Match: model.MessageMatch{Type: "text G", FromRole: "leader"}, Nth: 1, Times: 2})
	gate := &fakeGate{}
	s := testSession(t, scn, gate)
	requested, leader, failed := 0, model.NodeID("n1"), error(nil)
	s.holders = func(role string) (model.Holders, error) {
		requested++
		return model.Holders{Have: []model.NodeID{leader}}, failed
	}
	gossip(t, s, "n1", "n2", "G 0") // before the workload
	s.Mark(model.EventWorkload)
	gossip(t, s, "n2", "n1", "G 1")
	gossip(t, s, "n1", "n2", "OTHER")
	gossip(t, s, "n1", "n2", "G 2") // lost
	leader = "n2"
	gossip(t, s, "n1", "n2", "G 3")
	gossip(t, s, "n2", "n3", "G 4") // lost
	gossip(t, s, "n2", "n3", "G 5") // two were lost: nobody need be asked any more
	s.mu.Lock()
	if got, want := fmt.Sprint(gate.released), "[n2: G 0 n1: G 1 n2: OTHER n2: G 3 n3: G 5]"; got != want || requested != 4 {
		t.Errorf("released %s, asked %d times; want %s and 4", got, requested, want)
	}
	s.mu.Unlock()
	sameAgain(t, s, scn, 2)

	s = testSession(t, scn, gate)
	s.holders, leader, failed = func(string) (model.Holders, error) { return model.Holders{}, failed }, "", errors.New("nobody answers")
	s.Mark(model.EventWorkload)
	gossip(t, s, "n1", "n2", "G 6")
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.engine.Result().Faults[0]; p.Met != 0 || gate.released[len(gate.released)-1] != "n2: G 6" {
		t.Errorf("nobody knows who leads, and %+v", p)
	}
}

// TestACutOfARoleIsOfWhoeverHasItNow: it is asked as the time of the step comes, in whose midst
// no packet is decided, and the cut heals as another host is found to have it.
func TestACutOfARoleIsOfWhoeverHasItNow(t *testing.T) {
	cut := model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: [][]model.NodeID{{"leader"}, {"n1", "n2", "n3"}}}
	scn := model.Scenario{Steps: []model.Step{{When: model.Trigger{Message: &model.MessageTrigger{Match: model.MessageMatch{Type: "text A"}, Side: model.SideReceive}}, Do: model.Fault{Node: &model.NodeFault{Verb: model.NodePause, Host: "n1"}}},
		{When: model.Trigger{Follows: model.FollowsBegin}, Do: model.Fault{Cut: &cut, Isolate: "leader", Roles: []string{"leader"}},
			Until: model.Trigger{Role: &model.RoleTrigger{Name: "leader", Changes: true}}}}}
	gate := &fakeGate{}
	s := testSession(t, scn, gate)
	s.nodes.procs, s.nodes.names = &fakeServers{s: s, gate: gate}, map[model.NodeID][]string{"n1": {"db"}}
	s.holders = func(string) (model.Holders, error) { return model.Holders{Have: []model.NodeID{"n3"}}, nil }
	s.Mark(model.EventWorkload)
	gossip(t, s, "n3", "n2", "A")
	gossip(t, s, "n3", "n2", "B")
	gossip(t, s, "n1", "n2", "C")
	s.Found("leader", model.Holders{Have: []model.NodeID{"n3"}})
	gossip(t, s, "n2", "n3", "D")
	s.Found("leader", model.Holders{Have: []model.NodeID{"n2", "n3"}})
	gossip(t, s, "n2", "n3", "E")
	<-s.gateCuts[0].confirmed
	s.lifted.Wait()
	if got := gate.log(); got != "n2: A, n2: C, n3: E" || fmt.Sprint(gate.cut[0].Groups) != "[[n3] [n1 n2]]" {
		t.Errorf("released %s, cut %v", got, gate.cut)
	}
	if r := s.engine.Result().Steps[1]; fmt.Sprint(r.Roles) != "[{leader [n3]}]" || r.EndedBy != model.ReasonRole {
		t.Errorf("%+v", r)
	}
}
