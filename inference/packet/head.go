package packet

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/google/gopacket/layers"
)

// Ethernet types that are read (IEEE, IANA).
const (
	TypeIPv4 = uint16(layers.EthernetTypeIPv4)
	TypeARP  = uint16(layers.EthernetTypeARP)
	TypeIPv6 = uint16(layers.EthernetTypeIPv6)
)

// Lengths of heads in bytes.
const (
	EthernetLen = 14
	ARPLen      = 28
	IPv4Len     = 20 // without options
	IPv6Len     = 40 // without extension headers
	tagLen      = 4
)

// IsTag says whether an Ethernet type announces a VLAN tag: IEEE 802.1Q's, IEEE
// 802.1ad's, and what switches used before a second tag before the latter.
func IsTag(typ uint16) bool { return typ == 0x8100 || typ == 0x88a8 || typ == 0x9100 }

// Ethernet is the head of an Ethernet frame.
type Ethernet struct {
	Dst, Src [6]byte
	Tags     []byte // VLAN tags, as in model.Packet
	Type     uint16 // behind the tags
	Body     []byte // behind the type
}

// ReadEthernet reads the head of a frame with any number of VLAN tags. Where a tag
// is cut short, the rest of the head is set.
func ReadEthernet(b []byte) (Ethernet, error) {
	if len(b) < EthernetLen {
		return Ethernet{}, errors.New("ethernet: shorter than 14 bytes")
	}
	e := Ethernet{Dst: [6]byte(b), Src: [6]byte(b[6:]), Type: binary.BigEndian.Uint16(b[12:]), Body: b[EthernetLen:]}
	for IsTag(e.Type) {
		if len(e.Body) < tagLen {
			return e, errors.New("vlan: shorter than 4 bytes")
		}
		e.Type, e.Body, e.Tags = binary.BigEndian.Uint16(e.Body[2:]), e.Body[tagLen:], b[12:16+len(e.Tags)]
	}
	return e, nil
}

// ARP is what ARP for IPv4 over Ethernet says (RFC 826).
type ARP struct {
	Op             uint16
	MAC            [6]byte // the sender's
	Sender, Target netip.Addr
}

// ReadARP reads ARP. Addresses of another kind are an error.
func ReadARP(b []byte) (ARP, error) {
	if len(b) < ARPLen {
		return ARP{}, errors.New("arp: shorter than 28 bytes")
	}
	if binary.BigEndian.Uint64(b)>>16 != 0x0001_0800_0604 {
		return ARP{}, errors.New("arp: not IPv4 over Ethernet")
	}
	return ARP{Op: binary.BigEndian.Uint16(b[6:]), MAC: [6]byte(b[8:]), Sender: addr(b[14:18]), Target: addr(b[24:28])}, nil
}

// IP is the head of an IPv4 or IPv6 packet with its options and extension headers.
type IP struct {
	Src, Dst netip.Addr
	// Number is that of the protocol above. A later fragment of IPv6 has 44: only
	// the first one tells what it is a part of.
	Number   byte
	Fragment bool   // whatever its place
	Later    bool   // a fragment that is not the first: no head of the protocol above is in it
	Length   int    // in bytes with all heads, as the packet says
	Rest     []byte // behind the heads, without padding
	Cut      bool   // the packet goes on where b ends
}

// ReadIP reads the head of a packet of Ethernet type typ. On an error Src is set if the
// addresses were read, Number only if what follows the error is of it.
func ReadIP(typ uint16, b []byte) (IP, error) {
	if typ == TypeIPv6 {
		return readIPv6(b)
	}
	return readIPv4(b)
}

// readIPv4: RFC 791 §3.1.
func readIPv4(b []byte) (IP, error) {
	if len(b) < IPv4Len {
		return IP{Cut: true}, errors.New("ipv4: shorter than 20 bytes")
	}
	if b[0]>>4 != 4 {
		return IP{}, errors.New("ipv4: wrong version")
	}
	head, place := 4*int(b[0]&15), binary.BigEndian.Uint16(b[6:])
	ip := IP{Src: addr(b[12:16]), Dst: addr(b[16:20]), Length: int(binary.BigEndian.Uint16(b[2:])),
		Fragment: place&0x3fff != 0, Later: place&0x1fff != 0}
	switch {
	case head < IPv4Len || ip.Length != 0 && ip.Length < head:
		return ip, errors.New("ipv4: wrong lengths")
	case head > len(b):
		ip.Cut = true
		return ip, errors.New("ipv4: header cut")
	}
	ip.Number, ip.Rest, ip.Cut = b[9], b[head:], ip.Length > len(b)
	return ip, nil
}

// readIPv6: RFC 8200 §3.
func readIPv6(b []byte) (IP, error) {
	if len(b) < IPv6Len {
		return IP{Cut: true}, errors.New("ipv6: shorter than 40 bytes")
	}
	if b[0]>>4 != 6 {
		return IP{}, errors.New("ipv6: wrong version")
	}
	ip := IP{Src: addr(b[8:24]), Dst: addr(b[24:40]), Number: b[6], Length: IPv6Len + int(binary.BigEndian.Uint16(b[4:])), Rest: b[IPv6Len:]}
	ip.Cut = ip.Length > len(b)
	return ip, ip.extensions()
}

// extensions passes over the extension headers of IPv6 (RFC 8200 §4, RFC 4302 §2).
func (ip *IP) extensions() error {
	for {
		n := 0
		switch ip.Number {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if len(ip.Rest) >= 2 {
				n = 8 + 8*int(ip.Rest[1])
			}
		case 51: // authentication
			if len(ip.Rest) >= 2 {
				n = 8 + 4*int(ip.Rest[1])
			}
		case 44: // fragment
			if len(ip.Rest) >= 8 {
				place := binary.BigEndian.Uint16(ip.Rest[2:])
				ip.Fragment = ip.Fragment || place&0xfff9 != 0 // offset 0 and last: an atomic fragment, whole
				if n = 8; place&0xfff8 != 0 {
					ip.Later, ip.Rest = true, nil
					return nil
				}
			}
		default:
			return nil
		}
		if n == 0 {
			ip.Cut, ip.Rest = true, nil
			return errors.New("ipv6: extension header cut")
		}
		if ip.Number = ip.Rest[0]; n > len(ip.Rest) {
			ip.Cut, ip.Rest = true, nil
			return errors.New("ipv6: extension header cut")
		}
		ip.Rest = ip.Rest[n:]
	}
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}
