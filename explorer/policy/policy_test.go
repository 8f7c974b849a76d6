package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

func status(about, a, b model.NodeID) model.Invariant {
	return model.Invariant{Kind: "status", Relation: model.RelationEqual,
		A: model.VarRef{Name: "status", About: string(about), Node: a}, B: model.VarRef{Name: "status", About: string(about), Node: b}}
}

func leader(a, b model.NodeID) model.Invariant {
	return model.Invariant{Kind: "leader", Relation: model.RelationEqual, A: model.VarRef{Name: "leader", Node: a}, B: model.VarRef{Name: "leader", Node: b}}
}

func cand(i model.Invariant, a, b string, n model.NodeID) Candidate {
	return Candidate{Invariant: i, State: model.State{A: a, B: b}, Node: n}
}

var nodes = []model.NodeID{"n1", "n2", "n3"}

func TestSymmetry(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y Candidate
		same bool
	}{
		{"sides swapped", cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n1", "n2", "n3"), "NORMAL", "LEFT", "n2"), true},
		{"other side isolated", cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n2"), false},
		{"another member", cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n2", "n1", "n3"), "LEFT", "NORMAL", "n3"), true},
		{"about one of the two", cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n2", "n2", "n3"), "LEFT", "NORMAL", "n3"), false},
		{"about oneself", cand(status("n1", "n1", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n1", "n1", "n2"), "LEFT", "NORMAL", "n2"), true},
		{"other values", cand(status("n1", "n2", "n3"), "LEFT", "NORMAL", "n3"), cand(status("n1", "n2", "n3"), model.Absent, "NORMAL", "n3"), false},
		{"values that name nodes", cand(leader("n1", "n2"), "n1", "n2", "n1"), cand(leader("n2", "n3"), "n2", "n3", "n2"), true},
		{"one's own leader or the other's", cand(leader("n1", "n2"), "n1", "n2", "n1"), cand(leader("n1", "n2"), "n2", "n1", "n1"), false},
		{"both nodes of a state like its mirror", cand(leader("n1", "n2"), "n1", "n2", "n1"), cand(leader("n1", "n2"), "n1", "n2", "n2"), false},
	} {
		if got := Symmetry(c.x, nodes) == Symmetry(c.y, nodes); got != c.same {
			t.Errorf("%s: same %v, want %v\n%q\n%q", c.name, got, c.same, Symmetry(c.x, nodes), Symmetry(c.y, nodes))
		}
	}
}

// TestSymmetryHoldsUnderRenaming: a consistent renaming of the nodes never
// changes the signature.
func TestSymmetryHoldsUnderRenaming(t *testing.T) {
	values := []string{"n1", "n2", "n3", "LEFT", "NORMAL"}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		perm := r.Perm(3)
		to := func(s string) string {
			if i := slices.Index(nodes, model.NodeID(s)); i >= 0 {
				return string(nodes[perm[i]])
			}
			return s
		}
		ab := r.Perm(3)
		i := status(nodes[r.IntN(3)], nodes[ab[0]], nodes[ab[1]])
		c := cand(i, values[r.IntN(5)], values[r.IntN(5)], nodes[ab[r.IntN(2)]])
		d := cand(status(model.NodeID(to(i.A.About)), model.NodeID(to(string(i.A.Node))), model.NodeID(to(string(i.B.Node)))), to(c.State.A), to(c.State.B), model.NodeID(to(string(c.Node))))
		if r.IntN(2) == 0 && Symmetry(c, nodes) == Symmetry(cand(i, c.State.A, c.State.B, other(i, c.Node)), nodes) {
			t.Fatalf("seed %d: both nodes of %+v look alike", seed, c)
		}
		// A state that mirrors itself leaves open which side is first.
		if mirror := (side{d.Invariant.A, d.State.A}); canonical(mirror, side{d.Invariant.B, d.State.B}, d, nodes, false) == canonical(side{d.Invariant.B, d.State.B}, mirror, d, nodes, false) {
			continue
		}
		if Symmetry(c, nodes) != Symmetry(d, nodes) {
			t.Fatalf("seed %d: %q and %q\n%+v\n%+v", seed, Symmetry(c, nodes), Symmetry(d, nodes), c, d)
		}
	}
}

func other(i model.Invariant, n model.NodeID) model.NodeID {
	if i.A.Node == n {
		return i.B.Node
	}
	return i.A.Node
}

func TestRules(t *testing.T) {
	rules := Rules()
	for _, c := range []struct {
		name string
		c    Candidate
		want string
	}{
		{"nothing known", cand(status("n1", "n2", "n3"), "a", "b", "n2"), ""},
		{"leader", cand(leader("n1", "n2"), "n1", "n3", "n2"), "leader"},
		{"isolates whom a value names", cand(leader("n1", "n2"), "n1", "n3", "n1"), "leader, isolates the leader"},
		{"isolates by role", Candidate{Invariant: model.Invariant{Kind: "role", A: model.VarRef{Node: "n1"}, B: model.VarRef{Node: "n2"}}, State: model.State{A: "replica", B: "master"}, Node: "n2"}, "leader, isolates the leader"},
		{"the other by role", Candidate{Invariant: model.Invariant{Kind: "role", A: model.VarRef{Node: "n1"}, B: model.VarRef{Node: "n2"}}, State: model.State{A: "replica", B: "master"}, Node: "n1"}, "leader"},
		{"half", Candidate{StateRuns: 2, AllRuns: 4}, "often met"},
		{"less than half", Candidate{StateRuns: 1, AllRuns: 4}, ""},
		{"always", Candidate{StateRuns: 9, AllRuns: 10}, "often met, nearly always met"},
		{"behind a cut only", Candidate{StateRuns: 1, AllRuns: 4}, ""},
		{"moved", Candidate{Looked: true, Moved: true}, "moved on"},
		{"not looked", Candidate{Uncut: true}, "not looked"},
		{"looked", Candidate{Uncut: true, Looked: true}, "shortest cut"},
		{"looked and healed", Candidate{Uncut: true, Looked: true, Healed: true}, ""},
	} {
		w, names := Weight(c.c, rules)
		if got := strings.Join(names, ", "); got != c.want || w < 1 {
			t.Errorf("%s: weight %d by %q, want %q", c.name, w, got, c.want)
		}
	}
	for _, r := range rules {
		if r.Why == "" || r.Weight < 1 {
			t.Errorf("rule %q has no reason or no weight", r.Name)
		}
	}
}

// TestOrderStarvesNobody: whatever the weights, every candidate that stays
// open is tried again and again, in proportion to its weight.
func TestOrderStarvesNobody(t *testing.T) {
	var cs []Candidate
	for i := range 6 {
		c := cand(status(model.NodeID(string(rune('p'+i))), "n1", "n2"), string(rune('a'+i)), "x", "n1")
		c.Seq, c.First, c.FirstAt = i, "s1", int64(i)
		c.StateRuns, c.AllRuns, c.Uncut, c.Looked, c.Moved = i, 5, true, i < 3, i == 2
		cs = append(cs, c)
	}
	sum := 0
	for _, c := range cs {
		w, _ := Weight(c, Rules())
		sum += w
	}
	for range 200 {
		first := Order(cs, Rules())[0]
		cs[first.Seq].Tries++
	}
	for _, c := range cs {
		w, _ := Weight(c, Rules())
		if share := 200 * w / sum; c.Tries < max(share-1, 1) || c.Tries > share+2 {
			t.Errorf("candidate %d of weight %d in %d was tried %d times of 200", c.Seq, w, sum, c.Tries)
		}
	}
	if cs[5].Tries <= cs[1].Tries {
		t.Errorf("a state nearly always met was tried %d times, one seldom met %d times", cs[5].Tries, cs[1].Tries)
	}
}

// TestOrderLooksThenMovesThenRests: a pair behind whose cut the system moved on
// is gone on with at once; then all pairs are looked at, leaders or not; then
// come the other classes met after the system moved on, and between them the
// shortest cuts of pairs without any; the rest waits.
func TestOrderLooksThenMovesThenRests(t *testing.T) {
	moved := map[int]int{0: 0, 1: 3, 2: 0, 3: 2} // classes by candidate
	var cs []Candidate
	for i, inv := range []model.Invariant{leader("n1", "n2"), leader("n1", "n3"), status("p", "n1", "n2"), status("q", "n1", "n2")} {
		c := cand(inv, string(rune('a'+i)), "x", "n1")
		c.Seq, c.First, c.FirstAt, c.StateRuns, c.AllRuns, c.Uncut = i, "s1", int64(i), 4-i, 4, true
		cs = append(cs, c)
	}
	var got []int
	for range 12 {
		i := Order(cs, Rules())[0].Seq
		got = append(got, i)
		c := &cs[i]
		if c.Looked && c.Moved {
			moved[i]--
		}
		c.Tries++
		c.Looked, c.Healed, c.Moved = true, c.Tries > 1, moved[i] > 0
	}
	if want := []int{0, 1, 1, 2, 3, 3, 1, 3, 0, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v: all four, 1 and 3 twice in a row; then both once more; then the shortest cut of 0, what is left of 1, the shortest cut of 2", got, want)
	}
}

// TestOrderIsAFunction: the order does not depend on that of the input.
func TestOrderIsAFunction(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cs []Candidate
	for i := range 30 {
		c := cand(leader("n1", "n2"), string(rune('a'+r.IntN(5))), "x", []model.NodeID{"n1", "n2"}[r.IntN(2)])
		c.Seq, c.Tries, c.First, c.FirstAt, c.StateRuns, c.AllRuns = i, r.IntN(3), "s1", int64(r.IntN(9)), r.IntN(4), 4
		cs = append(cs, c)
	}
	seqs := func(cs []Candidate) []int {
		var out []int
		for _, c := range Order(cs, Rules()) {
			out = append(out, c.Seq)
		}
		return out
	}
	want := seqs(cs)
	for range 20 {
		r.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		if got := seqs(cs); !slices.Equal(got, want) {
			t.Fatalf("order %v, before %v", got, want)
		}
	}
}

// TestOffsets: CoFI §5.1.3, first uniform in [0, longest], second in [first,
// longest].
func TestOffsets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const longest, n = 4 * time.Second, 20000
	var cuts, heals time.Duration
	for range n {
		cut, heal := Offsets(r, longest)
		if cut < 0 || heal < cut || heal > longest {
			t.Fatalf("cut %s, heal %s", cut, heal)
		}
		cuts += cut
		heals += heal
	}
	if m := cuts / n; m < 1950*time.Millisecond || m > 2050*time.Millisecond {
		t.Errorf("mean cut %s, want 2 s", m)
	}
	if m := heals / n; m < 2950*time.Millisecond || m > 3050*time.Millisecond {
		t.Errorf("mean heal %s, want 3 s", m)
	}
	if cut, heal := Offsets(r, 0); cut != 0 || heal <= 0 {
		t.Errorf("no length: cut %s, heal %s", cut, heal)
	}
	if Node(r, nil) != "" {
		t.Error("a node was drawn from none")
	}
}

// TestMissedStateGivesWayToItsLike: of two pairs that are one test up to names,
// the second is tried once the first missed its state, and the other way round.
func TestMissedStateGivesWayToItsLike(t *testing.T) {
	i := status("n1", "n2", "n3")
	cs := []Candidate{cand(i, "LEFT", "NORMAL", "n3"), cand(i, "NORMAL", "LEFT", "n2")}
	for j := range cs {
		cs[j].Seq, cs[j].First, cs[j].FirstAt, cs[j].Uncut = j, "s1", int64(j), true
	}
	var got []int
	for range 4 { // each misses
		first := Order(cs, Rules())[0].Seq
		got = append(got, first)
		cs[first].Tries++
		cs[first].Misses++
	}
	if !slices.Equal(got, []int{0, 1, 0, 1}) {
		t.Errorf("order %v, want them to take turns", got)
	}
	cs[0].Misses, cs[0].Looked = 0, true // reached
	if first := Order(cs, Rules())[0]; first.Seq != 0 || first.Later != "" {
		t.Errorf("the one whose state occurred is %+v", first)
	}
}

// TestOneTestUnderManyNamesGetsNoMoreRuns: states that are one test but for
// how far two numbers are apart, of which none recurs, share the runs of one
// candidate.
func TestOneTestUnderManyNamesGetsNoMoreRuns(t *testing.T) {
	cs := []Candidate{cand(status("x", "n1", "n2"), "a", "b", "n1")}
	for _, v := range [][2]string{{"1", "2"}, {"3", "4"}, {"5", "6"}, {"7", "8"}, {"8", "9"}} {
		cs = append(cs, cand(status("p", "n1", "n2"), v[0], v[1], "n1"))
	}
	for j := range cs {
		cs[j].Seq, cs[j].First, cs[j].FirstAt, cs[j].Uncut = j, "s1", int64(j), true
	}
	for range 10 {
		first := Order(cs, nil)[0].Seq
		cs[first].Tries++
		if first > 0 {
			cs[first].Misses++
		}
	}
	if cs[0].Tries < 4 {
		t.Errorf("of 10 runs the one state that occurs got %d, the five that do not and are one test %d", cs[0].Tries, 10-cs[0].Tries)
	}
}

// TestNumbersApartAreAlike: how far two numbers are apart makes no new test,
// which of them is ahead does.
func TestNumbersApartAreAlike(t *testing.T) {
	hosts := []model.NodeID{"n1", "n2", "n3"}
	sym := func(a, b string) string { return Symmetry(cand(status("p", "n1", "n2"), a, b, "n1"), hosts) }
	if sym("2", "3") != sym("3", "7") || sym("#1", "#2") != sym("#4", "#5") {
		t.Error("behind by one and behind by four are two tests")
	}
	if sym("2", "3") == sym("3", "2") || sym("2", "3") == sym("2", "b") || sym("a", "b") == sym("a", "c") {
		t.Error("states that differ in more than the distance of numbers are one test")
	}
}

// TestLikeThingsComeBehindWhatIsNew: the same state of another container is
// looked at after what was not seen in any form, but before that has run out.
func TestLikeThingsComeBehindWhatIsNew(t *testing.T) {
	about := func(kind, thing, a, b string, seq int) Candidate {
		i := status(model.NodeID(thing), "n1", "n2")
		i.Kind = kind
		c := cand(i, a, b, "n1")
		c.Seq, c.First, c.FirstAt, c.Uncut = seq, "s1", int64(seq), true
		return c
	}
	cs := []Candidate{
		about("container", "0001_01_000002", "n2", "∅", 0),
		about("container", "0001_01_000003", "n2", "∅", 1),
		about("container", "0001_01_000001", "n2", "∅", 2),
		about("application", "0001", "ACCEPTED", "RUNNING", 3),
		about("application", "0001", "FINISHED", "RUNNING", 4),
	}
	var got []int
	for range len(cs) {
		first := Order(cs, Rules())[0]
		if first.Later != "" {
			t.Fatalf("%s waits until all is done: %s", &first.Invariant, first.Later)
		}
		got = append(got, first.Seq)
		cs[first.Seq].Tries++
		cs[first.Seq].Looked, cs[first.Seq].Healed = true, true
	}
	if want := []int{0, 3, 4, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("tried in the order %v, want %v: a container, what is no container, then the other containers", got, want)
	}
}

// TestLikeThingsThatMissComeBehindWhatIsNew: one test whose state does not occur is
// not tried under all its names first, also not when the first of them was given up.
func TestLikeThingsThatMissComeBehindWhatIsNew(t *testing.T) {
	var cs []Candidate
	for i := range 8 {
		i2 := status(model.NodeID(fmt.Sprintf("t%d", i)), "n1", "n2")
		c := cand(i2, "a", "b", "n1")
		if i >= 4 { // four that are no likes
			c = cand(i2, "a", fmt.Sprint("c", i), "n1")
		}
		c.Seq, c.First, c.FirstAt, c.Uncut = i, "s1", int64(i), true
		cs = append(cs, c)
	}
	var got []int
	for range 5 {
		first := Order(cs, Rules())[0].Seq
		got = append(got, first)
		cs[first].Tries++
		if first < 4 {
			cs[first].Misses++
			cs[first].Abandoned = true
		} else {
			cs[first].Looked = true
		}
	}
	if want := []int{0, 4, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("tried in the order %v, want %v", got, want)
	}
	for _, c := range Order(cs, Rules()) {
		if c.Abandoned != (c.Later != "") {
			t.Errorf("%d: given up %v, later %q", c.Seq, c.Abandoned, c.Later)
		}
	}
}

// TestWhoMovedOnIsGoneOnWith, however often what is like it was tried.
func TestWhoMovedOnIsGoneOnWith(t *testing.T) {
	a, b, other := cand(status("t1", "n1", "n2"), "a", "b", "n1"), cand(status("t2", "n1", "n2"), "a", "b", "n1"), cand(status("t3", "n1", "n2"), "a", "c", "n1")
	for i, c := range []*Candidate{&a, &b, &other} {
		c.Seq, c.First, c.FirstAt, c.Uncut = i, "s1", int64(i), true
	}
	a.Tries, a.Looked, a.Healed = 5, true, true
	b.Tries, b.Looked, b.Moved = 1, true, true
	if first := Order([]Candidate{a, b, other}, Rules())[0].Seq; first != 1 {
		t.Errorf("candidate %d is first, want the one behind whose cut the system moved on", first)
	}
}

// TestNodesOfTheTargetAreHosts, also those that no candidate isolates or asks.
func TestNodesOfTheTargetAreHosts(t *testing.T) {
	a, b := cand(status("d1", "n1", "n2"), "a", "b", "n1"), cand(status("d2", "n1", "n2"), "a", "b", "n1")
	a.First, b.First, b.Seq, b.FirstAt = "s1", "s1", 1, 1
	if cs := Order([]Candidate{a, b}, Rules(), "n1", "n2", "d1", "d2"); cs[0].Later != "" || cs[1].Later == "" {
		t.Errorf("%q, %q: want one duplicate up to the names of nodes", cs[0].Later, cs[1].Later)
	}
	if cs := Order([]Candidate{a, b}, Rules(), "n1", "n2"); cs[0].Later != "" || cs[1].Later != "" {
		t.Errorf("%q, %q: things are no nodes", cs[0].Later, cs[1].Later)
	}
}
