package check

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"netsplit/model"
)

// TestLeadershipInAnyOrder: what was seen at one moment has no order.
func TestLeadershipInAnyOrder(t *testing.T) {
	see := func(node, leader model.NodeID, at time.Duration) model.Observation {
		return model.Observation{At: at * time.Second, Value: string(leader), Var: model.VarRef{Name: "leader", Node: node}}
	}
	r := Record{Observations: []model.Observation{see("n1", "n1", 1), see("n2", "n2", 2), see("n1", "n2", 3), see("n1", "n1", 3), see("n1", "n1", 4)}}
	want := newLeadership(&r, "leader", "write", "read")
	slices.Reverse(r.Observations)
	if got := newLeadership(&r, "leader", "write", "read"); !reflect.DeepEqual(got, want) || len(got.leads) != 3 {
		t.Errorf("%+v, reversed %+v", want, got)
	}
}
