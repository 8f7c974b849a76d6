package packet

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

var (
	macA = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	macB = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	ip4A = net.IP{10, 0, 0, 1}
	ip4B = net.IP{10, 0, 0, 2}
	ip6A = net.ParseIP("fd00::1")
	ip6B = net.ParseIP("fd00::2")
)

func hosts(a netip.Addr) (model.NodeID, bool) {
	switch a.String() {
	case "10.0.0.1", "fd00::1":
		return "n1", true
	case "10.0.0.2", "fd00::2":
		return "n2", true
	}
	return "", false
}

// build serializes layers with their lengths filled in.
func build(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, ls...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// eth is the Ethernet header as plain bytes: layers.Ethernet pads to 60.
func eth(typ uint16) gopacket.Payload {
	return binary.BigEndian.AppendUint16(append(append(gopacket.Payload{}, macB...), macA...), typ)
}

func ipv4(proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: proto, SrcIP: ip4A, DstIP: ip4B}
}

func ipv6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: ip6A, DstIP: ip6B}
}

func tcp() *layers.TCP {
	return &layers.TCP{SrcPort: 40000, DstPort: 6379, Seq: 7, Ack: 9, PSH: true, ACK: true, Window: 501,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindNop}, {OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: make([]byte, 8)}}}
}

func udp() *layers.UDP { return &layers.UDP{SrcPort: 7000, DstPort: 7001} }

func arp() *layers.ARP {
	return &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
		Operation: 1, SourceHwAddress: macA, SourceProtAddress: ip4A, DstHwAddress: make([]byte, 6), DstProtAddress: ip4B}
}

type change func([]byte) []byte

func set(at int, v ...byte) change {
	return func(b []byte) []byte { copy(b[at:], v); return b }
}

func short(n int) change { return func(b []byte) []byte { return b[:len(b)-n] } }

func pad(n int) change { return func(b []byte) []byte { return append(b, make([]byte, n)...) } }

func TestDecode(t *testing.T) {
	pay := gopacket.Payload("hello")
	frag := func(more bool, off uint16) *layers.IPv4 {
		ip := ipv4(layers.IPProtocolUDP)
		ip.FragOffset = off
		if more {
			ip.Flags = layers.IPv4MoreFragments
		}
		return ip
	}
	vlan := &layers.Dot1Q{VLANIdentifier: 42, Type: layers.EthernetTypeIPv4}
	tests := []struct {
		name   string
		ls     []gopacket.SerializableLayer
		change change
		want   string // String()
		pay    string
		note   string // contained in Note; "" means Note is empty
		frag   bool
	}{
		{"tcp", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, nil,
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"tcp over a vlan tag", []gopacket.SerializableLayer{eth(0x8100), vlan, ipv4(6), tcp(), pay}, nil,
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"vlan tag and vlan tag", []gopacket.SerializableLayer{eth(0x8100), &layers.Dot1Q{Type: 0x8100}, vlan, ipv4(6), tcp(), pay}, nil,
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"service tag and vlan tag", []gopacket.SerializableLayer{eth(0x88a8), &layers.Dot1Q{Type: 0x8100}, vlan, ipv4(6), tcp(), pay}, pad(3),
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"service tag of old and vlan tag", []gopacket.SerializableLayer{eth(0x9100), &layers.Dot1Q{Type: 0x8100}, vlan, ipv4(6), tcp(), pay}, nil,
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"second vlan tag cut", []gopacket.SerializableLayer{eth(0x8100), &layers.Dot1Q{Type: 0x8100}, gopacket.Payload{0, 1}}, nil,
			"other invalid AddrPort>invalid AddrPort", "", "vlan: ", false},
		{"tcp with ethernet padding", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp()}, pad(6),
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK", "", "", false},
		{"tcp6", []gopacket.SerializableLayer{eth(0x86dd), ipv6(6), tcp(), pay}, pad(3),
			"tcp [fd00::1]:40000>[fd00::2]:6379 seq 7 ack 9 PSH ACK len 5", "hello", "", false},
		{"udp6 behind hop-by-hop, padded", []gopacket.SerializableLayer{eth(0x86dd), ipv6(0), gopacket.Payload(append([]byte{17, 0, 1, 4, 0, 0, 0, 0},
			0x1b, 0x58, 0x1b, 0x59, 0, 0, 0, 0, 'h', 'i'))}, func(b []byte) []byte { b[14+40+8+5] = 10; return append(b, 1, 2, 3, 4, 5, 6, 7, 8, 9) },
			"udp [fd00::1]:7000>[fd00::2]:7001 len 2", "hi", "", false},
		{"udp6 first fragment", []gopacket.SerializableLayer{eth(0x86dd), ipv6(44), gopacket.Payload{17, 0, 0, 1, 0, 0, 0, 1,
			0x1b, 0x58, 0x1b, 0x59, 0x10, 0, 0, 0, 'h', 'i'}}, nil,
			"udp [fd00::1]:7000>[fd00::2]:7001 len 2", "hi", "", true},
		{"udp6 later fragment", []gopacket.SerializableLayer{eth(0x86dd), ipv6(44), gopacket.Payload{17, 0, 1, 0, 0, 0, 0, 1, 'x'}}, nil,
			"other [fd00::1]:0>[fd00::2]:0", "", "", true},
		{"udp6 atomic fragment", []gopacket.SerializableLayer{eth(0x86dd), ipv6(44), gopacket.Payload{17, 0, 0, 0, 0, 0, 0, 1,
			0x1b, 0x58, 0x1b, 0x59, 0, 10, 0, 0, 'h', 'i'}}, nil,
			"udp [fd00::1]:7000>[fd00::2]:7001 len 2", "hi", "", false},
		{"udp", []gopacket.SerializableLayer{eth(0x800), ipv4(17), udp(), pay}, pad(20),
			"udp 10.0.0.1:7000>10.0.0.2:7001 len 5", "hello", "", false},
		{"udp first fragment", []gopacket.SerializableLayer{eth(0x800), frag(true, 0), udp(), pay}, set(14+20+4, 0x10, 0),
			"udp 10.0.0.1:7000>10.0.0.2:7001 len 5", "hello", "", true},
		{"udp later fragment", []gopacket.SerializableLayer{eth(0x800), frag(false, 8), pay}, nil,
			"other 10.0.0.1:0>10.0.0.2:0", "", "", true},
		{"udp length says more than is there", []gopacket.SerializableLayer{eth(0x800), ipv4(17), udp(), pay}, set(14+20+4, 0x10, 0),
			"udp 10.0.0.1:7000>10.0.0.2:7001 len 5", "hello", "truncated", false},
		{"udp length below its header", []gopacket.SerializableLayer{eth(0x800), ipv4(17), udp(), pay}, set(14+20+4, 0, 7),
			"other 10.0.0.1:0>10.0.0.2:0", "", "udp: ", false},
		{"icmp", []gopacket.SerializableLayer{eth(0x800), ipv4(1), gopacket.Payload{8, 0, 0, 0}}, nil, "icmp 10.0.0.1:0>10.0.0.2:0", "", "", false},
		{"icmpv6", []gopacket.SerializableLayer{eth(0x86dd), ipv6(58), gopacket.Payload{128, 0, 0, 0}}, nil, "icmpv6 [fd00::1]:0>[fd00::2]:0", "", "", false},
		{"arp", []gopacket.SerializableLayer{eth(0x806), arp()}, pad(18), "arp 10.0.0.1:0>10.0.0.2:0", "", "", false},
		{"arp with long addresses", []gopacket.SerializableLayer{eth(0x806), arp()}, set(18, 255), "arp invalid AddrPort>invalid AddrPort", "", "not IPv4 over Ethernet", false},
		{"arp cut", []gopacket.SerializableLayer{eth(0x806), arp()}, short(1), "arp invalid AddrPort>invalid AddrPort", "", "arp: shorter", false},
		{"tcp payload cut by the capture", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, short(2),
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 3", "hel", "truncated", false},
		{"tcp header cut", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp()}, short(20),
			"other 10.0.0.1:0>10.0.0.2:0", "", "tcp: ", false},
		{"tcp data offset below 5", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, set(14+20+12, 0x40),
			"other 10.0.0.1:0>10.0.0.2:0", "", "tcp: ", false},
		{"tcp data offset beyond the packet", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp()}, set(14+20+12, 0xf0),
			"other 10.0.0.1:0>10.0.0.2:0", "", "tcp: ", false},
		{"tcp options malformed, payload good", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, set(14+20+21, 8, 99),
			"tcp 10.0.0.1:40000>10.0.0.2:6379 seq 7 ack 9 PSH ACK len 5", "hello", "tcp: ", false},
		{"ipv4 total length 0", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, set(16, 0, 0),
			"other invalid AddrPort>invalid AddrPort", "", "total length 0", false},
		{"ipv6 of no payload, padded", []gopacket.SerializableLayer{eth(0x86dd), ipv6(59)}, pad(6 + 4), "other [fd00::1]:0>[fd00::2]:0", "", "", false},
		{"ipv4 with version 6", []gopacket.SerializableLayer{eth(0x800), ipv4(6), tcp(), pay}, set(14, 0x65),
			"other invalid AddrPort>invalid AddrPort", "", "wrong version", false},
		{"ipv6 header cut", []gopacket.SerializableLayer{eth(0x86dd), ipv6(59)}, short(1),
			"other invalid AddrPort>invalid AddrPort", "", "ipv6: shorter", false},
		{"ethernet cut", []gopacket.SerializableLayer{eth(0x800)}, short(1), "other invalid AddrPort>invalid AddrPort", "", "ethernet: ", false},
		{"empty", []gopacket.SerializableLayer{}, nil, "other invalid AddrPort>invalid AddrPort", "", "ethernet: ", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := build(t, tt.ls...)
			if tt.change != nil {
				b = tt.change(b)
			}
			p := Decode(model.Frame{Num: 3, At: time.Second, Data: b}, hosts)
			if got := p.String(); got != tt.want {
				t.Errorf("packet\n got %s\nwant %s", got, tt.want)
			}
			if want := strings.Count(tt.name, "tag"); want > 0 && tt.note == "" && (len(p.Tags) != 4*want || !bytes.HasPrefix(b[12:], p.Tags)) {
				t.Errorf("tags % x, want %d of % x", p.Tags, want, b[:20])
			}
			if string(p.Payload) != tt.pay {
				t.Errorf("payload %q, want %q", p.Payload, tt.pay)
			}
			if tt.note == "" && p.Note != "" || !strings.Contains(p.Note, tt.note) {
				t.Errorf("note %q, want %q", p.Note, tt.note)
			}
			if p.Fragment != tt.frag {
				t.Errorf("fragment %v, want %v", p.Fragment, tt.frag)
			}
			if p.Frame != 3 || p.At != time.Second {
				t.Errorf("frame %d at %v, want 3 at 1s", p.Frame, p.At)
			}
			if p.Src.IsValid() && (p.From != "n1" || p.To != "n2") {
				t.Errorf("hosts %q>%q, want n1>n2", p.From, p.To)
			}
		})
	}
}

// Hosts hand segments to their cards that are larger than the length fields of
// IP, where Linux with BIG TCP writes 0, on IPv6 with or without the jumbo option
// (RFC 2675); and Windows writes 0 into whatever the card will cut.
func TestSegmentsWithoutALength(t *testing.T) {
	for _, n := range []int{1000, 60000, 150000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { segmentWithoutALength(t, make([]byte, n)) })
	}
}

func segmentWithoutALength(t *testing.T, pay gopacket.Payload) {
	jumbo := gopacket.Payload{6, 0, 0xc2, 4, 0, 2, 0x4a, 0x0c}
	length := func(at int) change { return set(at, 0, 0) }
	for _, tt := range []struct {
		name   string
		change change
		ls     []gopacket.SerializableLayer
	}{
		{"ipv4", length(14 + 2), []gopacket.SerializableLayer{eth(0x800), gopacket.Payload{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, tcp(), pay}},
		{"ipv4 with options", length(14 + 2), []gopacket.SerializableLayer{eth(0x800),
			gopacket.Payload{0x46, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1}, tcp(), pay}},
		{"ipv6", length(14 + 4), []gopacket.SerializableLayer{eth(0x86dd), ipv6(6), tcp(), gopacket.Payload(nil)}},
		{"ipv6 jumbogram", length(14 + 4), []gopacket.SerializableLayer{eth(0x86dd), ipv6(0), jumbo, tcp()}},
	} {
		if tt.name == "ipv6 jumbogram" && len(pay) <= 0xffff {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			b := build(t, tt.ls...)
			if strings.HasPrefix(tt.name, "ipv6") {
				b = append(b, pay...)
			}
			p := Decode(model.Frame{Data: tt.change(b)}, hosts)
			if p.Proto != model.ProtoTCP || len(p.Payload) != len(pay) || p.Note != "" {
				t.Errorf("%s, note %q; want %d bytes of tcp", p.String(), p.Note, len(pay))
			}
		})
	}
}

func TestARPFields(t *testing.T) {
	p := Decode(model.Frame{Data: build(t, eth(0x806), arp())}, nil)
	if p.ARPOp != 1 || p.EthSrc != [6]byte(macA) || p.EthDst != [6]byte(macB) {
		t.Errorf("%+v", p)
	}
}

func TestSenderOfAnAddresslessFrameIsThePortsHost(t *testing.T) {
	probe := arp()
	probe.SourceProtAddress = net.IP{0, 0, 0, 0}
	b := build(t, eth(0x806), probe)
	if p := Decode(model.Frame{Data: b, Host: "n3"}, hosts); p.From != "n3" || p.To != "n2" {
		t.Errorf("%s>%s, want n3>n2", p.From, p.To)
	}
	if p := Decode(model.Frame{Data: b}, hosts); p.From != "" {
		t.Errorf("sender %s at a mirror, want none", p.From)
	}
}

func TestEveryPrefixDecodes(t *testing.T) {
	for _, ls := range [][]gopacket.SerializableLayer{
		{eth(0x800), ipv4(6), tcp(), gopacket.Payload("hello")},
		{eth(0x86dd), ipv6(17), udp(), gopacket.Payload("hello")},
		{eth(0x806), arp()},
	} {
		b := build(t, ls...)
		for n := range b {
			if p := Decode(model.Frame{Data: b[:n:n]}, hosts); p.Note == "" {
				t.Errorf("%d of %d bytes decode without a note: %s", n, len(b), &p)
			}
		}
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	d := NewDecoder(hosts0)
	for _, b := range [][]byte{
		build(t, eth(0x800), ipv4(6), tcp(), gopacket.Payload("hello")),
		build(t, eth(0x86dd), ipv6(17), udp(), gopacket.Payload("hello")),
		build(t, eth(0x806), arp()),
	} {
		if n := testing.AllocsPerRun(100, func() { d.Decode(model.Frame{Data: b}) }); n != 0 {
			t.Errorf("%v allocations for %s", n, layers.EthernetType(uint16(b[12])<<8|uint16(b[13])))
		}
	}
}

func hosts0(netip.Addr) (model.NodeID, bool) { return "n1", true }

func FuzzDecode(f *testing.F) {
	add := func(ls ...gopacket.SerializableLayer) { f.Add(build(f, ls...)) }
	add(eth(0x800), ipv4(6), tcp(), gopacket.Payload("hello"))
	add(eth(0x8100), &layers.Dot1Q{Type: 0x86dd}, ipv6(17), udp(), gopacket.Payload("hello"))
	add(eth(0x86dd), ipv6(0), gopacket.Payload{6, 0, 1, 4, 0, 0, 0, 0})
	add(eth(0x806), arp())
	d := NewDecoder(hosts) // kept: what a frame leaves behind must not show in the next
	f.Fuzz(func(t *testing.T, b []byte) {
		p, q := d.Decode(model.Frame{Data: b}), Decode(model.Frame{Data: b}, hosts)
		if p.String() != q.String() || p.Note != q.Note || string(p.Payload) != string(q.Payload) {
			t.Fatalf("a used decoder says %s (%s), a new one %s (%s)", &p, p.Note, &q, q.Note)
		}
		if len(p.Payload) > 0 {
			lo, at := uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&p.Payload[0]))
			if at < lo || at+uintptr(len(p.Payload)) > lo+uintptr(len(b)) {
				t.Fatal("payload is not a view into the frame")
			}
			if p.Proto != model.ProtoTCP && p.Proto != model.ProtoUDP {
				t.Fatalf("payload in a packet of protocol %s", p.Proto)
			}
		}
		if (p.Proto == model.ProtoTCP || p.Proto == model.ProtoUDP) && !p.Src.Addr().IsValid() {
			t.Fatalf("%s without addresses", p.Proto)
		}
	})
}
