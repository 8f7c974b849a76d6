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
		{Port{Name: "5"}, "in quotes"}, {Port{Name: "0x5"}, "in quotes"}, {Port{Name: "-1"}, "not from 1 to"}, {Port{Name: "4294967296"}, "not from 1 to"}, {Port{Name: "1e3"}, "number"}, {Port{Name: "1.5"}, "number"},
		{Port{Name: " eth1"}, "blanks"}, {Port{Name: "eth1 "}, "blanks"}, {Port{Name: " "}, "blanks"}, {Port{Name: "eth\n1"}, "blanks"}, {Port{Name: "e\x00"}, "blanks"}, {Port{Name: "e\u200b1"}, "blanks"},
		{Port{Name: "LOCAL"}, "reserved name"}, {Port{Name: "CONTROLLER"}, "reserved name"}, {Port{Name: "OFPP_LOCAL"}, "reserved name"}, {Port{Name: "IN_PORT"}, "reserved name"},
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
