package sequence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestFaultsOfTheNEATStudyAreSteps: each begins at its point, after the fault before it.
func TestFaultsOfTheNEATStudyAreSteps(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3"}
	p := Play{Keys: model.PointKeys(), MaxCut: 3 * time.Second, Isolating: func(n ...model.NodeID) model.Partition { return model.IsolateAll(n, nodes, model.Drop) },
		Around: Around{Nodes: nodes, Clients: []model.NodeID{"c1", "c2"}, Role: "leader", Periods: map[string]time.Duration{"beat": 4 * time.Second}}}
	at := "; when the step before has begun, then message B n2>n3, number 2"
	want := map[model.PointFaultKind]string{
		model.PointSilence:            "crash the machine n2" + at + "; at most 3s",
		model.PointPartial:            "cut partial n2 | n3" + at + "; at most 3s",
		model.PointWithClient:         "cut complete c1,n2 | n1,n3,c2" + at + "; at most 3s",
		model.PointLeader:             "cut complete leader | n1,n2,n3" + at + "; at most 3s",
		model.PointLoseAnswer:         "lose for good: the answer to B n2>n3, number 2; when the step before has begun",
		model.PointPeriod.For("beat"): "cut complete n2 | n1,n3" + at + "; at most 5s",
	}
	first := Placed{PointFault: model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "n2", Type: "A"}, Kind: model.PointIsolate, Place: model.PlaceBefore}, Turn: 1}
	seen := map[model.PointFaultKind]bool{}
	for _, k := range Priors([]string{"beat"}) {
		seen[k.Kind] = true
		f := Placed{PointFault: model.PointFault{Point: model.Point{Side: k.Side, Node: "n2", Peer: "n3", Type: "B"}, Kind: k.Kind, Place: k.Place}, Turn: 2}
		said := want[k.Kind]
		if k.Side == model.SideReceive {
			said = strings.Replace(said, "B n2>n3", "B n3>n2", 1)
		}
		steps := p.Steps([]Placed{first, f})
		if len(steps) != 2 || steps[1].String() != said {
			t.Errorf("%s: %s, want %s", k.Kind, &steps[len(steps)-1], said)
			continue
		}
		for i := range steps {
			if err := steps[i].Validate(append(nodes, "c1", "c2"), i+1); err != nil {
				t.Errorf("%s: %v", k.Kind, err)
			}
		}
		cfg := Config{Clean: 1, Depth: 1, Kinds: []FaultAt{k}}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		if got, _ := Occurred([]model.PointFault{first.PointFault, f.PointFault}, []model.StepResult{{Step: 1, By: model.ReasonMessage}, {Step: 2, By: model.ReasonMessage}}, []model.Point{first.Point, f.Point}, Options{}); got != 2 {
			t.Errorf("%s: %d occurred", k.Kind, got)
		}
	}
	if fmt.Sprint(len(seen)) != fmt.Sprint(len(want)) {
		t.Errorf("%v", seen)
	}
	cfg := Config{Clean: 1, Depth: 1, Kinds: []FaultAt{{model.PointPartial, model.SideReceive, model.PlaceBefore}}}
	if cfg.Validate() == nil {
		t.Error("a partial cut at the side receive")
	}
}
