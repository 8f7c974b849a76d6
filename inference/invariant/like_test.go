package invariant

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// members are n2 and n3; n1 coordinates.
func members(n model.NodeID) string {
	return map[model.NodeID]string{"n1": "coordinator", "n2": "member", "n3": "member"}[n]
}

func point(from, to model.NodeID) model.ProgramPoint {
	return model.ProgramPoint{From: from, To: to, Type: "hello"}
}

// placed are runs in which n1 and one of the members agree on something that takes
// n values, and on which of them is chance.
func placed(n int, where ...model.NodeID) (out []runSamples) {
	for i, on := range where {
		out = append(out, runSamples{fmt.Sprint("r", i), twin(point("n1", on), counting(n), counting(n))})
	}
	return out
}

func TestLikeNodesShowTogether(t *testing.T) {
	named := func(runs []runSamples, o Options) (out []string) {
		for _, i := range mine(runs, o) {
			out = append(out, fmt.Sprintf("%s, %d in %d runs, like %d", i.String(), i.Support, i.Runs, i.Like))
		}
		return out
	}
	differs := func(from, to model.NodeID) []runSamples {
		return []runSamples{{"r9", twin(point(from, to), []string{"1"}, []string{"2"})}}
	}
	together := []string{"x@n1 == x@n2, 48 in 2 runs, like 1", "x@n1 == x@n3, 24 in 1 runs, like 1"}
	for _, c := range []struct {
		name string
		runs []runSamples
		like func(model.NodeID) string
		want []string
	}{
		{"alike", placed(24, "n2", "n3", "n2"), members, together},
		{"not alike", placed(24, "n2", "n3", "n2"), func(n model.NodeID) string { return string(n) }, nil},
		{"like none", placed(24, "n2", "n3", "n2"), func(model.NodeID) string { return "" }, nil},
		{"not asked", placed(24, "n2", "n3", "n2"), nil, nil},
		{"a run too few", placed(24, "n2", "n3"), members, nil},
		{"too few samples", placed(3, "n2", "n3", "n2"), members, nil},
		{"one of them differs", append(placed(24, "n2", "n3", "n2"), differs("n1", "n3")...), members, nil},
		{"one differs at another message", append(placed(24, "n2", "n3", "n2"), differs("n3", "n1")...), members, together},
		{"enough alone, the other one differs", append(placed(24, "n2", "n2", "n2"), differs("n1", "n3")...), members,
			[]string{"x@n1 == x@n2, 72 in 3 runs, like 0"}},
	} {
		if diff := cmp.Diff(c.want, named(c.runs, Options{Like: c.like})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestWhatLikeNodesShowAtOnceCountsOnce: the same events, seen on two nodes, are no
// more evidence than on one.
func TestWhatLikeNodesShowAtOnceCountsOnce(t *testing.T) {
	one := mine(placed(8, "n2", "n2", "n2"), Options{MaxChance: 1})
	runs := placed(8, "n2", "n2", "n2", "n3", "n3", "n3")
	for i := range runs {
		runs[i].run = fmt.Sprint("r", i%3)
	}
	both := mine(runs, Options{MaxChance: 1, Like: members})
	if len(one) != 1 || len(both) != 2 || both[0].Chance < one[0].Chance {
		t.Errorf("alone %+v, both %+v", one, both)
	}
}

// TestOnlyWhatIsAboutTheLikeIsAlike: a variable about the other end is not like one
// about the third node.
func TestOnlyWhatIsAboutTheLikeIsAlike(t *testing.T) {
	about := func(run string, to, of model.NodeID) runSamples {
		samples := twin(point("n1", to), counting(24), counting(24))
		for i := range samples {
			for j := range samples[i].Values {
				samples[i].Values[j].Var.About = string(of)
			}
		}
		return runSamples{run, samples}
	}
	o := Options{Like: members}
	if got := mine([]runSamples{about("r1", "n2", "n2"), about("r2", "n3", "n3"), about("r3", "n2", "n2")}, o); len(got) != 2 {
		t.Errorf("about the receiver: %v", got)
	}
	if got := mine([]runSamples{about("r1", "n2", "n2"), about("r2", "n3", "n2"), about("r3", "n2", "n2")}, o); len(got) != 0 {
		t.Errorf("about the receiver, and about another one: %v", got)
	}
	if got := mine([]runSamples{about("r1", "n2", "n3"), about("r2", "n3", "n2"), about("r3", "n2", "n3")}, o); len(got) != 2 {
		t.Errorf("about the other member: %v", got)
	}
}

// TestThingsShowTogether what nodes agree on of each, unless they differ over one.
func TestThingsShowTogether(t *testing.T) {
	of := func(run, thing, last string) runSamples {
		values := counting(24)
		samples := twin(point("n2", "n3"), values, append(slices.Clone(values[:23]), last))
		for i := range samples {
			for j := range samples[i].Values {
				samples[i].Values[j].Var.About = thing
			}
		}
		return runSamples{run, samples}
	}
	same := func(run, thing string) runSamples { return of(run, thing, "11") }
	for _, c := range []struct {
		name string
		runs []runSamples
		want int
	}{
		{"each in another run", []runSamples{same("r1", "a"), same("r2", "b"), same("r3", "a")}, 2},
		{"a run too few", []runSamples{same("r1", "a"), same("r2", "b")}, 0},
		{"differ over one", []runSamples{same("r1", "a"), same("r2", "b"), same("r3", "a"),
			of("r3", "b", "another")}, 0},
		{"of one alone, and differ over the other", []runSamples{same("r1", "a"), same("r2", "a"), same("r3", "a"),
			of("r3", "b", "another")}, 1},
		{"of the nodes themselves", []runSamples{same("r1", "a"), same("r2", ""), same("r3", "a")}, 0},
	} {
		if got := mine(c.runs, Options{Like: members}); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// TestARejectedPairSaysWhatItLacksAlone also where its like are alike.
func TestARejectedPairSaysWhatItLacksAlone(t *testing.T) {
	m := NewMiner()
	for _, r := range placed(24, "n2", "n3") {
		m.Add(r.run, r.samples)
	}
	for _, r := range m.Rejected(Options{Like: members}) {
		if r.Lack != LackRuns || r.Runs != 1 {
			t.Errorf("%+v", r)
		}
	}
	m.Add("r2", placed(24, "n2")[0].samples)
	if got := m.Rejected(Options{Like: members}); len(got) != 0 {
		t.Errorf("kept, and rejected: %+v", got)
	}
}

func allAlike(model.NodeID) string { return "node" }

// TestLikeNodesInAnyOrder: neither the order of the runs nor that of the names
// matters.
func TestLikeNodesInAnyOrder(t *testing.T) {
	o := Options{MinRuns: 2, MinSupport: 3, MinChanges: 2, MaxChance: 0.3, Like: allAlike}
	more := 0
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		runs := random(rng, 1)
		want := mine(runs, o)
		rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		if diff := cmp.Diff(want, mine(runs, o)); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
		for _, i := range want {
			more += i.Like
		}
	}
	if more == 0 {
		t.Error("no pair was counted with its like: the test shows nothing")
	}
}
