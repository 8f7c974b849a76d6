package invariant

import (
	"cmp"
	"slices"

	"netsplit/model"
)

// pool is candidates that differ only in which of several like nodes they name: the same
// variables, about the same thing, at messages of one type. Which of them changes often in a
// run is chance; it depends on which node leads, for example. So they are tested together.
// Things (shards, groups, jobs) are pooled in the same way.
//
// In each run a pool uses the candidate with the most changes, since the others mostly show the
// same events. If one candidate is violated, there is no pool, and each is tested alone.
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

// richest returns, for each run, what the candidate with the most changes shows there. On a tie
// the one with more support wins, then the first.
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

// chance is the probability that t holds by chance: its own, or that of its pool where t alone
// does not suffice or the pool's is lower. others is then how many pairs the pool has beside t.
func (o Options) chance(t *test) (p float64, others int) {
	if o.joined(t) && (o.alone(t) != "" || t.like.test.chance < t.chance) {
		return t.like.test.chance, len(t.like.members) - 1
	}
	return t.chance, 0
}
