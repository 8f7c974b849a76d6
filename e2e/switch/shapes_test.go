package ofswitch

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/campaign/fabric"
	"netsplit/model"
)

// sort is a kind of traffic between two hosts: what a packet of it looks like,
// and the facts by which a partition may choose it.
type sort struct {
	name     string
	proto    string
	src, dst int // ports
	opening  bool
	// asks: to everybody, about one host; all: to everybody, for everybody.
	asks, all bool
	build     func(from, to *host) []gopacket.SerializableLayer // above Ethernet
}

func (s sort) is(t model.Traffic) bool {
	return s.proto == t.Proto && (t.Port == 0 || int(t.Port) == s.src || int(t.Port) == s.dst) && (!t.Opening || s.opening)
}

func v4(from, to *host, proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Id: 7, Protocol: proto, SrcIP: from.ip.AsSlice(), DstIP: to.ip.AsSlice()}
}

// ip6 is a global address that no host really has: their kernels stay silent.
func ip6(h *host) net.IP { return append(net.ParseIP("fd00:4e53::")[:15], byte(h.port)) }

func v6(from, to *host, proto layers.IPProtocol) *layers.IPv6 {
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

func solicitation(typ uint8, about *host) []gopacket.SerializableLayer {
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
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "S"))
		}},
	{name: "tcp to 7000", proto: "tcp", src: 40000, dst: 7000,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}},
	{name: "tcp answer from 7000", proto: "tcp", src: 7000, dst: 40000,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(7000, 40000, "SA"))
		}},
	{name: "tcp to 80", proto: "tcp", src: 40000, dst: 80,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 80, "PA"))
		}},
	{name: "tcp6 opens 7000", proto: "tcp", src: 40000, dst: 7000, opening: true,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "S"))
		}},
	{name: "tcp6 to 7000", proto: "tcp", src: 40000, dst: 7000,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}},
	{name: "udp to 53", proto: "udp", src: 40000, dst: 53,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "udp6 from 53", proto: "udp", src: 53, dst: 40000,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolUDP), udp(53, 40000))
		}},
	{name: "udp to 99", proto: "udp", src: 40000, dst: 99,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 99))
		}},
	{name: "udp to 53, first fragment", proto: "udp", src: 40000, dst: 53,
		build: func(a, b *host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolUDP)
			ip.Flags = layers.IPv4MoreFragments
			return stack(ip, udp(40000, 53))
		}},
	{name: "udp, later fragment", proto: "udp",
		build: func(a, b *host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolUDP)
			ip.FragOffset = 100
			return stack(ip)
		}},
	{name: "udp to 53 of a vlan", proto: "udp", src: 40000, dst: 53,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(&layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}, v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "ping", proto: "icmp", // an answer: nobody answers it
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0), Id: 1})
		}},
	{name: "ping6", proto: "icmp",
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(129, 0)}, gopacket.Payload{0, 1, 0, 1})
		}},
	{name: "neighbour solicitation", proto: "arp", asks: true,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(135, b)...)
		}},
	{name: "neighbour advertisement", proto: "arp",
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(136, a)...)
		}},
	{name: "arp request", proto: "arp", asks: true,
		build: func(a, b *host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 1)) }},
	{name: "arp reply", proto: "arp",
		build: func(a, b *host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 2)) }},
	{name: "udp to everybody's 53", proto: "udp", src: 40000, dst: 53, all: true,
		build: func(a, b *host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}},
	{name: "unknown type",
		build: func(a, b *host) []gopacket.SerializableLayer { return nil }},
}

func arpLayer(a, b *host, op uint16) *layers.ARP {
	return &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: a.mac[:], SourceProtAddress: a.ip.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: b.ip.AsSlice()}
}

// frameOf builds a packet of the sort, with the marker and a number behind it.
func frameOf(tb testing.TB, s sort, from, to *host) (uint32, []byte) {
	tb.Helper()
	n := lastProbe.Add(1)
	above := s.build(from, to)
	eth := &layers.Ethernet{SrcMAC: from.mac[:], DstMAC: to.mac[:], EthernetType: 0x1234}
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
				eth.DstMAC = net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, byte(to.port)}
			}
		case *layers.ARP:
			eth.EthernetType = layers.EthernetTypeARP
		case *layers.Dot1Q:
			eth.EthernetType = layers.EthernetTypeDot1Q
		}
	}
	above = append(above, gopacket.Payload(binary.BigEndian.AppendUint32([]byte(marker), n)))
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

// expectSorts sends every sort of traffic from every host to every other and
// compares what arrives with the plain reading of the partitions.
func (b *bench) expectSorts(what string, ps ...model.Partition) {
	b.tb.Helper()
	type sent struct {
		sort
		from, to *host
		num      uint32
	}
	var all []sent
	for _, s := range sorts {
		for _, from := range b.hosts {
			for _, to := range b.hosts {
				if from != to {
					n, f := frameOf(b.tb, s, from, to)
					from.send(b.tb, f)
					all = append(all, sent{s, from, to, n})
				}
			}
		}
	}
	wrong := func() (bad []string, wait bool) {
		for _, p := range all {
			for _, o := range b.hosts {
				if o == p.from {
					continue
				}
				got, may := o.received(p.num), passes(p.sort, p.from.id, o.id, ps)
				mine := o == p.to
				// An ARP request that asks for a host across the cut may be lost for all.
				must := may && (mine || p.all || p.asks && passes(p.sort, p.from.id, p.to.id, ps))
				if got > 1 || got == 1 && !may || got == 1 && !mine && !p.all && !p.asks || got == 0 && must {
					bad = append(bad, fmt.Sprintf("%s %s>%s: %s received it %d times", p.name, p.from.id, p.to.id, o.id, got))
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
		b.tb.Errorf("%s: %d of %d packets are wrong:\n%s\n%s", what, len(bad), len(all), strings.Join(bad[:min(len(bad), 20)], "\n"), b.flows())
	}
}

// TestEveryShapeWithEveryTraffic is the oracle on real packets: each shape by
// name, whole and narrowed, alone and over another, healed in both orders.
func TestEveryShapeWithEveryTraffic(t *testing.T) {
	b := newBench(t, 5)
	f, _ := b.start(fabric.Config{})
	hosts := b.testbed.Names()
	where := b.testbed.Where(func(string) (model.Holders, error) {
		return model.Holders{Have: hosts[1:2], Of: hosts}, nil
	})
	where.Labels = map[model.NodeID]map[string]string{"h1": {"rack": "x"}, "h2": {"rack": "y"}, "h3": {"rack": "x"}, "h4": {"rack": "z"}}
	one, two := [][]model.NodeID{{"h1"}}, [][]model.NodeID{{"h1"}, {"h2", "h3"}}
	only := func(words ...string) (out []model.Traffic) {
		for _, w := range words {
			tr, err := model.ParseTraffic(w)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tr)
		}
		return out
	}
	var cut []model.Partition
	for _, p := range []model.Partition{
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
	} {
		r, err := p.Resolve(where)
		if err != nil {
			t.Fatal(err)
		}
		cut = append(cut, r)
	}
	ctx := within(t)
	b.expectSorts("nothing cut")
	for i, p := range cut {
		first, second := uint32(2*i+1), uint32(2*i+2)
		over := cut[(i+7)%len(cut)]
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			b.settled()
		}
		must(f.Cut(ctx, first, p))
		b.expectSorts(p.String(), p)
		must(f.Cut(ctx, second, over))
		b.expectSorts(p.String()+", and "+over.String(), p, over)
		left := over
		if i%2 == 0 {
			first, second, left = second, first, p
		}
		must(f.Heal(ctx, first))
		b.expectSorts("only "+left.String()+" is left", left)
		must(f.Heal(ctx, second))
		b.expectSorts("healed", []model.Partition{}...)
		ctx = within(t)
	}
}
