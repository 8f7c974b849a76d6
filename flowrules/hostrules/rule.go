package hostrules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"netsplit/model"
)

// Hook is where a rule looks at packets.
type Hook string

// Hooks of nftables' netdev family.
const (
	Egress  Hook = "egress"
	Ingress Hook = "ingress"
)

// Host is one host as the rules of the others know it.
type Host struct {
	Name model.NodeID
	MAC  MAC
	IP   netip.Addr
}

// MAC is an Ethernet address.
type MAC [6]byte

// String is the address in lower-case hex with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Rule drops and counts the packets that match.
type Rule struct {
	Hook Hook       `json:"hook"`
	Link model.Link `json:"link"` // the rule cuts it
	// Only is the traffic that the rule is about; zero: all of the link.
	Only  model.Traffic `json:"only,omitzero"`
	Match Match         `json:"match"`
}

// Match is what a rule matches: a packet must fit every field that is set. One of MAC, IP
// and ARP is set.
type Match struct {
	MAC MAC        `json:"mac,omitzero"` // of the far end
	IP  netip.Addr `json:"ip,omitzero"`  // of the far end
	ARP netip.Addr `json:"arp,omitzero"` // IPv4 address that an ARP packet is about (RFC 826: ar$tpa)

	EthType uint16     `json:"ethtype,omitempty"` // 0: any
	Proto   uint8      `json:"proto,omitempty"`   // above IP; 0: any
	SrcPort uint16     `json:"sport,omitempty"`
	DstPort uint16     `json:"dport,omitempty"`
	Opening bool       `json:"opening,omitempty"` // TCP with SYN, without ACK
	ICMPv6  Neighbours `json:"icmpv6,omitempty"`  // needs Proto 58
}

// Neighbours says whether ICMPv6 is to be neighbour discovery.
type Neighbours string

// Kinds of ICMPv6.
const (
	Discovery    Neighbours = "discovery" // types 133 to 137
	NotDiscovery Neighbours = "other"
)

// Protocol numbers, the EtherType of ARP, and the ICMPv6 types of neighbour
// discovery (RFC 4443 §2.1, RFC 826, RFC 4861 §4).
const (
	ProtoICMP   uint8  = 1
	ProtoTCP    uint8  = 6
	ProtoUDP    uint8  = 17
	ProtoICMPv6 uint8  = 58
	TypeARP     uint16 = 0x0806

	FirstDiscovery, LastDiscovery uint8 = 133, 137
)

// String is the match in nft's syntax.
func (r Rule) String() string {
	m, addr := r.Match, "saddr"
	if r.Hook == Egress {
		addr = "daddr"
	}
	var p []string
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	switch {
	case m.ARP.IsValid():
		add("arp daddr ip %s", m.ARP)
	case m.IP.Is4():
		add("ip %s %s", addr, m.IP)
	case m.IP.IsValid():
		add("ip6 %s %s", addr, m.IP)
	default:
		add("ether %s %s", addr, m.MAC)
	}
	name := map[uint8]string{ProtoICMP: "icmp", ProtoTCP: "tcp", ProtoUDP: "udp", ProtoICMPv6: "ipv6-icmp"}[m.Proto]
	switch {
	case m.EthType == TypeARP:
		add("meta protocol arp")
	case m.Proto != 0:
		add("meta l4proto %s", name)
	}
	if m.SrcPort != 0 {
		add("%s sport %d", name, m.SrcPort)
	}
	if m.DstPort != 0 {
		add("%s dport %d", name, m.DstPort)
	}
	if m.Opening {
		add("tcp flags syn / syn,ack")
	}
	switch m.ICMPv6 {
	case Discovery:
		add("icmpv6 type %d-%d", FirstDiscovery, LastDiscovery)
	case NotDiscovery:
		add("icmpv6 type != %d-%d", FirstDiscovery, LastDiscovery)
	}
	return strings.Join(p, " ")
}

// Key names the rule among those of its host.
func (r Rule) Key() string { return string(r.Hook) + " " + r.String() }

// Take finds, among the rules of one host in their order, those that may drop a probe
// packet on a link. Rules know the far end by MAC, by IP address or by ARP target, and the
// packet meets one of these: Take returns the first rule of each.
func Take(rules []Rule, l model.Link, s model.ProbePacket) []Rule {
	hook := Egress
	if s.Past {
		hook = Ingress
	}
	var out []Rule
	var byMAC, byIP, byARP bool
	for _, r := range rules {
		if r.Hook != hook || r.Link != l || !r.Match.takes(s) {
			continue
		}
		by := &byMAC
		switch {
		case r.Match.ARP.IsValid():
			by = &byARP
		case r.Match.IP.IsValid():
			by = &byIP
		}
		if !*by {
			out = append(out, r)
		}
		*by = true
	}
	return out
}

// takes says whether the match fits a probe packet, whatever its sender and receiver.
func (m Match) takes(s model.ProbePacket) bool {
	arp := s.Proto == "arp" && !s.V6
	switch {
	case m.ARP.IsValid() && !arp, m.IP.IsValid() && (arp || m.IP.Is4() == s.V6):
		return false
	case s.Asks && !s.Past && !m.ARP.IsValid(): // to everybody, not to the MAC
		return false
	case m.EthType == TypeARP:
		return arp
	case m.Proto == 0:
		return true
	}
	is := Match{}
	switch {
	case arp:
		return false
	case s.Proto == "tcp":
		is.Proto, is.Opening = ProtoTCP, s.Opening
		is.SrcPort, is.DstPort = s.Ports()
	case s.Proto == "udp":
		is.Proto = ProtoUDP
		is.SrcPort, is.DstPort = s.Ports()
	case s.V6 && s.Proto == "arp":
		is.Proto, is.ICMPv6 = ProtoICMPv6, Discovery
	case s.V6:
		is.Proto, is.ICMPv6 = ProtoICMPv6, NotDiscovery
	default:
		is.Proto = ProtoICMP
	}
	return m.Proto == is.Proto && (m.SrcPort == 0 || m.SrcPort == is.SrcPort) && (m.DstPort == 0 || m.DstPort == is.DstPort) &&
		(!m.Opening || is.Opening) && (m.ICMPv6 == "" || m.ICMPv6 == is.ICMPv6)
}

// Counts says whether what the rule drops counts for a partition that cuts its link. For a
// partition of all traffic everything does. For one of some traffic, only rules count that
// drop nothing else: a wider rule does not tell what it dropped.
func (r Rule) Counts(p model.Partition) bool {
	return len(p.Only) == 0 || r.Only != model.Traffic{} &&
		slices.ContainsFunc(p.Only, func(t model.Traffic) bool { return t.Covers(r.Only) })
}
