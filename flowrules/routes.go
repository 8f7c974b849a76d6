package flowrules

import (
	"cmp"
	"fmt"
	"slices"

	"netsplit/model"
)

// Route is how one switch of several is linked.
type Route struct {
	Trunks []model.Port // its ports towards other switches, sorted
	Tree   []model.Port // those by which broadcasts go, sorted
	// Via is the port towards another switch by a shortest way, From the one by
	// which its broadcasts come. Switches that no link leads to are missing.
	Via, From map[model.DatapathID]model.Port
}

// Far is how many hosts of the testbed are on other switches that links lead to.
func (r Route) Far(t model.Testbed) (n int) {
	for _, h := range t.Hosts {
		if _, linked := r.Via[h.Datapath]; linked {
			n++
		}
	}
	return n
}

// Routes finds the ways between switches. Broadcasts go over a spanning tree: the
// shortest ways from the switch with the lowest id of those that hang together.
// Of ways that are equally short the one by the lowest next switch and port is
// taken, so that equal links always give equal routes, and no packet goes round.
// Ports are those of the file: what number a name has now makes no difference.
func Routes(links []model.SwitchLink) (map[model.DatapathID]Route, error) {
	type hop struct {
		port model.Port
		to   model.DatapathID
	}
	out, hops := map[model.DatapathID]Route{}, map[model.DatapathID][]hop{}
	seen := map[model.SwitchPort]bool{}
	for _, l := range links {
		if l.A.Datapath == l.B.Datapath {
			return nil, fmt.Errorf("flow rules: link from switch %s port %v to port %v of the same switch: leave it out", l.A.Datapath, l.A.Port, l.B.Port)
		}
		for _, e := range []struct{ at, to model.SwitchPort }{{l.A, l.B}, {l.B, l.A}} {
			if seen[e.at] {
				return nil, fmt.Errorf("flow rules: port %v of switch %s is in two links: a link has two ports of its own", e.at.Port, e.at.Datapath)
			}
			seen[e.at] = true
			hops[e.at.Datapath] = append(hops[e.at.Datapath], hop{e.at.Port, e.to.Datapath})
		}
	}
	var ids []model.DatapathID
	for id, h := range hops {
		ids = append(ids, id)
		slices.SortFunc(h, func(a, b hop) int { return cmp.Or(cmp.Compare(a.to, b.to), a.port.Compare(b.port)) })
		r := Route{Via: map[model.DatapathID]model.Port{}, From: map[model.DatapathID]model.Port{}}
		for _, x := range h {
			r.Trunks = append(r.Trunks, x.port)
		}
		slices.SortFunc(r.Trunks, model.Port.Compare)
		out[id] = r
	}
	slices.Sort(ids)
	// walk visits switches from the nearest on and says by which port of root,
	// and from which switch, each was reached first.
	walk := func(root model.DatapathID, next func(model.DatapathID) []hop, reach func(id, before model.DatapathID, first model.Port)) {
		first, queue := map[model.DatapathID]model.Port{root: {}}, []model.DatapathID{root}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, x := range next(at) {
				if _, was := first[x.to]; was {
					continue
				}
				first[x.to] = first[at]
				if at == root {
					first[x.to] = x.port
				}
				reach(x.to, at, first[x.to])
				queue = append(queue, x.to)
			}
		}
	}
	whole := func(id model.DatapathID) []hop { return hops[id] }
	branch := map[model.DatapathID][]hop{} // of the trees
	in := map[model.DatapathID]bool{}
	for _, root := range ids {
		if in[root] {
			continue
		}
		in[root] = true
		walk(root, whole, func(id, before model.DatapathID, _ model.Port) {
			in[id] = true
			there := hops[before][slices.IndexFunc(hops[before], func(x hop) bool { return x.to == id })]
			branch[before] = append(branch[before], there)
			for _, l := range links { // the other end of that very link
				for _, e := range []struct{ at, to model.SwitchPort }{{l.A, l.B}, {l.B, l.A}} {
					if e.at == (model.SwitchPort{Datapath: before, Port: there.port}) {
						branch[id] = append(branch[id], hop{e.to.Port, before})
					}
				}
			}
		})
	}
	for _, id := range ids {
		r := out[id]
		for _, x := range branch[id] {
			r.Tree = append(r.Tree, x.port)
		}
		slices.SortFunc(r.Tree, model.Port.Compare)
		walk(id, whole, func(to, _ model.DatapathID, first model.Port) { r.Via[to] = first })
		walk(id, func(at model.DatapathID) []hop { return branch[at] }, func(to, _ model.DatapathID, first model.Port) { r.From[to] = first })
		out[id] = r
	}
	return out, nil
}
