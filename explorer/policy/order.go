package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// Choice is a candidate with its place in the order and the reason for it.
type Choice struct {
	Candidate
	Weight int
	// Rules are the names of the rules that applied.
	Rules []string
	// Later says why the candidate waits until the others are done: it is a
	// duplicate of another one by symmetry, or by the moment it cuts at. ""
	// for the others.
	Later string
}

// Order sorts the candidates, the one to try next first.
//
// Duplicates come last. Among the rest, work is shared as in weighted fair
// queueing: the candidate that after one more try has the fewest tries for its
// weight is next, so that none waits for ever behind one whose runs show
// nothing new. By the weights, a candidate behind whose cut the system moved on gets
// its next try before a promising new one is looked at; then comes the rest. nodes
// are those of the target, for their names. Between equals, those come first whose state
// was met in more runs, then whose invariant saw more changes, then has more
// support, then whose state was entered more often, then which was found first.
func Order(cs []Candidate, rules []Rule, nodes ...model.NodeID) []Choice {
	out := make([]Choice, len(cs))
	for i, c := range cs {
		w, names := Weight(c, rules)
		out[i] = Choice{Candidate: c, Weight: w, Rules: names}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.Seq, b.Seq) })
	markDuplicates(out, nodes)
	slices.SortFunc(out, compare)
	return out
}

func compare(a, b Choice) int {
	return cmp.Or(
		model.FalseFirst(a.Later != "", b.Later != ""),
		cmp.Compare((a.Tries+1)*b.Weight, (b.Tries+1)*a.Weight), // per Weight
		cmp.Compare(b.Weight, a.Weight),
		cmp.Compare(b.StateRuns, a.StateRuns),
		cmp.Compare(b.Invariant.Changes, a.Invariant.Changes),
		cmp.Compare(b.Invariant.Support, a.Invariant.Support),
		cmp.Compare(b.StateCount, a.StateCount),
		cmp.Compare(a.Seq, b.Seq),
	)
}

// markDuplicates marks all but one of each set of duplicates. It keeps, in this order, the
// candidate that also stands for the others; the one that missed its state least of late,
// since chance often decides which of two like states occurs; the one tried most, then the
// one met most often, so that progress is not lost. That one gets the tries of all: a test
// that misses its state under many names gets no more runs than another.
//
// Candidates that differ only in the names of things (tables, containers) may still test
// different things: the container of a master is not that of a task. They are no
// duplicates. But each also has the tries of those before it, so it comes after new ones.
func markDuplicates(cs []Choice, nodes []model.NodeID) {
	var best []*Choice
	like := map[string]int{}
	for i := range cs {
		if !cs[i].Abandoned {
			best = append(best, &cs[i])
		}
	}
	slices.SortStableFunc(best, func(a, b *Choice) int {
		return cmp.Or(model.FalseFirst(b.Stands, a.Stands), cmp.Compare(a.Misses, b.Misses), cmp.Compare(b.Tries, a.Tries), cmp.Compare(b.StateRuns, a.StateRuns), cmp.Compare(b.StateCount, a.StateCount))
	})
	hosts := slices.Clone(nodes)
	for _, c := range cs {
		hosts = append(hosts, c.Invariant.A.Node, c.Invariant.B.Node, c.Node)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	sym, moment := map[string]*Choice{}, map[string]*Choice{}
	for _, c := range best {
		s, m := Symmetry(c.Candidate, hosts), momentOf(c.Candidate)
		if first := sym[s]; first != nil {
			first.Tries += c.Tries
			c.Later = "it is the same up to the names of the nodes as " + name(first)
			continue
		}
		sym[s] = c
		if first := moment[m]; first != nil {
			first.Tries += c.Tries
			c.Later = "it cuts at the same moment as " + name(first)
			continue
		}
		moment[m] = c
	}
	for i := range cs {
		if c := &cs[i]; c.Abandoned {
			like[symmetry(c.Candidate, hosts, true)] += c.Tries
			c.Later = "its state no longer comes about"
		}
	}
	// Who was tried most comes first, so that the others have its tries; who moved on
	// is gone on with whatever its likes had.
	slices.SortStableFunc(best, func(a, b *Choice) int { return cmp.Compare(b.Tries, a.Tries) })
	for _, c := range best {
		if c.Later != "" {
			continue
		}
		l, own := symmetry(c.Candidate, hosts, true), c.Tries
		if !c.Moved {
			c.Tries += like[l]
		}
		like[l] += own
	}
}

func name(c *Choice) string {
	return fmt.Sprintf("%s of %s isolating %s", c.State, &c.Invariant, c.Node)
}

// momentOf is equal for candidates that isolate the same node at the same
// moment: their states, of the same two nodes, were first met by the same
// observation.
func momentOf(c Candidate) string {
	nodes := []string{string(c.Invariant.A.Node), string(c.Invariant.B.Node)}
	slices.Sort(nodes)
	return fmt.Sprintf("%s|%s|%s|%d", c.Node, strings.Join(nodes, ","), c.First, c.FirstAt)
}

// Symmetry is equal for candidates that are the same up to the names of nodes
// and to how far two numbers are apart: that one node is at epoch 2 while the
// other is at 3 is much like 3 and 4.
//
// {LEFT, NORMAL} of status[n1]@n2 == status[n1]@n3 isolating n3 is the same
// test as {NORMAL, LEFT} isolating n2. Isolating one and the other node of one
// state is never the same test, even where the values alone do not tell them
// apart: of {n1, n2}, each node its own leader, one led before. A value that is
// one of the hosts names it; any other stays as it is, as do the names of things.
func Symmetry(c Candidate, hosts []model.NodeID) string { return symmetry(c, hosts, false) }

func symmetry(c Candidate, hosts []model.NodeID, things bool) string {
	a := side{c.Invariant.A, c.State.A}
	b := side{c.Invariant.B, c.State.B}
	x, y := canonical(a, b, c, hosts, things), canonical(b, a, c, hosts, things)
	if y < x {
		a, b, x = b, a, y
	}
	switch c.Node {
	case a.ref.Node:
		return x + "\x00x"
	case b.ref.Node:
		return x + "\x00y"
	}
	return x + "\x00" + string(c.Node)
}

type side struct {
	ref   model.VarRef
	value string
}

// canonical writes the candidate with x for the node of the first side, y for
// that of the second, and z1, z2, … for the other hosts that the variables are
// about, and for things if these are to be like.
func canonical(first, second side, c Candidate, hosts []model.NodeID, things bool) string {
	names := map[string]string{string(first.ref.Node): "x"}
	if _, ok := names[string(second.ref.Node)]; !ok {
		names[string(second.ref.Node)] = "y"
	}
	about := func(s string) string {
		if s == "" {
			return ""
		}
		if n, ok := names[s]; ok {
			return n
		}
		if !things && !slices.Contains(hosts, model.NodeID(s)) {
			return s
		}
		names[s] = fmt.Sprintf("z%d", len(names)-1)
		return names[s]
	}
	value := func(s string) string {
		if slices.Contains(hosts, model.NodeID(s)) {
			return "<" + about(s) + ">"
		}
		return s
	}
	p := []string{c.Invariant.Kind, c.Invariant.Relation, first.ref.Name, about(first.ref.About), second.ref.Name, about(second.ref.About)}
	x, okX := model.Number(first.value)
	y, okY := model.Number(second.value)
	if okX && okY {
		p = append(p, "number", fmt.Sprint(cmp.Compare(x, y)))
	} else {
		p = append(p, value(first.value), value(second.value))
	}
	return strings.Join(p, "\x00")
}
