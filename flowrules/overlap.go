package flowrules

import (
	"slices"

	"netsplit/model"
)

// Takes says whether p cuts a probe packet, on the links that it cuts.
func Takes(p model.Partition, s model.ProbePacket) bool {
	src, dst := s.Ports()
	return len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(t model.Traffic) bool { return t.Selects(s.Proto, src, dst, s.Opening, false) })
}

// CutsAll says whether p cuts, on a link that both cut, all that o does.
func CutsAll(p, o model.Partition) bool {
	if len(p.Only) == 0 || len(o.Only) == 0 {
		return len(p.Only) == 0
	}
	return !slices.ContainsFunc(o.Only, func(u model.Traffic) bool {
		return !slices.ContainsFunc(p.Only, func(t model.Traffic) bool { return t.Covers(u) })
	})
}

// CutsOf lists which of the traffic that p names is, on a link that both
// cut, also cut by o: all of it or some. Packets between two ports that are both named
// do not count. It lists nothing where p names none.
func CutsOf(p, o model.Partition) []model.Traffic {
	return slices.DeleteFunc(slices.Clone(p.Only), func(t model.Traffic) bool {
		return len(o.Only) > 0 && !slices.ContainsFunc(o.Only, func(u model.Traffic) bool { return meet(t, u) })
	})
}

// meet says whether some packets are of both, as far as each has one port.
func meet(t, u model.Traffic) bool {
	return t.Proto == u.Proto && (t.Port == 0 || u.Port == 0 || t.Port == u.Port)
}
