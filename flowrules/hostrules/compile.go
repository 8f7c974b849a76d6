package hostrules

import (
	"cmp"
	"slices"

	"netsplit/model"
)

// Compile lists the rules of one host for the partitions in force, in the order in which
// the host must try them: the most specific rule that fits counts the packet.
func Compile(self model.NodeID, hosts []Host, ps []model.Partition) []Rule {
	whole, some := map[model.Link]bool{}, map[model.Link][]model.Traffic{}
	for _, p := range ps {
		for _, l := range p.Links() {
			if l.Src != self && l.Dst != self {
				continue
			}
			whole[l] = whole[l] || len(p.Only) == 0
			some[l] = append(some[l], p.Only...)
		}
	}
	var out []Rule
	for _, h := range hosts {
		for _, r := range []Rule{
			{Hook: Egress, Link: model.Link{Src: self, Dst: h.Name}},
			{Hook: Ingress, Link: model.Link{Src: h.Name, Dst: self}},
		} {
			ts := some[r.Link]
			slices.SortFunc(ts, special)
			for _, t := range slices.Compact(ts) {
				r.Only = t
				for _, m := range layers(t) {
					out = append(out, drop(r, h, m)...)
				}
			}
			if whole[r.Link] { // after those, which count for their partitions
				r.Only = model.Traffic{}
				out = append(out, drop(r, h, Match{})...)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Rule) int { return cmp.Compare(a.Hook, b.Hook) })
	return out
}

// special orders traffic, the most specific first.
func special(a, b model.Traffic) int {
	return cmp.Or(cmp.Compare(a.Proto, b.Proto), model.FalseFirst(a.Port == 0, b.Port == 0), cmp.Compare(a.Port, b.Port), model.FalseFirst(!a.Opening, !b.Opening))
}

// drop are the rules that cut the link of r for packets that fit m. h is the far end: there
// is one rule for each way to recognise it.
func drop(r Rule, h Host, m Match) []Rule {
	var out []Rule
	add := func(m Match) {
		r.Match = m
		out = append(out, r)
	}
	mac := m
	mac.MAC = h.MAC
	add(mac)
	// No packet has an ICMP version and an address of different families, or is ARP and IP.
	if ip := m; m.EthType == 0 && !(h.IP.Is4() && m.Proto == ProtoICMPv6) && !(!h.IP.Is4() && m.Proto == ProtoICMP) {
		ip.IP = h.IP
		add(ip)
	}
	if arp := (Match{ARP: h.IP}); r.Hook == Egress && h.IP.Is4() && (m == Match{} || m.EthType == TypeARP) {
		add(arp)
	}
	return out
}

// layers are the matches, without the far end, that together select the traffic.
func layers(t model.Traffic) []Match {
	switch t.Proto {
	case "tcp", "udp":
		m := Match{Proto: ProtoTCP, Opening: t.Opening}
		if t.Proto == "udp" {
			m.Proto = ProtoUDP
		}
		m.DstPort = t.Port
		out := []Match{m}
		if t.Port != 0 && !t.Opening { // answers come from the service's port
			m.SrcPort, m.DstPort = t.Port, 0
			out = append(out, m)
		}
		return out
	case "icmp":
		return []Match{{Proto: ProtoICMP}, {Proto: ProtoICMPv6, ICMPv6: NotDiscovery}}
	case "arp":
		return []Match{{EthType: TypeARP}, {Proto: ProtoICMPv6, ICMPv6: Discovery}}
	}
	return nil
}
