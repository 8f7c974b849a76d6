package sketch

import (
	"net/netip"
	"slices"

	"netsplit/inference/packet"
)

// Ethernet types and protocol numbers (IEEE, IANA).
const (
	typeLLDP    = 0x88cc
	protoICMPv6 = 58
)

// frame is what a frame tells of who sent it.
type frame struct {
	src    [6]byte
	vlan   bool
	typ    uint16
	body   []byte // behind the Ethernet type
	own    []netip.Addr
	passed netip.Addr // source of an IP packet, which a router may have sent on
	router bool       // a router advertised itself
}

// parse reads a frame; false where it has no single sender. own are addresses
// that the sender said are its own: of ARP (RFC 826), and of neighbour discovery
// (RFC 4861 §7.1, whose hop limit of 255 says that no router sent it on).
func parse(b []byte) (frame, bool) {
	e, err := packet.ReadEthernet(b)
	f := frame{src: e.Src, vlan: len(e.Tags) > 0, typ: e.Type, body: e.Body}
	if len(b) < packet.EthernetLen || f.src[0]&1 != 0 || f.src == [6]byte{} {
		return frame{}, false
	}
	if err != nil {
		return f, true
	}
	switch f.typ {
	case packet.TypeARP:
		f.arp()
	case packet.TypeIPv4:
		if ip, _ := packet.ReadIP(f.typ, f.body); ip.Src.IsValid() {
			f.passed = ip.Src
		}
	case packet.TypeIPv6:
		f.ipv6()
	}
	f.own = slices.DeleteFunc(f.own, func(a netip.Addr) bool { return !ofOneHost(a) })
	if !ofOneHost(f.passed) || slices.Contains(f.own, f.passed) {
		f.passed = netip.Addr{}
	}
	return f, true
}

// arp: a probe has the sender's address all zero (RFC 5227 §2.1.1).
func (f *frame) arp() {
	a, err := packet.ReadARP(f.body)
	if err == nil && a.MAC == f.src { // else somebody speaks for another
		f.own = append(f.own, a.Sender)
	}
}

func (f *frame) ipv6() {
	ip, err := packet.ReadIP(f.typ, f.body)
	if !ip.Src.IsValid() {
		return
	}
	f.passed = ip.Src
	icmp := ip.Rest
	if err != nil || ip.Number != protoICMPv6 || f.body[7] != 255 || len(icmp) < 8 {
		return
	}
	switch icmp[0] {
	case 133, 135: // router and neighbour solicitation
		f.own = append(f.own, f.passed)
	case 134:
		f.own, f.router = append(f.own, f.passed), true
	case 136:
		f.own = append(f.own, f.passed)
		if len(icmp) >= 24 {
			f.own = append(f.own, netip.AddrFrom16([16]byte(icmp[8:24])))
		}
	}
}

// ofOneHost says whether an address can be a host's.
func ofOneHost(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
