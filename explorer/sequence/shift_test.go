package sequence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestACutMovesOverTheNode: it is with the majority first and with the minority then, and fails in
// between. The two majorities share no other node, or one more if the number of nodes is even.
func TestACutMovesOverTheNode(t *testing.T) {
	for _, c := range []struct {
		nodes, peer string
		first       string
		second      string
	}{
		{"n1 n2 n3", "n3", "n1 | n2,n3", "n1,n2 | n3"},
		{"n1 n2 n3 n4 n5", "n3", "n4,n5 | n1,n2,n3", "n4,n5,n2 | n1,n3"},
		{"n1 n2 n3 n4 n5", "n5", "n3,n4 | n1,n2,n5", "n3,n4,n2 | n1,n5"},
		{"n1 n2 n3 n4", "n3", "n4 | n1,n2,n3", "n4,n2,n1 | n3"},
		{"n1 n2 n3 n4 n5 n6", "n3", "n4,n5 | n1,n2,n3,n6", "n4,n5,n2,n6 | n1,n3"},
		{"n1 n2 n3 n4 n5", "c1", "n3,n4 | n1,n2,n5", "n3,n4,n2 | n1,n5"},
	} {
		var nodes []model.NodeID
		for _, n := range strings.Fields(c.nodes) {
			nodes = append(nodes, model.NodeID(n))
		}
		for kind, fails := range map[model.PointFaultKind]string{model.PointShiftCrash: "crash n2", model.PointShiftPowerCut: "power cut on n2"} {
			for _, keys := range [][]model.PointKey{model.PointKeys(), {model.KeySide, model.KeyType}} {
				p := Play{Keys: keys, MaxCut: 9 * time.Second, Isolating: func(n ...model.NodeID) model.Partition { return model.IsolateAll(n, nodes, model.Drop) }, Around: Around{Nodes: nodes}}
				f := Placed{PointFault: model.PointFault{Point: model.Point{Side: model.SideSend, Node: "n2", Peer: model.NodeID(c.peer), Type: "put"}, Kind: kind, Place: model.PlaceBefore}, Turn: 4}
				steps := p.Steps([]Placed{f})
				var got []string
				for i := range steps {
					if err := steps[i].Validate(append(slices.Clone(nodes), "c1"), i+1); err != nil {
						t.Error(err)
					}
					got = append(got, steps[i].String())
				}
				who := "n2>" + c.peer
				if len(keys) == 2 {
					who = "*>*"
				}
				want := "cut partial " + c.first + "; when message put " + who + ", number 4; at most 9s\n" +
					"cut partial " + c.second + "; when the step before has ended; at most 9s\n" +
					fails + "; when the step before has begun; until 1s have passed"
				if strings.Join(got, "\n") != want {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
				}
				faults := []model.PointFault{f.PointFault}
				if l, b := lasts(faults, len(nodes)), firsts(faults, len(nodes)); l[0] != 3 || b[0] != 1 {
					t.Errorf("the fault is steps %d to %d", b[0], l[0])
				}
			}
		}
	}
}
