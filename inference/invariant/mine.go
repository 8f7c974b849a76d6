package invariant

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"netsplit/model"
)

// Options say which candidates are kept. Zero values stand for the defaults.
type Options struct {
	// MinRuns is the least number of runs with samples of a candidate at a point.
	MinRuns int
	// MinSupport is the least number of samples at a point in which it held.
	MinSupport int
	// MinChanges is the least number of samples at a point at which a value
	// changed, in two runs at least: what never changes shows no agreement.
	MinChanges int
	// MaxChance is the greatest probability, after correction for the number
	// of candidates, that the agreement is chance.
	MaxChance float64
	// Weak also keeps what may agree by chance, as CoFI does: MinChanges and
	// MaxChance do not count. But one of the two variables must have had another
	// value somewhere: what is the same always and everywhere is a constant.
	Weak bool
	// Like names the group of a node: nodes of one group are alike, a node of
	// group "" is like no other. The miner counts together what pairs of like
	// nodes show at like points in different runs.
	Like func(model.NodeID) string
}

// Defaults of Options.
const (
	DefaultMinRuns    = 3
	DefaultMinSupport = 10
	DefaultMinChanges = 3
	DefaultMaxChance  = 0.01
)

// maxSlots bounds the moments between which a change of a run is distinguished.
// Messages come much faster than variables are observed, so their number says
// too much about how exactly two changes coincided.
const maxSlots = 32

// Miner collects samples and mines them. Runs may be added in any order and
// at any time: what is mined depends only on which samples were added.
type Miner struct {
	vars   map[model.VarRef]*column
	traces map[model.ProgramPoint]map[string]*trace // by point, then run
	values map[string]int32                         // 1 and on; 0 is missing
	names  []string
}

// column describes one variable.
type column struct {
	ref    model.VarRef
	kind   string
	first  int32 // a value of it
	varies bool  // it had another one too, in whichever run and at whichever point
}

// trace holds the samples of one point in one run, by columns.
type trace struct {
	messages []uint64
	cols     map[model.VarRef][]int32 // may be shorter than messages: missing
}

// NewMiner returns an empty miner.
func NewMiner() *Miner {
	return &Miner{vars: map[model.VarRef]*column{}, traces: map[model.ProgramPoint]map[string]*trace{},
		values: map[string]int32{}, names: []string{""}}
}

// Add adds the samples of a run. It sorts them by message and ignores values of
// nodes other than the two of the message. A second call for a run adds further
// samples of that run, behind those of the first.
func (m *Miner) Add(run string, samples []model.Sample) {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b model.Sample) int { return cmp.Compare(a.Message, b.Message) })
	for _, s := range samples {
		runs := m.traces[s.Point]
		if runs == nil {
			runs = map[string]*trace{}
			m.traces[s.Point] = runs
		}
		t := runs[run]
		if t == nil {
			t = &trace{cols: map[model.VarRef][]int32{}}
			runs[run] = t
		}
		row := len(t.messages)
		t.messages = append(t.messages, s.Message)
		for _, v := range s.Values {
			if v.Var.Node != s.Point.From && v.Var.Node != s.Point.To {
				continue
			}
			if m.vars[v.Var] == nil {
				m.vars[v.Var] = &column{ref: v.Var, kind: v.Kind}
			}
			id, ok := m.values[v.Value]
			if !ok {
				id = int32(len(m.names))
				m.values[v.Value] = id
				m.names = append(m.names, v.Value)
			}
			col := m.vars[v.Var]
			col.varies = col.varies || col.first != 0 && col.first != id
			col.first = id
			c := t.cols[v.Var]
			for len(c) < row {
				c = append(c, 0)
			}
			if len(c) == row {
				t.cols[v.Var] = append(c, id)
			}
		}
	}
}

// test is one candidate at one point.
type test struct {
	a, b     *column // a sorts before b
	point    model.ProgramPoint
	support  int
	violated bool
	broken   where // the first sample in which they differ
	other    int32 // what the second one was there
	differ   int   // samples in which they differ
	changes  int
	changing int // runs with a change
	runs     []string
	values   []int32 // distinct values on which they agreed
	chance   float64 // not yet corrected
	seen     uint64  // hash of the values at the start of runs and at changes
	first    where
	like     *pool // nil: no other pair is like it
}

// where names a sample.
type where struct {
	run     string
	message uint64
	value   int32
}

// Invariants mines everything added so far. The result is sorted by A, then
// B, with Status mined.
//
// Chance: let a change be a sample at which either value differs from the
// sample before it in that trace and run. Suppose that the two variables are
// independent, with the values they have at changes and at the start of runs.
// Then they agree at one change with probability q = sum over values of
// pA(v)*pB(v), and at all k changes with q^k. Moreover, the c changes of both in a
// run of n samples fall on the same samples. If the moments of the one say nothing
// about those of the other, that is one choice out of binomial(min(n-1, 32), c);
// the product over runs is a second factor. A third is the number of candidates
// that could have passed at all (Tarone 1990: the smallest m for which at most m
// candidates have a chance <= MaxChance/m). A pair that took the same course of
// values at several points counts there as one candidate. Chance is the smallest
// over the points where the invariant is kept. Changes of several points are never
// added up, since they are mostly the same events.
//
// Points are those at which an invariant is kept; Support sums their samples, Runs
// and Distinct are of their union, Changes is the greatest of one point. The result
// has also equalities that follow from others by transitivity: each names another
// pair of nodes to set against one another.
//
// Pairs of like nodes are judged by what they show together, too, unless one of
// them differs: see pool.
func (m *Miner) Invariants(o Options) []model.Invariant {
	o = o.defaults()
	pairs, factor := m.pairs(o)
	var out []model.Invariant
	for _, ts := range pairs {
		if kept := slices.DeleteFunc(ts, func(t *test) bool { return o.lacks(t) != "" }); len(kept) > 0 {
			if inv := m.join(kept, factor, o); inv.Chance <= o.MaxChance || o.Weak {
				out = append(out, inv)
			}
		}
	}
	slices.SortFunc(out, func(a, b model.Invariant) int { return cmp.Or(a.A.Compare(b.A), a.B.Compare(b.B)) })
	return out
}

func (o Options) defaults() Options {
	if o.MinRuns == 0 {
		o.MinRuns = DefaultMinRuns
	}
	if o.MinSupport == 0 {
		o.MinSupport = DefaultMinSupport
	}
	if o.MinChanges == 0 {
		o.MinChanges = DefaultMinChanges
	}
	if o.MaxChance == 0 {
		o.MaxChance = DefaultMaxChance
	}
	return o
}

type pairKey struct{ a, b model.VarRef }

// pairs are all candidates, by pair of variables, and the correction for their
// number.
func (m *Miner) pairs(o Options) (map[pairKey][]*test, float64) {
	tests := m.tests()
	out := map[pairKey][]*test{}
	for _, t := range tests {
		k := pairKey{t.a.ref, t.b.ref}
		out[k] = append(out[k], t)
	}
	for _, p := range m.pools(tests, o.Like) {
		tests = append(tests, p.test)
	}
	return out, tarone(tests, o.MaxChance)
}

func (m *Miner) join(ts []*test, factor float64, o Options) model.Invariant {
	a, b := ts[0].a, ts[0].b
	inv := model.Invariant{ID: model.InvariantID(model.RelationEqual, a.ref, b.ref), Kind: a.kind,
		Relation: model.RelationEqual, A: a.ref, B: b.ref, Status: model.InvariantMined, Chance: 1}
	runs, values := map[string]bool{}, map[int32]bool{}
	var example *test
	for _, t := range ts {
		inv.Support += t.support
		inv.Changes = max(inv.Changes, t.changes)
		p, like := o.chance(t)
		if c := cmp.Compare(p*factor, inv.Chance); c < 0 || c == 0 && like < inv.Like {
			inv.Chance, inv.Like = p*factor, like
		}
		inv.Points = append(inv.Points, t.point)
		for _, r := range t.runs {
			runs[r] = true
		}
		for _, v := range t.values {
			values[v] = true
		}
		if example == nil || cmp.Or(cmp.Compare(t.first.run, example.first.run), cmp.Compare(t.first.message, example.first.message), t.point.Compare(example.point)) < 0 {
			example = t
		}
	}
	slices.SortFunc(inv.Points, model.ProgramPoint.Compare)
	inv.Runs, inv.Distinct = len(runs), len(values)
	v := m.names[example.first.value]
	inv.Example = &model.Sample{Run: example.first.run, Message: example.first.message, Point: example.point,
		Values: []model.VarValue{{Var: a.ref, Kind: a.kind, Value: v}, {Var: b.ref, Kind: b.kind, Value: v}}}
	return inv
}

func (m *Miner) tests() []*test {
	var out []*test
	count := newCounter(len(m.names))
	for point, runs := range m.traces {
		names := slices.Sorted(maps.Keys(runs))
		var from, to []*column
		for _, c := range m.vars {
			switch c.ref.Node {
			case point.From:
				from = append(from, c)
			case point.To:
				to = append(to, c)
			}
		}
		for _, a := range from {
			for _, b := range to {
				if !alike(a, b) {
					continue
				}
				a, b := a, b
				if b.ref.Compare(a.ref) < 0 {
					a, b = b, a
				}
				parts := make([]part, len(names))
				for i, run := range names {
					parts[i] = part{run, runs[run], a.ref, b.ref}
				}
				if t := evaluate(a, b, parts, count); t.support > 0 || t.violated {
					t.point = point
					out = append(out, t)
				}
			}
		}
	}
	return out
}

// alike reports whether two variables of two nodes may be compared: they
// are of one kind and about the same thing. A variable about nothing in
// particular is about its own node where the other is about that node.
func alike(a, b *column) bool {
	if a.kind != b.kind || a.ref.Node == b.ref.Node {
		return false
	}
	x, y := a.ref, b.ref
	switch {
	case x.About == y.About:
		return true
	case x.About == "":
		return y.About == string(x.Node)
	case y.About == "":
		return x.About == string(y.Node)
	}
	return false
}

// part is what two variables show in one run.
type part struct {
	run  string
	of   *trace
	a, b model.VarRef
}

// evaluate judges two variables by what is in the parts, in their order.
func evaluate(a, b *column, parts []part, count *counter) *test {
	t := &test{a: a, b: b}
	count.reset()
	course := fnv.New64a()
	var buf [8]byte
	moments := 1.0
	for _, p := range parts {
		before, samples := t.changes, 0
		run, tr := p.run, p.of
		ca, cb := tr.cols[p.a], tr.cols[p.b]
		var lastA, lastB int32
		for i := range min(len(ca), len(cb)) {
			va, vb := ca[i], cb[i]
			if va == 0 || vb == 0 {
				continue
			}
			samples++
			if va == vb {
				t.support++
			} else {
				if !t.violated {
					t.broken, t.other = where{run, tr.messages[i], va}, vb
				}
				t.violated = true
				t.differ++
			}
			if va == lastA && vb == lastB {
				continue
			}
			if lastA != 0 {
				t.changes++
			} else {
				t.runs = append(t.runs, run)
				course.Write([]byte(run + "\x00"))
				if t.first.run == "" {
					t.first = where{run, tr.messages[i], va}
				}
			}
			count.add(va, vb)
			course.Write(binary.LittleEndian.AppendUint64(buf[:0], uint64(va)<<32|uint64(vb)))
			lastA, lastB = va, vb
		}
		if c := t.changes - before; c > 0 {
			t.changing++
			moments /= choose(min(samples-1, maxSlots), c)
		}
	}
	t.seen = course.Sum64()
	t.chance = math.Pow(count.agree(), float64(t.changes)) * moments
	if !t.violated {
		t.values = slices.Clone(count.seen)
	}
	return t
}

// choose is the binomial coefficient; 1 where k is not below n.
func choose(n, k int) float64 {
	out := 1.0
	for i := range min(k, n-k) {
		out = out * float64(n-i) / float64(i+1)
	}
	return out
}

// tarone returns the factor that corrects for the number of candidates.
func tarone(tests []*test, max float64) float64 {
	type course struct {
		a, b model.VarRef
		seen uint64
	}
	best := map[course]float64{} // the lowest: whatever the order of tests
	for _, t := range tests {
		c := course{t.a.ref, t.b.ref, t.seen}
		if p, ok := best[c]; !ok || t.chance < p {
			best[c] = t.chance
		}
	}
	ps := slices.Sorted(maps.Values(best))
	for m := 1; m < len(ps); m++ {
		// ps[m] is the (m+1)th smallest: more than m could pass if it can.
		if ps[m] > max/float64(m) {
			return float64(m)
		}
	}
	return float64(len(ps))
}

// counter counts how often each of two variables had each value.
type counter struct {
	a, b []int64
	seen []int32
	n    int64
}

func newCounter(values int) *counter {
	return &counter{a: make([]int64, values), b: make([]int64, values)}
}

func (c *counter) reset() {
	for _, v := range c.seen {
		c.a[v], c.b[v] = 0, 0
	}
	c.seen, c.n = c.seen[:0], 0
}

func (c *counter) add(a, b int32) {
	if c.a[a] == 0 && c.b[a] == 0 {
		c.seen = append(c.seen, a)
	}
	if a != b && c.a[b] == 0 && c.b[b] == 0 {
		c.seen = append(c.seen, b)
	}
	c.a[a]++
	c.b[b]++
	c.n++
}

// agree is the probability that two independent variables with these counts
// have the same value: exact, so that the order of values does not matter.
func (c *counter) agree() float64 {
	if c.n == 0 {
		return 1
	}
	var sum int64
	for _, v := range c.seen {
		sum += c.a[v] * c.b[v]
	}
	return float64(sum) / float64(c.n*c.n)
}
