package framing

import (
	"cmp"
	"slices"
)

const (
	sampleFlows = 32       // looked at to see which lengths may be right
	sampleBytes = 64 << 10 // of each
	sampleVotes = 2000     // pairs of packets' ends that say what a length does not count
	sampleShare = 0.95     // of the sample's bytes in messages: worth a look at all
	plusTried   = 4        // the commonest differences between a number and where a packet ends
	finalists   = 48
	allTries    = 1 << 20 // for looking for where messages begin
)

// What a length must do to be suggested. Most of what is false fails all of
// them; what is true passes them by far.
const (
	wantShare    = 0.99 // of the bytes in messages
	wantBits     = 64   // more than all places tried could reach by chance
	wantMessages = 16
	wantTurns    = 0.8  // of the turns come where a message ends
	foreignMost  = 0.15 // of the bytes in connections of another protocol
	wantNarrow   = 0.95 // the same for lengths of a byte: every byte is one
)

// search finds the length with which messages chain best, and what it makes of
// all flows; messages is 0 if there is none.
func search(flows []*flow) (length, chained) {
	sample := sampled(flows)
	type result struct {
		l    length
		c    chained
		bits float64
	}
	var left []result
	for _, l := range candidates(sample) {
		c := chained{common: map[int]int{}, tries: 4 * syncMost}
		if l.all(sample, sampleBytes, &c, nil) && c.share() >= sampleShare {
			left = append(left, result{l, c, c.bits()})
		}
	}
	best := func(a, b result) int { return cmp.Or(cmp.Compare(b.bits, a.bits), natural(a.l, b.l)) }
	slices.SortFunc(left, best)
	left = left[:min(len(left), finalists)]
	for i := range left {
		r := &left[i]
		r.c = chained{common: map[int]int{}, tries: allTries}
		if !r.l.all(flows, keepFlow, &r.c, nil) {
			r.c.messages = 0
		}
		r.bits = r.c.bits()
	}
	left = slices.DeleteFunc(left, func(r result) bool { return r.c.messages == 0 || r.c.share() < wantShare })
	if len(left) == 0 {
		return length{}, chained{}
	}
	slices.SortFunc(left, best)
	return left[0].l, left[0].c
}

// all walks all flows, of each connection both together: one in which nothing
// chains speaks another protocol (a command in words, a probe of a balancer) and
// is set apart.
func (l length) all(flows []*flow, limit int, c *chained, visit func(f *flow, b []byte, off uint64, n int)) bool {
	by := map[int]int{}
	var conns [][]*flow
	for _, f := range flows {
		i, ok := by[f.conn]
		if !ok {
			i = len(conns)
			by[f.conn], conns = i, append(conns, nil)
		}
		conns[i] = append(conns[i], f)
	}
	for _, fs := range conns {
		before := *c
		kept := len(c.tails)
		bytes := 0
		for _, f := range fs {
			bytes += min(f.bytes, limit)
			if !l.walk(f, limit, c, func(b []byte, off uint64, n int) {
				if visit != nil {
					visit(f, b, off, n)
				}
			}) {
				return false
			}
		}
		if c.messages == before.messages {
			tries := c.tries
			*c = before
			c.tries, c.tails = tries, c.tails[:kept]
			c.foreign++
			c.strange += bytes
		} else if c.hopeless() {
			return false
		}
	}
	c.finish(flows, limit)
	return (c.foreign == 0 || len(conns)-c.foreign > 1) && float64(c.strange) <= foreignMost*float64(c.strange+c.covered+c.lost)
}

// sampled are some flows of each direction, small ones among them.
func sampled(flows []*flow) []*flow {
	var out []*flow
	for dir := range 2 {
		var of []*flow
		for _, f := range flows {
			if f.dir == dir {
				of = append(of, f)
			}
		}
		slices.SortStableFunc(of, func(a, b *flow) int { return b.bytes - a.bytes })
		half := sampleFlows / 2
		for i := range min(len(of), half) {
			out = append(out, of[i*len(of)/min(len(of), half)])
		}
	}
	return out
}

// candidates are the lengths that may be: places, and of what they do not count
// what packets show, which often hold one message, and what is usual.
func candidates(flows []*flow) []length {
	type pair struct {
		b []byte // from the beginning of a packet on
		n int    // to the end of it, or of a later one
	}
	var pairs []pair
	each := sampleVotes / max(len(flows), 1)
	for _, f := range flows {
		r, took := 0, 0
		before := f.runs[0].off
		for i := 0; i < len(f.marks) && took < each; i++ {
			for r < len(f.runs)-1 && f.runs[r].end() <= before {
				r++
			}
			if before < f.runs[r].off {
				before = f.runs[r].off
			}
			for j := i; j < min(i+3, len(f.marks)) && f.marks[j].off <= f.runs[r].end() && f.marks[j].off > before; j++ {
				pairs = append(pairs, pair{f.runs[r].b[before-f.runs[r].off:], int(f.marks[j].off - before)})
				took++
			}
			before = f.marks[i].off
		}
	}
	var out []length
	for at := range lengthAt {
		for _, size := range []int{1, 2, 3, 4, 8} {
			for _, little := range []bool{false, true}[:min(size, 2)] {
				l := length{at: at, size: size, little: little}
				var votes [lengthPlus + 1]int
				for _, p := range pairs {
					if len(p.b) < l.end() {
						continue
					}
					if n := l.number(p.b); n <= uint64(p.n) && p.n-int(n) <= lengthPlus {
						votes[p.n-int(n)]++
					}
				}
				votes[0]++
				votes[l.end()]++
				var pluses []int
				for plus, n := range votes {
					if n > 0 {
						pluses = append(pluses, plus)
					}
				}
				slices.SortStableFunc(pluses, func(a, b int) int { return votes[b] - votes[a] })
				pluses = pluses[:min(len(pluses), plusTried)]
				for _, plus := range []int{0, l.end()} {
					if !slices.Contains(pluses, plus) {
						pluses = append(pluses, plus)
					}
				}
				for _, plus := range pluses {
					l.plus = plus
					out = append(out, l)
				}
			}
		}
	}
	return out
}
