package invariant

import (
	"cmp"
	"slices"

	"netsplit/model"
)

// pool is the candidates that become one another when like nodes change places: of
// the same variables, about the same thing, at messages of one type. Which of them
// has much to show in a run is chance, where a run's leader or the node with a
// container is. What one node agrees on with another its like should agree on, too.
// Where nodes agree on each of several things (shards, groups, jobs), all things
// make one pool: which of them changes in a run is chance as well.
//
// A pool counts of each run the candidate that changed most: what the others show
// there is mostly the same events. If one of its candidates differs somewhere, the
// others speak for themselves alone.
type pool struct {
	test    *test
	members []*test
}

// shape is what the candidates of a pool have in common. Ends are told as from and
// to, since a candidate's order is that of names.
type shape struct {
	typ, kind        string
	from, to         string // what the nodes are like
	nameFrom, nameTo string
	onFrom, onTo     subject
	things           bool // about any thing, each node about the same
}

// subject is what a variable is about: one of the two nodes, another one like that,
// or a thing.
type subject struct{ node, thing string }

func (m *Miner) pools(tests []*test, like func(model.NodeID) string) []*pool {
	if like == nil {
		return nil
	}
	tests = slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return like(t.point.From) == "" || like(t.point.To) == "" })
	var out []*pool
	count := newCounter(len(m.names))
	for _, all := range grouped(tests, func(t *test) shape { return shapeOf(t, like).ofAny() }) {
		parts := map[shape][]*test{{}: all}
		if slices.ContainsFunc(all, differs) { // each thing for itself
			parts = grouped(all, func(t *test) shape { return shapeOf(t, like) })
		}
		for _, ts := range parts {
			if len(ts) < 2 || slices.ContainsFunc(ts, differs) {
				continue
			}
			slices.SortFunc(ts, func(a, b *test) int {
				return cmp.Or(a.point.Compare(b.point), a.a.ref.Compare(b.a.ref), a.b.ref.Compare(b.b.ref))
			})
			p := &pool{test: evaluate(ts[0].a, ts[0].b, m.richest(ts, count), count), members: ts}
			for _, t := range ts {
				t.like = p
			}
			out = append(out, p)
		}
	}
	return out
}

func differs(t *test) bool { return t.violated }

func grouped(tests []*test, of func(*test) shape) map[shape][]*test {
	out := map[shape][]*test{}
	for _, t := range tests {
		s := of(t)
		out[s] = append(out[s], t)
	}
	return out
}

// ends are a candidate's variables of the sender and of the receiver.
func ends(t *test) (from, to model.VarRef) {
	if t.a.ref.Node == t.point.From {
		return t.a.ref, t.b.ref
	}
	return t.b.ref, t.a.ref
}

func shapeOf(t *test, like func(model.NodeID) string) shape {
	from, to := ends(t)
	about := func(v model.VarRef) subject {
		switch n := model.NodeID(v.About); {
		case v.About == "":
			return subject{}
		case n == from.Node:
			return subject{node: "from"}
		case n == to.Node:
			return subject{node: "to"}
		case like(n) != "":
			return subject{node: "other", thing: like(n)}
		}
		return subject{thing: v.About}
	}
	return shape{typ: t.point.Type, kind: t.a.kind, from: like(from.Node), to: like(to.Node),
		nameFrom: from.Name, nameTo: to.Name, onFrom: about(from), onTo: about(to)}
}

func (s shape) ofAny() shape {
	if s.onFrom == s.onTo && s.onFrom.node == "" && s.onFrom.thing != "" {
		s.onFrom.thing, s.onTo.thing = "", ""
		s.things = true
	}
	return s
}

// richest is of each run what the candidate with the most changes shows there, of
// equals the first.
func (m *Miner) richest(ts []*test, count *counter) []part {
	type found struct {
		part
		changes, support int
	}
	best := map[string]found{}
	for _, t := range ts {
		for _, run := range t.runs {
			from, to := ends(t)
			p := part{run, m.traces[t.point][run], from, to}
			one := evaluate(t.a, t.b, []part{p}, count)
			if b, ok := best[run]; !ok || cmp.Or(one.changes-b.changes, one.support-b.support) > 0 {
				best[run] = found{p, one.changes, one.support}
			}
		}
	}
	var out []part
	for _, f := range best {
		out = append(out, f.part)
	}
	slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.run, b.run) })
	return out
}

// joined says whether a candidate's pool shows enough for all that are in it.
func (o Options) joined(t *test) bool { return t.like != nil && o.alone(t.like.test) == "" }

// chance is that of a candidate by itself, or that of its pool where that tells
// more; like is then how many pairs were counted with it.
func (o Options) chance(t *test) (p float64, like int) {
	if o.joined(t) && (o.alone(t) != "" || t.like.test.chance < t.chance) {
		return t.like.test.chance, len(t.like.members) - 1
	}
	return t.chance, 0
}
