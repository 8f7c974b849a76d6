package service

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/e2e/traffic"
	"netsplit/flowrules"
	"netsplit/model"
)

// TestNothingOfAnySortPassesOnceInForce: while every sort of traffic goes both ways
// between all hosts, nothing that a partition cuts arrives from the moment on at
// which it is said to be in force, until it is to be healed; before, it did.
func TestNothingOfAnySortPassesOnceInForce(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	var stations []*traffic.Station
	where := flowrules.Where{}
	for i, h := range b.hosts {
		s := traffic.NewStation(model.NodeID(h), "hand-"+h, "eth0", [6]byte{2, 0x77, 0, 0, 0, byte(i + 1)}, netip.MustParseAddr(b.ip[h]))
		s.Open(t)
		stations = append(stations, s)
		where.Hosts = append(where.Hosts, s.ID())
	}
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	groups := func(g ...[]string) [][]string { return g }
	for i, p := range []wire.Partition{
		{Shape: "complete", Groups: groups([]string{"a"}, []string{"b", "c"})},
		{Shape: "simplex", Groups: groups([]string{"a"}, []string{"b"})},
		{Shape: "partial", Groups: groups([]string{"a"}, []string{"b"}), Only: []wire.Traffic{{Proto: "tcp", Port: 7000}, {Proto: "arp"}}},
		{Shape: "isolate", Groups: groups([]string{"b"}), Only: []wire.Traffic{{Proto: "udp"}, {Proto: "icmp"}}},
		{Shape: "partial", Groups: groups([]string{"b"}, []string{"c"}), Only: []wire.Traffic{{Proto: "tcp", Opening: true}}},
	} {
		name := fmt.Sprintf("steady%d", i)
		requested := model.Partition{Shape: model.Shape(p.Shape)}
		for _, g := range p.Groups {
			var ids []model.NodeID
			for _, h := range g {
				ids = append(ids, model.NodeID(h))
			}
			requested.Groups = append(requested.Groups, ids)
		}
		for _, o := range p.Only {
			requested.Only = append(requested.Only, model.Traffic{Proto: o.Proto, Port: uint16(o.Port), Opening: o.Opening})
		}
		resolved, err := flowrules.Resolve(requested, where)
		if err != nil {
			t.Fatal(err)
		}
		y := traffic.NewSteady(t, stations...)
		time.Sleep(traffic.Warm)
		st := d.partition(wire.PartitionSpec{Name: name, Partition: p})
		time.Sleep(100 * time.Millisecond)
		until := time.Now()
		time.Sleep(traffic.Settle)
		d.Heal(name)
		y.Stop(t)
		n := y.NothingCrossed(t, resolved.String(), *st.InForce, until, resolved)
		t.Logf("%s: %d frames were to be held back in %v", resolved, n, until.Sub(*st.InForce).Round(time.Millisecond))
		if n == 0 {
			t.Errorf("%s: nothing wanted to cross while it was in force", resolved)
		}
		if y.Crossed(st.Created.Add(-time.Second), st.Created, resolved) == 0 {
			t.Errorf("%s: nothing that it cuts arrived before it was asked for: the stations see nothing", resolved)
		}
	}
}
