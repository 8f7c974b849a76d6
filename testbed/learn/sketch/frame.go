package sketch

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Ethernet types and protocol numbers (IEEE, IANA).
const (
	typeIPv4, typeARP, typeIPv6, typeLLDP = 0x0800, 0x0806, 0x86dd, 0x88cc
	typeVLAN, typeSVLAN                   = 0x8100, 0x88a8
	protoICMPv6                           = 58
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
	if len(b) < 14 {
		return frame{}, false
	}
	f := frame{src: [6]byte(b[6:12]), typ: binary.BigEndian.Uint16(b[12:]), body: b[14:]}
	if f.src[0]&1 != 0 || f.src == [6]byte{} {
		return frame{}, false
	}
	for (f.typ == typeVLAN || f.typ == typeSVLAN) && len(f.body) >= 4 {
		f.vlan, f.typ, f.body = true, binary.BigEndian.Uint16(f.body[2:]), f.body[4:]
	}
	switch f.typ {
	case typeARP:
		f.arp()
	case typeIPv4:
		if len(f.body) >= 20 && f.body[0]>>4 == 4 {
			f.passed = addr(f.body[12:16])
		}
	case typeIPv6:
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
	b := f.body
	if len(b) < 28 || binary.BigEndian.Uint32(b) != 1<<16|typeIPv4 || b[4] != 6 || b[5] != 4 {
		return
	}
	if [6]byte(b[8:14]) == f.src { // else somebody speaks for another
		f.own = append(f.own, addr(b[14:18]))
	}
}

func (f *frame) ipv6() {
	b := f.body
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	f.passed = addr(b[8:24])
	icmp := b[40:]
	if b[6] != protoICMPv6 || b[7] != 255 || len(icmp) < 8 {
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
			f.own = append(f.own, addr(icmp[8:24]))
		}
	}
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// ofOneHost says whether an address can be a host's.
func ofOneHost(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
