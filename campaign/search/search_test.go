package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"netsplit/explorer"
	"netsplit/model"
)

// fakeRuns is a runner whose target meets one inconsistent state in every run.
type fakeRuns struct {
	mu   sync.Mutex
	ran  []model.WorkItem
	fail func(model.WorkItem) error
}

func (f *fakeRuns) Run(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
	f.mu.Lock()
	f.ran = append(f.ran, w)
	n := len(f.ran)
	f.mu.Unlock()
	sum := model.RunSummary{RunMeta: model.RunMeta{Run: w.Run, Scenario: w.Scenario},
		Verdict: model.Verdict{Value: model.VerdictPass}}
	sum.Result = model.RunResult{Scenario: w.Scenario.ID, States: metStates, Duration: 1e9}
	if w.Scenario.Strategy == model.StrategyCoFI {
		sum.Result.Reached = true
		if n%2 == 0 {
			sum.Result.HealClass = &model.Class{Type: fmt.Sprint("t", n), From: "n1", To: "n2", State: *w.Scenario.Waits().When.State.State}
		}
	}
	if f.fail != nil {
		if err := f.fail(w); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

var (
	varA      = model.VarRef{Name: "v", Node: "n1"}
	varB      = model.VarRef{Name: "v", Node: "n2"}
	anInv     = model.Invariant{ID: model.InvariantID(model.RelationEqual, varA, varB), Relation: model.RelationEqual, A: varA, B: varB, Status: model.InvariantMined}
	metStates = []model.MetState{{Invariant: anInv.ID, State: model.State{A: "x", B: "y"}, Count: 1}}
)

type keptInputs struct {
	mu  sync.Mutex
	all []json.RawMessage
}

func (k *keptInputs) keep(in json.RawMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, in)
	return nil
}

func (k *keptInputs) inputs(t *testing.T) []Input {
	t.Helper()
	var out []Input
	for _, b := range k.all {
		var in Input
		if err := json.Unmarshal(b, &in); err != nil {
			t.Fatal(err)
		}
		out = append(out, in)
	}
	return out
}

// testSearch begins a search of 3 clean and at most 6 fault runs; resumed takes
// one up.
func testSearch(t *testing.T, k *keptInputs, run runner, mine miner) (*Search, *[]model.RunSummary) {
	t.Helper()
	return resumed(t, k, run, mine, nil, nil, 0)
}

func noWait(context.Context) (func(), error) { return func() {}, nil }

type (
	runner func(context.Context, model.WorkItem) (model.RunSummary, error)
	miner  func([]string, bool) ([]model.Invariant, []model.RunResult, error)
)

func resumed(t *testing.T, k *keptInputs, run runner, mine miner, inputs []Input, before []model.RunSummary, made int, under ...model.WorkItem) (*Search, *[]model.RunSummary) {
	t.Helper()
	cfg := explorer.Config{Strategy: model.StrategyCoFI, Seed: 1, Nodes: []model.NodeID{"n1", "n2", "n3"}, Hosts: []model.NodeID{"n1", "n2", "n3"},
		Effect: model.Drop, Runs: 6, Clean: 3, Retries: 1}
	var finished []model.RunSummary
	var mu sync.Mutex
	s, err := New(Config{Campaign: "c", Strategy: cfg.Strategy, Keep: k.keep, Slot: noWait, Run: run, Mine: mine, Core: FromCore(explorer.NewCore(cfg)), Started: func(model.WorkItem) {},
		WhyMissed: func(variable string, recurs bool) string { return fmt.Sprintf("%s, met again: %v", variable, recurs) },
		Panicked:  func(p any) error { return fmt.Errorf("panic: %v", p) },
		Finished:  func(s model.RunSummary) { mu.Lock(); finished = append(finished, s); mu.Unlock() }}, inputs, before, under, made)
	if err != nil {
		t.Fatal(err)
	}
	return s, &finished
}

func mineOne([]string, bool) ([]model.Invariant, []model.RunResult, error) {
	return []model.Invariant{anInv}, []model.RunResult{{Scenario: "s0001", States: metStates}}, nil
}

func TestASearchRunsItsCleanAndItsFaultRuns(t *testing.T) {
	r, k := &fakeRuns{}, &keptInputs{}
	s, finished := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(context.Background(), 3); err != nil {
		t.Fatal(err)
	}
	clean, fault := 0, 0
	ids := map[string]bool{}
	for _, f := range *finished {
		if ids[f.Run] {
			t.Errorf("run id %s was given twice", f.Run)
		}
		ids[f.Run] = true
		if f.Scenario.Strategy == model.StrategyClean {
			clean++
		} else {
			fault++
		}
	}
	if clean != 3 || fault == 0 || fault > 6 {
		t.Errorf("%d clean and %d fault runs, want 3 and 1 to 6", clean, fault)
	}
}

// The daemon dies while runs are out: what was under way counts as lost and is
// run again, what is done stays done, and no run id is given twice.
func TestARestartedSearchGoesOnWhereItWas(t *testing.T) {
	k := &keptInputs{}
	ctx, die := context.WithCancel(context.Background())
	r := &fakeRuns{}
	r.fail = func(w model.WorkItem) error {
		if w.Scenario.Strategy == model.StrategyCoFI {
			die() // in the middle of the first fault run
		}
		return nil
	}
	s, finished := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(ctx, 1); err == nil {
		t.Fatal("the search did not notice that it was interrupted")
	}
	done := slices.Clone(*finished)
	if len(done) != 3 {
		t.Fatalf("%d runs finished before the end, want the 3 clean ones", len(done))
	}

	again := &fakeRuns{}
	s2, finished2 := resumed(t, k, again.Run, mineOne, k.inputs(t), done, 4)
	if err := s2.Run(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	if again.ran[0].Scenario.ID != r.ran[3].Scenario.ID {
		t.Errorf("the lost scenario %s was not run again first, but %s", r.ran[3].Scenario.ID, again.ran[0].Scenario.ID)
	}
	for _, w := range again.ran {
		if w.Scenario.Strategy == model.StrategyClean {
			t.Errorf("a clean run was repeated: %s", w.Scenario.ID)
		}
		if w.Run <= "c-r0004" {
			t.Errorf("run id %s was given before", w.Run)
		}
	}
	if len(*finished2) == 0 {
		t.Error("nothing was run after the restart")
	}
}

// The daemon dies after the last step and before the end is booked: the next
// one still knows why the campaign ended.
// A run that goes on elsewhere while the daemon is away is neither lost nor given out anew.
func TestARestartedSearchTakesUpRunsThatGoOn(t *testing.T) {
	k := &keptInputs{}
	ctx, die := context.WithCancel(context.Background())
	r := &fakeRuns{}
	r.fail = func(w model.WorkItem) error {
		if w.Scenario.Strategy == model.StrategyCoFI {
			die()
		}
		return nil
	}
	s, finished := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(ctx, 1); err == nil {
		t.Fatal("the search did not notice that it was interrupted")
	}
	goesOn, again := r.ran[3], &fakeRuns{}
	stale := model.WorkItem{Run: "c-r0002", Scenario: r.ran[1].Scenario} // its result is in
	s2, _ := resumed(t, k, again.Run, mineOne, k.inputs(t), slices.Clone(*finished), 4, stale, goesOn)
	if err := s2.Run(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, w := range again.ran {
		if w.Run == stale.Run {
			t.Errorf("%s, whose result is in, was asked for again", w.Run)
		}
		if w.Scenario.ID == goesOn.Scenario.ID {
			n++
			if w.Run != goesOn.Run {
				t.Errorf("scenario %s goes on as %s and was given out as %s", w.Scenario.ID, goesOn.Run, w.Run)
			}
		}
	}
	if n != 1 {
		t.Errorf("the run that goes on was asked for %d times", n)
	}
	if slices.ContainsFunc(k.inputs(t), func(in Input) bool { return in.Kind == explorer.InputLost }) {
		t.Error("it counts as lost")
	}
}

func TestARestartedSearchKnowsWhyItWasDone(t *testing.T) {
	k := &keptInputs{}
	s, finished := testSearch(t, k, (&fakeRuns{}).Run, mineOne)
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	again, _ := resumed(t, k, (&fakeRuns{}).Run, mineOne, k.inputs(t), *finished, s.runs)
	if !again.done || again.why == "" || again.why != s.why {
		t.Errorf("after the restart done is %t with reason %q, want %q", again.done, again.why, s.why)
	}
}

func TestCleanRunsAreAddedWhileNothingCanBeMined(t *testing.T) {
	calls := 0
	r, k := &fakeRuns{}, &keptInputs{}
	s, finished := testSearch(t, k, r.Run, func(clean []string, weak bool) ([]model.Invariant, []model.RunResult, error) {
		calls++
		if len(clean) < 5 {
			return nil, nil, nil
		}
		return mineOne(clean, weak)
	})
	if err := s.Run(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	clean := 0
	for _, f := range *finished {
		if f.Scenario.Strategy == model.StrategyClean {
			clean++
		}
	}
	if clean != 5 || calls != 3 {
		t.Errorf("%d clean runs, mined %d times: want 5 and 3", clean, calls)
	}
}

// What may be chance is searched with only when nothing better came of six
// clean runs, and the campaign says so, also after a restart.
func TestWithNothingBetterTheSearchGoesOnWithWhatMayBeChance(t *testing.T) {
	weak := anInv
	weak.Chance = 1
	miner := func(_ []string, requested bool) ([]model.Invariant, []model.RunResult, error) {
		if !requested {
			return nil, nil, nil
		}
		return []model.Invariant{weak}, []model.RunResult{{Scenario: "s0001", States: metStates}}, nil
	}
	k := &keptInputs{}
	s, finished := testSearch(t, k, (&fakeRuns{}).Run, miner)
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	clean, fault := 0, 0
	for _, f := range *finished {
		if f.Scenario.Strategy == model.StrategyClean {
			clean++
		} else {
			fault++
		}
	}
	if clean != 6 || fault == 0 || s.weak == "" {
		t.Errorf("%d clean runs, %d fault runs, note %q: want 6, some and a note", clean, fault, s.weak)
	}
	again, _ := resumed(t, k, (&fakeRuns{}).Run, miner, k.inputs(t), *finished, s.runs)
	if again.weak != s.weak {
		t.Errorf("after a restart the note is %q, want %q", again.weak, s.weak)
	}
}

func TestAFullDiskEndsTheCampaignAtOnce(t *testing.T) {
	r, k := &fakeRuns{fail: func(model.WorkItem) error { return fmt.Errorf("write meta.json: %w", syscall.ENOSPC) }}, &keptInputs{}
	s, _ := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(context.Background(), 1); !errors.Is(err, model.ErrFull) || len(r.ran) != 1 {
		t.Fatalf("ended after %d runs with %v, want 1 and a full disk", len(r.ran), err)
	}
}

func TestACampaignEndsWhenNetsplitItselfKeepsFailing(t *testing.T) {
	r, k := &fakeRuns{fail: func(model.WorkItem) error { return fmt.Errorf("no switch") }}, &keptInputs{}
	s, _ := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(context.Background(), 1); err == nil {
		t.Fatal("a campaign whose runs all fail ended without an error")
	}
	if len(r.ran) > maxFailuresInARow {
		t.Errorf("%d runs were tried, want at most %d", len(r.ran), maxFailuresInARow)
	}
}

func TestAPanicEndsTheCampaignAndNothingElse(t *testing.T) {
	r, k := &fakeRuns{fail: func(model.WorkItem) error { panic("of a run") }}, &keptInputs{}
	s, _ := testSearch(t, k, r.Run, mineOne)
	if err := s.Run(context.Background(), 2); err == nil || !strings.Contains(err.Error(), "panic: of a run") {
		t.Errorf("ended with %v", err)
	}
}

// A target that never becomes stable, or a testbed that fails in every clean
// run, ends the campaign with a reason: no clean run is added for ever.
func TestACampaignEndsWhenNoCleanRunCanBeJudged(t *testing.T) {
	none := func([]string, bool) ([]model.Invariant, []model.RunResult, error) { return nil, nil, nil }
	for name, c := range map[string]struct {
		fail    func(model.WorkItem) error
		unknown func(run int) bool
		runs    int
	}{
		"all unknown":              {unknown: func(int) bool { return true }, runs: 6}, // 3, each once more
		"unknown after one":        {unknown: func(n int) bool { return n > 1 }, runs: 8},
		"one lost, once too often": {fail: func(w model.WorkItem) error { return map[string]error{"s0001": errors.New("no lab")}[w.Scenario.ID] }, runs: 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := &fakeRuns{fail: c.fail}
			s, _ := testSearch(t, &keptInputs{}, func(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
				sum, err := r.Run(ctx, w)
				if c.unknown != nil && c.unknown(len(r.ran)) {
					sum.Verdict.Value = model.VerdictUnknown
				}
				if len(r.ran) > 50 {
					return sum, syscall.ENOSPC // it would go on for ever
				}
				return sum, err
			}, none)
			if err := s.Run(context.Background(), 1); err != nil {
				t.Fatal(err)
			}
			if len(r.ran) != c.runs || s.why == "" {
				t.Errorf("ended after %d runs with reason %q, want %d runs and a reason", len(r.ran), s.why, c.runs)
			}
		})
	}
}

// TestStatesThatDoNotRecurAreToldOf: where most runs waited for a state in vain the
// campaign says of which variable, and what to do; a daemon that was restarted says so too.
func TestStatesThatDoNotRecurAreToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		reached bool
		clean   int // clean runs that met the states
		want    string
	}{
		"once and never again":  {false, 1, "did not occur, most often one of v: v, met again: false"},
		"in two of three clean": {false, 2, "did not occur, most often one of v: v, met again: true"},
		"reached":               {true, 1, ""},
	} {
		run := func(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
			sum, err := (&fakeRuns{}).Run(ctx, w)
			if w.Scenario.Strategy == model.StrategyCoFI && !c.reached {
				sum.Result.Reached, sum.Result.States, sum.Verdict.Value = false, nil, model.VerdictVacuous
			}
			return sum, err
		}
		k := &keptInputs{}
		mine := func([]string, bool) ([]model.Invariant, []model.RunResult, error) {
			var states []model.MetState
			for i := range 6 {
				states = append(states, model.MetState{Invariant: anInv.ID, State: model.State{A: "x", B: fmt.Sprint("y", i)}, Count: 1})
			}
			var results []model.RunResult
			for i := range c.clean {
				results = append(results, model.RunResult{Scenario: fmt.Sprintf("s%04d", i+1), States: states})
			}
			return []model.Invariant{anInv}, results, nil
		}
		s, finished := testSearch(t, k, run, mine)
		if err := s.Run(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		reported := strings.Join(s.Reasons(), " ")
		again, _ := resumed(t, k, run, mine, k.inputs(t), *finished, s.runs)
		if got := strings.Join(again.Reasons(), " "); got != reported {
			t.Errorf("%s: after a restart told %q, before %q", name, got, reported)
		}
		if !strings.Contains(reported, c.want) || strings.Contains(reported, "did not occur") != (c.want != "") {
			t.Errorf("%s: told %q", name, reported)
		}
	}
}

// What became of every pair is told: its runs are all fault runs, and why it is done.
func TestASearchAccountsForItsPairs(t *testing.T) {
	r, k := &fakeRuns{}, &keptInputs{}
	s, finished := testSearch(t, k, r.Run, mineOne)
	if got := s.c.Core.Account(); got.Why != notEnded || len(got.Pairs) > 0 {
		t.Errorf("before it began: %+v", got)
	}
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	a, runs, left := s.c.Core.Account(), 0, 0
	for _, p := range a.Pairs {
		runs += p.Runs
		if p.Fate == "left" {
			left++
		}
		if p.Node == "" || p.Invariant != anInv.String() || (p.Fate == "left") != (p.Why == "") {
			t.Errorf("pair %+v", p)
		}
	}
	if a.CleanRuns != 3 || a.FaultRuns != len(*finished)-3 || runs != a.FaultRuns || len(a.Pairs) == 0 || a.Left != left || !slices.Contains(s.Reasons(), a.Why) {
		t.Errorf("%+v of %d runs, done since %q", a, len(*finished), s.Reasons())
	}
}
