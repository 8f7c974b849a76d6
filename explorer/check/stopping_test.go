package check

import (
	"testing"
	"time"

	"netsplit/model"
)

// TestAStopIsNoticedFromItsBeginning: a server that takes two seconds to stop
// closes its connections before it has stopped; what fails then has the time to
// notice, and what fails before the stop began has not.
func TestAStopIsNoticedFromItsBeginning(t *testing.T) {
	judge := func(at time.Duration) []model.Failure {
		need := []model.Need{{Via: "n2", From: []model.NodeID{"n1", "n2", "n3"}, Count: 2}}
		op := func(typ model.OpType, at time.Duration) Op {
			return Op{Workload: "w", Operation: model.Operation{Type: typ, F: "read", Time: at, Node: "n2", Needs: need}}
		}
		return Judge(Record{
			Target:  &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Checks: []model.CheckSpec{{Name: "operations", Class: model.Broken, With: map[string]string{"notice": "1s"}}}},
			Actions: []NodeAction{{At: 10 * time.Second, NodeAction: model.NodeAction{Verb: model.NodeStop, Process: "server", Host: "n3", Took: 2 * time.Second}}},
			History: []Op{op(model.OpInvoke, at-100*time.Millisecond), op(model.OpFail, at)},
		}).Failures
	}
	for at, want := range map[time.Duration]int{
		7900 * time.Millisecond: 1, 8500 * time.Millisecond: 0, 9900 * time.Millisecond: 0, 10900 * time.Millisecond: 0, 11500 * time.Millisecond: 1,
	} {
		if got := judge(at); len(got) != want {
			t.Errorf("a read that failed at %v: %d findings, want %d: %v", at, len(got), want, got)
		}
	}
}
