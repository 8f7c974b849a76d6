package sequence

import (
	"container/heap"

	"netsplit/model"
)

// Pairs is pairwise coverage (combinatorial testing; Kuhn, Wallace, Gallo, IEEE TSE 30(6), 2004)
// of recoveries and last faults: at each level, each point of a recovery comes before each last
// fault at least once. So a recovery costs no run whose points all come in others; Prioritised, which
// tells recoveries apart by all their points, runs it. For a last fault that is independent its kind
// and the points of its own recovery stand (FATE §4.3.2). A bug that needs two points of one
// recovery, or two that are behind one another, can be missed.
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
	names, covered := numbers{}, map[pair]int{}
	q := make(gains, 0, len(level))
	for i, c := range level {
		if len(c.IDs) == 1 {
			kept = append(kept, c)
			continue
		}
		of := p.of(c, k, names)
		q = append(q, gain{at: i, pairs: of, fresh: len(of)})
	}
	heap.Init(&q)
	for len(q) > 0 {
		// Others that were kept since can only have taken pairs away: what is the best with a
		// count of now is the best (lazy greedy; Minoux 1978).
		g := q[0]
		fresh := 0
		by := map[int]int{} // how many of its pairs who has
		for _, s := range g.pairs {
			if i, ok := covered[s]; ok {
				by[i]++
			} else {
				fresh++
			}
		}
		switch {
		case fresh == 0:
			pruned = append(pruned, Pruned{Candidate: level[g.at], Policy: p.Name(), Like: level[most(by)].IDs,
				Why: "others that are kept have each point of its recovery with its last fault"})
			heap.Pop(&q)
		case fresh < g.fresh:
			q[0].fresh = fresh
			heap.Fix(&q, 0)
		default:
			for _, s := range g.pairs {
				if _, ok := covered[s]; !ok {
					covered[s] = g.at
				}
			}
			kept = append(kept, level[g.at])
			heap.Pop(&q)
		}
	}
	return kept, pruned, nil
}

// most is the key with the highest count, the lowest of several.
func most(counts map[int]int) int {
	best := -1
	for i, n := range counts {
		if best < 0 || n > counts[best] || n == counts[best] && i < best {
			best = i
		}
	}
	return best
}

// pair is a point of a recovery and what comes after it, by their numbers; same: at which of the
// nodes of the faults before.
type pair struct{ first, second, same int32 }

// numbers give equal texts one number.
type numbers map[string]int32

func (n numbers) of(s string) int32 {
	i, ok := n[s]
	if !ok {
		i = int32(len(n))
		n[s] = i
	}
	return i
}

// of lists the pairs of a sequence of several faults. That nothing came which clean runs do not
// have is a point of a recovery, too.
func (p pairs) of(c Candidate, k *Known, names numbers) []pair {
	id := c.IDs[len(c.IDs)-1]
	first, _ := k.Recovery(c.Prefix(), p.by)
	second := []string{string(id)}
	same := ""
	if k.Independent(id) {
		static := withoutNodes(p.by)
		first, _ = k.Recovery(c.Prefix(), static)
		if own, ok := k.Recovery(model.Sequence{id}, static); ok {
			second = nil
			for _, point := range orNone(own) {
				second = append(second, string(c.Last().Kind)+" "+point)
			}
		}
		same = sameNodes(c)
	}
	var out []pair
	for _, a := range orNone(first) {
		for _, b := range second {
			out = append(out, pair{names.of(a), names.of(b), names.of(same)})
		}
	}
	return out
}

func orNone(points []string) []string {
	if len(points) == 0 {
		return []string{""}
	}
	return points
}

// gain is a sequence with its pairs, and how many of them no sequence had that was kept when it was
// last looked at.
type gain struct {
	at    int
	pairs []pair
	fresh int
}

// gains is a heap: most fresh pairs first, then as in the level.
type gains []gain

func (g gains) Len() int { return len(g) }
func (g gains) Less(i, j int) bool {
	return g[i].fresh > g[j].fresh || g[i].fresh == g[j].fresh && g[i].at < g[j].at
}
func (g gains) Swap(i, j int) { g[i], g[j] = g[j], g[i] }
func (g *gains) Push(x any)   { *g = append(*g, x.(gain)) }
func (g *gains) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}
