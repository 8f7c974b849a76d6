package model

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// NodeID names a host of the testbed, as the testbed file names it.
type NodeID string

// Frame is one Ethernet frame as a tap handed it over.
type Frame struct {
	// Num numbers frames from 1 in order of arrival at netsplit, per run.
	Num uint64
	// At is the arrival time since the run started.
	At time.Duration
	// Host is the host on whose switch port the frame entered; "" if the tap
	// cannot tell (a mirror port does not).
	Host NodeID
	// To is the receiver that this copy of a frame to many is for; "" if its
	// addresses say for whom it is.
	To NodeID
	// Data is the frame from its destination MAC on, without FCS. It is only
	// valid during the call it is passed to.
	Data []byte
}

// Proto is the highest layer netsplit decodes in a packet.
type Proto uint8

// Protocols a packet can carry. ProtoOther is anything else.
const (
	ProtoOther Proto = iota
	ProtoTCP
	ProtoUDP
	ProtoICMP
	ProtoICMPv6
	ProtoARP
)

// String returns the lower-case protocol name used in message types.
func (p Proto) String() string {
	switch p {
	case ProtoTCP:
		return "tcp"
	case ProtoUDP:
		return "udp"
	case ProtoICMP:
		return "icmp"
	case ProtoICMPv6:
		return "icmpv6"
	case ProtoARP:
		return "arp"
	}
	return "other"
}

// TCPFlags are the low eight bits of the TCP flags field (RFC 9293 §3.1).
type TCPFlags uint8

// TCP flag bits.
const (
	FlagFIN TCPFlags = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
	FlagURG
)

// Packet is a decoded frame. Fields that the packet does not have are zero.
type Packet struct {
	Frame  uint64        // number of the frame
	At     time.Duration // arrival of the frame
	EthSrc [6]byte
	EthDst [6]byte
	// Tags are the VLAN tags, 4 bytes each with the type that announces them (IEEE
	// 802.1Q-2018 §9.3): a view into the frame's data.
	Tags  []byte
	Proto Proto
	// Src and Dst carry ports for TCP and UDP, port 0 otherwise. For ARP they
	// are the sender and target protocol addresses.
	Src, Dst netip.AddrPort
	// From and To are the hosts owning the addresses, "" where unknown.
	From, To NodeID

	// TCP only.
	Seq, Ack uint32
	Flags    TCPFlags
	Window   uint16

	// ARPOp is 1 for a request and 2 for a reply (RFC 826).
	ARPOp uint16
	// Fragment is set on every IP fragment; only the first carries ports.
	Fragment bool
	// Payload is the TCP or UDP payload; a view into the frame's data.
	Payload []byte
	// Note says what was wrong with the packet (truncated, bad length); ""
	// when all of it was valid.
	Note string
}

// Has reports whether all the given TCP flags are set.
func (p *Packet) Has(f TCPFlags) bool { return p.Flags&f == f }

// String is a one-line summary for logs and reports.
func (p *Packet) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s>%s", p.Proto, p.Src, p.Dst)
	if p.Proto == ProtoTCP {
		fmt.Fprintf(&b, " seq %d ack %d", p.Seq, p.Ack)
		for i, n := range []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG"} {
			if p.Flags&(1<<i) != 0 {
				b.WriteString(" " + n)
			}
		}
	}
	if len(p.Payload) > 0 {
		fmt.Fprintf(&b, " len %d", len(p.Payload))
	}
	return b.String()
}
