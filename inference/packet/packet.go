package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// HostOf names the host that owns an address.
type HostOf func(netip.Addr) (model.NodeID, bool)

// Decoder decodes frames. It keeps the layers between calls so that decoding
// allocates nothing; it is not safe for concurrent use.
type Decoder struct {
	hosts HostOf
	eth   layers.Ethernet
	vlan  layers.Dot1Q
	arp   layers.ARP
	ip4   layers.IPv4
	ext   layers.IPv6ExtensionSkipper
	tcp   layers.TCP
	udp   layers.UDP
	cut   truncation
}

// truncation is the feedback gopacket's layers give while they decode.
type truncation bool

// SetTruncated implements gopacket.DecodeFeedback.
func (t *truncation) SetTruncated() { *t = true }

// NewDecoder returns a decoder that names hosts with the given function; nil
// leaves From and To empty.
func NewDecoder(hosts HostOf) *Decoder {
	if hosts == nil {
		hosts = func(netip.Addr) (model.NodeID, bool) { return "", false }
	}
	return &Decoder{hosts: hosts}
}

// Decode decodes one frame with a decoder of its own. Who decodes many keeps
// a Decoder.
func Decode(f model.Frame, hosts HostOf) model.Packet { return NewDecoder(hosts).Decode(f) }

// Decode decodes one frame. The packet's Payload is a view into f.Data.
//
// From is the host owning the source address; where no host owns it (an ARP
// probe from 0.0.0.0), the host on whose port the frame entered, if the tap
// knows it.
func (d *Decoder) Decode(f model.Frame) model.Packet {
	p := model.Packet{Frame: f.Num, At: f.At}
	d.cut = false
	d.ethernet(&p, f.Data)
	if d.cut {
		addNote(&p, "truncated")
	}
	p.From, _ = d.hosts(p.Src.Addr())
	p.To, _ = d.hosts(p.Dst.Addr())
	if p.From == "" {
		p.From = f.Host
	}
	return p
}

func addNote(p *model.Packet, s string) {
	if p.Note == "" {
		p.Note = s
		return
	}
	p.Note += "; " + s
}

// ethernetType9100 is what switches put before a second tag before IEEE 802.1ad
// gave it 0x88a8.
const ethernetType9100 layers.EthernetType = 0x9100

// uncut is the longest packet that no host leaves to its network card to cut: every
// link takes as much (RFC 791 §3.1). What is longer is no padding, either.
const uncut = 576

func (d *Decoder) ethernet(p *model.Packet, b []byte) {
	if err := d.eth.DecodeFromBytes(b, &d.cut); err != nil {
		addNote(p, "ethernet: "+err.Error())
		return
	}
	copy(p.EthDst[:], b)
	copy(p.EthSrc[:], b[6:])
	typ, rest := d.eth.EthernetType, d.eth.Payload
	for typ == layers.EthernetTypeDot1Q || typ == layers.EthernetTypeQinQ || typ == ethernetType9100 {
		if err := d.vlan.DecodeFromBytes(rest, &d.cut); err != nil {
			addNote(p, "vlan: "+err.Error())
			return
		}
		typ, rest = d.vlan.Type, d.vlan.Payload
		p.Tags = b[12 : 16+len(p.Tags)]
	}
	switch typ {
	case layers.EthernetTypeARP:
		d.decodeARP(p, rest)
	case layers.EthernetTypeIPv4:
		d.decodeIPv4(p, rest)
	case layers.EthernetTypeIPv6:
		d.decodeIPv6(p, rest)
	}
}

// decodeARP reads ARP for IPv4 over Ethernet (RFC 826). Other address sizes are
// refused before gopacket sees them: it adds them up in 8 bits.
func (d *Decoder) decodeARP(p *model.Packet, b []byte) {
	p.Proto = model.ProtoARP
	if len(b) < 28 {
		addNote(p, "arp: shorter than 28 bytes")
		return
	}
	if binary.BigEndian.Uint16(b[2:]) != uint16(layers.EthernetTypeIPv4) || b[4] != 6 || b[5] != 4 {
		addNote(p, "arp: not IPv4 over Ethernet")
		return
	}
	if err := d.arp.DecodeFromBytes(b, &d.cut); err != nil {
		addNote(p, "arp: "+err.Error())
		return
	}
	p.ARPOp = d.arp.Operation
	p.Src = netip.AddrPortFrom(addr(d.arp.SourceProtAddress), 0)
	p.Dst = netip.AddrPortFrom(addr(d.arp.DstProtAddress), 0)
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (d *Decoder) decodeIPv4(p *model.Packet, b []byte) {
	head := b
	if len(b) >= 20 {
		if b[0]>>4 != 4 {
			addNote(p, "ipv4: wrong version")
			return
		}
		// Length 0 is "up to the end" to gopacket, padding included. Only who leaves
		// the cutting into segments to the network card may say so.
		if binary.BigEndian.Uint16(b[2:]) == 0 {
			if len(b) <= uncut {
				addNote(p, "ipv4: total length 0")
				return
			}
			head = b[:min(len(b), 0xffff)] // gopacket counts in 16 bits here, too
		}
		p.Src = netip.AddrPortFrom(addr(b[12:16]), 0)
		p.Dst = netip.AddrPortFrom(addr(b[16:20]), 0)
	}
	if err := d.ip4.DecodeFromBytes(head, &d.cut); err != nil {
		addNote(p, "ipv4: "+err.Error())
		return
	}
	rest := d.ip4.Payload
	if len(head) < len(b) {
		rest = b[4*int(d.ip4.IHL):]
	}
	p.Fragment = d.ip4.Flags&layers.IPv4MoreFragments != 0 || d.ip4.FragOffset != 0
	if d.ip4.FragOffset != 0 {
		return // no ports in it, and its bytes belong to a packet we do not have
	}
	d.transport(p, d.ip4.Protocol, rest)
}

// decodeIPv6 reads the fixed header itself (RFC 8200 §3): gopacket counts the
// hop-by-hop header twice and then takes padding for payload.
func (d *Decoder) decodeIPv6(p *model.Packet, b []byte) {
	if len(b) < 40 {
		d.cut = true
		addNote(p, "ipv6: shorter than 40 bytes")
		return
	}
	if b[0]>>4 != 6 {
		addNote(p, "ipv6: wrong version")
		return
	}
	p.Src = netip.AddrPortFrom(addr(b[8:24]), 0)
	p.Dst = netip.AddrPortFrom(addr(b[24:40]), 0)
	n, next, rest := int(binary.BigEndian.Uint16(b[4:])), layers.IPProtocol(b[6]), b[40:]
	switch {
	case n > len(rest):
		d.cut = true
	case n == 0 && len(b) > uncut: // a jumbogram (RFC 2675), or left to the network card to cut
	default:
		rest = rest[:n]
	}
	for {
		switch next {
		case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Destination:
			if err := d.ext.DecodeFromBytes(rest, &d.cut); err != nil {
				addNote(p, "ipv6: "+err.Error())
				return
			}
			next, rest = d.ext.NextHeader, d.ext.Payload
		case layers.IPProtocolIPv6Fragment: // RFC 8200 §4.5: 8 bytes
			if len(rest) < 8 {
				d.cut = true
				addNote(p, "ipv6: fragment header shorter than 8 bytes")
				return
			}
			offset := binary.BigEndian.Uint16(rest[2:])
			p.Fragment = p.Fragment || offset&0xfff9 != 0 // offset 0 and last: an atomic fragment, whole
			if offset&0xfff8 != 0 {
				return
			}
			next, rest = layers.IPProtocol(rest[0]), rest[8:]
		default:
			d.transport(p, next, rest)
			return
		}
	}
}

func (d *Decoder) transport(p *model.Packet, proto layers.IPProtocol, b []byte) {
	switch proto {
	case layers.IPProtocolTCP:
		d.decodeTCP(p, b)
	case layers.IPProtocolUDP:
		d.decodeUDP(p, b)
	case layers.IPProtocolICMPv4:
		p.Proto = model.ProtoICMP
	case layers.IPProtocolICMPv6:
		p.Proto = model.ProtoICMPv6
	}
}

// decodeTCP keeps the payload when only the options are malformed: a receiver
// stops reading them there and takes the segment all the same (RFC 9293
// §3.2 leaves it open; Linux tcp_parse_options does so).
func (d *Decoder) decodeTCP(p *model.Packet, b []byte) {
	d.tcp.Payload = nil
	err := d.tcp.DecodeFromBytes(b, &d.cut)
	if err != nil {
		addNote(p, "tcp: "+err.Error())
	}
	if len(b) < 20 || d.tcp.DataOffset < 5 || 4*int(d.tcp.DataOffset) > len(b) {
		return // not a segment a receiver would take
	}
	p.Proto = model.ProtoTCP
	p.Src = netip.AddrPortFrom(p.Src.Addr(), uint16(d.tcp.SrcPort))
	p.Dst = netip.AddrPortFrom(p.Dst.Addr(), uint16(d.tcp.DstPort))
	p.Seq, p.Ack, p.Window = d.tcp.Seq, d.tcp.Ack, d.tcp.Window
	p.Flags = model.TCPFlags(b[13])
	p.Payload = d.tcp.Payload
}

func (d *Decoder) decodeUDP(p *model.Packet, b []byte) {
	d.udp.Payload = nil
	if err := d.udp.DecodeFromBytes(b, &d.cut); err != nil {
		addNote(p, "udp: "+err.Error())
		return
	}
	p.Proto = model.ProtoUDP
	p.Src = netip.AddrPortFrom(p.Src.Addr(), uint16(d.udp.SrcPort))
	p.Dst = netip.AddrPortFrom(p.Dst.Addr(), uint16(d.udp.DstPort))
	p.Payload = d.udp.Payload
	if p.Fragment {
		d.cut = false // the length field counts the fragments that follow
	}
}
