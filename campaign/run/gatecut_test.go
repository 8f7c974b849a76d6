package run

import (
	"fmt"
	"slices"
	"testing"

	"netsplit/model"
)

// TestEachCutHasAProofOfItsOwn: of two that are in force at once, and of which one is healed
// by a message that the other still holds back.
func TestEachCutHasAProofOfItsOwn(t *testing.T) {
	whole := model.Isolate("n3", testNodes, model.Drop)
	oneWay := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"n2"}, {"n3"}}} // n3 is not heard by n2
	icmp := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n3"}}, Only: []model.Traffic{{Proto: "icmp"}}}
	heal := &model.MessageTrigger{Match: model.MessageMatch{Type: "text HEAL"}}
	gate := &fakeGate{}
	s := testSession(t, model.Scenario{Steps: []model.Step{
		{Do: model.Fault{Cut: &whole}, Until: model.Trigger{Message: heal}},
		{Do: model.Fault{Cut: &oneWay}},
		{Do: model.Fault{Cut: &icmp}},
	}}, gate)
	s.Mark(model.EventWorkload)
	gossip(t, s, "n3", "n2", "A")    // across the first two
	gossip(t, s, "n1", "n3", "A")    // across the first, and of no ICMP
	gossip(t, s, "n3", "n2", "HEAL") // the second holds it still
	gossip(t, s, "n1", "n3", "B")
	gossip(t, s, "n3", "n2", "B")
	s.Mark(model.EventStop)
	gossip(t, s, "n3", "n2", "C")
	for _, c := range s.gateCuts {
		<-c.confirmed
	}
	s.lifted.Wait()
	if got := fmt.Sprint(gate.released); got != "[n3: B n2: C]" {
		t.Errorf("released %s", got)
	}
	var got []string
	for _, c := range s.gateCuts {
		r := c.result()
		got = append(got, fmt.Sprintf("%s: %d of %d on %d links", r.Name, r.Proof.Dropped, r.Proof.Wanted, len(r.Proof.PerLink)))
		if r.Proof.InForceAt == 0 || r.Proof.HealAt == 0 {
			t.Errorf("%s: %+v", r.Name, r.Proof)
		}
	}
	if want := []string{"step 1: 2 of 2 on 4 links", "step 2: 3 of 3 on 1 links", "step 3: 0 of 0 on 2 links"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	slices.Sort(gate.healed)
	if len(gate.cut) != 3 || fmt.Sprint(gate.healed) != "[1 2 3]" || s.healedAt() != s.gateCuts[2].proof.HealAt {
		t.Errorf("%d cuts behind the gate, healed %v", len(gate.cut), gate.healed)
	}
}
