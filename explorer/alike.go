package explorer

import (
	"slices"

	"netsplit/model"
)

// chancy says that the state of a pair may well come about with other nodes: it was
// missed, or it does not name numbers, which recur by their place, and was not met
// in nearly all runs.
func (c *Core) chancy(p *pair) bool {
	if p.misses > 0 {
		return true
	}
	return !p.state.Numbers() && 10*c.states[p.metKey()].runs < 9*c.runs
}

// alike lists the renamings of nodes under which a scenario tests the same, by the
// names in the invariant, the state and the node cut off: each combination that
// another one is not equal to, and whose invariant is explored. A system whose
// nodes are alike meets one of them where the other was chance.
func (c *Core) alike(inv *model.Invariant, p *pair) []model.Renaming {
	var named []model.NodeID
	for _, n := range []model.NodeID{inv.A.Node, inv.B.Node, model.NodeID(inv.A.About), model.NodeID(inv.B.About), model.NodeID(p.state.A), model.NodeID(p.state.B), p.node} {
		if slices.Contains(c.cfg.Nodes, n) && !slices.Contains(named, n) {
			named = append(named, n)
		}
	}
	seen := map[pairKey]bool{p.pairKey: true}
	var out []model.Renaming
	arrange(named, c.cfg.Nodes, func(as []model.NodeID) {
		r := rename(named, as, c.cfg.Nodes)
		i, turned := r.Invariant(inv, c.invariants)
		if i < 0 {
			return
		}
		k := pairKey{c.invariants[i].ID, r.State(p.state, turned), r.Node(p.node)}
		if seen[k] {
			return
		}
		seen[k] = true
		out = append(out, r)
	})
	return out
}

// arrange yields all ways to give each of named another of nodes, or itself.
func arrange(named, nodes []model.NodeID, yield func(as []model.NodeID)) {
	as := make([]model.NodeID, 0, len(named))
	var next func()
	next = func() {
		if len(as) == len(named) {
			yield(as)
			return
		}
		for _, n := range nodes {
			if !slices.Contains(as, n) {
				as = append(as, n)
				next()
				as = as[:len(as)-1]
			}
		}
	}
	next()
}

// rename is named as as, and of the other nodes those that have lost their names
// to them as those whose names are free.
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
