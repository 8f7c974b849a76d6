package ofswitch

import (
	"net/netip"
	"testing"

	"netsplit/e2e/traffic"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// station is a host as the oracle sees it.
type station struct{ *host }

func (s station) ID() model.NodeID                 { return s.id }
func (s station) MAC() [6]byte                     { return s.mac }
func (s station) IP() netip.Addr                   { return s.ip }
func (s station) Number() byte                     { return byte(s.port) }
func (s station) Send(tb testing.TB, frame []byte) { s.send(tb, frame) }
func (s station) Received(probe uint32) int        { return s.received(probe) }

// TestEveryShapeWithEveryTraffic: what passes the switch is what the oracle says.
func TestEveryShapeWithEveryTraffic(t *testing.T) {
	b := newBench(t, 5)
	f, _ := b.start(fabric.Config{Crossed: func(uint32, model.NodeID, []byte) {}})
	rig := traffic.Testbed{Resets: true, Show: b.flows, Where: flowrules.WhereOn(&b.testbed, func(string) (model.Holders, error) {
		return model.Holders{Have: []model.NodeID{traffic.Leader}, Of: b.testbed.Names()}, nil
	})}
	rig.Where.Labels = traffic.Labels
	for _, h := range b.hosts {
		rig.Hosts = append(rig.Hosts, station{h})
	}
	rig.Cut = func(n int, p model.Partition) {
		t.Helper()
		r, err := flowrules.Resolve(p, rig.Where)
		if err == nil {
			err = f.Cut(within(t), uint32(n), r)
		}
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		b.settled()
	}
	rig.Heal = func(n int) {
		t.Helper()
		if err := f.Heal(within(t), uint32(n)); err != nil {
			t.Fatal(err)
		}
		b.settled()
	}
	rig.EveryShape(t)
}
