package sequence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// Policy decides which of the sequences of a level are run: those that it keeps
// (PreFail §3.3). It is a function of its arguments.
type Policy interface {
	// Name says which one it is, in words of whoever asked for it.
	Name() string
	// Prune returns the candidates to run, in their order, and the others with the
	// reason. An error ends the search.
	Prune(level []Candidate, k *Known) (kept []Candidate, pruned []Pruned, err error)
}

// Pruned is a sequence that is not run.
type Pruned struct {
	Candidate
	// Policy is the name of what pruned it, Why its reason in words.
	Policy string
	Why    string
	// Like is the sequence that is run in its place, if there is one.
	Like model.Sequence
}

// Filter is a policy that looks at one sequence at a time (PreFail §3.3.1). keep
// returns why a sequence is not kept, "" for one that is.
type Filter struct {
	Title string
	Keep  func(c Candidate, k *Known) (why string, err error)
}

// Name is the title.
func (f Filter) Name() string { return f.Title }

// Prune keeps what the filter lets through.
func (f Filter) Prune(level []Candidate, k *Known) (kept []Candidate, pruned []Pruned, err error) {
	for _, c := range level {
		why, err := f.Keep(c, k)
		if err != nil {
			return nil, nil, err
		}
		if why == "" {
			kept = append(kept, c)
		} else {
			pruned = append(pruned, Pruned{Candidate: c, Policy: f.Title, Why: why})
		}
	}
	return kept, pruned, nil
}

// Cluster is a policy that runs one sequence of those with equal keys (PreFail §3.3.2),
// drawn from the search's seed.
type Cluster struct {
	Title string
	// Key returns what sequences of one cluster have in common; alone: this one is run in any
	// case.
	Key func(c Candidate, k *Known) (key string, alone bool, err error)
	// First runs the one of each cluster whose last point comes first; else it is drawn from the
	// search's seed.
	First bool
}

// Name is the title.
func (c Cluster) Name() string { return c.Title }

// Prune keeps one of each cluster.
func (c Cluster) Prune(level []Candidate, k *Known) (kept []Candidate, pruned []Pruned, err error) {
	var classes [][]Candidate
	at := map[string]int{}
	for _, cand := range level {
		key, alone, err := c.Key(cand, k)
		if err != nil {
			return nil, nil, err
		}
		if i, ok := at[key]; ok && !alone {
			classes[i] = append(classes[i], cand)
			continue
		}
		if !alone {
			at[key] = len(classes)
		}
		classes = append(classes, []Candidate{cand})
	}
	if c.First {
		kept, pruned = represent(c.Title, classes, func(int) int { return 0 })
	} else {
		kept, pruned = Represent(c.Title, classes, k)
	}
	return kept, pruned, nil
}

// Represent draws one sequence of each class from the search's seed. The others are
// pruned by the policy of that name.
func Represent(policy string, classes [][]Candidate, k *Known) (kept []Candidate, pruned []Pruned) {
	return represent(policy, classes, k.chance().IntN)
}

func represent(policy string, classes [][]Candidate, pick func(n int) int) (kept []Candidate, pruned []Pruned) {
	for _, class := range classes {
		i := pick(len(class))
		kept = append(kept, class[i])
		for j, other := range class {
			if j != i {
				pruned = append(pruned, Pruned{Candidate: other, Policy: policy, Like: class[i].IDs,
					Why: fmt.Sprintf("one of %d alike", len(class))})
			}
		}
	}
	return kept, pruned
}

// recoveryKeys tell recoveries apart, unless a user names others: where, between whom,
// what. PreFail §4.4.1 calls it source location and node (Figure 12b). How often, and
// after what, is chance in most systems.
func recoveryKeys() []model.PointKey {
	return []model.PointKey{model.KeySide, model.KeyNode, model.KeyPeer, model.KeyType}
}

// Prioritised is FATE's strategy (§4.3). All single faults are run. Of sequences whose
// last fault depends on those before, one of each recovery behaviour of the prefix and
// each last fault is run (§4.3.1). Of the others, neither which nodes they name matters
// (symmetry), nor which of the faults with equal recovery behaviour they have (§4.3.2).
// The paper gives the strategy for two faults; for more, the behaviour of the prefix is
// that after its last fault. by are the keys that tell recovery behaviours apart, nil:
// side, node, peer and type.
//
// What it keeps is run in an order of its own: those whose last fault hits a recovery first,
// and of these and of the others first those whose last fault is of a kind and at a type that
// none before has, whatever the nodes. So a budget that is too small for all is spent on what
// differs (non-similar scenarios first, §4.3.1; new locations, PreFail §4.3).
func Prioritised(by []model.PointKey) Policy {
	if len(by) == 0 {
		by = recoveryKeys()
	}
	static := withoutNodes(by)
	return unlikeFirst{Cluster{Title: "prioritised", Key: func(c Candidate, k *Known) (string, bool, error) {
		if len(c.IDs) == 1 {
			return "", true, nil
		}
		last, prefix := c.IDs[len(c.IDs)-1], c.Prefix()
		if !k.Independent(last) {
			rec, _ := k.Recovery(prefix, by)
			return "dependent\n" + strings.Join(rec, "\n") + "\n" + string(last), false, nil
		}
		rec, _ := k.Recovery(prefix, static)
		own, ok := k.Recovery(model.Sequence{last}, static)
		if !ok { // its own run is not there to compare
			own = []string{string(last)}
		}
		return "independent\n" + strings.Join(rec, "\n") + "\n\n" + strings.Join(own, "\n") + "\n" + sameNodes(c), false, nil
	}}}
}

func withoutNodes(by []model.PointKey) []model.PointKey {
	return slices.DeleteFunc(slices.Clone(by), func(k model.PointKey) bool { return k == model.KeyNode || k == model.KeyPeer })
}

// sameNodes says of each fault before the last whether it is of the same node: which node it is
// does not matter (symmetry).
func sameNodes(c Candidate) string {
	var same strings.Builder
	for _, f := range c.Faults[:len(c.Faults)-1] {
		fmt.Fprint(&same, f.Node == c.Last().Node, " ")
	}
	return same.String()
}

// unlikeFirst orders what a policy keeps: dependent last faults first, then by how many before
// have an equal last fault but for the nodes and what came before.
type unlikeFirst struct{ Policy }

func (u unlikeFirst) Prune(level []Candidate, k *Known) (kept []Candidate, pruned []Pruned, err error) {
	kept, pruned, err = u.Policy.Prune(level, k)
	alike, rank := map[string]int{}, map[string]int{}
	for _, c := range kept {
		f := c.Last()
		key := fmt.Sprintf("%s %s %s", f.Kind, f.Place, f.Identity([]model.PointKey{model.KeySide, model.KeyType, model.KeyStage}))
		rank[c.IDs.String()] = alike[key]
		alike[key]++
	}
	independent := func(c Candidate) int {
		if len(c.IDs) > 1 && !k.Independent(c.IDs[len(c.IDs)-1]) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(kept, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(independent(a), independent(b)), cmp.Compare(rank[a.IDs.String()], rank[b.IDs.String()]))
	})
	return kept, pruned, err
}
