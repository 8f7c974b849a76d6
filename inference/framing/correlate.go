package framing

import (
	"cmp"
	"math"
	"slices"

	"netsplit/model"
)

const (
	correlateAt    = 32   // ids begin before it
	correlateLeast = 32   // answers by which to tell
	correlateMatch = 0.9  // of the answers repeat the id of a request before them; others answer none
	correlateFresh = 0.5  // of them have an id that the connection's answers before had not
	correlatePays  = 0.95 // of what places of their own save, that of the request must save to be taken
	correlateNear  = 0.8  // of what the best place of a request tells of answers, another one must tell to be the type
	correlateLook  = 4000 // messages by which most places are dismissed
)

// ids are the sizes of an id. One of eight bytes differs in its lower four, too.
var idSizes = []int{4, 2}

// pairing is a place for an id in each direction, and how well it fits.
type pairing struct {
	at             [2]int // of each direction
	size           int
	matched, fresh int
}

func (p *pairing) number(m *msg) (uint64, bool) {
	at := p.at[m.dir]
	if at+p.size > len(m.b) {
		return 0, false
	}
	var n uint64
	for _, c := range m.b[at : at+p.size] {
		n = n<<8 | uint64(c)
	}
	return n, true
}

// correlate finds the id by which an answer tells which message it answers: a
// number that differs from message to message, and that answers had from a message
// on their connection before them. The type of a request is then what tells most of
// its answer. It is taken if that is as much as any place in the answer tells; own
// are those. msgs have it then as asks.
func correlate(msgs []msg, l length, own []offset) (*model.Correlation, []offset) {
	order := make([]int, len(msgs))
	answers := 0
	for i := range msgs {
		order[i] = i
		answers += msgs[i].dir
	}
	if answers < correlateLeast {
		return nil, nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(msgs[a].seq, msgs[b].seq) })
	ids := findIDs(msgs, l, order[:min(len(order), correlateLook)])
	if ids == nil {
		return nil, nil
	}
	ids.match(msgs, order, true)
	if float64(ids.matched) < correlateMatch*float64(answers) || float64(ids.fresh) < correlateFresh*float64(answers) {
		return nil, nil
	}
	offsets := asking(msgs, l, ids, own)
	if offsets == nil {
		return nil, nil
	}
	place := func(dir int) model.Place { return model.Place{At: ids.at[dir], Size: ids.size} }
	return &model.Correlation{Request: place(0), Answer: place(1)}, offsets
}

// findIDs looks for the pair of places that fits best.
func findIDs(msgs []msg, l length, order []int) (best *pairing) {
	for _, size := range idSizes {
		starts := [2][]int{}
		for dir := range starts {
			for at := range correlateAt {
				if (at+size <= l.at || at >= l.end()) && freshAt(msgs, order, dir, at, size) {
					starts[dir] = append(starts[dir], at)
				}
			}
		}
		for _, p := range starts[0] {
			for _, q := range starts[1] {
				one := &pairing{at: [2]int{p, q}, size: size}
				if one.match(msgs, order, false); best == nil || one.better(best) {
					best = one
				}
			}
		}
	}
	return best
}

// asking chooses the places of the type of requests, two at most, by what they tell
// of the answers; nil if none tells enough.
func asking(msgs []msg, l length, ids *pairing, own []offset) []offset {
	var of [2][]msg
	for _, m := range msgs {
		of[m.dir] = append(of[m.dir], m)
	}
	requests := newTable(sampleOf(of[0], typeSample), l)
	full, look := newTable(sampleOf(of[1], typeSample), l), newTable(sampleOf(of[1], typeLook), l)
	type found struct {
		offset
		info float64
	}
	var all []found
	whole := map[int]bool{} // all of the byte will do
	for _, s := range requests.offsets() {
		if s.at >= ids.at[0] && s.at < ids.at[0]+ids.size || whole[s.at] {
			continue
		}
		if _, k := requests.labelled([]offset{s}); k < 2 || requests.bound(s) || requests.passes(s) {
			continue
		}
		whole[s.at] = whole[s.at] || s.mask == 0xff
		all = append(all, found{s, look.info(msgs, []offset{s})})
	}
	more := func(a, b found) int { return cmp.Compare(b.info, a.info) }
	slices.SortStableFunc(all, more)
	all = all[:min(len(all), typeLeft)]
	for i := range all {
		all[i].info = full.info(msgs, []offset{all[i].offset})
	}
	slices.SortStableFunc(all, more)
	if len(all) == 0 || all[0].info < max(typePays*full.total, typeBits) {
		return nil
	}
	// What tells nearly as much, and more of the requests, is more likely the type.
	one, most := all[0], math.Inf(-1)
	for _, f := range all {
		bits := f.info + max(requests.saved(requests.base, []offset{f.offset}, f.offset), 0)
		if bits *= math.Exp2(-float64(f.at) / typeFar); f.info >= correlateNear*all[0].info && bits > most {
			one, most = f, bits
		}
	}
	best, info := []offset{one.offset}, one.info
	for _, f := range all {
		if f.at == one.at {
			continue
		}
		two := []offset{one.offset, f.offset}
		slices.SortFunc(two, func(a, b offset) int { return a.at - b.at })
		if _, k := requests.labelled(two); k == 0 {
			continue
		}
		if n := full.info(msgs, two); n > info && n-one.info >= secondPays*(full.total-one.info) {
			best, info = two, n
		}
	}
	if info < correlatePays*full.savedBy(own) {
		return nil
	}
	return best
}

// info is how many bits of answers the type of what they answer saves.
func (t *table) info(msgs []msg, offsets []offset) float64 {
	_, total := t.cost(t.keyed(func(m *msg) [3]int {
		if m.asks == 0 {
			return [3]int{}
		}
		key := keyOf(offsets, &msgs[m.asks-1])
		return [3]int{1, key[0], key[1]}
	}))
	return t.total - total
}

// freshAt says whether most messages of a direction have a number at a place that
// their connection had not before.
func freshAt(msgs []msg, order []int, dir, at, size int) bool {
	p := pairing{at: [2]int{at, at}, size: size}
	type key struct {
		conn int
		id   uint64
	}
	seen, all := map[key]bool{}, 0
	for _, i := range order {
		if m := &msgs[i]; m.dir == dir {
			all++
			if id, ok := p.number(m); ok {
				seen[key{m.conn, id}] = true
			}
		}
	}
	return all > 0 && float64(len(seen)) >= correlateFresh*float64(all)
}

// match counts the answers that repeat the id of a message before them, and of
// them those with an id that no answer had. Where it is to be noted they get it as
// asks.
func (p *pairing) match(msgs []msg, order []int, note bool) {
	type key struct {
		conn int
		id   uint64
	}
	requested, answered := map[key]int{}, map[key]bool{}
	p.matched, p.fresh = 0, 0
	for _, i := range order {
		m := &msgs[i]
		id, ok := p.number(m)
		if !ok {
			continue
		}
		k := key{m.conn, id}
		if m.dir == 0 {
			requested[k] = i
			continue
		}
		from, is := requested[k]
		if !is {
			continue
		}
		p.matched++
		if !answered[k] {
			answered[k] = true
			p.fresh++
		}
		if note {
			m.asks = from + 1
		}
	}
}

// better orders places that may do: by what they match, then as people lay them out.
func (p *pairing) better(q *pairing) bool {
	aligned := func(p *pairing) int {
		n := 0
		for dir := range p.at {
			if p.at[dir]%p.size == 0 {
				n++
			}
		}
		return n
	}
	return cmp.Or(p.matched-q.matched, aligned(p)-aligned(q), p.size-q.size, q.at[0]-p.at[0], q.at[1]-p.at[1]) > 0
}
