package points

import (
	"testing"

	"netsplit/campaign/judge"
	"netsplit/model"
)

// TestACrashIsAlsoOneBeforeAFileOperation, if the records have such operations.
func TestACrashIsAlsoOneBeforeAFileOperation(t *testing.T) {
	p := &judge.Profiles{Target: "mine", Runs: []string{"r1"}, Profiles: []model.Profile{{Points: []model.SeenPoint{
		{Point: model.Point{Side: model.SideFile, Node: "n1", Type: "write log", Nth: 1}, Turn: 1},
		{Point: model.Point{Side: model.SideReceive, Node: "n1", Peer: "n2", Type: "ack", Nth: 1}, Turn: 1},
	}}}}
	for _, c := range []struct {
		faults []model.PointFaultKind
		want   int
	}{
		{[]model.PointFaultKind{model.PointCrash}, 2},
		{[]model.PointFaultKind{model.PointCrash, model.PointDisk}, 5},
		{[]model.PointFaultKind{model.PointIsolate}, 1},
		{nil, 6}, // those of FATE: two at the message, four at the write
	} {
		got, err := Of(p, model.PointsQuery{Faults: c.faults, Seed: 1})
		if err != nil || len(got.Faults) != c.want {
			t.Errorf("%v: %d faults, want %d: %+v, %v", c.faults, len(got.Faults), c.want, got.Faults, err)
		}
	}
}
