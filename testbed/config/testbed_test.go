package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"net/netip"

	"netsplit/model"
)

const good = `name: rack
hosts:
  - name: n1
    datapath: 00000a1b2c3d4e5f
    port: 1
    mac: 02:00:00:00:00:01
    ip: 10.0.0.1
    exec: [nsenter, --net=/run/netns/n1]
  - name: n2
    datapath: 0x0a1b2c3d4e5f
    port: 2
    mac: 02:00:00:00:00:02
    ip: 10.0.0.2
    exec: [ssh, n2]
mirrors:
  - datapath: 00000a1b2c3d4e5f
    port: 9
    interface: eth1
gates:
  - datapath: 00000a1b2c3d4e5f
    port: 10
    interface: eth2
    netns: tap
`

func TestWrittenFileReadsBack(t *testing.T) {
	a, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if a.Hosts[1].Datapath != 0xa1b2c3d4e5f || a.Hosts[1].IP != netip.MustParseAddr("10.0.0.2") || a.Hosts[0].Exec[0] != "nsenter" || a.Mirrors[0].Port.Number != 9 ||
		a.Gates[0] != (model.GatePort{Datapath: 0xa1b2c3d4e5f, Port: model.Port{Number: 10}, Interface: "eth2", Netns: "tap"}) {
		t.Errorf("%+v", a)
	}
	path := filepath.Join(t.TempDir(), "testbed.yaml")
	if err := Write(path, a, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, b, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestErrorsNameTheLineAndTheRemedy(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"unknown key", "    port: 2", "    prot: 2", []string{"line 11", `"prot"`, "name, datapath, port, mac, ip, exec"}},
		{"unknown key at the top", "name: rack", "title: rack", []string{"line 1", `"title"`, "name, backend, hosts, links, mirrors, gates"}},
		{"unknown key of a mirror", "    interface: eth1", "    iface: eth1", []string{"line 18", `"iface"`, "interface"}},
		{"twice", "name: n2", "name: n1", []string{"line 9", "host n1 is listed twice"}},
		{"bad mac", "02:00:00:00:00:02", "02:00:00", []string{"line 9", "n2", "mac", "02:00:00:00:00:01"}},
		{"group mac", "02:00:00:00:00:02", "03:00:00:00:00:02", []string{"line 9", "group address"}},
		{"same mac", "02:00:00:00:00:02", "02:00:00:00:00:01", []string{"line 9", "n1 and host n2", "same mac"}},
		{"bad ip", "10.0.0.2", "10.0.0.256", []string{"line 13", `ip "10.0.0.256" is no address`, "192.0.2.1"}},
		{"no ip", "    ip: 10.0.0.2\n", "", []string{"line 9", "ip is missing"}},
		{"ipv6 with a switch", "10.0.0.2", "fd00::2", []string{"line 9", "n2", "fd00::2 is no IPv4 address", "IPv6 packets too"}},
		{"a port's number in quotes", "    port: 2", `    port: "2"`, []string{"line 9", "host n2", `port "2" is a number in quotes`, "without quotes"}},
		{"no port's number", "    port: 2", "    port: 2.5", []string{"line 9", "host n2", `port "2.5"`}},
		{"a port with a long name", "    port: 2", "    port: " + strings.Repeat("x", 300), []string{"line 9", "host n2", "300 bytes", "the first 15"}},
		{"a port without a name", "    port: 2", `    port: ""`, []string{"line 9", "host n2", "no switch port", "or the port's name"}},
		{"a port with a blank name", "    port: 2", `    port: " "`, []string{"line 9", "host n2", "blanks"}},
		{"a port of OpenFlow's", "    port: 2", "    port: LOCAL", []string{"line 9", "host n2", `"LOCAL" is a reserved name of OpenFlow`}},
		{"a list for a port", "    port: 2", "    port: [eth1, eth2]", []string{"line 11", "cannot unmarshal !!seq into string"}},
		{"a map for a port", "    port: 9", "    port: {name: eth1}", []string{"line 17", "cannot unmarshal !!map into string"}},
		{"mirror on a reserved port", "port: 9", "port: CONTROLLER", []string{"line 16", "mirror number 1", "reserved name of OpenFlow"}},
		{"gate on a reserved port", "port: 10", `port: "10"`, []string{"line 20", "gate number 1", "in quotes"}},
		{"link on a reserved port", "mirrors:", "links: [{a: {datapath: a, port: ALL}, b: {datapath: b, port: eth1}}]\nmirrors:", []string{"line 15", "link number 1", "reserved name of OpenFlow"}},
		{"group ip", "10.0.0.2", "224.0.0.1", []string{"line 9", "224.0.0.1"}},
		{"same ip", "10.0.0.2", "10.0.0.1", []string{"line 9", "same ip"}},
		{"bad datapath", "0x0a1b2c3d4e5f", "br0", []string{"line 10", "br0", "hex digits"}},
		{"no datapath", "    datapath: 0x0a1b2c3d4e5f\n", "", []string{"line 9", "datapath_id"}},
		{"same port", "port: 2", "port: 1", []string{"line 9", "n1 and host n2", "port 1 of switch"}},
		{"reserved port", "port: 2", "port: 4294967293", []string{"line 9", "4294967293"}},
		{"exec in one word", "exec: [ssh, n2]", "exec: ssh n2", []string{"line 14", `"ssh n2"`, "a list of words", "[ssh, root@n1]"}},
		{"no exec", "    exec: [ssh, n2]\n", "", []string{"line 9", "exec is missing", "nsenter"}},
		{"no host name", "name: n2\n    ", "", []string{"line 9", "number 2", "name is missing"}},
		{"a blank in a host's name", "name: n2", `name: "n 2"`, []string{"line 9", `host name "n 2": use 1 to 63 letters`}},
		{"a comma in a host's name", "name: n2", `name: n1,n2`, []string{"line 9", `host name "n1,n2"`}},
		{"a path for a host's name", "name: n2", `name: ../n2`, []string{"line 9", `host name "../n2"`}},
		{"a host's name of dots", "name: n2", `name: ..`, []string{"line 9", `host name ".."`}},
		{"an option for a host's name", "name: n2", `name: --all`, []string{"line 9", `host name "--all"`}},
		{"a host's name of other letters", "name: n2", `name: zürich`, []string{"line 9", `host name "zürich"`}},
		{"a long host's name", "name: n2", "name: " + strings.Repeat("n", 64), []string{"line 9", "1 to 63"}},
		{"a label without a name", "    port: 2", "    port: 2\n    labels: {'': a}", []string{"line 9", `host n2: label ""`, "1 to 63"}},
		{"mirror on a host's port", "port: 9", "port: 2", []string{"line 16", "host n2"}},
		{"mirror without interface", "    interface: eth1\n", "", []string{"line 16", "interface is missing"}},
		{"unknown key of a gate", "    netns", "    ns", []string{"line 23", `"ns"`, "netns"}},
		{"gate on a host's port", "port: 10", "port: 2", []string{"line 20", "host n2"}},
		{"gate on the mirror's port", "port: 10", "port: 9", []string{"line 20", "mirror number 1"}},
		{"gate on no port", "port: 10", "port: 0", []string{"line 20", "gate number 1", "switch port"}},
		{"gate without interface", "    interface: eth2\n", "", []string{"line 20", "interface is missing"}},
		{"gate on the mirror's interface", "interface: eth2\n    netns: tap", "interface: eth1", []string{"line 20", "mirror number 1", "interface eth1"}},
		{"two gates on a switch", "gates:", "gates:\n  - {datapath: 00000a1b2c3d4e5f, port: 11, interface: eth3}", []string{"line 21", "gates number 1 and 2", "a switch has one"}},
		{"gate of no host's switch", "00000a1b2c3d4e5f\n    port: 10", "00000a1b2c3d4e5e\n    port: 10", []string{"line 20", "no host is on switch"}},
		{"port that no tag carries", "port: 2", "port: 4094", []string{"line 20", "host n2", "4094", "1 to 4093"}},
		{"no name", "name: rack\n", "", []string{"name is missing"}},
		{"no YAML", "hosts:", "hosts: [", []string{"line"}},
		{"cuts", "mirrors:", "cuts: fast\nmirrors:", []string{`cuts "fast": want meters (the default) or rules`}},
		{"two documents", "mirrors:", "---\nmirrors:", []string{"more than one"}},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: nothing changed", c.name)
		}
		_, err := Parse([]byte(text))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not contain %q", c.name, err, w)
			}
		}
	}
	for _, text := range []string{"", "name: x", "[]", "\x00", "hosts: 3"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if _, err := Read("/nowhere/testbed.yaml"); err == nil || !strings.Contains(err.Error(), "/nowhere/testbed.yaml") {
		t.Error(err)
	}
	if err := Write("/nowhere/testbed.yaml", new(model.Testbed), 0o644); err == nil || !strings.Contains(err.Error(), "name is missing") {
		t.Error(err)
	}
}

// TestPortsByName: every port of a file may have a name; one name on one switch is
// one port.
func TestPortsByName(t *testing.T) {
	links := "links:\n  - {a: {datapath: 00000a1b2c3d4e5f, port: up}, b: {datapath: b, port: n1}}\n"
	text := strings.NewReplacer("port: 10", "port: gate0", "port: 1\n", "port: n1\n", "port: 2", "port: Ethernet 1/1", "port: 9", "port: mirror", "mirrors:", links+"mirrors:").Replace(good)
	a, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	name := func(s string) model.Port { return model.Port{Name: s} }
	if a.Hosts[0].Port != name("n1") || a.Hosts[1].Port != name("Ethernet 1/1") || a.Mirrors[0].Port != name("mirror") || a.Gates[0].Port != name("gate0") ||
		a.Links[0].A.Port != name("up") || a.Links[0].B.Port != name("n1") {
		t.Errorf("%+v", a)
	}
	path := filepath.Join(t.TempDir(), "testbed.yaml")
	if err := Write(path, a, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, b, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	for old, want := range map[string]string{"Ethernet 1/1": `host n1 and host n2 are both on port "n1"`, "up": "link number 1 is on the port of host n1", "mirror": "mirror number 1 is on the port of host n1", "gate0": "gate number 1 is on the port of host n1"} {
		_, err := Parse([]byte(strings.Replace(text, "port: "+old, "port: n1", 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", old, err, want)
		}
	}
}

// TestLabelsHaveAnyName: a label that is called as a key of a host is no error.
func TestLabelsHaveAnyName(t *testing.T) {
	text := strings.Replace(good, "    port: 2", "    labels: {ip: a}\n    prot: 2", 1)
	if _, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "address") {
		t.Error(err)
	}
}

func TestTwoThingsWrongAreBothTold(t *testing.T) {
	text := strings.NewReplacer("port: 2", "port: 1", "10.0.0.2", "10.0.0.1").Replace(good)
	_, err := Parse([]byte(text))
	if err == nil || !strings.Contains(err.Error(), "same ip") || !strings.Contains(err.Error(), "both on port") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("name: x\nhosts: [{name: n1}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tb, err := Parse(data)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "t.yaml")
		if err := Write(path, tb, 0o644); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Read(path)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if d := cmp.Diff(tb, again, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

// crowd is a testbed file of n hosts on as many switches as it takes.
func crowd(n int) []byte {
	var b strings.Builder
	b.WriteString("name: crowd\nhosts:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: h%05d, datapath: %016x, port: %d, mac: \"02:00:00:00:%02x:%02x\", ip: 10.1.%d.%d, exec: [ssh, h%05d]}\n", i, i/1000+1, i%1000+1, i>>8, i&255, i>>8, i&255, i)
	}
	b.WriteString("links:\n")
	for i := range (n - 1) / 1000 {
		fmt.Fprintf(&b, "  - {a: {datapath: %016x, port: 2001}, b: {datapath: %016x, port: 2002}}\n", i+1, i+2)
	}
	return []byte(b.String())
}

// TestTenThousandHosts are refused, in a line. As many as a testbed may have are read, and one that
// is twice among them is found.
func TestTenThousandHosts(t *testing.T) {
	if _, err := Parse(crowd(10_000)); err == nil || err.Error() != "10000 hosts are too many; a testbed has at most 2000: write several testbeds" {
		t.Errorf("%.1000v", err)
	}
	text := crowd(model.MaxHosts)
	tb, err := Parse(text)
	if err != nil || len(tb.Hosts) != model.MaxHosts {
		t.Fatal(err)
	}
	_, err = Parse([]byte(strings.Replace(string(text), "name: h01999", "name: h00000", 1)))
	if err == nil || !strings.Contains(err.Error(), "host h00000 is listed twice") || len(err.Error()) > 1000 {
		t.Errorf("%.1000v", err)
	}
}
