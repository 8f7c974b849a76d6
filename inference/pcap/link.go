package pcap

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket/layers"
)

// Link types (https://www.tcpdump.org/linktypes.html). gopacket v1.1.19 keeps
// them in 8 bits, which 276 does not fit.
const (
	linkNull     = 0 // BSD loopback; linkLoop has its family in network order
	linkEthernet = 1
	linkRawBSD   = 12 // DLT_RAW, as some systems write linkRaw
	linkRawOBSD  = 14
	linkRaw      = 101
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276 // what tcpdump -i any writes
)

// Lengths of the headers that are replaced.
const (
	etherHeader = 14
	nullHeader  = 4
	sllHeader   = 16
	sll2Header  = 20
)

// fileLink is the link type in the header of a pcap file
// (draft-ietf-opsawg-pcap §4): 16 bits, beside the length of a frame check
// sequence. The header has been checked.
func fileLink(head []byte) uint16 {
	if binary.BigEndian.Uint32(head)>>16 == 0xa1b2 {
		return binary.BigEndian.Uint16(head[22:])
	}
	return binary.LittleEndian.Uint16(head[20:])
}

// readable says why packets of a link cannot be read.
func readable(link uint16) error {
	switch link {
	case linkEthernet, linkRaw, linkRawBSD, linkRawOBSD, linkIPv4, linkIPv6,
		linkNull, linkLoop, linkSLL, linkSLL2:
		return nil
	}
	return fmt.Errorf("link type %d is not read (only Ethernet, raw IP, loopback and Linux cooked captures are): capture on the Ethernet interface", link)
}

// ethernet returns a packet as an Ethernet frame. Of other links the header is
// replaced: addresses that it does not tell are zero. A packet shorter than its
// header becomes an empty frame, which the decoder notes.
func ethernet(link uint16, b []byte) []byte {
	var src []byte
	var typ uint16
	var head int
	switch link {
	case linkEthernet:
		return b
	case linkNull, linkLoop: // the family, in either byte order; the packet tells it too
		head = nullHeader
	case linkSLL:
		head = sllHeader
		if len(b) >= head {
			typ, src = binary.BigEndian.Uint16(b[14:]), b[6:12]
		}
	case linkSLL2:
		head = sll2Header
		if len(b) >= head {
			typ, src = binary.BigEndian.Uint16(b), b[12:18]
		}
	}
	if len(b) < head {
		return b[:0]
	}
	b = b[head:]
	if typ == 0 && len(b) > 0 {
		switch b[0] >> 4 {
		case 4:
			typ = uint16(layers.EthernetTypeIPv4)
		case 6:
			typ = uint16(layers.EthernetTypeIPv6)
		}
	}
	out := make([]byte, etherHeader+len(b))
	copy(out[6:12], src)
	binary.BigEndian.PutUint16(out[12:], typ)
	copy(out[etherHeader:], b)
	return out
}
