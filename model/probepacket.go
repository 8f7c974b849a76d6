package model

// ProbePacket is a packet that netsplit sends itself over a link, to show that what is
// cut does not pass and that what is healed does. It looks to switches and hosts as
// the traffic that it stands for, and means nothing to who receives it.
type ProbePacket struct {
	// Traffic that it is of. Without a port it goes to ProbePacketPort.
	Traffic
	// Asks: to everybody, about the receiver, as an ARP request; else to the
	// receiver's Ethernet address.
	Asks bool `json:"asks,omitempty"`
	// Answer: of TCP and UDP, the port is the one that it comes from.
	Answer bool `json:"answer,omitempty"`
	// V6: over IPv6, where there is a choice.
	V6 bool `json:"v6,omitempty"`
	// Past the rules of a host that drops packets itself, to meet those of the
	// receiver: broadcast.
	Past bool `json:"past,omitempty"`
}

// ProbePacketPort is where probe packets of no particular port come from and go to: discard
// (RFC 863), where nobody listens. Those of that very port have echo (RFC 862) at the
// other end.
const (
	ProbePacketPort uint16 = 9
	otherPort       uint16 = 7
)

// Types of ICMP and ICMPv6 that are for experiments (RFC 4727 §4, RFC 4443 §2.1) and
// that no host answers, and the neighbour advertisement (RFC 4861 §4.4).
const (
	ProbePacketICMP   uint8 = 253
	ProbePacketICMPv6 uint8 = 200
	ProbePacketND     uint8 = 136
)

// Ports are those of the probe packet, if it is of TCP or UDP.
func (s ProbePacket) Ports() (src, dst uint16) {
	port, other := s.Port, ProbePacketPort
	switch port {
	case 0:
		port = ProbePacketPort
	case ProbePacketPort: // the rules for what goes there and comes from there are two
		other = otherPort
	}
	if s.Answer {
		return port, other
	}
	return other, port
}

// ProbePackets stand for all that the partition cuts of a link: for each rule that may
// have to drop some of it there is one that meets that rule.
func (p Partition) ProbePackets() []ProbePacket {
	var out []ProbePacket
	add := func(s ProbePacket) {
		out = append(out, s)
		s.V6 = true
		out = append(out, s)
	}
	if len(p.Only) == 0 {
		out = append(out, ProbePacket{Traffic: Traffic{Proto: "arp"}, Asks: true})
		add(ProbePacket{Traffic: Traffic{Proto: "tcp", Port: ProbePacketPort}})
		if p.Effect == Reset { // TCP goes by rules of its own
			add(ProbePacket{Traffic: Traffic{Proto: "icmp"}})
		}
	}
	for _, t := range p.Only {
		if t.Proto == "arp" {
			out = append(out, ProbePacket{Traffic: t, Asks: true})
		}
		add(ProbePacket{Traffic: t})
		if t.Port != 0 && !t.Opening { // answers come from the service's port
			add(ProbePacket{Traffic: t, Answer: true})
		}
	}
	return out
}

// Met is what the rule that takes a probe packet has counted so far.
type Met struct {
	Rule    string // "": no rule takes it
	Packets uint64
}

// RuleDrops is what one rule has dropped for a partition.
type RuleDrops struct {
	Rule    string // its name among those of the backend
	Link    Link
	Packets uint64
	// Shared: a partition in force whose id is lower counts the same packets.
	Shared bool
}

// ByLink adds up what the rules of each link have dropped.
func ByLink(all []RuleDrops) map[Link]uint64 {
	out := map[Link]uint64{}
	for _, d := range all {
		out[d.Link] += d.Packets
	}
	return out
}
