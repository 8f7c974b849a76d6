package sequence

import (
	"container/heap"
	"fmt"
	"slices"

	"netsplit/model"
)

// Pairs is pairwise coverage (combinatorial testing; Kuhn, Wallace, Gallo, IEEE TSE 30(6), 2004)
// of recoveries and last faults: each point of a recovery meets each fault that was seen after it,
// once. So a recovery that differs from others by a point that is met elsewhere costs no run, as
// it does with Prioritised, which tells recoveries apart by all of their points. If the last fault
// is independent, the points of the recovery that it causes itself stand for it (FATE §4.3.2).
//
// All single faults are run. Those that add most pairs are kept (greedy set cover), and run in the
// order of Prioritised. by are the keys that tell points apart, nil: as with Prioritised.
func Pairs(by []model.PointKey) Policy {
	if len(by) == 0 {
		by = recoveryKeys()
	}
	return unlikeFirst{pairs{by}}
}

type pairs struct{ by []model.PointKey }

// Name is what users call it.
func (p pairs) Name() string { return "recovery-pairs" }

// Prune keeps a set of sequences that has all pairs.
func (p pairs) Prune(level []Candidate, k *Known) (kept []Candidate, pruned []Pruned, err error) {
	covered := map[string]bool{}
	q := make(gains, 0, len(level))
	for i, c := range level {
		if len(c.IDs) == 1 {
			kept = append(kept, c)
			continue
		}
		of := p.of(c, k)
		q = append(q, gain{at: i, pairs: of, new: len(of)})
	}
	heap.Init(&q)
	for len(q) > 0 {
		// Others that were kept since can only have taken pairs away: what is the best with a
		// count of now is the best (lazy greedy; Minoux 1978).
		g := &q[0]
		fresh := slices.DeleteFunc(g.pairs, func(s string) bool { return covered[s] })
		g.pairs = fresh
		if len(fresh) == 0 {
			pruned = append(pruned, Pruned{Candidate: level[g.at], Policy: p.Name(), Why: "sequences that are run have each point of its recovery with its last fault"})
			heap.Pop(&q)
			continue
		}
		if len(fresh) < g.new {
			g.new = len(fresh)
			heap.Fix(&q, 0)
			continue
		}
		for _, s := range fresh {
			covered[s] = true
		}
		kept = append(kept, level[g.at])
		heap.Pop(&q)
	}
	return kept, pruned, nil
}

// of lists the pairs of a sequence of several faults.
func (p pairs) of(c Candidate, k *Known) []string {
	last := c.IDs[len(c.IDs)-1]
	first, _ := k.Recovery(c.Prefix(), p.by)
	second := []string{string(last)}
	same := ""
	if k.Independent(last) {
		static := withoutNodes(p.by)
		first, _ = k.Recovery(c.Prefix(), static)
		if own, ok := k.Recovery(model.Sequence{last}, static); ok {
			second = orNone(own)
		}
		same = sameNodes(c)
	}
	var out []string
	for _, a := range orNone(first) {
		for _, b := range second {
			out = append(out, fmt.Sprintf("%s\n%s\n%s", a, b, same))
		}
	}
	return out
}

// orNone: that nothing came which clean runs do not have is a behaviour, too.
func orNone(points []string) []string {
	if len(points) == 0 {
		return []string{""}
	}
	return points
}

// gain is a sequence with those of its pairs that no sequence had that was kept when it was last
// looked at.
type gain struct {
	at    int
	pairs []string
	new   int
}

// gains is a heap: most new pairs first, then as in the level.
type gains []gain

func (g gains) Len() int { return len(g) }
func (g gains) Less(i, j int) bool {
	return g[i].new > g[j].new || g[i].new == g[j].new && g[i].at < g[j].at
}
func (g gains) Swap(i, j int) { g[i], g[j] = g[j], g[i] }
func (g *gains) Push(x any)   { *g = append(*g, x.(gain)) }
func (g *gains) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}
