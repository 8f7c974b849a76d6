package check

import (
	"fmt"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestAStopIsNoticedFromItsBeginning: a server that takes two seconds to stop
// closes its connections before it has stopped; what fails then has the time to
// notice, and what fails before the stop began has not.
func TestAStopIsNoticedFromItsBeginning(t *testing.T) {
	judge := func(verb model.NodeVerb, at time.Duration) []model.Failure {
		need := []model.Need{{Via: "n2", From: []model.NodeID{"n1", "n2", "n3"}, Count: 2}}
		op := func(typ model.OpType, at time.Duration) record.Entry {
			return record.Entry{Workload: "w", Operation: model.Operation{Type: typ, F: "read", Time: at, Node: "n2", Needs: need}}
		}
		return Judge(Record{
			Target:  &model.Target{Nodes: []model.NodeID{"n1", "n2", "n3"}, Checks: []model.CheckSpec{{Name: "operations", Class: model.Broken, With: map[string]string{"notice": "1s"}}}},
			Actions: []NodeAction{{At: 10 * time.Second, NodeAction: model.NodeAction{Verb: verb, Process: "server", Host: "n3", Took: 2 * time.Second}}},
			History: []record.Entry{op(model.OpInvoke, at-100*time.Millisecond), op(model.OpFail, at)},
		}).Failures
	}
	for _, verb := range []model.NodeVerb{model.NodeStop, model.NodeKill, model.NodePause} {
		for at, want := range map[time.Duration]int{
			7900 * time.Millisecond: 1, 8500 * time.Millisecond: 0, 9900 * time.Millisecond: 0, 10900 * time.Millisecond: 0, 11500 * time.Millisecond: 1,
		} {
			if got := judge(verb, at); len(got) != want {
				t.Errorf("%s: a read that failed at %v: %d findings, want %d: %v", verb, at, len(got), want, got)
			}
		}
	}
}

// TestActionsWaitForOneAnother: a pause that was requested while a start took
// its time came after it, and lasts.
func TestActionsWaitForOneAnother(t *testing.T) {
	act := func(verb model.NodeVerb, at, took time.Duration) NodeAction {
		return NodeAction{At: at * time.Second, NodeAction: model.NodeAction{Verb: verb, Process: "server", Host: "n3", Took: took * time.Second}}
	}
	r := Record{Target: &model.Target{}, Actions: []NodeAction{act(model.NodePause, 14, 3), act(model.NodeStart, 13, 3), act(model.NodeKill, 5, 0)}}
	got := ""
	for _, d := range disturbances(&r, 0, 0) {
		got += fmt.Sprintf("%v to %v: %s; ", d.from, d.to, d.what)
	}
	if want := fmt.Sprintf("5s to 13s: server on n3 is killed; 13s to %v: server on n3 is paused; ", forever); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
