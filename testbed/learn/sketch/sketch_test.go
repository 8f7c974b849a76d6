package sketch

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"netsplit/inference/packet"
	"netsplit/model"
	"netsplit/testbed/config"
)

// Frames as they come in.

func eth(dst, src [6]byte, typ uint16, body []byte) []byte {
	b := append(append([]byte{}, dst[:]...), src[:]...)
	b = append(binary.BigEndian.AppendUint16(b, typ), body...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

func host(n byte) [6]byte { return [6]byte{0x02, 0, 0, 0, 0, n} }

var all = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func arp(src, sha [6]byte, spa string) []byte {
	a := netip.MustParseAddr(spa).As4()
	b := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, sha[:]...)
	b = append(append(b, a[:]...), make([]byte, 10)...)
	return eth(all, src, packet.TypeARP, b)
}

func ip(src [6]byte, from string) []byte {
	a := netip.MustParseAddr(from)
	if a.Is4() {
		b := make([]byte, 20)
		b[0] = 0x45
		copy(b[12:], a.AsSlice())
		return eth(host(99), src, packet.TypeIPv4, b)
	}
	b := make([]byte, 40)
	b[0], b[6], b[7] = 0x60, 17, 64
	copy(b[8:], a.AsSlice())
	return eth(host(99), src, packet.TypeIPv6, b)
}

func nd(src [6]byte, kind, hops byte, from, target string) []byte {
	b := make([]byte, 40+24)
	b[0], b[6], b[7], b[40] = 0x60, protoICMPv6, hops, kind
	copy(b[8:], netip.MustParseAddr(from).AsSlice())
	copy(b[48:], netip.MustParseAddr(target).AsSlice())
	return eth([6]byte{0x33, 0x33, 0, 0, 0, 1}, src, packet.TypeIPv6, b)
}

func tagged(b []byte, types ...uint16) []byte {
	out := b[:12:12]
	for _, typ := range types {
		out = append(binary.BigEndian.AppendUint16(out, typ), 0, 10)
	}
	return append(out, b[12:]...)
}

func at(dp, port int) At {
	return At{Datapath: model.DatapathID(dp), Port: uint32(port)}
}

type observed struct {
	at At
	b  []byte
}

// two switches with ports a1, a2, … and b1, b2, …, all up.
func two(n int) *Sketch {
	s := New("mark")
	for dp, name := range map[int]string{1: "a", 2: "b"} {
		var list []Port
		for i := range n {
			list = append(list, Port{Number: uint32(i + 1), Name: fmt.Sprintf("%s-host%d", name, i+1), Up: true})
		}
		s.Ports(model.DatapathID(dp), append(list, Port{Number: 0xfffffffe, Name: "LOCAL"}))
	}
	return s
}

// TestWhatFollowsFromFrames: what is heard, and the file that follows: hosts as
// "name mac ip", links, remarks in it, and remarks to decide.
func TestWhatFollowsFromFrames(t *testing.T) {
	m := func(n byte) string { return mac(host(n)) }
	s := two(3)
	link := []observed{{at(2, 3), s.Probe(at(1, 3))}, {at(1, 3), s.Probe(at(2, 3))}}
	for name, c := range map[string]struct {
		observed []observed
		change   func(*Sketch)
		hosts    []string
		links    int
		says     []string
		decide   int
	}{
		"arp and nd": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(2, 1), nd(host(2), 135, 255, "fd00::2", "fd00::9")}},
			hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"port 2 (a-host2) of 0000000000000001: no packets came", "only fd00::2 was seen, but netsplit serve needs an IPv4 address", "# - name: b-host1"}, decide: 1},
		"both families": {observed: []observed{{at(1, 1), nd(host(1), 136, 255, "fe80::1", "fd00::1")}, {at(1, 1), arp(host(1), host(1), "10.0.0.1")}},
			hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"It has fd00::1, too"}},
		"a packet alone":                      {observed: []observed{{at(1, 1), ip(host(1), "10.0.0.1")}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}},
		"nd that was sent on":                 {observed: []observed{{at(1, 1), nd(host(1), 136, 64, "fd00::1", "fd00::7")}}, says: []string{"only fd00::1 was seen"}, decide: 1},
		"with a tag":                          {observed: []observed{{at(1, 1), tagged(arp(host(1), host(1), "10.0.0.1"), 0x8100)}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"VLAN tag"}},
		"with a service tag and a tag":        {observed: []observed{{at(1, 1), tagged(arp(host(1), host(1), "10.0.0.1"), 0x88a8, 0x8100)}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"VLAN tag"}},
		"with a service tag of old and a tag": {observed: []observed{{at(1, 1), tagged(arp(host(1), host(1), "10.0.0.1"), 0x9100, 0x8100)}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"VLAN tag"}},
		"arp for somebody else":               {observed: []observed{{at(1, 1), arp(host(1), host(7), "10.0.0.7")}}, says: []string{"no address of it was seen"}, decide: 1},
		"an arp probe":                        {observed: []observed{{at(1, 1), arp(host(1), host(1), "0.0.0.0")}}, says: []string{"no address of it was seen"}, decide: 1},
		"only of this link":                   {observed: []observed{{at(1, 1), nd(host(1), 133, 255, "fe80::1", "::")}}, says: []string{"only fe80::1 was seen"}, decide: 1},
		"a router by its words":               {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(1, 1), nd(host(1), 134, 255, "fe80::1", "::")}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"may be a router"}, decide: 1},
		"a router by its deeds":               {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(1, 1), ip(host(1), "192.0.2.1")}}, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"may be a router, and sends packets of 192.0.2.1"}, decide: 1},
		"a router, never itself":              {observed: []observed{{at(1, 1), ip(host(1), "192.0.2.1")}, {at(1, 1), ip(host(1), "192.0.2.2")}}, says: []string{"addresses 192.0.2.1, 192.0.2.2: a router?"}, decide: 1},
		"several behind a port": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(1, 1), arp(host(2), host(2), "10.0.0.2")}},
			says: []string{"2 MAC addresses were seen (" + m(1) + " 10.0.0.1; " + m(2) + " 10.0.0.2): another switch or a router"}, decide: 1},
		"one mac at two ports": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(1, 2), arp(host(1), host(1), "10.0.0.1")}},
			says: []string{m(1) + " was also seen at port 2 (a-host2)", m(1) + " was also seen at port 1 (a-host1)", "# - name: a-host1"}, decide: 2},
		"one address at two hosts": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(1, 2), arp(host(2), host(2), "10.0.0.1")}},
			hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"two hosts with one address?"}, decide: 1},
		"a link": {observed: append(link, observed{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, observed{at(2, 3), arp(host(1), host(1), "10.0.0.1")}),
			hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, links: 1, says: []string{"port 3 (a-host3) of 0000000000000001 - port 3 (b-host3) of 0000000000000002"}},
		"a link one way": {observed: link[:1], links: 1, says: []string{"one direction only"}, decide: 1},
		"a hub":          {observed: append(link, observed{at(2, 2), s.Probe(at(1, 3))}), says: []string{"a hub"}, decide: 2},
		"a link that LLDP does not cross": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(2, 1), arp(host(2), host(2), "10.0.0.2")}, {at(2, 2), arp(host(3), host(3), "10.0.0.3")},
			{at(1, 3), arp(host(2), host(2), "10.0.0.2")}, {at(1, 3), arp(host(3), host(3), "10.0.0.3")}},
			hosts: []string{"a-host1 " + m(1) + " 10.0.0.1", "b-host1 " + m(2) + " 10.0.0.2", "b-host2 " + m(3) + " 10.0.0.3"}, says: []string{"2 of them were also seen at other ports"}, decide: 1},
		"a loop":                 {observed: []observed{{at(1, 2), s.Probe(at(1, 1))}}, says: []string{"of one switch are connected: a loop"}, decide: 1},
		"lldp of another sketch": {observed: []observed{{at(1, 2), New("other").Probe(at(2, 1))}}, says: []string{`says by LLDP that it is "netsplit", its port "1"`}, decide: 1},
		"garbage lldp": {observed: []observed{{at(1, 2), eth(all, host(5), typeLLDP, []byte{0xff, 0xff, 0xff})}, {at(1, 3), eth(all, Source, typeLLDP, nil)}},
			says: []string{"speaks LLDP badly, as " + m(5)}, decide: 2},
		"lldp with a bad port of ours": {observed: []observed{{at(1, 2), []byte(strings.Replace(string(s.Probe(at(2, 1))), "0000000000000002", "00000000000000zz", 1))}}, says: []string{"something other than a host is there"}, decide: 1},
		"a port that goes away": {observed: append(link, observed{at(1, 1), arp(host(1), host(1), "10.0.0.1")}),
			change: func(s *Sketch) { s.PortGone(at(1, 1)); s.Ports(2, []Port{{Number: 1, Up: true}}) }},
		"a port that goes down": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}},
			change: func(s *Sketch) { s.PortIs(1, Port{Number: 1, Name: "a-host1"}) }, hosts: []string{"a-host1 " + m(1) + " 10.0.0.1"}, says: []string{"down now"}, decide: 1},
		"the name of a machine": {observed: []observed{{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, {at(2, 1), arp(host(2), host(2), "10.0.0.2")}, {at(1, 2), arp(host(3), host(3), "10.0.0.3")}},
			change: func(s *Sketch) {
				s.PortIs(1, Port{Number: 1, Name: "eth1", Up: true})
				s.PortIs(2, Port{Number: 1, Name: "eth1", Up: true})
				s.PortIs(1, Port{Number: 2, Up: true})
			}, hosts: []string{"eth1-s1-p1 " + m(1) + " 10.0.0.1", "s1-p2 " + m(3) + " 10.0.0.3", "eth1-s2-p1 " + m(2) + " 10.0.0.2"}, decide: 3},
		"no host's": {observed: []observed{{at(1, 1), eth(all, all, packet.TypeARP, nil)}, {at(1, 1), nil}, {at(1, 1), eth(all, [6]byte{}, packet.TypeIPv4, nil)}, {at(1, 1), make([]byte, 13)},
			{At{Datapath: 1, Port: 0xfffffffe}, arp(host(1), host(1), "10.0.0.1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := two(3)
			for _, h := range c.observed {
				s.Observe(h.at, h.b)
			}
			if c.change != nil {
				c.change(s)
			}
			f, err := s.File(Options{Name: "learned", Exec: "nsenter --net=/run/netns/{{.PortName}}{{.Port}}"})
			if err != nil {
				t.Fatal(err)
			}
			var hosts []string
			for _, h := range f.Testbed.Hosts {
				hosts = append(hosts, fmt.Sprintf("%s %s %s", h.Name, h.MAC, h.IP))
			}
			if !reflect.DeepEqual(hosts, c.hosts) || len(f.Testbed.Links) != c.links || f.Decide != c.decide {
				t.Errorf("hosts %v, want %v; %d links, want %d; %d to decide, want %d", hosts, c.hosts, len(f.Testbed.Links), c.links, f.Decide, c.decide)
			}
			for _, w := range c.says {
				if !strings.Contains(string(f.Text), w) {
					t.Errorf("it does not say %q", w)
				}
			}
			// What is written is what was meant, and serve takes it.
			if len(hosts) > 0 {
				got, err := config.Parse(f.Text)
				if err != nil || !reflect.DeepEqual(*got, f.Testbed) {
					t.Errorf("read back: %v: %+v, want %+v", err, got, f.Testbed)
				}
			}
			if t.Failed() {
				t.Logf("%s", f.Text)
			}
		})
	}
}

// TestProgress: each thing is told once.
func TestProgress(t *testing.T) {
	s := two(3)
	for _, c := range []struct {
		h    observed
		want string
	}{
		{observed{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, "port 1 (a-host1) of 0000000000000001: 02:00:00:00:00:01 has 10.0.0.1"},
		{observed{at(1, 1), arp(host(1), host(1), "10.0.0.1")}, ""},
		{observed{at(1, 1), ip(host(1), "10.0.0.1")}, ""},
		{observed{at(1, 1), arp(host(1), host(1), "10.0.0.3")}, "port 1 (a-host1) of 0000000000000001: 02:00:00:00:00:01 has 10.0.0.1, 10.0.0.3"},
		{observed{at(1, 2), s.Probe(at(2, 3))}, "link: port 2 (a-host2) of 0000000000000001 - port 3 (b-host3) of 0000000000000002"},
		{observed{at(2, 3), s.Probe(at(1, 2))}, ""},
	} {
		if got := s.Observe(c.h.at, c.h.b); got != c.want {
			t.Errorf("said %q, want %q", got, c.want)
		}
	}
	up, hosts, links := s.Counts()
	if up != 6 || hosts != 1 || links != 1 || !reflect.DeepEqual(s.Silent(1), []uint32{3}) {
		t.Errorf("%d ports, %d hosts, %d links, silent %v", up, hosts, links, s.Silent(1))
	}
}

// TestLoop: parallel links and rings are ways round, a tree is none.
func TestLoop(t *testing.T) {
	for name, c := range map[string]struct {
		links [][2]At
		want  bool
	}{
		"none": {nil, false}, "one link": {[][2]At{{at(1, 1), at(2, 1)}}, false},
		"parallel":  {[][2]At{{at(1, 1), at(2, 1)}, {at(1, 2), at(2, 2)}}, true},
		"a cable":   {[][2]At{{at(1, 1), at(1, 2)}}, true},
		"ring":      {[][2]At{{at(1, 1), at(2, 1)}, {at(2, 2), at(3, 1)}, {at(3, 2), at(1, 2)}}, true},
		"elsewhere": {[][2]At{{at(2, 1), at(3, 1)}, {at(2, 2), at(3, 2)}}, false},
		"chain":     {[][2]At{{at(1, 1), at(2, 1)}, {at(2, 2), at(3, 1)}}, false},
	} {
		s := New("mark")
		for _, l := range c.links {
			s.Observe(l[1], s.Probe(l[0]))
			s.Observe(l[0], s.Probe(l[1]))
		}
		if got := s.Loop(1); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestExec: the template's fields, and what is wrong with one.
func TestExec(t *testing.T) {
	s := two(1)
	s.Observe(at(1, 1), arp(host(1), host(1), "10.0.0.1"))
	f, err := s.File(Options{Name: "x"})
	if err != nil || !reflect.DeepEqual(f.Testbed.Hosts[0].Exec, []string{"ssh", "root@10.0.0.1"}) || !strings.Contains(string(f.Text), "is a guess") {
		t.Errorf("%v %+v %s", err, f.Testbed, f.Text)
	}
	for _, bad := range []string{"{{.Adress}}", "{{", "  ", `ssh "root`, "ssh 'root@{{.IP}}", `ssh root\`, "''"} {
		if _, err := New("x").File(Options{Name: "x", Exec: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for exec, want := range map[string][]string{
		`ssh -o "ProxyCommand nc %h 22" root@{{.IP}}`: {"ssh", "-o", "ProxyCommand nc %h 22", "root@10.0.0.1"},
		`in '{{.Name}} of {{.Datapath}}' `:            {"in", "a-host1 of 0000000000000001"},
		`{{slice .IP 0 4}}`:                           {"10.0"},
	} {
		if f, err := s.File(Options{Name: "x", Exec: exec}); err != nil || !reflect.DeepEqual(f.Testbed.Hosts[0].Exec, want) {
			t.Errorf("%s: %v %+v", exec, err, f.Testbed)
		}
	}
}

// TestExecThatDoesNotDoForAHost leaves that one to be decided, and loses no other.
func TestExecThatDoesNotDoForAHost(t *testing.T) {
	s := two(3)
	s.Ports(3, []Port{{Number: 1, Name: "it's", Up: true}})
	s.Observe(at(1, 1), arp(host(1), host(1), "10.0.0.1"))
	s.Observe(at(2, 1), arp(host(2), host(2), "10.0.0.2"))
	s.Observe(at(3, 1), arp(host(3), host(3), "10.0.0.3"))
	f, err := s.File(Options{Name: "x", Exec: "{{if ne .Name \"b-host1\"}}in {{.PortName}}{{end}}"})
	if err != nil || len(f.Testbed.Hosts) != 1 || f.Decide != 2 {
		t.Fatalf("%v %+v %s", err, f.Testbed, f.Text)
	}
	for _, want := range []string{"does not do here: it gives no command", "# - name: b-host1", "does not do here: Unterminated single-quoted string", "ip: 10.0.0.3"} {
		if !strings.Contains(string(f.Text), want) {
			t.Errorf("%q is not in\n%s", want, f.Text)
		}
	}
}

// FuzzHeard: no frame does harm, and what follows is a file that can be read.
func FuzzHeard(f *testing.F) {
	s := two(3)
	for _, b := range [][]byte{nil, arp(host(1), host(1), "10.0.0.1"), nd(host(2), 135, 255, "fd00::2", "fd00::9"), s.Probe(at(2, 3)), New("o").Probe(at(1, 2)), tagged(ip(host(1), "10.0.0.1"))} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := two(3)
		s.Observe(at(1, 1), b)
		s.Observe(at(1, 2), arp(host(200), host(200), "10.9.9.9"))
		file, err := s.File(Options{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse(file.Text); err != nil && len(file.Testbed.Hosts) > 0 {
			t.Fatalf("%v:\n%s", err, file.Text)
		}
	})
}

// TestPortNames: asked for, ports are written by name, but for names that two
// ports of a switch have or that no testbed file takes.
func TestPortNames(t *testing.T) {
	s := New("mark")
	s.Ports(1, []Port{{Number: 1, Name: "eth1", Up: true}, {Number: 2, Name: "two", Up: true}, {Number: 3, Name: "two", Up: true}, {Number: 4, Name: "17", Up: true}, {Number: 5, Name: "up", Up: true}})
	s.Ports(2, []Port{{Number: 1, Name: "eth1", Up: true}, {Number: 5, Name: "", Up: true}})
	for i := range byte(4) {
		s.Observe(at(1, int(i)+1), arp(host(i+1), host(i+1), fmt.Sprintf("10.0.0.%d", i+1)))
	}
	s.Observe(at(2, 1), arp(host(9), host(9), "10.0.0.9"))
	s.Observe(at(2, 5), s.Probe(at(1, 5)))
	s.Observe(at(1, 5), s.Probe(at(2, 5)))
	for names, want := range map[bool]string{true: `["eth1" 2 3 4 "eth1"] "up" 5`, false: "[1 2 3 4 1] 5 5"} {
		f, err := s.File(Options{Name: "x", PortNames: names})
		if err != nil {
			t.Fatal(err)
		}
		tb, err := config.Parse(f.Text)
		if err != nil || len(tb.Links) != 1 {
			t.Fatalf("%v: %s", err, f.Text)
		}
		var ports []model.Port
		for _, h := range tb.Hosts {
			ports = append(ports, h.Port)
		}
		if got := fmt.Sprint(ports, tb.Links[0].A.Port, tb.Links[0].B.Port); got != want {
			t.Errorf("names %v: %s, want %s", names, got, want)
		}
	}
}
