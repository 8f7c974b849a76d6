package state

import (
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// namedLimit bounds what a variable was about in a run.
const namedLimit = 1000

// goneFor is for how many times its max_age a variable is observed as absent of what
// has gone.
const goneFor = 5

// named is what the sources of a variable have named in a run, and what those
// that list all there is (absent_for: named) said last.
type named struct {
	maxAge time.Duration                      // of the variable; 0: no bound
	all    map[string]time.Duration           // when each was named last
	last   map[model.NodeID]model.Observation // when and where from each node's last list came
}

// before takes what a source named at a node, and returns of what is named for the
// first time that it was in no other node's list. No source wants it: nil.
func (n *named) before(like model.Observation, seen map[string]bool) []model.Observation {
	if n == nil {
		return nil
	}
	var out []model.Observation
	for _, a := range slices.Sorted(maps.Keys(seen)) {
		_, known := n.all[a]
		if !known && len(n.all) >= namedLimit {
			continue
		}
		if n.all[a] = like.At; known {
			continue
		}
		for node, l := range n.last {
			if node != like.Var.Node && (n.maxAge == 0 || like.At-l.At <= n.maxAge) {
				out = append(out, absent(l, []string{a}, nil)...)
			}
		}
	}
	return out
}

// list takes the names in a list of all there is, and returns what was named before and
// is absent in it. What nobody has named for so long that all lists have said so is
// forgotten, or a system in which things come and go would be slower with every one.
func (n *named) list(like model.Observation, seen map[string]bool) []model.Observation {
	n.last[like.Var.Node] = like
	if n.maxAge > 0 {
		maps.DeleteFunc(n.all, func(_ string, last time.Duration) bool { return like.At-last > goneFor*n.maxAge })
	}
	return absent(like, slices.Sorted(maps.Keys(n.all)), seen)
}
