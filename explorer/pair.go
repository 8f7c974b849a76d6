package explorer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// metKey is an inconsistent state of an invariant.
type metKey struct {
	inv   string
	state model.State
}

// pairKey is CoFI's <inconsistent state, partitioned node> of one invariant.
type pairKey struct {
	inv   string
	state model.State
	node  model.NodeID
}

// pair is the progress of Algorithm 1, lines 4 to 7, for one pairKey. Its runs
// follow one another, since each needs what the ones before met.
type pair struct {
	pairKey
	seq      int
	known    []*known       // the classes met while cut, in order of first appearance
	tries    int            // runs that came back
	renamed  int            // of those, how many cut at the state of other nodes
	used     map[uint64]int // its runs by seed
	misses   int            // of those, runs in a row in which the state did not occur
	missed   []uint64       // the seeds of these
	likes    []like         // see Core.alike
	compared bool           // likes is filled
	running  bool
	reached  bool   // a run reached the state
	reported bool   // a run told which classes it met
	closed   string // why it is done; "" while it is not
}

func (k pairKey) metKey() metKey { return metKey{k.inv, k.state} }

// known is a class of a pair.
type known struct {
	class     model.Class
	explored  bool // a run healed at it
	misses    int  // runs in a row that waited for it and did not meet it
	abandoned bool
}

func (p *pair) moved(k *known) bool { return k.class.State != p.state }

func (p *pair) healed() bool {
	return slices.ContainsFunc(p.known, func(k *known) bool { return k.explored })
}

// target is the class at which the next run should heal: the most promising of
// those not explored. First come those met after the state had moved on to one
// in which the nodes still disagree, then those of other new states, and of
// each the ones of the newest state: they take a timeout behind the cut to
// come about, and Algorithm 1 reaches them last. Then come the others. Among
// equals those come first that no node had sent to the other in another state:
// a message that is only sent again exercises little that is new (CoFI §3.5.2).
// A class that was waited for in vain comes after its equals. nil: none is left.
func (p *pair) target() *known {
	since := map[model.State]int{}  // when a state first appeared
	firsts := map[model.Class]int{} // and a message, whatever the state
	for i, k := range p.known {
		if _, ok := since[k.class.State]; !ok {
			since[k.class.State] = i
		}
		if _, ok := firsts[stateless(k.class)]; !ok {
			firsts[stateless(k.class)] = i
		}
	}
	again := func(k *known) int {
		if p.known[firsts[stateless(k.class)]] != k {
			return 1
		}
		return 0
	}
	rank := func(k *known) (moved, newest int) {
		switch st := k.class.State; {
		case !p.moved(k):
			return 2, 0
		case st.A == st.B:
			return 1, -since[st]
		default:
			return 0, -since[st]
		}
	}
	var open []*known
	for _, k := range p.known {
		if !k.explored && !k.abandoned {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return slices.MinFunc(open, func(a, b *known) int { // the first of equals
		am, an := rank(a)
		bm, bn := rank(b)
		return cmp.Or(cmp.Compare(am, bm), cmp.Compare(a.misses, b.misses), cmp.Compare(an, bn), cmp.Compare(again(a), again(b)))
	})
}

func stateless(c model.Class) model.Class {
	c.State = model.State{}
	return c
}

// classes returns all known classes, sorted.
func (p *pair) classes() []model.Class {
	var out []model.Class
	for _, k := range p.known {
		out = append(out, k.class)
	}
	slices.SortFunc(out, model.Class.Compare)
	return out
}

func (p *pair) learn(is *issued, r model.RunResult, retries int) {
	p.running = false
	p.tries++
	if !r.Reached {
		p.missed = append(p.missed, is.s.Seed)
		p.miss(retries)
		return
	}
	p.misses, p.missed, p.reached = 0, nil, true
	p.reported = p.reported || len(r.Classes) > 0
	for _, c := range r.Classes {
		p.meet(c)
	}
	progress := false
	if r.HealClass != nil {
		k := p.meet(*r.HealClass)
		progress = !k.explored
		k.explored = true
	}
	if t := is.target; t != nil && !progress {
		t.misses++
		t.abandoned = t.misses > retries
	}
	// Where nobody told the classes met, Algorithm 1 goes on as it stands in
	// the paper, until a run that may heal meets no new class (line 5).
	if p.target() == nil && (p.reported || !is.never && !progress) {
		p.closed = "all classes met are explored"
	}
}

// miss books a run that waited for the state in vain.
func (p *pair) miss(retries int) {
	p.misses++
	if p.misses > retries {
		p.closed = fmt.Sprintf("the state did not occur in %d runs in a row", p.misses)
	}
}

func (p *pair) meet(c model.Class) *known {
	for _, k := range p.known {
		if k.class == c {
			return k
		}
	}
	k := &known{class: c}
	p.known = append(p.known, k)
	return k
}

// stateInfo is an inconsistent state and how it was met.
type stateInfo struct {
	metKey
	runs, count int
	clean       int // how many of runs had nothing to cut
	missed      int // runs that waited for it in vain
	first       string
	firstAt     time.Duration
	nth         int        // its place among those of its shape in that run
	seeds       []*seedUse // under which it was met, in order of discovery
}

// seedUse is how reliably a state recurs under a seed.
type seedUse struct {
	seed uint64
	run  string // the first scenario with it that met the state
	// uncut says that the state was met before anything was cut: the seed alone
	// brings it about.
	uncut       bool
	met, missed int // runs that met the state; runs that waited for it in vain
	count       int // how often the first run that met the state entered it
	nth         int // the state's number there among those of its shape
	first       time.Duration
}

func (s *stateInfo) meet(seed uint64, run string, uncut bool, m model.MetState) {
	u := s.use(seed)
	if u == nil {
		u = &seedUse{seed: seed, run: run, count: m.Count, nth: m.Nth, first: m.First}
		s.seeds = append(s.seeds, u)
	}
	u.met++
	u.uncut = u.uncut || uncut
}

func (s *stateInfo) uncut() bool {
	return slices.ContainsFunc(s.seeds, func(u *seedUse) bool { return u.uncut })
}

func (s *stateInfo) use(seed uint64) *seedUse {
	for _, u := range s.seeds {
		if u.seed == seed {
			return u
		}
	}
	return nil
}

// seed is the known seed to try next. It is nil if each failed since the pair last reached
// its state: then a new one must be drawn. Seeds that need no cut come first, then those
// that failed least often. Equals take turns, within the pair and over all pairs of the
// state: under another seed something may differ that the state's two values do not show,
// such as a message under way. Then come those whose run entered the state most often, then
// earliest.
func (s *stateInfo) seed(p *pair) *seedUse {
	var left []*seedUse
	for _, u := range s.seeds {
		if !slices.Contains(p.missed, u.seed) {
			left = append(left, u)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return slices.MinFunc(left, func(a, b *seedUse) int {
		return cmp.Or(
			model.FalseFirst(b.uncut, a.uncut),
			cmp.Compare(a.missed*(b.met+b.missed), b.missed*(a.met+a.missed)), // share missed
			cmp.Compare(p.used[a.seed], p.used[b.seed]),
			cmp.Compare(a.met+a.missed, b.met+b.missed), // runs made with it
			cmp.Compare(b.count, a.count),
			cmp.Compare(a.first, b.first),
		)
	})
}
