package invariant

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

type runSamples struct {
	run     string
	samples []model.Sample
}

func ref(name string, node model.NodeID) model.VarRef { return model.VarRef{Name: name, Node: node} }

func val(r model.VarRef, kind, v string) model.VarValue {
	return model.VarValue{Var: r, Kind: kind, Value: v}
}

var toB = model.ProgramPoint{From: "n1", To: "n2", Type: "hello"}

// twin makes samples of x@n1 and x@n2 that take the given values.
func twin(p model.ProgramPoint, a, b []string) []model.Sample {
	var out []model.Sample
	for i := range a {
		out = append(out, model.Sample{Message: uint64(i + 1), Point: p, Values: []model.VarValue{
			val(ref("x", p.From), "k", a[i]), val(ref("x", p.To), "k", b[i])}})
	}
	return out
}

// counting is 0, 0, 1, 1, 2, 2, ... of n values.
func counting(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i / 2)
	}
	return out
}

func mine(runs []runSamples, o Options) []model.Invariant {
	m := NewMiner()
	for _, r := range runs {
		m.Add(r.run, r.samples)
	}
	return m.Invariants(o)
}

// crowd is n further pairs of variables, each with values of its own that
// disagree once in rows samples: candidates that could have passed.
func crowd(p model.ProgramPoint, rows, n int) []model.Sample {
	var out []model.Sample
	for i := range rows {
		s := model.Sample{Message: uint64(i + 1), Point: p}
		for v := range n {
			kind := fmt.Sprintf("c%02d", v)
			s.Values = append(s.Values, val(ref(kind, p.From), kind, fmt.Sprint(i/2)), val(ref(kind, p.To), kind, fmt.Sprint(i/2*3+i%2)))
		}
		out = append(out, s)
	}
	return out
}

func three(s []model.Sample) []runSamples { return []runSamples{{"r1", s}, {"r2", s}, {"r3", s}} }

func TestEqualityThatHeldIsMinedWithItsSupport(t *testing.T) {
	got := mine(three(twin(toB, counting(20), counting(20))), Options{})
	if len(got) != 1 {
		t.Fatalf("%d invariants, want x@n1 == x@n2: %v", len(got), got)
	}
	inv := got[0]
	if inv.String() != "x@n1 == x@n2" || inv.Support != 60 || inv.Changes != 27 || inv.Distinct != 10 || inv.Runs != 3 ||
		inv.Status != model.InvariantMined || inv.Kind != "k" || inv.ID != model.InvariantID(model.RelationEqual, inv.B, inv.A) {
		t.Errorf("got %+v", inv)
	}
	// At the start of each run and at 9 changes in each: 30 values, each of
	// the 10 three times; q = 1/10, 27 changes, and in each run 9 moments of
	// 19: binomial(19, 9) = 92378.
	if want := math.Pow(0.1, 27) / math.Pow(92378, 3); math.Abs(inv.Chance/want-1) > 1e-9 {
		t.Errorf("chance %g, want %g", inv.Chance, want)
	}
	want := &model.Sample{Run: "r1", Message: 1, Point: toB, Values: []model.VarValue{val(inv.A, "k", "0"), val(inv.B, "k", "0")}}
	if diff := cmp.Diff(want, inv.Example); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]model.ProgramPoint{toB}, inv.Points); diff != "" {
		t.Error(diff)
	}
}

func TestOneViolationDropsAnInvariantAtItsPointOnly(t *testing.T) {
	a, b := counting(20), counting(20)
	b[7] = "other"
	bad := twin(toB, a, b)
	if got := mine([]runSamples{{"r1", bad}, {"r2", twin(toB, a, a)}, {"r3", twin(toB, a, a)}}, Options{}); len(got) != 0 {
		t.Errorf("violated once, still mined: %v", got)
	}
	other := toB
	other.Type = "ping"
	got := mine(append(three(bad), three(twin(other, a, a))...), Options{})
	if len(got) != 1 || len(got[0].Points) != 1 || got[0].Points[0] != other || got[0].Support != 60 {
		t.Errorf("want it at the other point only, got %+v", got)
	}
}

// What is mined is not rejected; what differed somewhere is shown where it came
// nearest, with the sample in which it differed.
func TestARejectedPairIsShownWhereItCameNearest(t *testing.T) {
	a, b := counting(20), counting(20)
	b[7] = "other"
	other := toB
	other.Type = "ping"
	far := slices.Clone(b)
	far[8], far[9] = "other", "other"
	m := NewMiner()
	for _, r := range []string{"r1", "r2", "r3"} {
		m.Add(r, slices.Concat(twin(toB, a, b), twin(other, a, far)))
	}
	got := m.Rejected(Options{})
	if len(got) != 1 {
		t.Fatalf("%d rejected, want one: %+v", len(got), got)
	}
	want := Rejected{A: ref("x", "n1"), B: ref("x", "n2"), Kind: "k", Lack: LackAgreement, Point: toB, Points: 2, Apart: 2, Support: 57, Differ: 3, Changes: 30, Runs: 3,
		Chance: got[0].Chance, Counter: &model.Sample{Run: "r1", Message: 8, Point: toB, Values: []model.VarValue{val(ref("x", "n1"), "k", "3"), val(ref("x", "n2"), "k", "other")}}}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	kept := NewMiner()
	for _, r := range three(twin(toB, a, a)) {
		kept.Add(r.run, r.samples)
	}
	if got := kept.Rejected(Options{}); len(got) != 0 {
		t.Errorf("rejected although mined: %+v", got)
	}
}

// A rare message at which a pair happens to agree comes nearest; where else they
// differed is said with it.
func TestARejectedPairThatDiffersElsewhereSaysSo(t *testing.T) {
	a, b := counting(20), counting(20)
	b[7] = "other"
	rare := toB
	rare.Type = "ping"
	m := NewMiner()
	for _, r := range []string{"r1", "r2", "r3"} {
		m.Add(r, slices.Concat(twin(toB, a, b), twin(rare, a[:2], a[:2])))
	}
	got := m.Rejected(Options{})
	if len(got) != 1 || got[0].Lack == LackAgreement || got[0].Point != rare || got[0].Differ != 0 || got[0].Apart != 1 {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNotMined(t *testing.T) {
	same := make([]string, 200)
	few := counting(8)
	late := slices.Concat(same, []string{"z"})
	for _, c := range []struct {
		name string
		lack Lack
		runs []runSamples
	}{
		{"never changes", LackChanges, three(twin(toB, same, same))},
		{"too few runs", LackRuns, three(twin(toB, counting(20), counting(20)))[:2]},
		{"too few samples", LackSupport, []runSamples{{"r1", twin(toB, few[:3], few[:3])}, {"r2", twin(toB, few[:3], few[:3])}, {"r3", twin(toB, few[:3], few[:3])}}},
		{"changes in one run only", LackChanges, []runSamples{{"r1", twin(toB, counting(20), counting(20))}, {"r2", twin(toB, same, same)}, {"r3", twin(toB, same, same)}}},
		{"too few changes", LackChanges, []runSamples{{"r1", twin(toB, late, late)}, {"r2", twin(toB, late, late)}, {"r3", twin(toB, same, same)}}},
		// q = 1/2 at 3 changes, each at one moment of 3: 0.0046, times 20 candidates.
		{"chance", LackChance, three(slices.Concat(twin(toB, []string{"a", "a", "z", "z"}, []string{"a", "a", "z", "z"}), crowd(toB, 4, 19)))},
	} {
		if got := mine(c.runs, Options{}); len(got) != 0 {
			t.Errorf("%s: mined %v, chance %g", c.name, got[0].String(), got[0].Chance)
		}
		m := NewMiner()
		for _, r := range c.runs {
			m.Add(r.run, r.samples)
		}
		var x Rejected
		for _, r := range m.Rejected(Options{}) {
			if r.A.Name == "x" {
				x = r
			}
		}
		if x.Lack != c.lack || x.B != ref("x", "n2") || x.Point != toB || x.Counter != nil {
			t.Errorf("%s: rejected for %q, want %q: %+v", c.name, x.Lack, c.lack, x)
		}
	}
}

// Weak keeps what always held, CoFI's way, but no constants and nothing that
// was seen too seldom or ever differed.
func TestWeakKeepsWhatAlwaysHeldAndIsNoConstant(t *testing.T) {
	up := []string{"up", "up", "up", "up"}
	elsewhere := model.ProgramPoint{From: "n3", To: "n1", Type: "news"}
	down := []model.Sample{{Message: 100, Point: elsewhere, Values: []model.VarValue{val(ref("x", "n1"), "k", "down")}}}
	if got := mine(three(twin(toB, up, up)), Options{Weak: true}); len(got) != 0 {
		t.Errorf("a constant was kept: %v", got)
	}
	varies := slices.Concat(twin(toB, up, up), down)
	if got := mine(three(varies), Options{}); len(got) != 0 {
		t.Errorf("kept without being asked for what is weak: %v", got)
	}
	got := mine(three(varies), Options{Weak: true})
	if len(got) != 1 || got[0].Support != 12 || got[0].Runs != 3 || got[0].Changes != 0 || got[0].Chance != 1 {
		t.Fatalf("kept %+v; want x@n1 = x@n2, which held in 12 samples of 3 runs", got)
	}
	m := NewMiner()
	for _, r := range three(varies) {
		m.Add(r.run, r.samples)
	}
	if got := m.Rejected(Options{Weak: true}); len(got) != 0 {
		t.Errorf("rejected although kept: %+v", got)
	}
	if got := mine(three(varies)[:2], Options{Weak: true}); len(got) != 0 {
		t.Errorf("kept of two runs: %v", got)
	}
	differ := slices.Concat(twin(toB, up, []string{"up", "up", "down", "up"}), down)
	if got := mine(three(differ), Options{Weak: true}); len(got) != 0 {
		t.Errorf("kept although they differed: %v", got)
	}
}

func TestOnlyOneKindAndOneSubjectIsCompared(t *testing.T) {
	var ss []model.Sample
	for i, v := range counting(30) {
		ss = append(ss, model.Sample{Message: uint64(i), Point: toB, Values: []model.VarValue{
			val(ref("term", "n1"), "term", v), val(ref("term", "n2"), "term", v),
			val(ref("other", "n1"), "other", v),
			val(model.VarRef{Name: "status", About: "n1", Node: "n1"}, "status", v),
			val(model.VarRef{Name: "status", About: "n1", Node: "n2"}, "status", v),
			val(model.VarRef{Name: "status", About: "n3", Node: "n2"}, "status", v),
			val(ref("role", "n2"), "role", v),
			val(model.VarRef{Name: "peer", About: "n2", Node: "n1"}, "role", v),
			val(model.VarRef{Name: "peer", About: "n1", Node: "n1"}, "role", v),
			val(ref("term", "n3"), "term", v), // not of this message
		}})
	}
	var got []string
	for _, inv := range mine(three(ss), Options{}) {
		got = append(got, inv.String())
	}
	want := []string{"peer[n2]@n1 == role@n2", "status[n1]@n1 == status[n1]@n2", "term@n1 == term@n2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// random makes small traces of three nodes; copies is the share of samples in
// which all variables of a kind agree.
func random(rng *rand.Rand, copies float64) []runSamples {
	nodes := []model.NodeID{"n1", "n2", "n3"}
	var out []runSamples
	for r := range 2 + rng.Intn(3) {
		rs := runSamples{run: fmt.Sprintf("r%d", r)}
		cur := map[model.VarRef]string{}
		values := 1 + rng.Intn(4)
		for i := range 10 + rng.Intn(40) {
			from := rng.Intn(3)
			p := model.ProgramPoint{From: nodes[from], To: nodes[(from+1+rng.Intn(2))%3], Type: []string{"a", "b"}[rng.Intn(2)]}
			s := model.Sample{Message: uint64(i), Point: p}
			for _, n := range []model.NodeID{p.From, p.To} {
				for _, v := range []string{"x", "y"} {
					if rng.Float64() < 0.1 {
						continue // not fresh
					}
					r := ref(v, n)
					if rng.Float64() < 0.3 || cur[r] == "" {
						cur[r] = fmt.Sprint(rng.Intn(values))
					}
					value := cur[r]
					if rng.Float64() < copies {
						value = fmt.Sprint(i / 3)
					}
					s.Values = append(s.Values, val(r, "k", value))
				}
			}
			slices.SortFunc(s.Values, func(a, b model.VarValue) int { return a.Var.Compare(b.Var) })
			rs.samples = append(rs.samples, s)
		}
		out = append(out, rs)
	}
	return out
}

// brute mines in the plainest way: it lists pairs and looks at each sample.
func brute(runs []runSamples, o Options) map[string][3]float64 {
	type key struct {
		p    model.ProgramPoint
		a, b model.VarRef
	}
	type stat struct {
		n, bad, changes int
		runs            map[string]bool
		samples         map[string]int // by run
		changed         map[string]int
		pa, pb          map[string]float64
		total, chance   float64
		course          string
	}
	stats := map[key]*stat{}
	for _, r := range runs {
		last := map[key][2]string{}
		for _, s := range r.samples {
			for _, x := range s.Values {
				for _, y := range s.Values {
					if x.Var.Node == y.Var.Node || y.Var.Compare(x.Var) < 0 {
						continue
					}
					k := key{s.Point, x.Var, y.Var}
					st := stats[k]
					if st == nil {
						st = &stat{runs: map[string]bool{}, samples: map[string]int{}, changed: map[string]int{}, pa: map[string]float64{}, pb: map[string]float64{}}
						stats[k] = st
					}
					st.n++
					if x.Value != y.Value {
						st.bad++
					}
					st.runs[r.run] = true
					prev, had := last[k]
					now := [2]string{x.Value, y.Value}
					st.samples[r.run]++
					if had && prev != now {
						st.changed[r.run]++
						st.changes++
					}
					if !had || prev != now {
						st.pa[x.Value]++
						st.pb[y.Value]++
						st.total++
						st.course += fmt.Sprint(r.run, now)
					}
					last[k] = now
				}
			}
		}
	}
	var ps []float64
	once := map[string]bool{}
	for k, st := range stats {
		q := 0.0
		for v, n := range st.pa {
			q += n / st.total * st.pb[v] / st.total
		}
		st.chance = math.Pow(q, float64(st.changes))
		for _, r := range runs { // in their order, as the miner multiplies
			if c := st.changed[r.run]; c > 0 {
				st.chance /= pascal(min(st.samples[r.run]-1, maxSlots), c)
			}
		}
		if name := k.a.String() + k.b.String() + st.course; !once[name] {
			once[name] = true
			ps = append(ps, st.chance)
		}
	}
	factor := 1
	for ; factor < len(ps); factor++ {
		could := 0
		for _, p := range ps {
			if p <= o.MaxChance/float64(factor) {
				could++
			}
		}
		if could <= factor {
			break
		}
	}
	out := map[string][3]float64{}
	for k, st := range stats {
		if st.bad > 0 || st.n < o.MinSupport || len(st.runs) < o.MinRuns || st.changes < o.MinChanges || len(st.changed) < 2 {
			continue
		}
		name := k.a.String() + " == " + k.b.String()
		x, ok := out[name]
		if !ok {
			x[2] = 1
		}
		out[name] = [3]float64{x[0] + float64(st.n), max(x[1], float64(st.changes)), min(x[2], st.chance*float64(factor))}
	}
	for name, x := range out {
		if x[2] > o.MaxChance {
			delete(out, name)
		}
	}
	return out
}

func TestMinerAgreesWithBruteForce(t *testing.T) {
	o := Options{MinRuns: 2, MinSupport: 3, MinChanges: 2, MaxChance: 0.3}
	mined := 0
	for seed := range int64(400) {
		runs := random(rand.New(rand.NewSource(seed)), []float64{0, 0.5, 1}[seed%3])
		want := brute(runs, o)
		got := map[string][3]float64{}
		for _, inv := range mine(runs, o) {
			got[inv.String()] = [3]float64{float64(inv.Support), float64(inv.Changes), inv.Chance}
		}
		near := cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*math.Abs(a) })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Fatalf("seed %d (-brute force +miner):\n%s", seed, diff)
		}
		mined += len(got)
	}
	if mined < 100 {
		t.Errorf("only %d invariants in all seeds: the test shows little", mined)
	}
}

func TestOrderOfRunsDoesNotMatter(t *testing.T) {
	o := Options{MinRuns: 2, MinSupport: 3, MinChanges: 2, MaxChance: 0.3}
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		runs := random(rng, 1)
		want := mine(runs, o)
		for range 3 {
			rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
			m := NewMiner()
			for _, r := range runs {
				m.Add(r.run, r.samples)
				m.Invariants(o) // mining in between changes nothing
			}
			if diff := cmp.Diff(want, m.Invariants(o)); diff != "" {
				t.Fatalf("seed %d:\n%s", seed, diff)
			}
		}
	}
}

// shuffled shuffles the values of every variable on their own, in each run.
func shuffled(rng *rand.Rand, runs []runSamples) []runSamples {
	var out []runSamples
	for _, r := range runs {
		at := map[model.VarRef][]*string{}
		c := runSamples{run: r.run}
		for _, s := range r.samples {
			s.Values = slices.Clone(s.Values)
			for i := range s.Values {
				at[s.Values[i].Var] = append(at[s.Values[i].Var], &s.Values[i].Value)
			}
			c.samples = append(c.samples, s)
		}
		var refs []model.VarRef
		for v := range at {
			refs = append(refs, v)
		}
		slices.SortFunc(refs, model.VarRef.Compare)
		for _, v := range refs {
			ps := at[v]
			rng.Shuffle(len(ps), func(i, j int) { *ps[i], *ps[j] = *ps[j], *ps[i] })
		}
		out = append(out, c)
	}
	return out
}

func TestNothingSurvivesAShuffle(t *testing.T) {
	before, after := 0, 0
	for seed := range int64(100) {
		rng := rand.New(rand.NewSource(seed))
		runs := random(rng, 1)
		mixed := shuffled(rng, runs)
		for _, like := range []func(model.NodeID) string{nil, allAlike} {
			o := Options{MinRuns: 2, MinSupport: 3, MinChanges: 2, Like: like}
			before += len(mine(runs, o))
			after += len(mine(mixed, o))
		}
	}
	if before < 400 || after > 0 {
		t.Errorf("%d invariants before the shuffle, %d after: want many and none", before, after)
	}
}

// In short traces of few values, pairs agree by chance. The bound must remove
// nearly all of them, the family-wise rate being MaxChance.
func TestChanceBoundHoldsOnIndependentVariables(t *testing.T) {
	t.Run("two nodes", func(t *testing.T) { chanceBound(t, Options{MinSupport: 9}, toB) })
	t.Run("like nodes", func(t *testing.T) {
		chanceBound(t, Options{MinSupport: 9, Like: members}, point("n1", "n2"), point("n1", "n3"))
	})
}

func chanceBound(t *testing.T, o Options, points ...model.ProgramPoint) {
	lucky, kept := 0, 0
	const trials = 300
	for seed := range int64(trials) {
		rng := rand.New(rand.NewSource(seed))
		var runs []runSamples
		for r := range 3 {
			rs := runSamples{run: fmt.Sprint(r)}
			for i := range 3 {
				for k, p := range points {
					s := model.Sample{Message: uint64(3*i + k), Point: p}
					for v := range 20 {
						for _, n := range []model.NodeID{p.From, p.To} {
							s.Values = append(s.Values, val(ref(fmt.Sprintf("v%02d", v), n), "k", fmt.Sprint(rng.Intn(2))))
						}
					}
					rs.samples = append(rs.samples, s)
				}
			}
			runs = append(runs, rs)
		}
		if len(mine(runs, o)) > 0 {
			kept++
		}
		m := NewMiner()
		for _, r := range runs {
			m.Add(r.run, r.samples)
		}
		for _, c := range m.tests() {
			if !c.violated {
				lucky++
				break
			}
		}
	}
	if lucky < trials/4 {
		t.Errorf("only %d of %d trials had a pair that agreed by luck: the test shows little", lucky, trials)
	}
	if kept > trials/50 {
		t.Errorf("%d of %d trials kept a pair that agreed by luck, want at most 1 in 100", kept, trials)
	}
}

func BenchmarkInvariants(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	var ss []model.Sample
	for i := range 100_000 {
		s := model.Sample{Message: uint64(i), Point: toB}
		for v := range 25 {
			for _, n := range []model.NodeID{"n1", "n2"} {
				s.Values = append(s.Values, val(ref(fmt.Sprintf("v%02d", v), n), "k", fmt.Sprint((i/50+v*rng.Intn(2))%7)))
			}
		}
		ss = append(ss, s)
	}
	b.ReportAllocs()
	for b.Loop() {
		m := NewMiner()
		m.Add("r1", ss)
		m.Invariants(Options{MinRuns: 1})
	}
}

// pascal is the binomial coefficient by Pascal's triangle.
func pascal(n, k int) float64 {
	row := []float64{1}
	for range n {
		next := []float64{1}
		for i := 1; i < len(row); i++ {
			next = append(next, row[i-1]+row[i])
		}
		row = append(next, 1)
	}
	return row[k]
}

// TestTheSameSamplesGiveTheSameChance: pairs that took one course of values at several message
// types count once, by the type that shows most, whatever the order in which types are read.
func TestTheSameSamplesGiveTheSameChance(t *testing.T) {
	var runs []runSamples
	for i := range 2 {
		var all []model.Sample
		for pair := range 12 {
			a, b := model.NodeID(fmt.Sprint("a", pair)), model.NodeID(fmt.Sprint("b", pair))
			for _, often := range []int{1, 2, 9} { // at a type that is often seen, fewer of the samples are changes
				var values []string
				for v := range 3 {
					values = append(values, slices.Repeat([]string{fmt.Sprint(v)}, often)...)
				}
				all = append(all, twin(model.ProgramPoint{From: a, To: b, Type: fmt.Sprint("seen ", often)}, values, values)...)
			}
		}
		runs = append(runs, runSamples{fmt.Sprint("r", i), all})
	}
	seen := map[float64]int{}
	for range 40 {
		for _, inv := range mine(runs, Options{MinRuns: 2, Weak: true}) {
			seen[inv.Chance]++
		}
	}
	if len(seen) != 1 {
		t.Errorf("the same pairs have chances %v", seen)
	}
}
