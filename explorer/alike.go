package explorer

import (
	"slices"

	"netsplit/model"
)

// maxAlike bounds the ways in which one scenario may come about.
const maxAlike = 60

// chancy says that the state of a pair may well come about with other nodes: a run
// missed it, or it does not name numbers, which recur by their place, and was not
// met in all runs without a cut.
func (c *Core) chancy(p *pair) bool {
	s := c.states[p.metKey()]
	return s.missed > 0 || !p.state.Numbers() && s.clean < len(c.clean)
}

// like is a pair that tests the same as another one with other nodes.
type like struct {
	pairKey
	names model.Renaming // of the other one's nodes
}

// alike lists what tests the same as the pair with other nodes, by the names in
// the invariant, the state and the node cut off. Each has a state of its own, of
// an invariant that is explored. A system whose nodes are alike meets one of them
// where the other was chance.
func (c *Core) alike(inv *model.Invariant, p *pair) []like {
	if !p.compared {
		p.likes, p.compared = c.compare(inv, p), true
	}
	return p.likes
}

func (c *Core) compare(inv *model.Invariant, p *pair) []like {
	var named []model.NodeID
	for _, n := range []model.NodeID{inv.A.Node, inv.B.Node, model.NodeID(inv.A.About), model.NodeID(inv.B.About), model.NodeID(p.state.A), model.NodeID(p.state.B), p.node} {
		if slices.Contains(c.cfg.Nodes, n) && !slices.Contains(named, n) {
			named = append(named, n)
		}
	}
	seen := map[metKey]bool{p.metKey(): true}
	var out []like
	arrange(named, c.cfg.Nodes, func(as []model.NodeID) bool {
		r := rename(named, as, c.cfg.Nodes)
		i, turned := r.Invariant(inv, c.invariants)
		if i < 0 {
			return true
		}
		k := pairKey{c.invariants[i].ID, r.State(p.state, turned), r.Node(p.node)}
		if m := (metKey{k.inv, k.state}); !seen[m] {
			seen[m] = true
			out = append(out, like{k, r})
		}
		return len(out) < maxAlike
	})
	return out
}

// standsFor says which other nodes a run of the pair may take. None where a like
// pair got further: what its runs tested would only be tested again.
func (c *Core) standsFor(inv *model.Invariant, p *pair) []like {
	if !c.chancy(p) {
		return nil
	}
	likes := c.alike(inv, p)
	for _, l := range likes {
		q := c.pairs[l.pairKey]
		if q != nil && (q.reached || q.running) && (q.tries > p.tries || q.tries == p.tries && q.seq < p.seq) {
			return nil
		}
	}
	return likes
}

// missed books that a run waited in vain for the pairs like its own, too.
func (c *Core) missed(is *issued) {
	for _, l := range is.likes {
		if q := c.pairs[l.pairKey]; q != nil && !q.running && !q.reached && q.closed == "" {
			q.miss(c.cfg.Retries)
		}
	}
}

// arrange yields all ways to give each of named another of nodes, or itself, until
// yield wants no more.
func arrange(named, nodes []model.NodeID, yield func(as []model.NodeID) bool) {
	as := make([]model.NodeID, 0, len(named))
	var next func() bool
	next = func() bool {
		if len(as) == len(named) {
			return yield(as)
		}
		for _, n := range nodes {
			if slices.Contains(as, n) {
				continue
			}
			as = append(as, n)
			more := next()
			as = as[:len(as)-1]
			if !more {
				return false
			}
		}
		return true
	}
	next()
}

func rename(named, as, nodes []model.NodeID) model.Renaming {
	r := model.Renaming{}
	for i, n := range named {
		if n != as[i] {
			r[n] = as[i]
		}
	}
	var free []model.NodeID // in use by nobody now
	for _, n := range named {
		if !slices.Contains(as, n) {
			free = append(free, n)
		}
	}
	for _, n := range nodes {
		if slices.Contains(as, n) && !slices.Contains(named, n) {
			r[n], free = free[0], free[1:]
		}
	}
	return r
}
