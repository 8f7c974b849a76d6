package flowrules_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"netsplit/flowrules"
	"netsplit/model"
)

// A target need not use all hosts of a testbed: a partition that was resolved over
// those that it uses is cut, and the others reach everybody.
func TestAPartitionOfSomeHosts(t *testing.T) {
	used := []model.NodeID{"n1", "n2", "n3", "c1", "c2"}
	w := flowrules.Where{Hosts: used, Role: func(string) (model.Holders, error) {
		return model.Holders{Have: used[:1], Of: used[:3]}, nil
	}}
	in := flowrules.Input{Lab: 7, HardTimeout: 5 * time.Second, Elsewhere: []model.NodeID{"y1"}}
	for i, h := range append([]model.NodeID{"x1"}, used...) {
		in.Hosts = append(in.Hosts, flowrules.Host{Name: h, Port: uint32(i + 1), MAC: flowrules.MAC{2, 0, 0, 0, 0, byte(i + 1)}, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	for _, p := range []model.Partition{
		{Shape: model.Complete, Groups: [][]model.NodeID{{"n1", "c1"}, {"n2", "n3", "c2"}}},
		{Shape: model.Isolated, Groups: [][]model.NodeID{{"n1"}}},
		{Shape: model.Bridge, Groups: [][]model.NodeID{{"n3"}}},
		{Shape: model.LeaderIn},
		{Shape: model.LeaderOut, Size: 2},
		{Shape: model.Ring},
	} {
		p, err := flowrules.Resolve(p, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, behind := range []bool{false, true} { // by a script, in a campaign
			in.Partitions = []flowrules.Desired{{ID: 1, Partition: p, Behind: behind}}
			in.Gate = nil
			if behind {
				in.Gate = []flowrules.Pair{{A: "n1", B: "n2"}}
			}
			plan, err := flowrules.Compile(in)
			if err != nil {
				t.Errorf("%s, behind the gate %v: %v", p, behind, err)
				continue
			}
			dropped := map[model.Link]bool{}
			for _, r := range plan.Rules {
				if r.Kind == flowrules.KindDrop {
					dropped[r.Link] = true
				}
			}
			if got, want := fmt.Sprint(len(dropped)), fmt.Sprint(len(p.Links())); got != want {
				t.Errorf("%s, behind the gate %v: %s links are dropped, not %s", p, behind, got, want)
			}
			for l := range dropped {
				if l.Src == "x1" || l.Dst == "x1" {
					t.Errorf("%s cuts %s", p, l)
				}
			}
		}
	}
	in.Gate = nil
	for says, groups := range map[string][][]model.NodeID{
		`no host "n9"`:         {{"n1"}, {"n2", "n9"}},
		"belongs to one group": {{"n1"}, {"n2", "n1"}},
		"group 2 is empty":     {{"n1"}, {}},
	} {
		in.Partitions = []flowrules.Desired{{ID: 1, Partition: model.Partition{Shape: model.Complete, Effect: model.Drop, Groups: groups}}}
		if _, err := flowrules.Compile(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %s", groups, err, says)
		}
	}
}

// TestNoRuleTellsMessages: what loses messages only is cut by the gate, and behind it
// nothing may hold back the acknowledgements that it lets go.
func TestNoRuleTellsMessages(t *testing.T) {
	in := flowrules.Input{Lab: 7, HardTimeout: 5 * time.Second}
	for i, h := range []model.NodeID{"n1", "n2"} {
		in.Hosts = append(in.Hosts, flowrules.Host{Name: h, Port: uint32(i + 1), MAC: flowrules.MAC{2, 0, 0, 0, 0, byte(i + 1)}, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	p := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: []model.Traffic{{Proto: "tcp", Messages: true}}}
	for _, behind := range []bool{false, true} {
		in.Partitions = []flowrules.Desired{{ID: 1, Partition: p, Behind: behind}}
		if _, err := flowrules.Compile(in); err == nil || !strings.Contains(err.Error(), "no rule of a switch can tell apart") {
			t.Errorf("behind %v, without a gate: %v", behind, err)
		}
	}
	in.Gate = []flowrules.Pair{{A: "n1", B: "n2"}}
	plan, err := flowrules.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range plan.Rules {
		if r.Kind == flowrules.KindDrop {
			t.Errorf("dropped behind the gate: %s", r)
		}
	}
}
