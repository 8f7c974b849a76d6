package packet

import (
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

// uncut is the longest packet that no host leaves to its network card to cut: every
// link takes as much (RFC 791 §3.1). What is longer is no padding, either.
const uncut = 576

func (d *Decoder) ethernet(p *model.Packet, b []byte) {
	e, err := ReadEthernet(b)
	p.EthDst, p.EthSrc, p.Tags = e.Dst, e.Src, e.Tags
	if err != nil {
		addNote(p, err.Error())
		return
	}
	switch e.Type {
	case TypeARP:
		p.Proto = model.ProtoARP
		a, err := ReadARP(e.Body)
		if err != nil {
			addNote(p, err.Error())
			return
		}
		p.ARPOp, p.Src, p.Dst = a.Op, netip.AddrPortFrom(a.Sender, 0), netip.AddrPortFrom(a.Target, 0)
	case TypeIPv4, TypeIPv6:
		d.ip(p, e.Type, e.Body)
	}
}

// ip decodes a packet. A length of 0 is "up to the end": only who leaves the cutting
// into segments to the network card may say so (of IPv6 also RFC 2675).
func (d *Decoder) ip(p *model.Packet, typ uint16, b []byte) {
	ip, err := ReadIP(typ, b)
	open := ip.Length == 0 || typ == TypeIPv6 && ip.Length == IPv6Len
	if err == nil && ip.Length == 0 && len(b) <= uncut {
		addNote(p, "ipv4: total length 0")
		return
	}
	p.Src, p.Dst, p.Fragment = netip.AddrPortFrom(ip.Src, 0), netip.AddrPortFrom(ip.Dst, 0), ip.Fragment
	d.cut = truncation(ip.Cut)
	if err != nil {
		addNote(p, err.Error())
		return
	}
	if ip.Later {
		return // no ports in it, and its bytes belong to a packet we do not have
	}
	rest := ip.Rest
	if pad := len(b) - ip.Length; pad > 0 && !(open && len(b) > uncut) {
		rest = rest[:max(0, len(rest)-pad)]
	}
	d.transport(p, layers.IPProtocol(ip.Number), rest)
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
