package framing

import (
	"cmp"
	"slices"

	"netsplit/model"
)

const (
	correlateAt    = 32   // ids begin before it
	correlateLeast = 32   // answers by which to tell
	correlateMatch = 0.9  // of the answers repeat the id of a request before them; others answer none
	correlateFresh = 0.5  // of them have an id that the connection's answers before had not
	correlatePays  = 0.95 // of what places of their own save, that of the request must save to be taken
	correlateLook  = 4000 // messages by which most places are dismissed
)

// ids are the sizes of an id. One of eight bytes differs in its lower four, too.
var idSizes = []int{4, 2}

// pairing is a place for an id in each direction, and how well it fits.
type pairing struct {
	at, size       [2]int
	matched, fresh int
}

func (p *pairing) number(m *msg) (uint64, bool) {
	at := p.at[m.dir]
	if at+p.size[m.dir] > len(m.b) {
		return 0, false
	}
	var n uint64
	for _, c := range m.b[at : at+p.size[m.dir]] {
		n = n<<8 | uint64(c)
	}
	return n, true
}

// correlate finds the id by which an answer tells which message it answers: a
// number that differs from message to message, and that answers had from a message
// on their connection before them. It is taken if what was asked tells as much of
// an answer as any place in it; msgs have it then as asks.
func correlate(msgs []msg, l length, spots [2][]spot) *model.Correlation {
	order := make([]int, len(msgs))
	answers := 0
	for i := range msgs {
		order[i] = i
		answers += msgs[i].dir
	}
	if answers < correlateLeast || len(spots[0]) == 0 {
		return nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(msgs[a].seq, msgs[b].seq) })
	look := order[:min(len(order), correlateLook)]
	var best *pairing
	for _, size := range idSizes {
		starts := [2][]int{}
		for dir := range starts {
			for at := range correlateAt {
				if (at+size <= l.at || at >= l.end()) && freshAt(msgs, look, dir, at, size) {
					starts[dir] = append(starts[dir], at)
				}
			}
		}
		for _, p := range starts[0] {
			for _, q := range starts[1] {
				one := &pairing{at: [2]int{p, q}, size: [2]int{size, size}}
				if one.match(msgs, look, nil); best == nil || one.better(best) {
					best = one
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	labels := labelsOfRequests(msgs, spots[0])
	best.match(msgs, order, labels)
	if float64(best.matched) < correlateMatch*float64(answers) || float64(best.fresh) < correlateFresh*float64(answers) {
		return nil
	}
	if !tells(msgs, l, spots[1]) {
		return nil
	}
	place := func(dir int) model.Place { return model.Place{At: best.at[dir], Size: best.size[dir]} }
	return &model.Correlation{Request: place(0), Answer: place(1)}
}

// freshAt says whether most messages of a direction have a number at a place that
// their connection had not before.
func freshAt(msgs []msg, order []int, dir, at, size int) bool {
	p := pairing{at: [2]int{at, at}, size: [2]int{size, size}}
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
// them those with an id that no answer had. With labels each answer gets that of
// what it answers.
func (p *pairing) match(msgs []msg, order []int, labels []int) {
	type key struct {
		conn int
		id   uint64
	}
	asked, answered := map[key]int{}, map[key]bool{}
	p.matched, p.fresh = 0, 0
	for _, i := range order {
		m := &msgs[i]
		id, ok := p.number(m)
		k := key{m.conn, id}
		switch {
		case m.dir == 0 && ok:
			asked[k] = i
		case m.dir == 1:
			from, is := asked[k]
			if !ok || !is {
				if labels != nil {
					m.asks = 0
				}
				continue
			}
			p.matched++
			if !answered[k] {
				answered[k] = true
				p.fresh++
			}
			if labels != nil {
				m.asks = labels[from]
			}
		}
	}
}

// better orders places that may do: by what they match, then as people lay them out.
func (p *pairing) better(q *pairing) bool {
	aligned := func(p *pairing) int {
		n := 0
		for dir := range p.at {
			if p.at[dir]%p.size[dir] == 0 {
				n++
			}
		}
		return n
	}
	return cmp.Or(p.matched-q.matched, aligned(p)-aligned(q), p.size[0]-q.size[0], q.at[0]-p.at[0], q.at[1]-p.at[1]) > 0
}

// labelsOfRequests numbers the types of messages from 1 on.
func labelsOfRequests(msgs []msg, spots []spot) []int {
	out, known := make([]int, len(msgs)), map[[2]int]int{}
	for i := range msgs {
		key := [2]int(keyOf(spots, &msgs[i]))
		if known[key] == 0 {
			known[key] = len(known) + 1
		}
		out[i] = known[key]
	}
	return out
}

// tells says whether what was asked tells as much of the answers as their own
// places do.
func tells(msgs []msg, l length, own []spot) bool {
	var answers []msg
	for _, m := range msgs {
		if m.dir == 1 {
			answers = append(answers, m)
		}
	}
	t := newTable(sampleOf(answers, typeSample), l)
	_, total := t.cost(t.keyed(func(m *msg) [3]int { return [3]int{m.asks} }))
	saved := t.total - total
	return saved >= max(typePays*t.total, typeBits) && saved >= correlatePays*t.savedBy(own)
}
