package config

import (
	"strings"
	"testing"

	"netsplit/model"
)

// TestLocate: a name is the number of the one port that has it, and nothing is on
// a port that something else is on, however each is written.
func TestLocate(t *testing.T) {
	has := []model.Port{{Number: 1, Name: "eth1"}, {Number: 2, Name: "eth2"}, {Number: 3, Name: "twice"}, {Number: 4, Name: "twice"}, {Number: 5000, Name: "high"}, {Number: 7, Name: ""}, {Number: 0xfffffffe, Name: "br0"}}
	at := func(hosts ...model.Port) model.Testbed {
		tb := model.Testbed{}
		for i, p := range hosts {
			tb.Hosts = append(tb.Hosts, model.TestbedHost{Name: model.NodeID("n" + string(rune('1'+i))), Datapath: 1, Port: p})
		}
		return tb
	}
	name := func(s string) model.Port { return model.Port{Name: s} }
	gated := at(name("high"), model.Port{Number: 6000})
	gated.Gates = []model.GatePort{{Datapath: 1, Port: name("eth1")}}
	onGate := at(name("eth1"))
	onGate.Gates = []model.GatePort{{Datapath: 1, Port: model.Port{Number: 1}}}
	linked := at(name("eth1"))
	linked.Links = []model.SwitchLink{{A: model.SwitchPort{Datapath: 1, Port: name("eth2")}, B: model.SwitchPort{Datapath: 2, Port: name("eth2")}}}
	linked.Mirrors = []model.MirrorPort{{Datapath: 1, Port: model.Port{Number: 2}}}
	for what, c := range map[string]struct {
		tb      model.Testbed
		numbers map[model.Port]uint32
		wrong   map[model.Port]string
	}{
		"found":      {at(name("eth1"), model.Port{Number: 2}, model.Port{Number: 77}), map[model.Port]uint32{name("eth1"): 1, {Number: 2}: 2, {Number: 77}: 77}, nil},
		"none":       {at(name("eth9"), name("eth2")), map[model.Port]uint32{name("eth2"): 2}, map[model.Port]string{name("eth9"): `no port called "eth9": it has "eth1" (1), "eth2" (2), "twice" (3), "twice" (4), "?" (7), "high" (5000)`}},
		"in capital": {at(name("ETH1")), nil, map[model.Port]string{name("ETH1"): "no port called"}},
		"two":        {at(name("twice")), nil, map[model.Port]string{name("twice"): `2 ports called "twice", numbers 3 4`}},
		"its own":    {at(name("br0")), nil, map[model.Port]string{name("br0"): "the switch's own port"}},
		"name and number": {at(model.Port{Number: 1}, name("eth2"), name("eth1")), map[model.Port]uint32{name("eth2"): 2},
			map[model.Port]string{{Number: 1}: "host n1 and host n3 are both on port 1", name("eth1"): "host n1 and host n3 are both on port 1"}},
		"beside a gate": {gated, map[model.Port]uint32{{Number: 6000}: 6000, name("eth1"): 1}, map[model.Port]string{name("high"): "1 to 4093"}},
		"on the gate":   {onGate, nil, map[model.Port]string{name("eth1"): "host n1 and gate number 1", {Number: 1}: "both on port 1"}},
		"link, mirror":  {linked, map[model.Port]uint32{name("eth1"): 1}, map[model.Port]string{name("eth2"): "link number 1 and mirror number 1", {Number: 2}: "both on port 2"}},
	} {
		numbers, wrong := Locate(c.tb, 1, has)
		if len(numbers) != len(c.numbers) || len(wrong) != len(c.wrong) {
			t.Errorf("%s: %v, %v", what, numbers, wrong)
		}
		for p, n := range c.numbers {
			if numbers[p] != n {
				t.Errorf("%s: %v is %d, want %d", what, p, numbers[p], n)
			}
		}
		for p, text := range c.wrong {
			if wrong[p] == nil || !strings.Contains(wrong[p].Error(), text) {
				t.Errorf("%s: %v: %v, want %q", what, p, wrong[p], text)
			}
		}
	}
	other, _ := Locate(linked, 2, []model.Port{{Number: 9, Name: "eth2"}})
	with := Renumbered(linked, 2, func(p model.Port) uint32 { return other[p] })
	if with.Links[0].B.Port != (model.Port{Number: 9, Name: "eth2"}) || with.Links[0].A.Port != name("eth2") || linked.Links[0].B.Port.Number != 0 {
		t.Errorf("%+v, %+v", with.Links, linked.Links)
	}
}
