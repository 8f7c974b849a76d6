package judge

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"netsplit/inference/framing"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
)

// counted is a message with a length and a type.
func counted(n int) []byte {
	kind := n * 7 % 3
	m := append([]byte{byte(kind), byte(n), 1, 2}, strings.Repeat(string(rune('a'+kind)), 5+9*kind)...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
}

// segments writes a capture in which n1 and n2 say such messages, or others, to
// each other on each port.
func segments(t *testing.T, dir string, say func(n int) []byte, ports ...uint16) {
	t.Helper()
	out, err := os.Create(filepath.Join(dir, rundir.PacketsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := pcapgo.NewWriter(out)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	ips := []net.IP{net.IPv4(10, 0, 0, 1).To4(), net.IPv4(10, 0, 0, 2).To4()}
	for _, port := range ports {
		seq := [2]uint32{100, 200}
		send := func(dir int, flags layers.TCP, b []byte) {
			tcp := flags
			tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Ack, tcp.Window = 40000, layers.TCPPort(port), seq[dir], seq[1-dir], 999
			if dir == 1 {
				tcp.SrcPort, tcp.DstPort = tcp.DstPort, tcp.SrcPort
			}
			seq[dir] += uint32(len(b))
			if tcp.SYN {
				seq[dir]++
			}
			ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: ips[dir], DstIP: ips[1-dir]}
			_ = tcp.SetNetworkLayerForChecksum(ip)
			buf := gopacket.NewSerializeBuffer()
			eth := &layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4}
			if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, &tcp, gopacket.Payload(b)); err != nil {
				t.Fatal(err)
			}
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(buf.Bytes()), Length: len(buf.Bytes())}, buf.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		send(0, layers.TCP{SYN: true}, nil)
		send(1, layers.TCP{SYN: true, ACK: true}, nil)
		for n := range 200 {
			send(n%2, layers.TCP{ACK: true}, say(n))
		}
	}
}

// TestFramesAreSuggested for ports that fallback reads, declared or not, as a
// target file takes them, and not for others.
func TestFramesAreSuggested(t *testing.T) {
	f := examined()
	f.target.Protocols = []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "fallback"}, {Port: 7001, Transport: "tcp", Dissector: "text"}}
	for i, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f.testbed.Hosts[i].IP = netip.MustParseAddr(ip)
	}
	x, dir := &Examination{}, t.TempDir()
	if err := x.framings(dir, f); err != nil || len(x.Facts) > 0 {
		t.Fatalf("a record without packets: %v %q", err, x.Facts)
	}
	segments(t, dir, counted, 7000, 7001, 7002)
	if err := x.framings(dir, f); err != nil {
		t.Fatal(err)
	}
	if len(x.Problems) > 0 || len(x.Facts) != 2 || !strings.HasPrefix(x.Facts[0], "protocol fallback on tcp port 7000: reader frames could read it") ||
		!strings.HasPrefix(x.Facts[1], "tcp port 7002 is not among the protocols") {
		t.Fatalf("problems %q, facts %q", x.Problems, x.Facts)
	}
	const frames = "frames: {length: {at: 0, size: 4, plus: 4}, type: [{at: 4}]}"
	for _, fact := range x.Facts {
		if !strings.Contains(fact, frames) || !strings.Contains(fact, "200 messages of 1 connection chain") || !strings.Contains(fact, "3 types") {
			t.Errorf("%q", fact)
		}
	}
	_, entry, _ := strings.Cut(x.Facts[1], "add\n")
	entry, _, _ = strings.Cut(entry, "}\n")
	if p := pasted(t, entry+"}"); p.Port != 7002 || p.Frames == nil || len(p.Frames.Type) != 1 {
		t.Errorf("%+v", p)
	}
}

// pasted is a protocol as a user pastes it before the others of a target file.
func pasted(t *testing.T, entry string) model.Protocol {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "targets", "redis-sentinel", sut.FileName))
	if err != nil {
		t.Fatal(err)
	}
	tg, err := sut.Parse("t.yaml", []byte(strings.Replace(string(b), "\nprotocols:\n", "\nprotocols:\n"+entry+"\n", 1)))
	if err != nil {
		t.Fatalf("%v\n%s", err, entry)
	}
	return tg.Protocols[0]
}

// TestLinesAreSuggested for ports whose lines count bytes, unless the file says so.
func TestLinesAreSuggested(t *testing.T) {
	f := examined()
	f.target.Protocols = []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "fallback"}, {Port: 7001, Transport: "tcp", Dissector: "text"},
		{Port: 7002, Transport: "tcp", Dissector: "text", Lines: []model.Line{{Match: `^PUT (?P<length>\d+)$`, Plus: 1}}}}
	for i, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f.testbed.Hosts[i].IP = netip.MustParseAddr(ip)
	}
	x, dir := &Examination{}, t.TempDir()
	segments(t, dir, func(n int) []byte {
		return fmt.Appendf(nil, "PUT it's %d\n%s\n", n%30, strings.Repeat("\x00", n%30))
	}, 7000, 7001, 7002, 7003)
	if err := x.framings(dir, f); err != nil {
		t.Fatal(err)
	}
	begin := []string{"protocol fallback on tcp port 7000: some lines", "protocol text on tcp port 7001: some lines", "tcp port 7003 is not among the protocols; if"}
	if len(x.Problems) > 0 || len(x.Facts) != len(begin) {
		t.Fatalf("problems %q, facts %q", x.Problems, x.Facts)
	}
	for i, fact := range x.Facts {
		if !strings.HasPrefix(fact, begin[i]) || !strings.Contains(fact, `- {match: '^PUT\s(?:.*\s)?(?P<length>\d+)$', plus: 1}`) || !strings.Contains(fact, "200 of 200 turns") {
			t.Errorf("%q", fact)
		}
	}
	_, entry, _ := strings.Cut(x.Facts[2], "add\n")
	entry = entry[:strings.LastIndex(entry, "\n")]
	if p := pasted(t, entry); p.Port != 7003 || len(p.Lines) != 1 || p.Lines[0].Plus != 1 {
		t.Errorf("%+v", p)
	}
}

// TestJSONIsSuggested where it is spoken, whatever reads it, and not where it is
// what lines count.
func TestJSONIsSuggested(t *testing.T) {
	f := examined()
	f.target.Protocols = []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "fallback"}, {Port: 7001, Transport: "tcp", Dissector: "text"},
		{Port: 7002, Transport: "tcp", Dissector: "json"}}
	for i, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f.testbed.Hosts[i].IP = netip.MustParseAddr(ip)
	}
	x, dir := &Examination{}, t.TempDir()
	segments(t, dir, func(n int) []byte { return fmt.Appendf(nil, `{"method":"append","params":[{"term":%d}]}`, n) }, 7000, 7001, 7002, 7003)
	if err := x.framings(dir, f); err != nil {
		t.Fatal(err)
	}
	begin := []string{"protocol fallback on tcp port 7000: the bytes are JSON", "protocol text on tcp port 7001: the bytes are JSON", "tcp port 7003 is not among the protocols; the bytes are JSON"}
	if len(x.Problems) > 0 || len(x.Facts) != len(begin) {
		t.Fatalf("problems %q, facts %q", x.Problems, x.Facts)
	}
	for i, fact := range x.Facts {
		if !strings.HasPrefix(fact, begin[i]) || !strings.Contains(fact, "200 JSON values of 1 connections cover 100.0 %") {
			t.Errorf("%q", fact)
		}
	}
	_, entry, _ := strings.Cut(x.Facts[2], "add\n")
	entry = entry[:strings.LastIndex(entry, "\n")]
	if p := pasted(t, entry); p.Port != 7003 || p.Dissector != "json" {
		t.Errorf("%+v", p)
	}
}

// TestJSONIsNotSuggested where values are what another protocol carries.
func TestJSONIsNotSuggested(t *testing.T) {
	f := examined()
	f.target.Protocols = []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "fallback"}}
	for i, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f.testbed.Hosts[i].IP = netip.MustParseAddr(ip)
	}
	const value = `{"type":"vote","term":7,"list":[{"type":"x","y":[]}]}`
	for name, said := range map[string]string{
		"behind a length":           "\x00\x00\x00\x36" + value,
		"behind lines that count":   fmt.Sprintf("PUB a %d\r\n%s\r\n", len(value), value),
		"bodies of HTTP":            fmt.Sprintf("POST /x HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(value), value),
		"numbers":                   "17\n",
		"lines that end in objects": "VOTE 17 {}\n",
	} {
		x, dir := &Examination{}, t.TempDir()
		segments(t, dir, func(int) []byte { return []byte(said) }, 7000)
		if err := x.framings(dir, f); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(x.Facts, func(s string) bool { return strings.Contains(s, "JSON") }) {
			t.Errorf("%s: %q", name, x.Facts)
		}
	}
}

// TestPortsWithoutANameAreTold: who forgets a port, and speaks on it what no
// reader can be suggested for, learns of it.
func TestPortsWithoutANameAreTold(t *testing.T) {
	f := examined()
	f.target.Protocols = nil
	for i, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f.testbed.Hosts[i].IP = netip.MustParseAddr(ip)
	}
	x, dir := &Examination{}, t.TempDir()
	segments(t, dir, func(n int) []byte { return fmt.Appendf(nil, "VOTE %d for n2\n", n) }, 7000, 7001)
	if err := x.framings(dir, f); err != nil {
		t.Fatal(err)
	}
	if len(x.Problems) > 0 || len(x.Facts) != 1 || strings.Count(x.Facts[0], framing.WhyText) != 2 || !strings.Contains(x.Facts[0], "are not among the protocols and are read by fallback: 7000 (") {
		t.Errorf("problems %q, facts %q", x.Problems, x.Facts)
	}
}
