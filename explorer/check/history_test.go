package check

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestLeadershipInAnyOrder: what was seen at one moment has no order.
func TestLeadershipInAnyOrder(t *testing.T) {
	see := func(node, leader model.NodeID, at time.Duration) model.Observation {
		return model.Observation{At: at * time.Second, Value: string(leader), Var: model.VarRef{Name: "leader", Node: node}}
	}
	r := Record{Target: &model.Target{}, Observations: []model.Observation{see("n1", "n1", 1), see("n2", "n2", 2), see("n1", "n2", 3), see("n1", "n1", 3), see("n1", "n1", 4)}}
	want := newLeadership(&r, "leader", "write", "read")
	slices.Reverse(r.Observations)
	if got := newLeadership(&r, "leader", "write", "read"); !reflect.DeepEqual(got, want) || len(got[""]) != 3 {
		t.Errorf("%+v, reversed %+v", want, got)
	}
}

// TestLeadershipComesBack: a leader of which nothing was received for longer than an
// observation counts, while another led, leads anew when it says so again, or
// acknowledges again, and the other does not. One that never stopped saying so does not.
func TestLeadershipComesBack(t *testing.T) {
	see := func(node, leader model.NodeID, at time.Duration) model.Observation {
		return model.Observation{At: at * time.Second, Value: string(leader), Var: model.VarRef{Name: "leader", Node: node}}
	}
	variables := []model.Variable{{Name: "leader", MaxAge: time.Second}}
	for _, c := range []struct {
		name string
		seen []model.Observation
		acks []record.Entry
		want []lead
	}{
		{"says so again", []model.Observation{see("n1", "n1", 1), see("n2", "n2", 4), see("n1", "n1", 7)}, nil,
			[]lead{{"", "n1", time.Second}, {"", "n2", 4 * time.Second}, {"", "n1", 7 * time.Second}}},
		{"acknowledges again", []model.Observation{see("n1", "n1", 1), see("n2", "n2", 4)}, []record.Entry{{Workload: "w", Operation: model.Operation{F: "write", Type: model.OpOK, Node: "n1", Time: 7 * time.Second}}},
			[]lead{{"", "n1", time.Second}, {"", "n2", 4 * time.Second}, {"", "n1", 7 * time.Second}}},
		{"while the other goes on", []model.Observation{see("n1", "n1", 1), see("n2", "n2", 4), see("n2", "n2", 5), see("n1", "n1", 5), see("n2", "n2", 6)}, nil,
			[]lead{{"", "n1", time.Second}, {"", "n2", 4 * time.Second}}},
		{"never stopped", []model.Observation{see("n1", "n1", 3), see("n2", "n2", 4), see("n1", "n1", 4), see("n1", "n1", 5), see("n2", "n2", 5)}, nil,
			[]lead{{"", "n1", 3 * time.Second}, {"", "n2", 4 * time.Second}}},
	} {
		r := Record{Target: &model.Target{Variables: variables}, Observations: c.seen, History: c.acks}
		if got := newLeadership(&r, "leader", "write", "read")[""]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
