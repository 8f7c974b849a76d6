package sequence_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// figure is a system in the manner of the papers' pictures: letters are points, and
// which points a run has follows from the letters that fail in it.
type figure struct {
	clean  string            // points of a clean run
	after  map[string]string // points that a failure makes appear
	absent map[string]int    // how many of its runs a point stays away from
}

// letter is a point of n1; small ones are of n2.
func letter(r rune) model.Point {
	p := model.Point{Side: model.SideSend, Node: "n1", Type: strings.ToUpper(string(r)), Nth: 1}
	if unicode.IsLower(r) {
		p.Node = "n2"
	}
	return p
}

// search runs a figure to the end and lists the sequences of each run, in letters.
func (f figure) search(t *testing.T, cfg sequence.Config) (runs []string, s *sequence.Search, why string) {
	t.Helper()
	if cfg.Kinds == nil {
		cfg.Kinds = crashes[:1]
	}
	s = sequence.New(cfg)
	for {
		r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
		if r.Done {
			return runs, s, r.Why
		}
		if len(r.Runs) == 0 {
			t.Fatalf("nothing to do: %s", r.Why)
		}
		run := r.Runs[0]
		res := sequence.Result{Run: run.ID, Verdict: model.VerdictPass}
		add := func(letters string) {
			for _, l := range letters {
				res.Profile.Points = append(res.Profile.Points, model.SeenPoint{Point: letter(l), Step: res.Occurred})
			}
		}
		add(f.clean)
		name := ""
		for _, fault := range run.Faults {
			l := fault.Type
			if fault.Node == "n2" {
				l = strings.ToLower(l)
			}
			name += l
			if f.absent[l] > 0 {
				f.absent[l]--
				break
			}
			res.Occurred++
			add(f.after[l])
		}
		runs = append(runs, name)
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &res})
	}
}

func two(policies ...sequence.Policy) sequence.Config {
	return sequence.Config{Seed: 1, Clean: 1, Depth: 2, Runs: 1000, Retries: 2, Policies: policies}
}

// figure3a is FATE's Figure 3a: four failures, after which E, or E and F are seen.
func figure3a() figure {
	return figure{clean: "ABCD", after: map[string]string{"A": "E", "B": "E", "C": "EF", "D": "EF"}}
}

func TestBruteForceOnFigure3a(t *testing.T) {
	runs, _, _ := figure3a().search(t, two())
	if want := []string{"", "A", "B", "C", "D", "AE", "BE", "CE", "CF", "DE", "DF"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
}

// One of each recovery cluster: AE or BE, and CE and CF or DE and DF.
func TestPrioritisedOnFigure3a(t *testing.T) {
	for seed := range uint64(10) {
		cfg := two(sequence.Prioritised(nil))
		cfg.Seed = seed
		runs, s, _ := figure3a().search(t, cfg)
		pairs := strings.NewReplacer("B", "A", "D", "C").Replace(strings.Join(runs[5:], " "))
		if pairs != "AE CF CE" { // F is new when E has failed once
			t.Errorf("seed %d: pairs %v, want one of AE and BE, then of CF and DF, then of CE and DE", seed, runs[5:])
		}
		l := s.Report().Levels[1]
		if l.Candidates != 6 || l.Kept != 3 || len(l.Pruned) != 3 || l.Pruned[0].Like == nil {
			t.Errorf("seed %d: the report says %+v", seed, l)
		}
	}
}

// A recovery on another node is another recovery where a fault depends on it (PreFail
// Figure 12b); where it does not, which node it is does not matter (FATE §4.3.2).
func TestNodesMatterWhereFaultsDepend(t *testing.T) {
	dependent := figure{clean: "AB", after: map[string]string{"A": "EX", "B": "eX"}}
	runs, _, _ := dependent.search(t, two(sequence.Prioritised(nil)))
	if want := []string{"", "A", "B", "AE", "AX", "Be", "BX"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	// A and a bring about C on either node; each then still has the other's X or x.
	symmetric := figure{clean: "AaXx", after: map[string]string{"A": "Cx", "a": "cX", "X": "", "x": ""}}
	cfg := two(sequence.Prioritised(nil))
	runs, _, _ = symmetric.search(t, cfg)
	pairs := 0
	for _, r := range runs {
		if r == "Ax" || r == "aX" {
			pairs++
		}
	}
	if pairs != 1 {
		t.Errorf("runs %v: want one of Ax and aX", runs)
	}
}

// C and D come when no fault can begin any more.
func TestNoFaultIsBeyondTheBound(t *testing.T) {
	s := sequence.New(sequence.Config{Clean: 1, Depth: 2, Runs: 9, Kinds: crashes[:1]})
	profile := func(beyond string, step int) (p model.Profile) {
		for _, l := range "AB" + beyond {
			p.Points = append(p.Points, model.SeenPoint{Point: letter(l), Step: step, Beyond: strings.ContainsRune(beyond, l)})
		}
		return p
	}
	var runs []string
	for {
		r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
		if r.Done {
			break
		}
		name := ""
		for _, f := range r.Runs[0].Faults {
			name += f.Type
		}
		runs = append(runs, name)
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: r.Runs[0].ID, Verdict: model.VerdictPass,
			Occurred: len(name), Profile: profile(map[string]string{"": "C", "A": "CD"}[name], len(name))}})
	}
	if want := []string{"", "A", "B", "AB", "BA"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q, want %q", runs, want)
	}
}

// Of what prioritising keeps, faults that hit a recovery come first, and then those unlike
// any before, whatever the nodes.
func TestPrioritisedRunsWhatDiffersFirst(t *testing.T) {
	cfg := two(sequence.Prioritised(nil))
	cfg.Depth = 1
	runs, _, _ := figure{clean: "AaBbC"}.search(t, cfg)
	if want := []string{"", "A", "B", "C", "a", "b"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q, want %q", runs, want)
	}
	cfg.Depth = 2
	runs, _, _ = figure{clean: "AB", after: map[string]string{"A": "B", "B": "D"}}.search(t, cfg)
	if len(runs) != 5 || runs[3] != "BD" {
		t.Errorf("runs %q: want the fault that hits a recovery first", runs)
	}
}

// PreFail's Figure 7: after A and B are kept, AE stands for BE.
func TestPoliciesPruneEachLevel(t *testing.T) {
	f := figure{clean: "ABC", after: map[string]string{"A": "DE", "B": "E"}}
	notC := sequence.Filter{Title: "not C", Keep: func(c sequence.Candidate, _ *sequence.Known) (string, error) {
		if c.Last().Type == "C" {
			return "it is C", nil
		}
		return "", nil
	}}
	last := sequence.Cluster{Title: "last", Key: func(c sequence.Candidate, _ *sequence.Known) (string, bool, error) {
		return c.Last().Type, false, nil
	}}
	runs, s, _ := f.search(t, two(notC, last))
	got := strings.Replace(strings.Join(runs, " "), "BE", "AE", 1)
	if got != " A B AD AE" {
		t.Errorf("runs %v", runs)
	}
	if p := s.Report().Levels[0].Pruned; len(p) != 1 || p[0].Policy != "not C" || p[0].Why != "it is C" {
		t.Errorf("pruned at level 1: %v", p)
	}
}

func TestVacuousIsTriedAgainAndGivenUp(t *testing.T) {
	f := figure{clean: "AB", absent: map[string]int{"A": 2, "B": 100}}
	runs, s, _ := f.search(t, two())
	if want := []string{"", "A", "B", "A", "B", "A", "B"}; !slices.Equal(runs, want) {
		t.Fatalf("runs %v, want %v: two more attempts at each", runs, want)
	}
	l := s.Report().Levels[0]
	if l.Vacuous != 1 || l.Run != 1 || len(l.Pruned) != 1 || !strings.Contains(l.Pruned[0].Why, "at most 0 of 1 faults occurred at their points in 3 runs") {
		t.Errorf("the report says %+v", l)
	}
	for _, st := range s.Report().Faults {
		if want := map[string][2]int{"A": {3, 1}, "B": {3, 0}}[st.Fault.Type]; [2]int{st.Asked, st.Came} != want {
			t.Errorf("%s came in %d of %d runs, want %v", st.Fault.Type, st.Came, st.Asked, want)
		}
	}
}

// Each attempt at a point that did not come has another seed; the first has the one
// with which the point was seen.
func TestSeedsOfAttempts(t *testing.T) {
	s := sequence.New(sequence.Config{Seed: 3, Clean: 1, Depth: 1, Runs: 10, Retries: 1, Kinds: crashes[:1]})
	ask := func() sequence.Run { return s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1}).Runs[0] }
	clean := ask()
	s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: clean.ID, Profile: model.Profile{Points: []model.SeenPoint{{Point: letter('A')}}}}})
	first := ask()
	s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: first.ID}})
	second := ask()
	if first.Seed != clean.Seed || second.Seed == first.Seed {
		t.Errorf("seeds %d clean, %d, %d", clean.Seed, first.Seed, second.Seed)
	}
}

// Without node among the keys, what two nodes do is one point, of no node.
func TestKeysMakePointsOne(t *testing.T) {
	cfg := two()
	cfg.Depth, cfg.Keys = 1, []model.PointKey{model.KeySide, model.KeyType}
	runs, s, _ := figure{clean: "AaB"}.search(t, cfg)
	if want := []string{"", "A", "B"}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if f := s.Level()[0].Last(); f.Node != "" || f.Nth != 0 {
		t.Errorf("%s has more than its identity", f)
	}
}

func TestLostRunsAreMadeAgain(t *testing.T) {
	s := sequence.New(sequence.Config{Clean: 1, Depth: 1, Runs: 10, Retries: 1, Kinds: crashes[:1]})
	for range 2 {
		r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
		s.Step(sequence.Input{Kind: sequence.InputLost, Lost: r.Runs[0].ID})
	}
	r := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
	if !r.Done || !strings.Contains(r.Why, "no clean run could be judged") {
		t.Errorf("%+v", r)
	}
}

func TestBudgetEndsASearch(t *testing.T) {
	cfg := two()
	cfg.Runs = 3
	runs, s, why := figure3a().search(t, cfg)
	if len(runs) != 4 || s.Report().Left != 1 || !strings.Contains(why, "budget of 3 fault runs is spent: 1 of level 1 are left") {
		t.Errorf("runs %v, left %d: %s", runs, s.Report().Left, why)
	}
}

func TestASearchThatKeepsNothingSaysWhy(t *testing.T) {
	p := sequence.Filter{Title: "only", Keep: func(c sequence.Candidate, _ *sequence.Known) (string, error) {
		if c.Last().Type == "A" {
			return "it is A", nil
		}
		return "it is none", nil
	}}
	_, _, why := figure{clean: "ABC"}.search(t, sequence.Config{Clean: 1, Runs: 9, Depth: 1, Policies: []sequence.Policy{p}})
	if want := "3 were seen; 2 are not run by policy only: it is none"; !strings.Contains(why, want) {
		t.Errorf("%q, want %q", why, want)
	}
}

func TestAPolicyThatFailsEndsTheSearch(t *testing.T) {
	bad := sequence.Filter{Title: "bad", Keep: func(sequence.Candidate, *sequence.Known) (string, error) { return "", errors.New("p.star:3: oh") }}
	runs, s, why := figure3a().search(t, two(bad))
	if len(runs) != 1 || s.Report().Err == nil || !strings.Contains(why, "p.star:3: oh") {
		t.Errorf("runs %v: %s", runs, why)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*sequence.Config){
		"at least one must show": func(c *sequence.Config) { c.Clean = 0 },
		"depth 0":                func(c *sequence.Config) { c.Depth = 0 },
		"must not be negative":   func(c *sequence.Config) { c.Retries = -1 },
		"no kind of fault":       func(c *sequence.Config) { c.Kinds = nil },
		`no key "stack"`:         func(c *sequence.Config) { c.Keys = []model.PointKey{"side", "type", "stack"} },
		"lack side or type":      func(c *sequence.Config) { c.Keys = []model.PointKey{"type"} },
		"cannot be at the side": func(c *sequence.Config) {
			c.Kinds = []sequence.FaultAt{{Kind: model.PointCorrupt, Side: model.SideSend}}
		},
	} {
		cfg := two()
		cfg.Kinds = crashes
		change(&cfg)
		if r := sequence.New(cfg).Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1}); !r.Done || !strings.Contains(r.Why, want) {
			t.Errorf("want %q, got %+v", want, r)
		}
	}
}
