package agent

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/gopacket/layers"

	"netsplit/inference/packet"
	"netsplit/model"
)

// ends are where a packet comes from and goes to.
type ends struct {
	srcMAC, dstMAC net.HardwareAddr
	src, dst       netip.Addr // IPv4, or both IPv6
}

// arpExperiment is an operation that no host answers or learns from (RFC 5494 §2).
const arpExperiment = 24

// frameOf builds a probe packet. Nobody answers it, hands it to a program or learns from
// it, but for the request, which is answered:
//
//   - TCP is a reset from or to a port of which there is no connection: it is
//     discarded (RFC 9293 §3.10.7.1). What is to look like an opening is one, with a
//     wrong checksum, and is discarded for that (§3.1), as UDP is (RFC 1122 §4.1.3.4).
//   - ICMP and ARP are of types for experiments: unknown ones are discarded (RFC
//     1122 §3.2.2, RFC 4443 §2.4, RFC 826).
//   - Neighbour discovery has come through a router, and is discarded (RFC 4861 §7.1.2).
//
// Past the sender's rules goes what is broadcast: those leave it to the receivers to
// drop that, by the same rules as what is for them alone. ARP for the receiver would
// not pass them, so it is about nobody but the sender then.
func frameOf(s model.ProbePacket, e ends) ([]byte, error) {
	eth := &layers.Ethernet{SrcMAC: e.srcMAC, DstMAC: e.dstMAC, EthernetType: layers.EthernetTypeIPv4}
	if s.Asks || s.Past {
		eth.DstMAC = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	if s.Proto == "arp" && !s.V6 {
		arp := &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: arpExperiment,
			SourceHwAddress: e.srcMAC, SourceProtAddress: e.src.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: e.dst.AsSlice()}
		eth.EthernetType = layers.EthernetTypeARP
		if s.Asks {
			arp.Operation = layers.ARPRequest
		}
		if s.Past {
			arp.DstProtAddress = arp.SourceProtAddress
		}
		return packet.Make(eth, arp)
	}
	src, dst := s.Ports()
	var above packet.Above
	var number layers.IPProtocol
	var rest []byte
	wrong := -1 // where the checksum is that is to be wrong, behind the IP header
	switch {
	case s.Proto == "tcp":
		above, number = &layers.TCP{SrcPort: layers.TCPPort(src), DstPort: layers.TCPPort(dst), SYN: s.Opening, RST: !s.Opening}, layers.IPProtocolTCP
		if s.Opening {
			wrong = 16
		}
	case s.Proto == "udp":
		above, number, wrong = &layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst)}, layers.IPProtocolUDP, 6
	case s.V6: // ICMPv6
		typ := model.ProbePacketICMPv6
		rest = make([]byte, 4)
		if s.Proto == "arp" {
			typ, rest = model.ProbePacketND, append(rest, e.src.AsSlice()...)
		}
		above, number = &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}, layers.IPProtocolICMPv6
	case s.Proto == "icmp":
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: e.src.AsSlice(), DstIP: e.dst.AsSlice()}
		return packet.Make(eth, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(model.ProbePacketICMP, 0)})
	default:
		return nil, fmt.Errorf("no packets of %q can be sent: use tcp, udp, icmp or arp", s.Proto)
	}
	f, err := packet.MakeIP(eth.SrcMAC, eth.DstMAC, nil, e.src, e.dst, number, above, rest)
	if err == nil && wrong >= 0 {
		at := packet.EthernetLen + packet.IPv4Len + wrong
		if s.V6 {
			at = packet.EthernetLen + packet.IPv6Len + wrong
		}
		spoil(f[at:])
	}
	return f, err
}

// spoil makes a checksum wrong. One of 0 would say that there is none (RFC 768).
func spoil(sum []byte) {
	is := binary.BigEndian.Uint16(sum)
	if is++; is == 0 {
		is = 2
	}
	binary.BigEndian.PutUint16(sum, is)
}

// LinkLocal is the address that a host of that Ethernet address has, or might have
// (RFC 4291 §2.5.6, appendix A): the one in probe packets over IPv6 between hosts that the
// testbed knows by IPv4.
func LinkLocal(mac net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
}
