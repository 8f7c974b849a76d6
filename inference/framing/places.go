package framing

import (
	"cmp"
	"slices"
)

// proportional says whether the place holds a length of what follows, or a
// number of equal parts: among messages that are alike in the other places, the
// size grows with it in proportion. Three numbers are enough where each message
// fits and the place tells little else (tellsSize): a type tells what follows.
func (t *table) proportional(offsets []offset, last offset, tellsSize bool) bool {
	type point struct{ v, size int }
	groups := map[[2]int]map[point]int{}
	rest := slices.DeleteFunc(slices.Clone(offsets), func(s offset) bool { return s == last })
	for i := range t.msgs {
		m := &t.msgs[i]
		if v := last.value(m); v >= 0 {
			key := keyOf(rest, m)
			if groups[key] == nil {
				groups[key] = map[point]int{}
			}
			groups[key][point{v, m.size}]++
		}
	}
	on, all := 0, 0
	for _, seen := range groups {
		points := make([]point, 0, len(seen))
		values, n := map[int]bool{}, 0
		for p, k := range seen {
			points = append(points, p)
			values[p.v] = true
			n += k
		}
		if len(values) < 2 {
			continue
		}
		all += n
		slices.SortFunc(points, func(a, b point) int { return cmp.Or(seen[b]-seen[a], a.v-b.v, a.size-b.size) })
		top, best := points[:min(len(points), 6)], 0
		for i, a := range top {
			for _, b := range top[:i] {
				if a.v == b.v || (a.size-b.size)%(a.v-b.v) != 0 || (a.size-b.size)/(a.v-b.v) <= 0 {
					continue
				}
				slope, fit, distinct := (a.size-b.size)/(a.v-b.v), 0, map[int]bool{}
				for p, k := range seen {
					if p.size-a.size == slope*(p.v-a.v) {
						fit += k
						distinct[p.v] = true
					}
				}
				if len(distinct) >= 4 || len(distinct) == 3 && fit == n && tellsSize || slope == 1 && (len(distinct) == 3 || len(rest) > 0) {
					best = max(best, fit)
				}
			}
		}
		on += best
	}
	return all > 0 && float64(on) >= lengthFits*float64(all)
}

// offsets are the places that may be a type: a byte, or some bits of it that
// stand together where the byte has many values that are no letters. Of bits that
// make the same types those are taken that are most of the byte.
func (t *table) offsets() []offset {
	var out []offset
	for at := range typeAt {
		if t.columns[at].skip {
			continue
		}
		var or, and byte = 0, 0xff
		var seen [256]bool
		values, printable, all := 0, 0, 0
		for i := range t.msgs {
			if at >= len(t.msgs[i].b) {
				continue
			}
			v := t.msgs[i].b[at]
			or, and = or|v, and&v
			if all++; v >= ' ' && v < 0x7f {
				printable++
			}
			if !seen[v] {
				seen[v] = true
				values++
			}
		}
		out = append(out, offset{at, 0xff})
		if values < bitsValues || float64(printable) > bitsLetters*float64(all) {
			continue
		}
		vary := or &^ and
		known := map[byte]bool{vary: true, 0: true}
		for width := 7; width > 0; width-- {
			for low := 0; low+width <= 8; low++ {
				mask := byte(1<<width-1) << low
				if !known[mask&vary] {
					known[mask&vary] = true
					out = append(out, offset{at, mask})
				}
			}
		}
	}
	return out
}

// bound says whether the place names the stream, as a sender's number does: it
// does not change along one.
func (t *table) bound(s offset) bool {
	changed, all := 0, 0
	for i, p := range t.before {
		if p < 0 {
			continue
		}
		all++
		if s.value(&t.msgs[i]) != s.value(&t.msgs[p]) {
			changed++
		}
	}
	return float64(changed) <= boundShare*float64(all)
}

// passes says whether the place counts, tells the time, or says for how long
// something has been so: its values do not come back on a stream, and they rise or
// seldom change. Bits of such a byte are no type either.
func (t *table) passes(s offset) bool {
	s.mask = 0xff
	type of struct{ flow, v int }
	seen := map[of]bool{}
	news, rises, changed := 0, 0, 0
	for i, p := range t.before {
		m := &t.msgs[i]
		v := s.value(m)
		if p >= 0 && v != s.value(&t.msgs[p]) {
			if changed++; v > s.value(&t.msgs[p]) {
				rises++
			}
			if !seen[of{m.flow, v}] {
				news++
			}
		}
		seen[of{m.flow, v}] = true
	}
	if 2*changed < 3*len(t.last) {
		rises = changed
	}
	return changed >= passesLeast && len(t.last)*passesFlows < len(t.msgs) && float64(min(news, rises)) > passesNew*float64(changed)
}
