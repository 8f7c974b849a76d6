// Package traffic is every sort of traffic that two hosts of a testbed may exchange,
// frame by frame, and the oracle that says which of it a partition lets pass. The
// tests of all backends use it.
package traffic

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// Marker precedes the number of a probe in a frame.
const Marker = "netsplit-probe"

// Host sends frames and remembers the probes that came.
type Host interface {
	ID() model.NodeID
	MAC() [6]byte
	IP() netip.Addr
	Number() byte // makes up addresses that no host has
	Send(tb testing.TB, frame []byte)
	Received(probe uint32) int
}

// last is the number of the last probe; those of the tests' own probes are lower.
var last atomic.Uint32

func init() { last.Store(1 << 24) }

// sort is a kind of traffic between two hosts: what a packet of it looks like,
// and the facts by which a partition may choose it.
type sort struct {
	name     string
	proto    string
	src, dst int // ports
	opening  bool
	// asks: to everybody, about one host; all: to everybody, for everybody.
	asks, all bool
	build     func(from, to Host) []gopacket.SerializableLayer // above Ethernet
}

func (s sort) is(t model.Traffic) bool {
	return s.proto == t.Proto && (t.Port == 0 || int(t.Port) == s.src || int(t.Port) == s.dst) && (!t.Opening || s.opening)
}

func hw(h Host) net.HardwareAddr {
	m := h.MAC()
	return m[:]
}

func v4(from, to Host, proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Id: 7, Protocol: proto, SrcIP: from.IP().AsSlice(), DstIP: to.IP().AsSlice()}
}

// ip6 is a global address that no host really has: their kernels stay silent.
func ip6(h Host) net.IP { return append(net.ParseIP("fd00:4e53::")[:15], h.Number()) }

func v6(from, to Host, proto layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: proto, SrcIP: ip6(from), DstIP: ip6(to)}
}

func tcp(src, dst int, flags string) *layers.TCP {
	return &layers.TCP{SrcPort: layers.TCPPort(src), DstPort: layers.TCPPort(dst), Seq: 1, Ack: 1, Window: 1000,
		SYN: strings.Contains(flags, "S"), ACK: strings.Contains(flags, "A"), PSH: strings.Contains(flags, "P")}
}

// udp has a checksum that is wrong, or the receiver would answer with our
// payload in an ICMP error.
func udp(src, dst int) *layers.UDP {
	return &layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst), Checksum: 0xbad0}
}

func solicitation(typ uint8, about Host) []gopacket.SerializableLayer {
	return []gopacket.SerializableLayer{&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)},
		gopacket.Payload(append([]byte{0, 0, 0, 0}, ip6(about)...))}
}

func stack(first gopacket.SerializableLayer, rest ...gopacket.SerializableLayer) []gopacket.SerializableLayer {
	return append([]gopacket.SerializableLayer{first}, rest...)
}

// sorts of traffic that every shape is tried with. The first fragment of a
// datagram counts as traffic of its ports; a later one has none.
var sorts = []sort{
	{name: "tcp opens 7000", proto: "tcp", src: 40000, dst: 7000, opening: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "S"))
		}},
	{name: "tcp to 7000", proto: "tcp", src: 40000, dst: 7000,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}},
	{name: "tcp answer from 7000", proto: "tcp", src: 7000, dst: 40000,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(7000, 40000, "SA"))
		}},
	{name: "tcp to 80", proto: "tcp", src: 40000, dst: 80,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 80, "PA"))
		}},
	{name: "tcp6 opens 7000", proto: "tcp", src: 40000, dst: 7000, opening: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "S"))
		}},
	{name: "tcp6 to 7000", proto: "tcp", src: 40000, dst: 7000,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}},
	{name: "udp to 53", proto: "udp", src: 40000, dst: 53,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "udp6 from 53", proto: "udp", src: 53, dst: 40000,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolUDP), udp(53, 40000))
		}},
	{name: "udp to 99", proto: "udp", src: 40000, dst: 99,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 99))
		}},
	{name: "udp to 53, first fragment", proto: "udp", src: 40000, dst: 53,
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolUDP)
			ip.Flags = layers.IPv4MoreFragments
			return stack(ip, udp(40000, 53))
		}},
	{name: "udp, later fragment", proto: "udp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolUDP)
			ip.FragOffset = 100
			return stack(ip)
		}},
	{name: "udp to 53 of a vlan", proto: "udp", src: 40000, dst: 53,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(&layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}, v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "ping", proto: "icmp", // an answer: nobody answers it
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0), Id: 1})
		}},
	{name: "ping6", proto: "icmp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(129, 0)}, gopacket.Payload{0, 1, 0, 1})
		}},
	{name: "neighbour solicitation", proto: "arp", asks: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(135, b)...)
		}},
	{name: "neighbour advertisement", proto: "arp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(136, a)...)
		}},
	{name: "arp request", proto: "arp", asks: true,
		build: func(a, b Host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 1)) }},
	{name: "arp reply", proto: "arp",
		build: func(a, b Host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 2)) }},
	{name: "udp to everybody's 53", proto: "udp", src: 40000, dst: 53, all: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "unknown type",
		build: func(a, b Host) []gopacket.SerializableLayer { return nil }},
}

func arpLayer(a, b Host, op uint16) *layers.ARP {
	return &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: hw(a), SourceProtAddress: a.IP().AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: b.IP().AsSlice()}
}

// frameOf builds a packet of the sort, with the marker and a number behind it.
func frameOf(tb testing.TB, s sort, from, to Host) (uint32, []byte) {
	tb.Helper()
	n := last.Add(1)
	above := s.build(from, to)
	eth := &layers.Ethernet{SrcMAC: hw(from), DstMAC: hw(to), EthernetType: 0x1234}
	if s.asks || s.all {
		eth.DstMAC = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	if len(above) > 0 {
		switch above[0].(type) {
		case *layers.IPv4:
			eth.EthernetType = layers.EthernetTypeIPv4
		case *layers.IPv6:
			eth.EthernetType = layers.EthernetTypeIPv6
			if s.asks { // RFC 4861 §7.2.2: the solicited-node address
				eth.DstMAC = net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, to.Number()}
			}
		case *layers.ARP:
			eth.EthernetType = layers.EthernetTypeARP
		case *layers.Dot1Q:
			eth.EthernetType = layers.EthernetTypeDot1Q
		}
	}
	above = append(above, gopacket.Payload(binary.BigEndian.AppendUint32([]byte(Marker), n)))
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, append([]gopacket.SerializableLayer{eth}, above...)...)
	if err != nil {
		tb.Fatalf("%s: %v", s.name, err)
	}
	f := buf.Bytes()
	if f[12] == 0x08 && f[13] == 0 { // only the header's: what is above is wrong on purpose
		var sum uint32
		for i := 14; i < 34; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(f[i:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(f[24:], ^uint16(sum>>16+sum))
	}
	return n, f
}

// passes is the plain reading of partitions: a packet passes if none of them
// cuts its link, or only other traffic of it.
func passes(s sort, from, to model.NodeID, ps []model.Partition) bool {
	return !slices.ContainsFunc(ps, func(p model.Partition) bool {
		return slices.Contains(p.Links(), model.Link{Src: from, Dst: to}) && (len(p.Only) == 0 || slices.ContainsFunc(p.Only, s.is))
	})
}

// Bed is a network whose partitions are tried.
type Bed struct {
	Hosts []Host
	// Cut and Heal do what they say, and return when it is so; n tells partitions
	// apart. p is as a person gives it.
	Cut   func(n int, p model.Partition)
	Heal  func(n int)
	Where model.Where
	Show  func() string // what the backend holds, for messages
}

// Expect sends every sort of traffic from every host to every other and compares
// what arrives with the plain reading of the partitions.
func (b *Bed) Expect(tb testing.TB, what string, ps ...model.Partition) {
	tb.Helper()
	type sent struct {
		sort
		from, to Host
		num      uint32
	}
	var all []sent
	for _, s := range sorts {
		for _, from := range b.Hosts {
			for _, to := range b.Hosts {
				if from != to {
					n, f := frameOf(tb, s, from, to)
					from.Send(tb, f)
					all = append(all, sent{s, from, to, n})
				}
			}
		}
	}
	wrong := func() (bad []string, wait bool) {
		for _, p := range all {
			for _, o := range b.Hosts {
				if o == p.from {
					continue
				}
				got, may := o.Received(p.num), passes(p.sort, p.from.ID(), o.ID(), ps)
				mine := o == p.to
				// An ARP request that asks for a host across the cut may be lost for all.
				must := may && (mine || p.all || p.asks && passes(p.sort, p.from.ID(), p.to.ID(), ps))
				if got > 1 || got == 1 && !may || got == 1 && !mine && !p.all && !p.asks || got == 0 && must {
					bad = append(bad, fmt.Sprintf("%s %s>%s: %s received it %d times", p.name, p.from.ID(), p.to.ID(), o.ID(), got))
					wait = wait || got == 0
				}
			}
		}
		return bad, wait
	}
	end := time.Now().Add(5 * time.Second)
	for _, wait := wrong(); wait && time.Now().Before(end); _, wait = wrong() {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(150 * time.Millisecond)
	if bad, _ := wrong(); len(bad) > 0 {
		tb.Errorf("%s: %d of %d packets are wrong:\n%s\n%s", what, len(bad), len(all), strings.Join(bad[:min(len(bad), 20)], "\n"), b.Show())
	}
}

// Open says whether a packet passes over every link now.
func (b *Bed) Open(tb testing.TB) bool {
	tb.Helper()
	type sent struct {
		to  Host
		num uint32
	}
	var all []sent
	for _, from := range b.Hosts {
		for _, to := range b.Hosts {
			if from != to {
				n, f := frameOf(tb, sorts[0], from, to)
				from.Send(tb, f)
				all = append(all, sent{to, n})
			}
		}
	}
	for end := time.Now().Add(200 * time.Millisecond); ; time.Sleep(5 * time.Millisecond) {
		if !slices.ContainsFunc(all, func(s sent) bool { return s.to.Received(s.num) == 0 }) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Labels are those that Shapes asks for: of the hosts h1 to h4 of five.
var Labels = map[model.NodeID]map[string]string{"h1": {"rack": "x"}, "h2": {"rack": "y"}, "h3": {"rack": "x"}, "h4": {"rack": "z"}}

// Leader has the role of leader in Shapes.
const Leader model.NodeID = "h2"

// Shapes are all of them over the hosts h1 to h5, whole and narrowed.
func Shapes(tb testing.TB) []model.Partition {
	one, two := [][]model.NodeID{{"h1"}}, [][]model.NodeID{{"h1"}, {"h2", "h3"}}
	only := func(words ...string) (out []model.Traffic) {
		for _, w := range words {
			t, err := model.ParseTraffic(w)
			if err != nil {
				tb.Fatal(err)
			}
			out = append(out, t)
		}
		return out
	}
	return []model.Partition{
		{Shape: model.Complete, Groups: [][]model.NodeID{{"h1", "h2"}, {"h3"}, {"h4", "h5"}}},
		{Shape: model.Partial, Groups: two},
		{Shape: model.Simplex, Groups: two},
		{Shape: model.Isolated, Groups: one},
		{Shape: model.Bridge, Groups: [][]model.NodeID{{"h3"}}},
		{Shape: model.Ring},
		{Shape: model.Split, Label: "rack"},
		{Shape: model.LeaderIn},
		{Shape: model.LeaderOut, Size: 2},
		{Shape: model.Partial, Groups: two, Only: only("tcp")},
		{Shape: model.Partial, Groups: two, Only: only("tcp/7000")},
		{Shape: model.Isolated, Groups: one, Only: only("tcp-opening")},
		{Shape: model.Simplex, Groups: two, Only: only("tcp/7000-opening", "udp/53")},
		{Shape: model.Isolated, Groups: one, Only: only("udp")},
		{Shape: model.Ring, Only: only("icmp")},
		{Shape: model.Split, Label: "rack", Only: only("arp", "udp/99")},
	}
}

// EveryShape is the oracle on real packets: each shape by name, whole and narrowed,
// alone and over another, healed in both orders.
func (b *Bed) EveryShape(t *testing.T) {
	var given, cut []model.Partition
	for _, p := range Shapes(t) {
		r, err := p.Resolve(b.Where)
		if err != nil {
			t.Fatal(err)
		}
		given, cut = append(given, p), append(cut, r)
	}
	b.Expect(t, "nothing cut")
	for i, p := range cut {
		first, second, o := 2*i+1, 2*i+2, (i+7)%len(cut)
		over := cut[o]
		b.Cut(first, given[i])
		b.Expect(t, p.String(), p)
		b.Cut(second, given[o])
		b.Expect(t, p.String()+", and "+over.String(), p, over)
		left := over
		if i%2 == 0 {
			first, second, left = second, first, p
		}
		b.Heal(first)
		b.Expect(t, "only "+left.String()+" is left", left)
		b.Heal(second)
		b.Expect(t, "healed", []model.Partition{}...)
	}
}
