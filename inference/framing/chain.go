package framing

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"netsplit/model"
)

const (
	lengthAt     = 32   // lengths begin before it
	lengthPlus   = 256  // most that a length does not count
	headMost     = 256  // longest greeting before the first message of a stream
	syncMost     = 4096 // bytes in which the first message behind a loss is looked for
	syncChain    = 4    // messages in a row that show where one begins
	openingShown = 8    // bytes of what a stream begins with that is no message
	openingsMost = 64
	longest      = 1 << 30 // message believed, as by reader frames
)

// length is a place for the length of a message.
type length struct {
	at, size, plus int
	little         bool
}

func (l length) end() int { return l.at + l.size }

// number reads the place in the message that b begins with; b has it.
func (l length) number(b []byte) uint64 {
	b = b[l.at:l.end()]
	var n uint64
	if l.little {
		for i := len(b) - 1; i >= 0; i-- {
			n = n<<8 | uint64(b[i])
		}
		return n
	}
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// message is the size of the message that b begins with: 0 if b is too short to
// tell, -1 if none begins so.
func (l length) message(b []byte) int {
	if len(b) < l.end() {
		return 0
	}
	n := l.number(b)
	if n > longest || int(n)+l.plus < l.end() {
		return -1
	}
	return int(n) + l.plus
}

func (l length) place() *model.Place {
	p := &model.Place{At: l.at, Size: l.size, Plus: l.plus}
	if l.little {
		p.Order = "little"
	}
	return p
}

// natural orders lengths that find the same messages: as people lay them out. A
// length counts all, or what follows it, or itself and what follows it.
func natural(a, b length) int {
	plain := func(l length) int {
		if l.plus == 0 || l.plus == l.end() || l.plus == l.at {
			return 0
		}
		return 1
	}
	aligned := func(l length) int {
		if l.at%l.size == 0 {
			return 0
		}
		return 1
	}
	width := func(l length) int { return slices.Index([]int{4, 2, 3, 8, 1}, l.size) }
	order := func(l length) int {
		if l.little {
			return 1
		}
		return 0
	}
	return cmp.Or(plain(a)-plain(b), aligned(a)-aligned(b), width(a)-width(b), a.at-b.at, order(a)-order(b), a.plus-b.plus)
}

// chained is what a length makes of flows.
type chained struct {
	messages int
	covered  int               // bytes in messages that are whole
	lost     int               // bytes that are in none
	heads    int               // bytes before the first message of a stream that began otherwise
	headed   int               // streams that did
	openings [2]map[string]int // their first bytes, of each direction
	marks    int               // ends of packets that were looked at
	hits     int               // of them, those where a message ends
	turns    int               // those where the other side spoke next
	turnHits int
	least    int // size of the shortest message, and of the longest
	most     int
	common   map[int]int // sizes
	foreign  int         // connections without a message, and their bytes
	strange  int
	tails    []int // bytes of messages that the recording cut off, as it seems
	tries    int   // left for looking for where messages begin
}

// share is how much of the bytes is in messages. Streams may begin with a
// greeting, which is distinguished.
func (c *chained) share() float64 {
	return float64(c.covered) / float64(max(c.covered+c.lost, 1))
}

// bits is what knowing the messages tells of where packets end, against
// chance: the information in the hits and misses.
func (c *chained) bits() float64 {
	if c.messages == 0 || c.marks == 0 {
		return 0
	}
	p := math.Min(float64(c.messages)/float64(max(c.covered+c.lost, 1)), 0.999)
	n, h := float64(c.marks), float64(c.hits)
	if h <= n*p {
		return 0
	}
	out := h * math.Log2(h/n/p)
	if h < n {
		out += (n - h) * math.Log2((1-h/n)/(1-p))
	}
	return out
}

// ofOneSize says whether nearly all messages have the same size, so that any
// number that is always there counts as their length.
func (c *chained) ofOneSize() bool {
	most := 0
	for _, n := range c.common {
		most = max(most, n)
	}
	return most > c.messages-2
}

// sizes are kept up to so many, which is enough to see that there are several.
const sizesMost = 1024

func (c *chained) message(n int) {
	c.messages++
	c.covered += n
	c.most = max(c.most, n)
	if c.least == 0 || n < c.least {
		c.least = n
	}
	if _, known := c.common[n]; known || len(c.common) < sizesMost {
		c.common[n]++
	}
}

// opened takes what a stream begins with.
func (c *chained) opened(dir int, b []byte) {
	c.headed++
	if c.openings[dir] == nil {
		c.openings[dir] = map[string]int{}
	}
	if b = b[:min(len(b), openingShown)]; len(c.openings[dir]) < openingsMost || c.openings[dir][string(b)] > 0 {
		c.openings[dir][string(b)]++
	}
}

// walk chains the messages of a flow, not beyond limit bytes of it, and calls
// visit with each whole one. b may miss what a loss took out of the message, at
// its end. It gives up, and says so, when too much is in no message.
func (l length) walk(f *flow, limit int, c *chained, visit func(b []byte, off uint64, n int)) bool {
	var (
		next  uint64 // offset of the next message, where synced
		seen  int    // bytes of the runs before
		m     int    // marks before it are judged
		first = true // no message yet
	)
	synced := f.whole && !l.otherwise(f, limit)
	if synced {
		next = f.runs[0].off
	}
	ends := func(off uint64) { // a message ends here
		for m < len(f.marks) && f.marks[m].off <= off {
			hit := f.marks[m].off == off
			c.marks++
			if hit {
				c.hits++
			}
			if f.marks[m].turn {
				c.turns++
				if hit {
					c.turnHits++
				}
			}
			m++
		}
	}
	for i := range f.runs {
		r := &f.runs[i]
		b := r.b[:min(len(r.b), max(limit-seen, 0))]
		seen += len(b)
		end := r.off + uint64(len(b))
		if len(b) == 0 {
			break
		}
		pos := 0
		switch {
		case synced && next >= end: // a message reaches over all of it
			if i == len(f.runs)-1 || seen >= limit {
				c.lose(len(b), f, seen < limit)
			} else {
				c.covered += len(b)
			}
			continue
		case synced && next > r.off:
			pos = int(next - r.off)
			c.covered += pos
			ends(next)
		case synced && next < r.off: // its beginning was lost
			synced = false
		}
		for pos < len(b) {
			if !synced {
				k := l.sync(f, r, b, pos, first && f.whole, c)
				if k < 0 {
					c.lose(len(b)-pos, f, true)
					break
				}
				if first {
					c.heads += k - pos
					if f.whole && k > pos {
						c.opened(f.dir, b[pos:k])
					}
				} else {
					c.lost += k - pos
				}
				pos, synced = k, true
				ends(r.off + uint64(pos))
			}
			n := l.message(b[pos:])
			if n < 0 {
				if synced = false; c.hopeless() || c.tries <= 0 {
					return false
				}
				continue
			}
			if n == 0 || pos+n > len(b) {
				if n > 0 && i < len(f.runs)-1 && seen < limit && r.off+uint64(pos+n) <= f.runs[len(f.runs)-1].end() {
					c.message(n) // it has a hole
					c.covered -= pos + n - len(b)
					visit(b[pos:], r.off+uint64(pos), n)
					next = r.off + uint64(pos+n)
					first = false
					break
				}
				if n == 0 || seen < limit || r.off+uint64(pos+n) > f.runs[len(f.runs)-1].end() {
					c.lose(len(b)-pos, f, seen < limit)
				} // else it ends behind what is looked at
				synced = false
				break
			}
			visit(b[pos:pos+n], r.off+uint64(pos), n)
			c.message(n)
			pos += n
			next = r.off + uint64(pos)
			first = false
			ends(next)
		}
		if c.hopeless() {
			return false
		}
	}
	return true
}

// lose counts the end of a run that is no whole message. One that goes on
// behind what was kept, or that the end of the recording cut off, may be one.
func (c *chained) lose(n int, f *flow, all bool) {
	switch {
	case n == 0:
	case all && f.fin && !f.cut:
		c.lost += n
	default:
		c.tails = append(c.tails, n)
	}
}

// finish judges what seemed cut off: what is longer than any message is none,
// and few are cut off by the end of a recording.
func (c *chained) finish(flows []*flow, limit int) {
	went := 2 + len(flows)/10
	for _, f := range flows {
		if f.cut || f.bytes > limit {
			went++
		}
	}
	slices.Sort(c.tails)
	for i, n := range c.tails {
		if n >= c.most || i >= went {
			c.lost += n
		}
	}
	c.tails = nil
}

// hopeless says that too much is in no message for the rest to make up for it.
func (c *chained) hopeless() bool { return c.lost > 1<<16 && c.lost > c.covered/2 }

// sync looks for a place from pos on where messages begin: where packets did, or,
// behind a loss or where a stream is met in the middle, anywhere. It is -1 if
// there is none.
func (l length) sync(f *flow, r *run, b []byte, pos int, greeting bool, c *chained) int {
	most := min(len(b), pos+syncMost)
	if greeting {
		most = min(len(b), pos+headMost)
	}
	if l.begins(b, pos) {
		return pos
	}
	i := sort.Search(len(f.marks), func(i int) bool { return f.marks[i].off > r.off+uint64(pos) })
	for ; !greeting && i < len(f.marks) && c.tries > 0; i++ {
		k := int(f.marks[i].off - r.off)
		if k >= most {
			break
		}
		c.tries--
		if l.begins(b, k) {
			return k
		}
	}
	for k := pos + 1; k < most && c.tries > 0; k++ {
		c.tries--
		if l.begins(b, k) {
			return k
		}
	}
	return -1
}

// otherwise says whether a stream begins with something that is no message, though
// its first bytes would do as the length of one: no message ends where it would,
// and behind a greeting messages chain.
func (l length) otherwise(f *flow, limit int) bool {
	b := f.runs[0].b[:min(len(f.runs[0].b), limit)]
	n := l.message(b)
	if n <= 0 || l.begins(b, 0) || n < len(b) && l.begins(b, n) {
		return false
	}
	for k := 1; k < min(len(b), headMost); k++ {
		if n := l.message(b[k:]); n > 0 && k+n < len(b) && l.begins(b, k) && l.begins(b, k+n) {
			return true
		}
	}
	return false
}

// begins says whether messages chain from pos on: several, or up to the end.
func (l length) begins(b []byte, pos int) bool {
	for range syncChain {
		n := l.message(b[pos:])
		if n <= 0 || pos+n > len(b) {
			return false
		}
		if pos += n; pos == len(b) {
			return true
		}
	}
	return true
}
