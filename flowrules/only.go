package flowrules

import (
	"slices"

	"netsplit/model"
)

// A partition that cuts only some traffic has drop rules that match more fields than
// those of a whole pair, at a lower priority. A broadcast of such traffic goes to the
// hosts that it still may reach. A broadcast may match two such rules at once: a datagram
// from one cut port to another. Of two rules with one priority a switch may take either.
// So a rule with a higher priority sends such a datagram where both let it go.
//
// A match on ports or TCP flags needs a switch that sees them in the first fragment of a
// datagram (Open vSwitch, once told to: OFPC_FRAG_NX_MATCH). The later fragments then
// arrive alone, and no receiver can assemble them.

// Protocol numbers and ICMPv6 types (RFC 4443 §2.1, RFC 4861 §4).
const (
	etherTypeIPv4 uint16 = 0x0800
	etherTypeIPv6 uint16 = 0x86dd
	protoICMP     uint8  = 1
	protoTCP      uint8  = 6
	protoUDP      uint8  = 17
	protoICMPv6   uint8  = 58
)

// ndTypes are the ICMPv6 types of neighbour discovery. Their rules have a higher priority
// than those of all other ICMPv6, whose types cannot be listed.
var ndTypes = []uint8{133, 134, 135, 136, 137}

// nd are the matches that together are neighbour discovery.
func nd() []Match {
	var out []Match
	for _, n := range ndTypes {
		out = append(out, Match{EthType: etherTypeIPv6, IPProto: protoICMPv6, ICMPv6: n})
	}
	return out
}

// above is what a layer's match adds to the priority.
func (m Match) above() uint16 {
	if m.ICMPv6 != 0 {
		return 1
	}
	return 0
}

func layers(t model.Traffic) []Match {
	var out []Match
	if t.Messages {
		return nil // no match can select it: the gate does, before these rules
	}
	switch t.Proto {
	case "tcp", "udp":
		m := Match{IPProto: protoTCP, Opening: t.Opening}
		if t.Proto == "udp" {
			m.IPProto = protoUDP
		}
		for _, m.EthType = range []uint16{etherTypeIPv4, etherTypeIPv6} {
			m.SrcPort, m.DstPort = 0, t.Port
			out = append(out, m)
			if t.Port != 0 && !t.Opening { // answers come from the service's port
				m.SrcPort, m.DstPort = t.Port, 0
				out = append(out, m)
			}
		}
	case "icmp":
		out = append(out, Match{EthType: etherTypeIPv4, IPProto: protoICMP}, Match{EthType: etherTypeIPv6, IPProto: protoICMPv6})
	case "arp":
		out = append(append(out, Match{EthType: etherTypeARP}), nd()...)
	}
	return out
}

// Drops says whether the rule, if it is about a link of the partition, drops traffic that
// the partition cuts.
func (r Rule) Drops(p model.Partition) bool {
	return r.Kind == KindDrop && (len(p.Only) == 0 || r.Only == model.Traffic{} ||
		slices.ContainsFunc(p.Only, func(t model.Traffic) bool { return t.Covers(r.Only) }))
}

// Takes says whether the match fits a probe packet, whatever its sender and receiver.
func (m Match) Takes(s model.ProbePacket) bool {
	if m.ARPTarget.IsValid() || s.Asks {
		return m.ARPTarget.IsValid() && s.Asks
	}
	is := Match{EthType: etherTypeIPv4}
	switch {
	case s.V6:
		is.EthType = etherTypeIPv6
	case s.Proto == "arp":
		is.EthType = etherTypeARP
	}
	switch {
	case s.Proto == "tcp":
		is.IPProto, is.Opening = protoTCP, s.Opening
		is.SrcPort, is.DstPort = s.Ports()
	case s.Proto == "udp":
		is.IPProto = protoUDP
		is.SrcPort, is.DstPort = s.Ports()
	case s.V6 && s.Proto == "arp":
		is.IPProto, is.ICMPv6 = protoICMPv6, model.ProbePacketND
	case s.V6:
		is.IPProto, is.ICMPv6 = protoICMPv6, model.ProbePacketICMPv6
	case s.Proto == "icmp":
		is.IPProto = protoICMP
	}
	return (m.EthType == 0 || m.EthType == is.EthType) && (m.IPProto == 0 || m.IPProto == is.IPProto) &&
		(m.SrcPort == 0 || m.SrcPort == is.SrcPort) && (m.DstPort == 0 || m.DstPort == is.DstPort) &&
		(!m.Opening || is.Opening) && (m.ICMPv6 == 0 || m.ICMPv6 == is.ICMPv6)
}

// Before says whether this rule takes a packet that matches both. Of rules with one
// priority a switch may take either; Before always names the same one.
func (r Rule) Before(o Rule) bool { return compareRules(r, o) < 0 }

// some is the traffic that is cut of a link, with the lowest partition id each.
type some map[model.Traffic]uint32

func (s some) add(ts []model.Traffic, id uint32) some {
	if s == nil {
		s = some{}
	}
	for _, t := range ts {
		if old, has := s[t]; !has || id < old {
			s[t] = id
		}
	}
	return s
}

// sorted lists the traffic in a fixed order.
func (s some) sorted() []model.Traffic {
	var out []model.Traffic
	for t := range s {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b model.Traffic) int {
		switch {
		case a.String() < b.String():
			return -1
		case a.String() > b.String():
			return 1
		}
		return 0
	})
	return out
}

// cuts is the lowest id of a partition that cuts t, 0 if none does.
func (s some) cuts(t model.Traffic) uint32 {
	var lowest uint32
	for o, id := range s {
		if o.Covers(t) && (lowest == 0 || id < lowest) {
			lowest = id
		}
	}
	return lowest
}

func (c *compiler) dropSome(r Rule, src, dst Host, s some, priority uint16) {
	r.Kind, r.Priority, r.HardTimeout = KindDrop, priority, c.timeout
	for _, t := range s.sorted() {
		for _, layer := range layers(t) {
			rule := r
			rule.Match, rule.Only, rule.Priority = layer, t, priority+layer.above()
			rule.Match.InPort, rule.Match.EthDst, rule.Match.EthDstMask = src.Port, dst.MAC, allOnes
			c.add(rule, s[t])
		}
		if t.Proto == "arp" {
			rule := request(r, src, dst)
			rule.Only = t
			c.add(rule, s[t])
		}
	}
}

// spare lets neighbour discovery of a link continue as r says, if rules of that priority
// cut the other ICMPv6 of the link.
func (c *compiler) spare(r Rule, src, dst Host, s some, priority uint16) {
	id := s.cuts(model.Traffic{Proto: "icmp"})
	if id == 0 || s.cuts(model.Traffic{Proto: "arp"}) != 0 {
		return
	}
	r.HardTimeout = c.timeout
	if r.Kind != KindGate {
		r.Kind = KindHold
	}
	for _, r.Match = range nd() {
		r.Priority = priority + r.Match.above()
		r.Match.InPort, r.Match.EthDst, r.Match.EthDstMask = src.Port, dst.MAC, allOnes
		c.add(r, id)
	}
}

// tcpOf is the TCP part of the traffic; no traffic named means all of it.
func tcpOf(only []model.Traffic) []model.Traffic {
	if len(only) == 0 {
		return []model.Traffic{{Proto: "tcp"}}
	}
	return slices.DeleteFunc(slices.Clone(only), func(t model.Traffic) bool { return t.Proto != "tcp" })
}

// reset adds the rules that hand TCP packets to the controller, which answers
// them; they go no further.
func (c *compiler) reset(r Rule, src, dst Host, s some) {
	r.Kind, r.Priority, r.HardTimeout, r.Do.Output = KindDrop, prioReset, c.timeout, []uint32{portController}
	for _, t := range s.sorted() {
		r.Only = t
		for _, r.Match = range layers(t) {
			r.Match.InPort, r.Match.EthDst, r.Match.EthDstMask = src.Port, dst.MAC, allOnes
			c.add(r, s[t])
		}
	}
}

// floodSome adds flood rules for host i: one for each kind of traffic that is cut to
// somebody, to the hosts that still may get it.
func (c *compiler) floodSome(i int) {
	all := some{}
	for d := range c.local() {
		all.add(c.cutSome[link{i, d}].sorted(), 1)
	}
	sorted := all.sorted()
	for _, t := range sorted {
		if t.Proto == "tcp" {
			continue // goes to one host
		}
		for _, u := range sorted {
			if t.Port != 0 && u.Port != 0 && t.Port != u.Port && u.Proto == t.Proto {
				c.floodBoth(i, t, u)
			}
		}
		priority, g := prioFloodSome, c.reach(i, t)
		if t.Port != 0 {
			priority++
		}
		for _, layer := range layers(t) {
			c.flooded(i, layer, priority+layer.above(), g)
		}
		if arp := (model.Traffic{Proto: "arp"}); t.Proto == "icmp" && all[arp] == 0 {
			nds := c.reach(i, arp)
			nds.lowest = g.lowest
			for _, layer := range nd() {
				c.flooded(i, layer, priority+layer.above(), nds)
			}
		}
	}
}

// floodBoth adds the flood rule for broadcasts of host i from the port of t to that of u:
// to the hosts to which neither is cut.
func (c *compiler) floodBoth(i int, t, u model.Traffic) {
	for _, layer := range layers(t) {
		if layer.SrcPort == t.Port {
			layer.DstPort = u.Port
			c.flooded(i, layer, prioFloodSome+2, c.reach(i, t, u))
		}
	}
}

// flooded adds the flood rule for broadcasts of host i that match a layer. The gate or the
// mirror port gets one copy for all its receivers.
func (c *compiler) flooded(i int, layer Match, priority uint16, g reached) {
	r := Rule{Kind: KindFlood, Table: TablePolicy, Priority: priority, HardTimeout: c.timeout, Match: layer, Do: Do{Output: g.ports}}
	if g.copied {
		r.Do.Output = append([]uint32{c.in.MirrorPort}, g.ports...)
	}
	if g.held {
		r.Kind = KindGate
		c.hold(&r.Do, c.hosts[i])
	}
	by := from(c.hosts[i])
	r.Match.InPort, r.Match.EthSrc, r.Match.EthSrcMask, r.Match.EthDst, r.Match.EthDstMask = by.InPort, by.EthSrc, by.EthSrcMask, group, group
	c.add(r, g.lowest)
}
