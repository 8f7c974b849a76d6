package inference

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// bench is a pipeline over three hosts with the frames a test sends into it.
type bench struct {
	t   testing.TB
	p   *Pipeline
	num uint64
}

func ip(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

func newBench(t testing.TB, cfg Config) *bench {
	t.Helper()
	for n := 1; n <= 3; n++ {
		id := model.NodeID(fmt.Sprintf("n%d", n))
		cfg.Hosts = append(cfg.Hosts, model.TestbedHost{Name: id, IP: ip(n)})
		cfg.Nodes = append(cfg.Nodes, id)
	}
	if cfg.Protocols == nil {
		cfg.Protocols = []model.Protocol{
			{Port: 6379, Transport: "tcp", Dissector: "resp"},
			{Port: 7000, Transport: "udp", Dissector: "text"},
		}
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, p: p}
}

func (b *bench) step(host model.NodeID, ls ...gopacket.SerializableLayer) *Result {
	b.t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, ls...); err != nil {
		b.t.Fatal(err)
	}
	b.num++
	return b.p.Read(model.Frame{Num: b.num, At: time.Duration(b.num) * time.Millisecond, Host: host, Data: buf.Bytes()})
}

func ether(typ layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: typ}
}

func ipv4(src, dst int, proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: proto, SrcIP: ip(src).AsSlice(), DstIP: ip(dst).AsSlice()}
}

// tcp sends a segment from port 40000 of n1 to port 6379 of n2, or back.
func (b *bench) tcp(back bool, flags model.TCPFlags, seq, ack uint32, data string) *Result {
	b.t.Helper()
	src, dst := 1, 2
	t := &layers.TCP{SrcPort: 40000, DstPort: 6379, Seq: seq, Ack: ack, Window: 500,
		SYN: flags&model.FlagSYN != 0, FIN: flags&model.FlagFIN != 0, RST: flags&model.FlagRST != 0, ACK: flags&model.FlagACK != 0}
	if back {
		src, dst, t.SrcPort, t.DstPort = 2, 1, t.DstPort, t.SrcPort
	}
	return b.step("", ether(0x800), ipv4(src, dst, layers.IPProtocolTCP), t, gopacket.Payload(data))
}

const (
	SYN = model.FlagSYN
	ACK = model.FlagACK
	FIN = model.FlagFIN
	RST = model.FlagRST
)

// show is a step in a line: new messages, the numbers that came again, notes.
func show(s *Result) string {
	var out []string
	for _, m := range s.New {
		out = append(out, fmt.Sprintf("%d %s>%s %s", m.Num, m.From, m.To, m.Type))
	}
	if len(s.Again) > 0 {
		out = append(out, fmt.Sprint("again ", s.Again))
	}
	return strings.Join(append(out, s.Notes...), "; ")
}

func expect(t *testing.T, what string, s *Result, want string) {
	t.Helper()
	if got := show(s); got != want {
		t.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}

const ping = "*1\r\n$4\r\nPING\r\n" // 14 bytes

func TestOneConnection(t *testing.T) {
	b := newBench(t, Config{})
	expect(t, "syn", b.tcp(false, SYN, 99, 0, ""), "1 n1>n2 tcp syn :6379")
	expect(t, "syn retransmitted", b.tcp(false, SYN, 99, 0, ""), "again [1]")
	expect(t, "syn-ack", b.tcp(true, SYN|ACK, 499, 100, ""), "")
	expect(t, "ack", b.tcp(false, ACK, 100, 500, ""), "")
	expect(t, "first part of a message", b.tcp(false, ACK, 100, 500, ping[:9]), "")
	expect(t, "the rest and a whole one", b.tcp(false, ACK, 109, 500, ping[9:]+ping), "2 n1>n2 resp PING; 3 n1>n2 resp PING")
	expect(t, "first part retransmitted", b.tcp(false, ACK, 100, 500, ping[:9]), "again [2]")
	expect(t, "all retransmitted, and one more", b.tcp(false, ACK, 100, 500, ping+ping+ping), "4 n1>n2 resp PING; again [2 3]")
	s := b.tcp(true, ACK, 500, 142, "+PONG\r\n")
	expect(t, "answer", s, "5 n2>n1 resp reply PING")
	want := model.Message{Num: 5, Frame: 9, At: 9 * time.Millisecond, From: "n2", To: "n1", FromPort: 6379, ToPort: 40000,
		Stream: "tcp 10.0.0.2:6379>10.0.0.1:40000#1", Bytes: 7, Type: "resp reply PING", Fields: []model.Field{{Name: "reply", Value: "PONG"}}}
	if diff := cmp.Diff(want, s.New[0]); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	expect(t, "retransmitted although acknowledged: the acknowledgement was lost", b.tcp(false, ACK, 114, 500, ping), "again [3]")
	expect(t, "ahead of its turn", b.tcp(false, ACK, 156, 507, ping), "")
	expect(t, "the one before it", b.tcp(false, ACK, 142, 507, ping), "6 n1>n2 resp PING; 7 n1>n2 resp PING")
	expect(t, "the end of one", b.tcp(false, ACK, 191, 507, ping[7:]), "")
	expect(t, "a known one, and that one as a whole", b.tcp(false, ACK, 156, 507, ping+strings.Repeat(ping, 2)),
		"8 n1>n2 resp PING; 9 n1>n2 resp PING; again [7]")
	expect(t, "both in pieces that came before", b.tcp(false, ACK, 160, 507, (ping + ping + ping)[4:]), "again [7 8 9]")
	expect(t, "other content", b.tcp(false, ACK, 142, 507, strings.ToLower(ping)),
		"again [6]; tcp 10.0.0.1:40000>10.0.0.2:6379#1: 4 bytes from offset 50 came again with other content; the first copy stands")
	expect(t, "fin", b.tcp(false, FIN|ACK, 198, 507, ""), "10 n1>n2 tcp fin")
	expect(t, "fin retransmitted", b.tcp(false, FIN|ACK, 198, 507, ""), "again [10]")
	expect(t, "rst", b.tcp(true, RST|ACK, 507, 199, ""), "11 n2>n1 tcp rst")
	expect(t, "rst retransmitted", b.tcp(true, RST|ACK, 507, 199, ""), "again [11]")
	expect(t, "ports used again", b.tcp(false, SYN, 7777, 0, ""), "12 n1>n2 tcp syn :6379")
	s = b.tcp(false, ACK, 7778, 1, ping)
	expect(t, "message of the second generation", s, "13 n1>n2 resp PING")
	if want := "tcp 10.0.0.1:40000>10.0.0.2:6379#2"; s.New[0].Stream != want || s.New[0].Offset != 0 {
		t.Errorf("stream %s @%d, want %s @0", s.New[0].Stream, s.New[0].Offset, want)
	}
}

func TestGapIsNoted(t *testing.T) {
	b := newBench(t, Config{})
	b.tcp(false, SYN, 99, 0, "")
	b.tcp(true, SYN|ACK, 499, 100, "")
	expect(t, "behind a hole", b.tcp(false, ACK, 128, 500, ping), "")
	expect(t, "the receiver has it all", b.tcp(true, ACK, 500, 142, ""),
		"2 n1>n2 resp PING; tcp 10.0.0.1:40000>10.0.0.2:6379#1: gap: 28 bytes from offset 0 were never seen")
}

func TestDissectorIsThatOfTheServersPort(t *testing.T) {
	protos := []model.Protocol{
		{Port: 6379, Transport: "tcp", Dissector: "resp"},
		{Port: 40000, Transport: "tcp", Dissector: "text"}, // the client's port by chance
	}
	b := newBench(t, Config{Protocols: protos})
	b.tcp(false, SYN, 99, 0, "")
	expect(t, "opened by n1", b.tcp(false, ACK, 100, 1, ping), "2 n1>n2 resp PING")

	b = newBench(t, Config{Protocols: protos[:1]})
	expect(t, "start not seen, first from the server", b.tcp(true, ACK, 500, 100, "+PONG\r\n"), "1 n2>n1 resp reply unmatched")
	expect(t, "then from the client", b.tcp(false, ACK, 100, 507, ping), "2 n1>n2 resp PING")

	b = newBench(t, Config{Protocols: []model.Protocol{{Port: 1, Transport: "tcp", Dissector: "resp"}}})
	b.tcp(false, SYN, 99, 0, "")
	b.tcp(false, ACK, 100, 1, "HELLO there")
	s := b.p.Flush(time.Hour)
	if len(s.New) != 1 || !strings.HasPrefix(s.New[0].Type, "tcp data >") || s.New[0].At != time.Hour {
		t.Errorf("undeclared port: %s, want one message of the fallback", show(s))
	}
}

// TestDatagramsFromAPortAnswer: of two ports that are declared, that of the receiver
// counts, as it names the reader.
func TestDatagramsFromAPortAnswer(t *testing.T) {
	b := newBench(t, Config{Protocols: []model.Protocol{{Port: 7000, Transport: "udp", Dissector: "frames",
		Frames: &model.Framing{Type: []model.Place{{}}, Answer: &[]model.Place{{At: 1}}}}}})
	for i, c := range []struct {
		src, dst layers.UDPPort
		want     string
	}{{9, 7000, "frame 0x61"}, {7000, 9, "frame answer 0x62"}, {7000, 7000, "frame 0x61"}} {
		s := b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: c.src, DstPort: c.dst}, gopacket.Payload("ab"))
		expect(t, fmt.Sprint(c.src, " to ", c.dst), s, fmt.Sprintf("%d n1>n2 %s", i+1, c.want))
	}
}

func TestDatagrams(t *testing.T) {
	b := newBench(t, Config{})
	send := func(src, dst int, sport, dport layers.UDPPort, data string) *Result {
		return b.step("", ether(0x800), ipv4(src, dst, layers.IPProtocolUDP), &layers.UDP{SrcPort: sport, DstPort: dport}, gopacket.Payload(data))
	}
	s := send(1, 2, 7001, 7000, "gossip x=1")
	expect(t, "declared", s, "1 n1>n2 text gossip")
	if m := s.New[0]; m.Stream != "udp 10.0.0.1:7001>10.0.0.2:7000" || m.FromPort != 7001 || m.ToPort != 7000 || m.Bytes != 10 {
		t.Errorf("%+v", m)
	}
	expect(t, "the same again is a new message", send(1, 2, 7001, 7000, "gossip x=1"), "2 n1>n2 text gossip")
	expect(t, "from the declared port", send(2, 1, 7000, 9000, "ack"), "3 n2>n1 text ack")
	if s := send(2, 9, 53, 53, "ack"); len(s.New) != 1 || !strings.HasPrefix(s.New[0].Type, "udp data") || s.New[0].To != "" {
		t.Errorf("undeclared port to a stranger: %s", show(s))
	}
	frag := ipv4(1, 2, layers.IPProtocolUDP)
	frag.Flags = layers.IPv4MoreFragments
	first := b.step("", ether(0x800), frag, &layers.UDP{SrcPort: 7001, DstPort: 7000}, gopacket.Payload("gossip x=lo"))
	expect(t, "first fragment", first,
		"5 n1>n2 text gossip; frame 5: datagram is fragmented: typed by its first fragment")
	if v, _ := first.New[0].Field("incomplete"); v != "true" {
		t.Errorf("a datagram without its end: %v, want incomplete=true", first.New[0].Fields)
	}
	frag = ipv4(1, 2, layers.IPProtocolUDP)
	frag.FragOffset = 10
	expect(t, "later fragment", b.step("", ether(0x800), frag, gopacket.Payload("and the rest")), "")
}

func TestADatagramCutByTheCaptureIsIncomplete(t *testing.T) {
	b := newBench(t, Config{Variables: []model.Variable{{Name: "x", Kind: "x", MaxAge: time.Second,
		Sources: []model.VarSource{{Type: "text gossip", Field: "x"}}}}})
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, ether(0x800), ipv4(1, 2, layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 7001, DstPort: 7000}, gopacket.Payload("gossip and a long text before x=LEADER")); err != nil {
		t.Fatal(err)
	}
	data := buf.Bytes()
	if s := b.p.Read(model.Frame{Num: 1, Data: data}); len(s.Observations) != 1 || s.Observations[0].Value != "LEADER" {
		t.Errorf("whole: %v", s.Observations)
	}
	s := b.p.Read(model.Frame{Num: 2, Data: data[:len(data)-3]})
	expect(t, "cut", s, "2 n1>n2 text gossip; frame 2: truncated")
	if v, _ := s.New[0].Field("incomplete"); v != "true" || len(s.Observations) != 0 {
		t.Errorf("cut: %v shows %v, want incomplete=true and nothing", s.New[0].Fields, s.Observations)
	}
}

// What nobody taught the pipeline has some dozens of types, whatever its bytes.
func TestTypesDoNotGrowWithData(t *testing.T) {
	b := newBench(t, Config{Protocols: []model.Protocol{
		{Port: 7000, Transport: "udp", Dissector: "text"}, {Port: 7001, Transport: "udp", Dissector: "fallback"},
		{Port: 7000, Transport: "tcp", Dissector: "text"}, {Port: 7001, Transport: "tcp", Dissector: "fallback"}, {Port: 7002, Transport: "tcp", Dissector: "http"}}})
	word := func(n int) string {
		w := []byte("w")
		for ; n > 0; n /= 26 {
			w = append(w, 'a'+byte(n%26))
		}
		return string(w)
	}
	types := map[string]map[string]bool{}
	count := func(kind string, s *Result) {
		for _, m := range s.New {
			if types[kind] == nil {
				types[kind] = map[string]bool{}
			}
			types[kind][m.Type] = true
		}
	}
	for n := range 1000 {
		for _, port := range []layers.UDPPort{7000, 7001} {
			count(fmt.Sprint("udp ", int(port)), b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: 9, DstPort: port}, gopacket.Payload(word(n)+" x")))
		}
		text := map[layers.TCPPort]string{7000: word(n) + " x\n", 7001: word(n) + " x\n", 7002: "GET /" + word(n) + " HTTP/1.1\r\n\r\n"}
		for port := layers.TCPPort(7000); port <= 7002; port++ {
			for _, tcp := range []*layers.TCP{
				{SrcPort: layers.TCPPort(10000 + n), DstPort: port, Seq: 1, SYN: true},
				{SrcPort: layers.TCPPort(10000 + n), DstPort: port, Seq: 2, ACK: true, FIN: true},
			} {
				pay := gopacket.Payload("")
				if tcp.FIN {
					pay = gopacket.Payload(text[port])
				}
				count(fmt.Sprint("tcp ", int(port)), b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolTCP), tcp, pay))
			}
		}
		count("syn", b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: 5, DstPort: layers.TCPPort(20000 + n), SYN: true}))
	}
	count("flush", b.p.Flush(0))
	for kind, seen := range types {
		if len(seen) > 150 {
			t.Errorf("%s: %d types", kind, len(seen))
		}
	}
	if !types["tcp 7000"]["text wb"] || !types["tcp 7000"]["text other"] || !types["tcp 7002"]["http GET /..."] || !types["syn"]["tcp syn"] {
		t.Error("want the first words as types, and one for the rest")
	}
	expect(t, "a declared port has its own type", b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: 4, DstPort: 7000, SYN: true}),
		fmt.Sprint(b.p.number, " n1>n2 tcp syn :7000"))
}

func TestFieldsAreText(t *testing.T) {
	b := newBench(t, Config{})
	s := b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: 9, DstPort: 7000}, gopacket.Payload("say k\xff=v\xfe"))
	want := []model.Field{{Name: "text", Value: "say k\uFFFD=v\uFFFD"}, {Name: "token0", Value: "say"}, {Name: "token1", Value: "k\uFFFD=v\uFFFD"}, {Name: "k\uFFFD", Value: "v\uFFFD"}}
	if diff := cmp.Diff(want, s.New[0].Fields); diff != "" {
		t.Error(diff)
	}
}

func TestARPRequestsAreMessages(t *testing.T) {
	b := newBench(t, Config{})
	arp := func(op uint16, src, dst int) *Result {
		return b.step("", ether(0x806), &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
			HwAddressSize: 6, ProtAddressSize: 4, Operation: op, SourceHwAddress: make([]byte, 6), SourceProtAddress: ip(src).AsSlice(),
			DstHwAddress: make([]byte, 6), DstProtAddress: ip(dst).AsSlice()})
	}
	s := arp(1, 1, 2)
	expect(t, "request", s, "1 n1>n2 arp who-has")
	if s.New[0].Stream != "arp 10.0.0.1>10.0.0.2" {
		t.Errorf("stream %q", s.New[0].Stream)
	}
	expect(t, "reply", arp(2, 2, 1), "")
}

func TestNotes(t *testing.T) {
	b := newBench(t, Config{})
	expect(t, "not a frame", b.p.Read(model.Frame{Num: 1, Data: []byte{1, 2, 3}}), "frame 1: ethernet: shorter than 14 bytes")
	s := b.step("n3", ether(0x800), ipv4(1, 2, layers.IPProtocolICMPv4), gopacket.Payload{8, 0, 0, 0})
	expect(t, "another host's address", s, `frame 1: came from n3 with the source address 10.0.0.1 of "n1"`)
	expect(t, "its own", b.step("n1", ether(0x800), ipv4(1, 2, layers.IPProtocolICMPv4), gopacket.Payload{8, 0, 0, 0}), "")
}

func TestConnectionsGiveTheNumbersForResets(t *testing.T) {
	b := newBench(t, Config{})
	if got := b.p.Connections(); len(got) != 0 {
		t.Fatalf("%v at the start", got)
	}
	b.tcp(false, SYN, 99, 0, "")
	want := Connection{A: netip.AddrPortFrom(ip(1), 40000), B: netip.AddrPortFrom(ip(2), 6379), HostA: "n1", HostB: "n2", Generation: 1, NextSeqA: 100, AckedA: 100}
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff([]Connection{want}, b.p.Connections(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("after the syn")
	b.tcp(true, SYN|ACK, 499, 100, "")
	b.tcp(false, ACK, 100, 500, "")
	b.tcp(false, ACK, 100, 500, ping)
	want.Established, want.NextSeqA, want.NextSeqB, want.BeforeA, want.BeforeB, want.AckedA, want.AckedB = true, 114, 500, 100, 500, 100, 500
	check("a message held: B expects BeforeA")
	b.tcp(true, ACK, 500, 114, "+PONG\r\n")
	want.NextSeqB, want.BeforeA, want.AckedA = 507, 114, 114
	check("answered")
	// A second connection sorts by its addresses; a reset one is left out.
	b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolTCP), &layers.TCP{SrcPort: 39999, DstPort: 6379, Seq: 7, SYN: true})
	if got := b.p.Connections(); len(got) != 2 || got[0].A.Port() != 39999 {
		t.Errorf("not sorted: %v", got)
	}
	b.tcp(false, RST, 114, 0, "")
	if got := b.p.Connections(); len(got) != 1 || got[0].A.Port() != 39999 {
		t.Errorf("after the reset: %v", got)
	}
}

func TestObservationsComeWithTheirMessages(t *testing.T) {
	b := newBench(t, Config{Variables: []model.Variable{{
		Name: "greeting", Kind: "word", MaxAge: time.Second,
		Sources: []model.VarSource{{Type: "text gossip", Field: "x"}},
	}}})
	s := b.step("", ether(0x800), ipv4(1, 2, layers.IPProtocolUDP), &layers.UDP{SrcPort: 7001, DstPort: 7000}, gopacket.Payload("gossip x=1"))
	want := []model.Observation{{At: time.Millisecond, Var: model.VarRef{Name: "greeting", Node: "n1"}, Kind: "word", Value: "1", Message: 1}}
	if diff := cmp.Diff(want, s.Observations); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
	if s = b.tcp(false, SYN, 1, 0, ""); len(s.Observations) != 0 {
		t.Errorf("left over from the step before: %v", s.Observations)
	}
}

func TestNewRefuses(t *testing.T) {
	for want, protos := range map[string][]model.Protocol{
		`transport "sctp": use tcp or udp`: {{Port: 1, Transport: "sctp", Dissector: "text"}},
		`unknown dissector "nonesuch"`:     {{Port: 1, Transport: "tcp", Dissector: "nonesuch"}},
		"zookeeper reads connections":      {{Port: 1, Transport: "udp", Dissector: "zookeeper"}},
		"declared twice":                   {{Port: 1, Transport: "tcp", Dissector: "text"}, {Port: 1, Transport: "tcp", Dissector: "resp"}},
	} {
		if _, err := New(Config{Protocols: protos}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// FuzzStep steps arbitrary frames over a live connection: nothing panics, and
// numbers of messages only grow.
func FuzzStep(f *testing.F) {
	for _, c := range captures {
		for i, fr := range c.frames(f) {
			if i%400 == 3 {
				f.Add(fr.Data, fr.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := captures[0].pipeline(t, "resp")
		var last uint64
		for i, data := range [][]byte{a, b, a} {
			s := p.Read(model.Frame{Num: uint64(i + 1), Data: data})
			for _, m := range s.New {
				if m.Num != last+1 || m.Type == "" || m.Bytes < 0 {
					t.Fatalf("message %+v after number %d", m, last)
				}
				last = m.Num
			}
			for _, n := range s.Again {
				if n == 0 || n > last {
					t.Fatalf("message %d came again, there are %d", n, last)
				}
			}
		}
		p.Connections()
		p.Flush(0)
		if got := p.Connections(); len(got) != 0 {
			t.Fatalf("after Flush: %v", got)
		}
	})
}

// BenchmarkStep reports ns per frame of the Sentinel capture, whole pipeline.
func BenchmarkStep(b *testing.B) {
	frames := captures[0].frames(b)
	b.ReportAllocs()
	n := 0
	var p *Pipeline
	for b.Loop() {
		if n%len(frames) == 0 {
			p = captures[0].pipeline(b, "resp")
		}
		p.Read(frames[n%len(frames)])
		n++
	}
}
