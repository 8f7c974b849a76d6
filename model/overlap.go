package model

import "slices"

// Takes says whether the partition cuts a probe packet, on the links that it cuts.
func (p Partition) Takes(s ProbePacket) bool {
	src, dst := s.Ports()
	return len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(t Traffic) bool { return t.Selects(s.Proto, src, dst, s.Opening, false) })
}

// CutsAll says whether this partition cuts, on a link that both cut, all that o does.
func (p Partition) CutsAll(o Partition) bool {
	if len(p.Only) == 0 || len(o.Only) == 0 {
		return len(p.Only) == 0
	}
	return !slices.ContainsFunc(o.Only, func(u Traffic) bool {
		return !slices.ContainsFunc(p.Only, func(t Traffic) bool { return t.Covers(u) })
	})
}

// CutsOf lists which of the traffic that this partition names is, on a link that both
// cut, also cut by o: all of it or some. Packets between two ports that are both named
// do not count. It lists nothing where this one names none.
func (p Partition) CutsOf(o Partition) []Traffic {
	return slices.DeleteFunc(slices.Clone(p.Only), func(t Traffic) bool {
		return len(o.Only) > 0 && !slices.ContainsFunc(o.Only, t.meets)
	})
}

// meets says whether some packets are of both, as far as each has one port.
func (t Traffic) meets(u Traffic) bool {
	return t.Proto == u.Proto && (t.Port == 0 || u.Port == 0 || t.Port == u.Port)
}
