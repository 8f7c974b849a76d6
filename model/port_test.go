package model

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPortsInFilesAndRecords: a port is a number or a name in YAML, and in a
// record both; records from before there were names are read.
func TestPortsInFilesAndRecords(t *testing.T) {
	for text, want := range map[string]Port{
		"7": {Number: 7}, "0x0b": {Number: 11}, "4294967040": {Number: MaxPort}, "eth1": {Name: "eth1"}, `"eth 1/1"`: {Name: "eth 1/1"}, "on": {Name: "on"}, "true": {Name: "true"},
		// Left to Validate:
		`"5"`: {Name: "5"}, "1.5": {Name: "1.5"}, "-1": {Name: "-1"}, "4294967296": {Name: "4294967296"}, "1e3": {Name: "1e3"}, `""`: {}, "0": {}, "null": {}, "~": {},
	} {
		var got struct{ Port Port }
		if err := yaml.Unmarshal([]byte("port: "+text), &got); err != nil || got.Port != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got.Port, err, want)
		}
	}
	for _, text := range []string{"[1]", "{a: 1}"} {
		var got struct{ Port Port }
		if err := yaml.Unmarshal([]byte("port: "+text), &got); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, p := range []Port{{Number: 7}, {Name: "eth1"}, {Name: "true"}, {Name: "a: b"}, {Name: "#1"}} {
		b, err := yaml.Marshal(p)
		var again Port
		if err == nil {
			err = yaml.Unmarshal(b, &again)
		}
		if err != nil || again != p {
			t.Errorf("%+v is written %q and read %+v: %v", p, b, again, err)
		}
	}
	for text, p := range map[string]Port{`7`: {Number: 7}, `{"Name":"eth1"}`: {Name: "eth1"}, `{"Number":7,"Name":"eth1"}`: {Number: 7, Name: "eth1"}} {
		b, err := json.Marshal(p)
		if err != nil || string(b) != text {
			t.Errorf("%+v: %s, %v", p, b, err)
		}
		again := Port{Number: 99, Name: "old"}
		if err := json.Unmarshal([]byte(text), &again); err != nil || again != p {
			t.Errorf("%s: %+v, %v", text, again, err)
		}
	}
}

func TestPortsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		p    Port
		want string // "" for none
	}{
		{Port{Number: 1}, ""}, {Port{Number: MaxPort}, ""}, {Port{Name: "eth1"}, ""}, {Port{Name: "Ethernet 1/1"}, ""}, {Port{Name: "fifteen-bytes-x"}, ""}, {Port{Name: "1a"}, ""}, {Port{Name: "local"}, ""}, {Port{Name: "inf"}, ""},
		{Port{}, "1 to 4294967040"}, {Port{Number: 0xfffffffe}, "no switch port"}, {Port{Name: "sixteen-bytes-xx"}, "has 16 bytes: a switch tells the first 15"},
		{Port{Name: "ééééééé1é"}, "has 17 bytes"}, {Port{Name: strings.Repeat("x", 300)}, "xxx…\" has 300 bytes"},
		{Port{Name: "5"}, "in quotes"}, {Port{Name: "0x5"}, "in quotes"}, {Port{Name: "-1"}, "none from 1 to"}, {Port{Name: "4294967296"}, "none from 1 to"}, {Port{Name: "1e3"}, "number"}, {Port{Name: "1.5"}, "number"},
		{Port{Name: " eth1"}, "blanks"}, {Port{Name: "eth1 "}, "blanks"}, {Port{Name: " "}, "blanks"}, {Port{Name: "eth\n1"}, "blanks"}, {Port{Name: "e\x00"}, "blanks"}, {Port{Name: "e\u200b1"}, "blanks"},
		{Port{Name: "LOCAL"}, "OpenFlow's own"}, {Port{Name: "CONTROLLER"}, "OpenFlow's own"}, {Port{Name: "OFPP_LOCAL"}, "OpenFlow's own"}, {Port{Name: "IN_PORT"}, "OpenFlow's own"},
	} {
		err := c.p.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
	}
}

// TestLocate: a name is the number of the one port that has it, and nothing is on
// a port that something else is on, however each is written.
func TestLocate(t *testing.T) {
	has := []Port{{1, "eth1"}, {2, "eth2"}, {3, "twice"}, {4, "twice"}, {5000, "high"}, {7, ""}, {0xfffffffe, "br0"}}
	at := func(hosts ...Port) Testbed {
		tb := Testbed{}
		for i, p := range hosts {
			tb.Hosts = append(tb.Hosts, TestbedHost{Name: NodeID("n" + string(rune('1'+i))), Datapath: 1, Port: p})
		}
		return tb
	}
	name := func(s string) Port { return Port{Name: s} }
	gated := at(name("high"), Port{Number: 6000})
	gated.Gates = []GatePort{{Datapath: 1, Port: name("eth1")}}
	onGate := at(name("eth1"))
	onGate.Gates = []GatePort{{Datapath: 1, Port: Port{Number: 1}}}
	linked := at(name("eth1"))
	linked.Links = []SwitchLink{{A: SwitchPort{1, name("eth2")}, B: SwitchPort{2, name("eth2")}}}
	linked.Mirrors = []MirrorPort{{Datapath: 1, Port: Port{Number: 2}}}
	for what, c := range map[string]struct {
		tb      Testbed
		numbers map[Port]uint32
		wrong   map[Port]string
	}{
		"found":      {at(name("eth1"), Port{Number: 2}, Port{Number: 77}), map[Port]uint32{name("eth1"): 1, {Number: 2}: 2, {Number: 77}: 77}, nil},
		"none":       {at(name("eth9"), name("eth2")), map[Port]uint32{name("eth2"): 2}, map[Port]string{name("eth9"): `no port called "eth9": it has "eth1" (1), "eth2" (2), "twice" (3), "twice" (4), "?" (7), "high" (5000)`}},
		"in capital": {at(name("ETH1")), nil, map[Port]string{name("ETH1"): "no port called"}},
		"two":        {at(name("twice")), nil, map[Port]string{name("twice"): `2 ports called "twice", numbers 3 4`}},
		"its own":    {at(name("br0")), nil, map[Port]string{name("br0"): "the switch's own port"}},
		"name and number": {at(Port{Number: 1}, name("eth2"), name("eth1")), map[Port]uint32{name("eth2"): 2},
			map[Port]string{{Number: 1}: "host n1 and host n3 are both on port 1", name("eth1"): "host n1 and host n3 are both on port 1"}},
		"beside a gate": {gated, map[Port]uint32{{Number: 6000}: 6000, name("eth1"): 1}, map[Port]string{name("high"): "1 to 4093"}},
		"on the gate":   {onGate, nil, map[Port]string{name("eth1"): "host n1 and gate number 1", {Number: 1}: "both on port 1"}},
		"link, mirror":  {linked, map[Port]uint32{name("eth1"): 1}, map[Port]string{name("eth2"): "link number 1 and mirror number 1", {Number: 2}: "both on port 2"}},
	} {
		numbers, wrong := c.tb.Locate(1, has)
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
	other, _ := linked.Locate(2, []Port{{9, "eth2"}})
	with := linked.With(2, func(p Port) uint32 { return other[p] })
	if with.Links[0].B.Port != (Port{9, "eth2"}) || with.Links[0].A.Port != name("eth2") || linked.Links[0].B.Port.Number != 0 {
		t.Errorf("%+v, %+v", with.Links, linked.Links)
	}
}
