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
