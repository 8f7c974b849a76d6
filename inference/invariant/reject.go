package invariant

import (
	"cmp"
	"slices"

	"netsplit/model"
)

// Lack says what a pair of variables lacks to be an invariant.
type Lack string

// From the farthest from an invariant to the nearest.
const (
	LackAgreement Lack = "differ"      // they differ in some sample
	LackRuns      Lack = "few runs"    // sampled in fewer runs than Options.MinRuns
	LackSupport   Lack = "few samples" // fewer samples than Options.MinSupport
	LackChanges   Lack = "few changes" // too few changes, or all in one run
	LackChance    Lack = "chance"      // may agree by chance, see Miner.Invariants
)

var lacks = []Lack{LackAgreement, LackRuns, LackSupport, LackChanges, LackChance}

// Rejected is a pair of variables that could have been an invariant and is
// none. Its numbers are of Point, where it came nearest to one.
type Rejected struct {
	A, B   model.VarRef // A sorts before B
	Kind   string
	Lack   Lack
	Point  model.ProgramPoint
	Points int // at which the two were sampled
	Apart  int // of those, at which they differed in some sample
	// Support counts the samples in which they were equal, Differ those in
	// which not, Changes those at which either value changed, Runs the runs
	// with samples; Chance is as in model.Invariant.
	Support, Differ, Changes, Runs int
	Chance                         float64
	// Counter is the first sample in which they differ; nil if none is.
	Counter *model.Sample
}

// Rejected returns the pairs that Invariants left out and what they lack,
// sorted by A, then B. Options are those of Invariants.
func (m *Miner) Rejected(o Options) []Rejected {
	o = o.defaults()
	pairs, factor := m.pairs(o)
	var out []Rejected
	for _, ts := range pairs {
		best, rank, apart := ts[0], -1, 0
		for _, t := range ts {
			if t.violated {
				apart++
			}
			r := len(lacks)
			if l := o.lacks(t); l != "" {
				r = slices.Index(lacks, l)
			} else if p, _ := o.chance(t); p*factor > o.MaxChance && !o.Weak {
				r = slices.Index(lacks, LackChance)
			}
			if cmp.Or(cmp.Compare(r, rank), cmp.Compare(best.differ, t.differ), cmp.Compare(t.support, best.support), best.point.Compare(t.point)) > 0 {
				best, rank = t, r
			}
		}
		if rank < len(lacks) {
			out = append(out, m.rejected(best, lacks[rank], len(ts), apart, factor))
		}
	}
	slices.SortFunc(out, func(a, b Rejected) int { return cmp.Or(a.A.Compare(b.A), a.B.Compare(b.B)) })
	return out
}

// lacks is what keeps a candidate from being kept at its point, apart from
// chance; "" if nothing does, or if pairs that are like it show enough with it.
func (o Options) lacks(t *test) Lack {
	if l := o.alone(t); l == "" || l == LackAgreement || !o.joined(t) {
		return l
	}
	return ""
}

// alone is what a candidate lacks by itself.
func (o Options) alone(t *test) Lack {
	switch {
	case t.violated:
		return LackAgreement
	case len(t.runs) < o.MinRuns:
		return LackRuns
	case t.support < o.MinSupport:
		return LackSupport
	case o.Weak && (t.a.varies || t.b.varies):
		return ""
	case t.changes < o.MinChanges || t.changing < 2:
		return LackChanges
	}
	return ""
}

func (m *Miner) rejected(t *test, l Lack, points, apart int, factor float64) Rejected {
	r := Rejected{A: t.a.ref, B: t.b.ref, Kind: t.a.kind, Lack: l, Point: t.point, Points: points, Apart: apart, Support: t.support,
		Differ: t.differ, Changes: t.changes, Runs: len(t.runs), Chance: min(1, t.chance*factor)}
	if t.violated {
		r.Counter = &model.Sample{Run: t.broken.run, Message: t.broken.message, Point: t.point, Values: []model.VarValue{
			{Var: r.A, Kind: r.Kind, Value: m.names[t.broken.value]}, {Var: r.B, Kind: r.Kind, Value: m.names[t.other]}}}
	}
	return r
}
