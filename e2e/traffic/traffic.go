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

	"netsplit/flowrules"
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
	// unseen: some see what it is of and some do not, and either is right.
	unseen bool
	group  net.HardwareAddr                                 // that it goes to, with all; nil: everybody
	build  func(from, to Host) []gopacket.SerializableLayer // above Ethernet
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

// fragment is the header of a piece of a datagram (RFC 8200 §4.5); offset is in units
// of 8 bytes.
func fragment(next layers.IPProtocol, offset uint16, more byte) gopacket.Payload {
	return gopacket.Payload{byte(next), 0, byte(offset >> 5), byte(offset<<3) | more, 0, 0, 0, 7}
}

// reported is a report of who listens to what group (RFC 3810 §5.2): behind a router
// alert among hop-by-hop options.
func reported(a, b Host) []gopacket.SerializableLayer {
	ip := v6(a, b, layers.IPProtocolIPv6HopByHop)
	ip.DstIP, ip.HopLimit = net.ParseIP("ff02::16"), 1
	return stack(ip, gopacket.Payload{byte(layers.IPProtocolICMPv6), 0, 5, 2, 0, 0, 1, 0}, gopacket.Payload{143, 0, 0, 0, 0, 0, 0, 0})
}

// tagged puts VLAN tags (IEEE 802.1Q) around what build builds, the outermost first.
func tagged(build func(a, b Host) []gopacket.SerializableLayer, vids ...uint16) func(a, b Host) []gopacket.SerializableLayer {
	return func(a, b Host) []gopacket.SerializableLayer {
		out := build(a, b)
		for _, vid := range slices.Backward(vids) {
			out = append([]gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: vid, Type: typeOf(out)}}, out...)
		}
		return out
	}
}

func typeOf(above []gopacket.SerializableLayer) layers.EthernetType {
	if len(above) > 0 {
		switch above[0].(type) {
		case *layers.IPv4:
			return layers.EthernetTypeIPv4
		case *layers.IPv6:
			return layers.EthernetTypeIPv6
		case *layers.ARP:
			return layers.EthernetTypeARP
		case *layers.Dot1Q:
			return layers.EthernetTypeDot1Q
		}
	}
	return 0x1234
}

func stack(first gopacket.SerializableLayer, rest ...gopacket.SerializableLayer) []gopacket.SerializableLayer {
	return append([]gopacket.SerializableLayer{first}, rest...)
}

// allNodes is where ff02::1 is (RFC 2464 §7).
var allNodes = net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}

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
	{name: "tcp6 answer from 7000", proto: "tcp", src: 7000, dst: 40000,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(7000, 40000, "SA"))
		}},
	{name: "tcp opens 7000, first fragment", proto: "tcp", src: 40000, dst: 7000, opening: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolTCP)
			ip.Flags = layers.IPv4MoreFragments
			return stack(ip, tcp(40000, 7000, "S"))
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
	{name: "ping, later fragment", proto: "icmp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolICMPv4)
			ip.FragOffset = 100
			return stack(ip)
		}},
	{name: "udp6 to 53 of a vlan", proto: "udp", src: 40000, dst: 53,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}, 5)},
	{name: "udp to 53 of a vlan", proto: "udp", src: 40000, dst: 53,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}, 5)},
	{name: "udp6 to 53, first fragment", proto: "udp", src: 40000, dst: 53,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolIPv6Fragment), fragment(layers.IPProtocolUDP, 0, 1), udp(40000, 53))
		}},
	{name: "udp6, later fragment", proto: "udp", unseen: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolIPv6Fragment), fragment(layers.IPProtocolUDP, 100, 0))
		}},
	{name: "tcp opens 7000 of a vlan", proto: "tcp", src: 40000, dst: 7000, opening: true,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "S"))
		}, 5)},
	{name: "tcp6 to 7000 of a vlan", proto: "tcp", src: 40000, dst: 7000,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}, 5)},
	{name: "tcp under two tags", // what it is of lies too deep
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolTCP), tcp(40000, 7000, "PA"))
		}, 6, 5)},
	{name: "udp to everybody's 53 of a vlan", proto: "udp", src: 40000, dst: 53, all: true,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(40000, 53))
		}, 5)},
	{name: "ping of a vlan", proto: "icmp",
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0), Id: 1})
		}, 5)},
	{name: "ping6 of a vlan", proto: "icmp",
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(129, 0)}, gopacket.Payload{0, 1, 0, 1})
		}, 5)},
	{name: "neighbour advertisement of a vlan", proto: "arp",
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(136, a)...)
		}, 5)},
	{name: "neighbour solicitation of a vlan", proto: "arp", asks: true,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(135, b)...)
		}, 5)},
	{name: "arp request of a vlan", proto: "arp", asks: true,
		build: tagged(func(a, b Host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 1)) }, 5)},
	{name: "arp reply of a vlan", proto: "arp",
		build: tagged(func(a, b Host) []gopacket.SerializableLayer { return stack(arpLayer(a, b, 2)) }, 5)},
	{name: "echo request", proto: "icmp", // its checksum is wrong: nobody answers it
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 1})
		}},
	{name: "echo request over IPv6", proto: "icmp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(128, 0)}, gopacket.Payload{0, 1, 0, 1})
		}},
	{name: "icmp6 of a private type", proto: "icmp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(200, 0)}, gopacket.Payload{0, 1, 0, 1})
		}},
	{name: "report of groups", proto: "icmp", all: true, group: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 0x16}, build: reported},
	{name: "report of groups to one host", proto: "icmp", build: reported},
	{name: "udp to a group's 53", proto: "udp", src: 40000, dst: 53, all: true, group: net.HardwareAddr{1, 0, 0x5e, 1, 1, 1},
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v4(a, b, layers.IPProtocolUDP)
			ip.DstIP = net.IP{239, 1, 1, 1}
			return stack(ip, udp(40000, 53))
		}},
	{name: "udp6 to a group's 53", proto: "udp", src: 40000, dst: 53, all: true, group: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 0xfb},
		build: func(a, b Host) []gopacket.SerializableLayer {
			ip := v6(a, b, layers.IPProtocolUDP)
			ip.DstIP = net.ParseIP("ff02::fb")
			return stack(ip, udp(40000, 53))
		}},
	{name: "udp from 99 to everybody's 53", proto: "udp", src: 99, dst: 53, all: true,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v4(a, b, layers.IPProtocolUDP), udp(99, 53))
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
	{name: "neighbour advertisement to all", proto: "arp", all: true, group: allNodes,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(136, a)...)
		}},
	{name: "router solicitation", proto: "arp", all: true, group: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 2},
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(133, a)[0], gopacket.Payload{0, 0, 0, 0})
		}},
	{name: "router advertisement", proto: "arp", all: true, group: allNodes,
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), solicitation(134, a)[0], gopacket.Payload(make([]byte, 12)))
		}},
	{name: "redirect", proto: "arp",
		build: func(a, b Host) []gopacket.SerializableLayer {
			return stack(v6(a, b, layers.IPProtocolICMPv6), append(solicitation(137, a), gopacket.Payload(ip6(b)))...)
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

func frameOf(tb testing.TB, s sort, from, to Host) (uint32, []byte) {
	tb.Helper()
	n := last.Add(1)
	above := s.build(from, to)
	eth := &layers.Ethernet{SrcMAC: hw(from), DstMAC: hw(to), EthernetType: typeOf(above)}
	switch {
	case s.group != nil:
		eth.DstMAC = s.group
	case s.asks && slices.ContainsFunc(above, func(l gopacket.SerializableLayer) bool { _, is := l.(*layers.IPv6); return is }):
		eth.DstMAC = net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, to.Number()} // RFC 4861 §7.2.2: the solicited-node address
	case s.asks, s.all:
		eth.DstMAC = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
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

// Testbed is a network whose partitions are tried.
type Testbed struct {
	Hosts []Host
	// Cut and Heal do what they say, and return when it is so; n tells partitions
	// apart. p is as a person gives it.
	Cut   func(n int, p model.Partition)
	Heal  func(n int)
	Where flowrules.Where
	// Resets says that the effect reset can be had.
	Resets bool
	Show   func() string // what the backend holds, for messages
}

// Expect sends every sort of traffic from every host to every other and compares
// what arrives with the plain reading of the partitions.
func (b *Testbed) Expect(tb testing.TB, what string, ps ...model.Partition) {
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
				if p.unseen { // as of nothing that a partition could choose
					may = passes(sort{}, p.from.ID(), o.ID(), ps)
				}
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
func (b *Testbed) Open(tb testing.TB) bool {
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
// alone and under two others at once, at times the same one again or one that resets
// connections; healed in several orders.
func (b *Testbed) EveryShape(t *testing.T) {
	var specified, cut []model.Partition
	for _, p := range append(Shapes(t), crossing(t)...) {
		r, err := flowrules.Resolve(p, b.Where)
		if err != nil {
			t.Fatal(err)
		}
		specified, cut = append(specified, p), append(cut, r)
	}
	b.Expect(t, "nothing cut")
	for i, p := range cut {
		of := []int{i, (i + 7) % len(cut), (i + 3) % len(cut)}
		if i%4 == 2 {
			of[2] = i // the same links twice
		}
		if i >= len(Shapes(t)) { // those that cross
			of[1] = len(Shapes(t)) + (i+1-len(Shapes(t)))%2
		}
		b.Cut(3*i+1, specified[of[0]])
		b.Expect(t, p.String(), p)
		b.Cut(3*i+2, specified[of[1]])
		third := specified[of[2]]
		tcp := len(third.Only) == 0 || slices.ContainsFunc(third.Only, func(t model.Traffic) bool { return t.Proto == "tcp" })
		if b.Resets && i%2 == 0 && tcp {
			third.Effect = model.Reset
		}
		b.Cut(3*i+3, third)
		all := []model.Partition{p, cut[of[1]], cut[of[2]]}
		words := func(ps []model.Partition) (out string) {
			for _, p := range ps {
				out += p.String() + "; "
			}
			return out
		}
		b.Expect(t, words(all)+"all at once", all...)
		gone := i % 3
		b.Heal(3*i + 1 + gone)
		left := slices.Delete(slices.Clone(all), gone, gone+1)
		b.Expect(t, words(left)+"are left", left...)
		for n := range all {
			if n != gone {
				b.Heal(3*i + 1 + n)
			}
		}
		b.Expect(t, "healed", []model.Partition{}...)
	}
}

// crossing are two cuts of ports of different hosts that one datagram fits, from the
// port of the one to that of the other.
func crossing(tb testing.TB) []model.Partition {
	var out []model.Partition
	for host, port := range map[model.NodeID]string{"h1": "udp/53", "h2": "udp/99"} {
		t, err := model.ParseTraffic(port)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, model.Partition{Shape: model.Isolated, Groups: [][]model.NodeID{{host}}, Only: []model.Traffic{t}})
	}
	slices.SortFunc(out, func(a, b model.Partition) int { return strings.Compare(a.String(), b.String()) })
	return out
}
