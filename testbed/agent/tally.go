package agent

import (
	"encoding/binary"
	"slices"

	"netsplit/inference/packet"
	"netsplit/model"
)

// maxPackets is how many packets an agent remembers: 19 MB once it has seen so many.
const maxPackets = 1 << 18

// arrival is one packet. Addresses are in 16-byte form, IPv4 mapped.
type arrival struct {
	at       int64 // nanoseconds since 1970
	src, dst [16]byte
	length   int32
	mac      [6]byte // the sender's
	proto    protocol
	way      way
	opening  bool   // TCP with SYN, without ACK
	bare     bool   // TCP without payload, SYN, FIN and RST: it acknowledges, or probes
	from, to uint16 // ports, 0 without
	digest   uint64 // see Digest
}

// way is to whom the frame was addressed.
type way uint8

const (
	toOther way = iota // another Ethernet address: a switch or a promiscuous device let it in
	toHost             // the device that received it (packet(7), sll_pkttype)
	toGroup            // everybody, or a multicast address: its group bit is set
)

// protocol is what model.Traffic calls Proto.
type protocol uint8

const (
	protoOther protocol = iota
	protoTCP
	protoUDP
	protoICMP
	protoARP
)

var protocolNames = [...]string{"", "tcp", "udp", "icmp", "arp"}

// wanted selects packets: of one host, to this one, of some traffic.
type wanted struct {
	sources map[[16]byte]bool  // addresses of the sender
	mac     [6]byte            // or its hardware address; zero: not known
	own     map[[16]byte]bool  // this host's
	only    []model.Traffic    // empty: everything
	like    *model.ProbePacket // nil: everything
}

func (w *wanted) has(a *arrival) bool {
	if a.mac == model.ResetMAC {
		return false // sent in its name by netsplit
	}
	if !w.sources[a.src] && (w.mac == [6]byte{} || a.mac != w.mac) {
		return false
	}
	return (len(w.only) == 0 || a.of(w.only)) && (w.like == nil || a.like(*w.like))
}

// of says whether the packet is of any of the traffic.
func (a *arrival) of(some []model.Traffic) bool {
	return slices.ContainsFunc(some, func(t model.Traffic) bool { return t.Selects(protocolNames[a.proto], a.from, a.to, a.opening, a.bare) })
}

// like says whether the packet looks like the probe packet: it has the same traffic and
// the same port at the same end, and is a broadcast if the probe packet is one.
func (a *arrival) like(s model.ProbePacket) bool {
	port := a.to
	if s.Answer {
		port = a.from
	}
	return a.of([]model.Traffic{s.Traffic}) && (s.Port == 0 || port == s.Port) && (a.way == toGroup) == (s.Asks || s.Past)
}

// Of says whether an Ethernet frame is of any of the traffic, by the same reading
// as what agents count.
func Of(frame []byte, some []model.Traffic) bool {
	a, _, ok := parse(frame)
	return ok && a.of(some)
}

// window is a time during which packets may have been missed, in nanoseconds
// since 1970, both ends included.
type window struct{ from, to int64 }

// tally remembers the last packets that arrived. It is not safe for
// concurrent use.
type tally struct {
	ring  []arrival
	next  int // where the next one goes once the ring is full
	limit int
	// since is when counting began, or the time of the youngest packet that
	// was forgotten: counts that begin before it are incomplete.
	since  int64
	missed []window
}

func (t *tally) add(a arrival) {
	if len(t.ring) < t.limit {
		t.ring = append(t.ring, a)
		return
	}
	t.since = max(t.since, t.ring[t.next].at+1)
	t.ring[t.next] = a
	t.next = (t.next + 1) % t.limit
}

// miss notes that packets may have been missed. Calls come in order of time.
func (t *tally) miss(w window) {
	if n := len(t.missed); n > 0 && (t.missed[n-1].to >= w.from || n >= 1000) {
		t.missed[n-1].to = w.to
		return
	}
	t.missed = append(t.missed, w)
}

func (t *tally) count(w wanted, from, to int64) wireCount {
	c := wireCount{Incomplete: from < t.since}
	for _, m := range t.missed {
		c.Incomplete = c.Incomplete || m.from < to && m.to >= from
	}
	for i := range t.ring {
		a := &t.ring[i]
		if a.at < from || a.at >= to || !w.has(a) {
			continue
		}
		switch {
		case w.own[a.dst] || a.way == toHost:
		case a.way == toGroup:
			if c.Group++; c.FirstGroup == 0 || a.at < c.FirstGroup {
				c.FirstGroup = a.at
			}
			continue
		default:
			continue
		}
		c.Packets++
		c.Bytes += int64(a.length)
		if c.First == 0 || a.at < c.First {
			c.First = a.at
		}
		c.Last = max(c.Last, a.at)
	}
	return c
}

// parse reads sender and receiver from the first bytes of a frame. For ARP, and for
// neighbour solicitation (RFC 4861 §4.3), the destination is the address asked for.
// payload is the number of bytes after the TCP or UDP header. ok is false for a frame
// that has no IP address or is truncated.
func parse(f []byte) (a arrival, payload int32, ok bool) {
	e, err := packet.ReadEthernet(f)
	if err != nil {
		return a, 0, false
	}
	if a.mac = e.Src; e.Dst[0]&1 != 0 {
		a.way = toGroup
	}
	switch e.Type {
	case packet.TypeIPv4, packet.TypeIPv6:
		ip, _ := packet.ReadIP(e.Type, e.Body) // what is cut behind its addresses has arrived, too
		if !ip.Src.IsValid() {
			return a, 0, false
		}
		a.src, a.dst, a.length = ip.Src.As16(), ip.Dst.As16(), packet.EthernetLen+int32(ip.Length)
		payload = a.above(ip.Number, ip.Later, ip.Rest, int32(ip.Length-(len(e.Body)-len(ip.Rest))))
		if ip.Number == 58 && len(ip.Rest) >= 24 && ip.Rest[0] == 135 {
			a.dst = [16]byte(ip.Rest[8:24])
		}
	case packet.TypeARP:
		arp, err := packet.ReadARP(e.Body)
		if err != nil {
			return a, 0, false
		}
		a.src, a.dst = arp.Sender.As16(), arp.Target.As16()
		a.length, a.proto = packet.EthernetLen+packet.ARPLen, protoARP
	default:
		return a, 0, false
	}
	return a, payload, true
}

// above notes protocol, ports and flags, from the IP protocol number and the bytes b after
// the IP header; length is how many there were on the wire. A later fragment has no ports.
// above returns how many of the bytes are TCP or UDP payload.
func (a *arrival) above(number byte, later bool, b []byte, length int32) (payload int32) {
	switch number {
	case 6:
		a.proto = protoTCP
	case 17:
		a.proto = protoUDP
	case 1:
		a.proto = protoICMP
	case 58:
		a.proto = protoICMP
		if len(b) > 0 && b[0] >= 133 && b[0] <= 137 { // RFC 4861 §4
			a.proto = protoARP
		}
	}
	if later || len(b) < 4 || a.proto != protoTCP && a.proto != protoUDP {
		return 0
	}
	a.from, a.to = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	a.opening = a.proto == protoTCP && len(b) >= 14 && b[13]&0x12 == 0x02
	switch {
	case a.proto == protoUDP:
		return length - 8 // RFC 768
	case len(b) >= 14:
		payload = length - int32(b[12]>>4)*4
		a.bare = payload <= 0 && b[13]&0x07 == 0 // FIN, SYN, RST
	}
	return payload
}
