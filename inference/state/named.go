package state

import (
	"maps"
	"slices"

	"netsplit/model"
)

// namedLimit bounds what a variable was about in a run.
const namedLimit = 1000

// named is what the sources of a variable have named in a run, and what those
// that list all there is (absent_for: named) said last.
type named struct {
	all  map[string]bool
	last map[model.NodeID]model.Observation // when and where from each node's last list came
}

// read takes what a source named at a node, and returns what is absent: of what was
// named before, what this one leaves out if it lists all; and of what is named for
// the first time, that it was in no other node's list.
func (n *named) read(s *source, like model.Observation, seen map[string]bool, whole bool) []model.Observation {
	var out []model.Observation
	me := like.Var.Node
	for _, a := range slices.Sorted(maps.Keys(seen)) {
		if n.all[a] || len(n.all) >= namedLimit {
			continue
		}
		n.all[a] = true
		for node, l := range n.last {
			if node != me && (s.v.maxAge == 0 || like.At-l.At <= s.v.maxAge) {
				out = append(out, absent(l, []string{a}, nil)...)
			}
		}
	}
	if s.named && whole {
		n.last[me] = like
		out = append(out, absent(like, slices.Sorted(maps.Keys(n.all)), seen)...)
	}
	return out
}
