package framing

import (
	"cmp"
	"math"
	"slices"

	"netsplit/model"
)

const (
	typeAt      = 48             // types end before it
	typeValues  = 64             // most of a type, or of two together
	typeSample  = 4000           // messages of a direction by which places are compared
	typeLook    = 400            // of them by which most are dismissed
	typeBlock   = 200            // messages that stay together in a sample
	typeLeft    = 24             // places that are looked at twice
	typePays    = 0.04           // share of what all messages take to tell that a place must save
	secondPays  = 0.12           // the same for a second one, of what the first left
	wholePays   = 0.3            // of what some bits of a byte save, all of it must save to be taken
	lengthFits  = 0.8            // of the messages are as long as a length says
	passesNew   = 0.8            // of the changes on a stream bring a value that was not there, and a higher one
	passesLeast = 6              // changes by which to tell
	passesFlows = 6              // messages of a flow, on average
	directPays  = 0.05           // the same for telling the two directions apart
	sharedPays  = 0.9            // of what places of each direction save, the same ones for both must save
	bitsValues  = 7              // fewer values of a byte are not taken apart
	bitsLetters = 0.9            // neither are letters
	boundShare  = 0.005          // of the messages change what is no name of the stream
	typeFar     = 24             // a type is half as likely so many bytes further on: content lies there
	typeBits    = 64             // that a place must save at least
	headPays    = 2              // what stands before the length is no content: what it saves counts so many times
	absent      = math.MaxUint16 // value of a byte behind the end of a message
)

// msg is what is kept of a message.
type msg struct {
	flow int
	dir  int
	size int
	b    []byte // its first bytes
	conn int
	seq  int // of the packet that it ended with
	asks int // an answer: the index of what it answers, and 1, behind correlate
}

// offset is a place for a type.
type offset struct {
	at   int
	mask byte
}

func (s offset) place() model.Place {
	p := model.Place{At: s.at}
	if s.mask != 0xff {
		p.Mask = "0x" + string("0123456789abcdef"[s.mask>>4]) + string("0123456789abcdef"[s.mask&15])
	}
	return p
}

// value is that of a message; -1 if it ends before.
func (s offset) value(m *msg) int {
	if s.at >= len(m.b) {
		return -1
	}
	return int(m.b[s.at] & s.mask)
}

// Columns behind those of bytes.
const (
	ofSize = typeAt + iota
	ofDir
	allColumns
)

// table is a sample of messages: a column per byte, one of their sizes, and one
// of their directions.
type table struct {
	msgs    []msg
	columns []column
	base    []float64 // bits of each column without a type
	total   float64
	head    int // the length begins there

	// for cost, kept between calls
	order, start, prev []int
	last, stamp        []int // of each flow
	before             []int // message on the flow of each, of any type; -1 for the first
	counts             []int
	touched            []int
}

// column is one value of each message.
type column struct {
	values []uint16
	named  []float64 // bits to name a value, when nothing is known of the message
	same   [2]float64
	skip   bool // it belongs to the length
	alone  bool // what the message before had says nothing
}

// sampleOf takes at most n messages, in blocks from everywhere.
func sampleOf(msgs []msg, n int) []msg {
	if len(msgs) <= n {
		return slices.Clone(msgs)
	}
	var out []msg
	blocks := max(n/typeBlock, 1)
	for i := range blocks {
		from := i * (len(msgs) - typeBlock) / max(blocks-1, 1)
		out = append(out, msgs[from:min(from+typeBlock, len(msgs))]...)
	}
	return out
}

func newTable(msgs []msg, l length) *table {
	t := &table{msgs: msgs, columns: make([]column, allColumns), head: l.at}
	sizes, flows := map[int]int{}, map[int]int{}
	for i := range msgs {
		m := &msgs[i]
		if _, ok := sizes[m.size]; !ok {
			sizes[m.size] = min(len(sizes), absent-1)
		}
		if _, ok := flows[m.flow]; !ok {
			flows[m.flow] = len(flows)
		}
		m.flow = flows[m.flow]
	}
	for o := range t.columns {
		c := &t.columns[o]
		c.skip = o >= l.at && o < l.end()
		c.values = make([]uint16, len(msgs))
		for i := range msgs {
			switch {
			case o == ofSize:
				c.values[i] = uint16(sizes[msgs[i].size])
			case o == ofDir:
				c.values[i], c.alone = uint16(msgs[i].dir), true
			case o < len(msgs[i].b):
				c.values[i] = uint16(msgs[i].b[o])
			default:
				c.values[i] = absent
			}
		}
	}
	t.prev, t.order = make([]int, len(msgs)), make([]int, len(msgs))
	t.last, t.stamp = make([]int, len(flows)), make([]int, len(flows))
	t.counts = make([]int, max(len(sizes), 256))
	t.group(make([]int, len(msgs)), 1)
	t.before = slices.Clone(t.prev)
	for o := range t.columns {
		t.learn(&t.columns[o])
	}
	t.base, t.total = t.cost(make([]int, len(msgs)), 1)
	return t
}

// learn sets what is known of a column without types.
func (t *table) learn(c *column) {
	same, info, n := 0.5, 0.5, 0
	c.named = make([]float64, len(t.counts))
	for i, v := range c.values {
		if v == absent {
			continue
		}
		n++
		c.named[v]++
		if p := t.prev[i]; p >= 0 && c.values[p] != absent {
			if c.values[p] == v {
				same++
			} else {
				info++
			}
		}
	}
	for v, k := range c.named {
		if k > 0 {
			c.named[v] = math.Log2(float64(n) / k)
		}
	}
	c.same = [2]float64{math.Log2((same + info) / info), math.Log2((same + info) / same)}
}

// group sorts the messages by type, and finds for each the one before it of its
// type and flow.
func (t *table) group(labels []int, k int) {
	t.start = append(t.start[:0], make([]int, k+1)...)
	for _, g := range labels {
		t.start[g+1]++
	}
	for g := range k {
		t.start[g+1] += t.start[g]
	}
	at := slices.Clone(t.start)
	for i, g := range labels {
		t.order[at[g]] = i
		at[g]++
	}
	for i := range t.stamp {
		t.stamp[i] = -1
	}
	for g := range k {
		for _, i := range t.order[t.start[g]:t.start[g+1]] {
			f := t.msgs[i].flow
			t.prev[i] = -1
			if t.before != nil {
				t.prev[i] = t.before[i]
			}
			if t.stamp[f] == g {
				t.prev[i] = t.last[f]
			}
			t.stamp[f], t.last[f] = g, i
		}
	}
}

// cost is how many bits it takes to encode each column if the types are known. A byte either
// repeats its value in the last message of that type on the stream (or of any type, if
// there is none), or its value is encoded. So a column that rarely changes (the sender, a
// term, the high bytes of a time) costs next to nothing with or without types: a type made
// from such a column saves nothing. Nor does a type that only names the stream, since the
// first message of a stream costs nothing.
func (t *table) cost(labels []int, k int) ([]float64, float64) {
	return t.costOf(labels, k, 0, typeAt)
}

// costOf is cost of the bytes in [from, to) and of the columns that are no bytes.
func (t *table) costOf(labels []int, k, from, to int) ([]float64, float64) {
	t.group(labels, k)
	out := make([]float64, len(t.columns))
	var total float64
	for o := range t.columns {
		if t.columns[o].skip || o < typeAt && (o < from || o >= to) {
			continue
		}
		for g := range k {
			out[o] += t.tell(t.order[t.start[g]:t.start[g+1]], &t.columns[o])
		}
		total += out[o]
	}
	return out, total
}

// tell is how many bits it takes to encode a column in the messages of a type: for each
// message whether its value repeats the last one, and the values that do not. Each is
// encoded by its distribution in all messages, or by that in this type, which must then be
// encoded, too; whichever is cheaper.
func (t *table) tell(group []int, c *column) float64 {
	same, changed, info := 0, 0, 0
	var named float64
	for _, i := range group {
		v := c.values[i]
		if v == absent || t.prev[i] < 0 && !c.alone {
			continue
		}
		if p := t.prev[i]; !c.alone && p >= 0 && c.values[p] != absent {
			if c.values[p] == v {
				same++
				continue
			}
			changed++
		}
		info++
		named += c.named[v]
		if t.counts[v] == 0 {
			t.touched = append(t.touched, int(v))
		}
		t.counts[v]++
	}
	bits := math.Min(float64(same)*c.same[1]+float64(changed)*c.same[0], choice(same, changed)+1)
	if info > 0 {
		own := float64(len(t.touched)-1)/2*log2(info) + 1
		for _, v := range t.touched {
			n := float64(t.counts[v])
			own += c.named[v] + n*(log2(info)-log2(t.counts[v]))
			t.counts[v] = 0
		}
		bits += math.Min(named, own)
	}
	t.touched = t.touched[:0]
	return bits
}

// logs are those of small numbers, of which most are needed.
var logs = func() (out [1 << 13]float64) {
	for i := range out {
		out[i] = math.Log2(float64(max(i, 1)))
	}
	return out
}()

func log2(n int) float64 {
	if n < len(logs) {
		return logs[n]
	}
	return math.Log2(float64(n))
}

// choice is the bits of a sequence of a and b of two kinds.
func choice(a, b int) float64 {
	if a == 0 || b == 0 {
		return log2(a + b + 1)
	}
	lg := func(n int) float64 { v, _ := math.Lgamma(float64(n + 1)); return v }
	return (lg(a+b) - lg(a) - lg(b) + math.Log(float64(a+b+1))) / math.Ln2
}

// labelled gives the messages the numbers of their types; k is 0 if there are
// too many, as of an id.
func (t *table) labelled(offsets []offset) (labels []int, k int) {
	labels = make([]int, len(t.msgs))
	names := map[[2]int]int{}
	half := 0
	for i := range t.msgs {
		key := keyOf(offsets, &t.msgs[i])
		g, ok := names[key]
		if !ok {
			if g = len(names); g >= typeValues {
				return nil, 0
			}
			names[key] = g
		}
		labels[i] = g
		if i == len(t.msgs)/2 {
			half = len(names)
		}
	}
	if k = len(names); k > 8 && half < k/2 { // it grows with the messages
		return nil, 0
	}
	return labels, k
}

// keyed gives the messages the numbers of their keys.
func (t *table) keyed(key func(m *msg) [3]int) (labels []int, k int) {
	names := map[[3]int]int{}
	for i := range t.msgs {
		n := key(&t.msgs[i])
		if _, ok := names[n]; !ok {
			names[n] = len(names)
		}
		labels = append(labels, names[n])
	}
	return labels, len(names)
}

// keyOf is the type as reader frames makes it of two places at most: up to the
// first that the message is too short for.
func keyOf(offsets []offset, m *msg) [2]int {
	key := [2]int{-1, -1}
	for i, s := range offsets {
		v := s.value(m)
		if v < 0 {
			break
		}
		key[i] = v
	}
	return key
}

// saved is how many bits a type saves in the bytes after its last place and in the sizes: a
// type should predict what follows it. If it makes earlier bytes cost more, that is
// subtracted. The places themselves save nothing.
func (t *table) saved(base []float64, offsets []offset, last offset) float64 {
	return t.savedOf(base, offsets, last, 0, typeAt)
}

// savedOf is saved of the bytes in [from, to) and of the columns that are no bytes.
func (t *table) savedOf(base []float64, offsets []offset, last offset, from, to int) float64 {
	labels, k := t.labelled(offsets)
	if k < 2 {
		return 0
	}
	with, _ := t.costOf(labels, k, from, to)
	var out float64
	for o := range with {
		switch {
		case o < typeAt && (o < from || o >= to):
		case slices.ContainsFunc(offsets, func(s offset) bool { return s.at == o }):
		case o > last.at:
			out += base[o] - with[o]
		default:
			out += math.Min(base[o]-with[o], 0)
		}
	}
	tellsSize := 2*(base[ofSize]-with[ofSize]) > out
	if out > 0 && (t.bound(last) || t.passes(last) || t.proportional(offsets, last, tellsSize)) {
		return 0
	}
	return out
}

func choose(msgs []msg, l length) []offset {
	if len(msgs) < wantMessages {
		return nil
	}
	full := newTable(sampleOf(msgs, typeSample), l)
	look := newTable(sampleOf(msgs, typeLook), l)
	one := next(full, look, nil, typePays)
	if one == nil {
		return nil
	}
	if two := next(full, look, one, secondPays); two != nil {
		return two
	}
	return one
}

// next finds the place that saves most beside the first ones, if it pays: a
// share of what is left without it.
func next(full, look *table, first []offset, pays float64) []offset {
	base, total := full.base, full.total
	lookBase := look.base
	if len(first) > 0 {
		labels, k := full.labelled(first)
		base, total = full.cost(labels, k)
		if labels, k = look.labelled(first); k > 0 {
			lookBase, _ = look.cost(labels, k)
		}
	}
	type found struct {
		offsets []offset
		last    offset
		bits    float64
	}
	var all []found
	for _, s := range full.offsets() {
		if slices.ContainsFunc(first, func(f offset) bool { return f.at == s.at }) {
			continue
		}
		offsets := append(slices.Clone(first), s)
		slices.SortFunc(offsets, func(a, b offset) int { return a.at - b.at })
		all = append(all, found{offsets, s, look.saved(lookBase, offsets, s)})
	}
	likely := func(f found) float64 { return full.weighed(f.bits, f.last) * math.Exp2(-float64(f.last.at)/typeFar) }
	order := func(a, b found) int { return cmp.Compare(likely(b), likely(a)) }
	slices.SortStableFunc(all, order)
	all = all[:min(len(all), typeLeft)]
	for i := range all {
		all[i].bits = full.saved(base, all[i].offsets, all[i].last)
	}
	slices.SortStableFunc(all, order)
	all = slices.DeleteFunc(all, func(f found) bool { return f.bits < max(pays*total, typeBits) })
	if len(all) == 0 {
		return nil
	}
	best := all[0]
	for _, f := range all { // some bits of it only where the others harm
		if f.last.at == best.last.at && f.last.mask == 0xff && f.bits >= wholePays*best.bits {
			return f.offsets
		}
	}
	return best.offsets
}

// both chooses the places for the two directions, and whether answers are told
// apart from what they answer: where their places differ, or where what has the
// same number there is laid out otherwise.
func both(msgs []msg, l length) (offsets [2][]offset, apart bool) {
	var of [2][]msg
	for _, m := range msgs {
		of[m.dir] = append(of[m.dir], m)
	}
	all := choose(msgs, l)
	if len(of[0]) < wantMessages || len(of[1]) < wantMessages {
		return [2][]offset{all, all}, false
	}
	var t [2]*table
	var each [2][]offset
	var saved float64
	for dir := range t {
		t[dir] = newTable(sampleOf(of[dir], typeSample), l)
		each[dir] = choose(of[dir], l)
		saved += t[dir].savedBy(each[dir])
	}
	if len(each[0])+len(each[1]) == 0 {
		return [2][]offset{all, all}, false
	}
	offsets, apart = each, true
	var most float64
	for _, s := range each {
		_, k := t[0].labelled(s)
		_, n := t[1].labelled(s)
		if k == 0 || n == 0 || len(s) == 0 {
			continue
		}
		if b := t[0].savedBy(s) + t[1].savedBy(s); b >= sharedPays*saved && b > most {
			offsets, apart, most = [2][]offset{s, s}, false, b
		}
	}
	if apart {
		return offsets, true
	}
	joint := newTable(append(sampleOf(of[0], typeSample), sampleOf(of[1], typeSample)...), l)
	joint.columns[ofDir].skip = true
	cost := func(apart int) float64 {
		_, total := joint.cost(joint.keyed(func(m *msg) [3]int {
			key := keyOf(offsets[0], m)
			return [3]int{m.dir * apart, key[0], key[1]}
		}))
		return total
	}
	return offsets, cost(1) < (1-directPays)*cost(0)
}

// savedBy is what types save of everything but their places.
func (t *table) savedBy(offsets []offset) float64 {
	if len(offsets) == 0 {
		return 0
	}
	return t.weighed(t.saved(t.base, offsets, offsets[0]), offsets[0])
}

// weighed are the bits that a place saves, more of them if it is no content.
func (t *table) weighed(bits float64, s offset) float64 {
	if s.at < t.head {
		return headPays * bits
	}
	return bits
}
