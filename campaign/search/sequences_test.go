package search

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// writes is a runner whose target sends request and answer once more after an answer was
// lost. It fails if both answers are.
type writes struct {
	mu       sync.Mutex
	fakeRuns *fakeRuns
	steps    map[string][]model.Step // by run
	unread   error                   // of the records of fault runs
	other    bool                    // faults are at another point each time
}

func answer(nth int) model.SeenPoint {
	return model.SeenPoint{Point: model.Point{Side: model.SideSend, Node: "n1", Peer: "c1", Type: "answer", Nth: nth}, Turn: 1}
}

func (w *writes) run(ctx context.Context, it model.WorkItem) (model.RunSummary, error) {
	sum, err := w.fakeRuns.Run(ctx, it)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[it.Run] = it.Scenario.Steps
	for i := range it.Scenario.Steps {
		sum.Result.Steps = append(sum.Result.Steps, model.StepResult{Step: i + 1, By: model.ReasonMessage})
	}
	if len(it.Scenario.Steps) == 2 {
		sum.Verdict.Value = model.VerdictFail
	}
	return sum, err
}

func (w *writes) profile(_ string, faults []model.PointFault, periodic []string) (*Played, error) {
	out := &Played{Profile: model.Profile{Points: []model.SeenPoint{answer(1)}}}
	p := &out.Profile
	for _, f := range faults {
		if w.other {
			f.Point.After = "another"
		}
		out.Met = append(out.Met, f.Point)
	}
	if len(faults) > 0 && slices.Equal(periodic, []string{"beat"}) {
		again := answer(2)
		again.Step = 1
		p.Points = append(p.Points, again)
	}
	return out, w.unread
}

func sequencesSearch(t *testing.T, k *keptInputs, w *writes, run runner, runs int, inputs []Input, before []model.RunSummary) (*Search, *[]model.RunSummary) {
	t.Helper()
	cfg := sequence.Config{Seed: 1, Clean: 2, Depth: 2, Runs: runs, Retries: 1,
		Kinds: []sequence.FaultAt{{Kind: model.PointLose, Side: model.SideSend, Place: model.PlaceBefore}}}
	var finished []model.RunSummary
	var mu sync.Mutex
	s, err := New(Config{Campaign: "c", Strategy: model.StrategySequences, Core: FromSequences(cfg, sequence.Play{}), Keep: k.keep, Slot: noWait, Run: run,
		Profiles: func(runs []string) *CleanRuns {
			late := answer(1)
			late.Turn = 3
			return &CleanRuns{Periodic: []string{"beat"}, Profiles: map[string]model.Profile{
				"q00001": {Points: []model.SeenPoint{answer(1)}}, "q00002": {Points: []model.SeenPoint{late}}}}
		},
		Profile: w.profile, Started: func(model.WorkItem) {},
		Finished: func(s model.RunSummary) { mu.Lock(); finished = append(finished, s); mu.Unlock() }}, inputs, before, nil, len(before))
	if err != nil {
		t.Fatal(err)
	}
	return s, &finished
}

func newWrites() *writes { return &writes{fakeRuns: &fakeRuns{}, steps: map[string][]model.Step{}} }

func TestSequencesArePlayedLevelByLevel(t *testing.T) {
	w, k := newWrites(), &keptInputs{}
	s, finished := sequencesSearch(t, k, w, w.run, 10, nil, nil)
	if err := s.Run(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	if len(*finished) != 4 {
		t.Fatalf("%d runs, want 2 clean ones, one that loses the answer, one that loses both", len(*finished))
	}
	last := (*finished)[3].Scenario
	if len(last.Steps) != 2 || last.Steps[1].When.Follows != model.FollowsBegin || last.Steps[1].Do.Message.Match.From != "n1" || last.Strategy != model.StrategySequences {
		t.Errorf("the last run did %v", last.Steps)
	}
	for _, want := range []string{"with 1 fault: 1 sequence, 1 kept, 1 run with all faults, of which 0 failed", "with 2 faults: 1 sequence, 1 kept, 1 run with all faults, of which 1 failed"} {
		if why := strings.Join(s.Reasons(), " "); !strings.Contains(why, want) {
			t.Errorf("the end is told as %q, want %q", why, want)
		}
	}
}

// The daemon dies in the first fault run: that sequence is played again, and the profiles
// are those that were stored.
func TestARestartedSearchOfSequencesGoesOn(t *testing.T) {
	w, k := newWrites(), &keptInputs{}
	ctx, die := context.WithCancel(context.Background())
	s, finished := sequencesSearch(t, k, w, func(ctx context.Context, it model.WorkItem) (model.RunSummary, error) {
		if len(it.Scenario.Steps) > 0 {
			die()
		}
		return w.run(ctx, it)
	}, 10, nil, nil)
	if s.Run(ctx, 1) == nil {
		t.Fatal("the search did not notice that it was interrupted")
	}
	var inputs []Input
	for _, b := range k.all {
		var in Input
		if err := json.Unmarshal(b, &in); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, in)
	}
	s2, finished2 := sequencesSearch(t, k, w, w.run, 10, inputs, slices.Clone(*finished))
	if err := s2.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	if n := len(*finished2); n != 2 || len((*finished2)[1].Scenario.Steps) != 2 {
		t.Errorf("%d runs after the restart, want the lost one and the one that follows it", n)
	}
}

// A fault whose point does not come is tried again, then given up.
func TestASequenceWhosePointDoesNotComeIsGivenUp(t *testing.T) {
	w, k := newWrites(), &keptInputs{}
	s, finished := sequencesSearch(t, k, w, func(ctx context.Context, it model.WorkItem) (model.RunSummary, error) {
		sum, err := w.run(ctx, it)
		sum.Result.Steps = nil
		return sum, err
	}, 10, nil, nil)
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	if why := strings.Join(s.Reasons(), " "); len(*finished) != 4 || !strings.Contains(why, "1 given up as a point did not come") {
		t.Errorf("%d runs: %s", len(*finished), why)
	}
}

// A fault that is at another point than the one asked for did not occur: it is tried where
// the point was in another run, and what was met is told.
func TestAFaultAtAnotherPointIsTriedElsewhere(t *testing.T) {
	w, k := newWrites(), &keptInputs{}
	w.other = true
	s, finished := sequencesSearch(t, k, w, w.run, 10, nil, nil)
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	var turns []int
	for _, f := range *finished {
		for _, st := range f.Scenario.Steps {
			turns = append(turns, st.Do.Message.Nth)
		}
	}
	if !slices.Equal(turns, []int{1, 3}) {
		t.Errorf("the message of turns %v was lost, want 1, then 3 as in the other clean run", turns)
	}
	if why := strings.Join(s.Reasons(), " "); !strings.Contains(why, "1 given up as a point did not come") {
		t.Errorf("the end is told as %q", why)
	}
}

// A record that cannot be read takes its run out, not the campaign.
func TestRunsWhosePointsCannotBeReadAreLeftOut(t *testing.T) {
	w, k := newWrites(), &keptInputs{}
	w.unread = errors.New("disk error")
	s, _ := sequencesSearch(t, k, w, w.run, 10, nil, nil)
	if err := s.Run(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	again, _ := sequencesSearch(t, k, w, w.run, 10, k.inputs(t), nil)
	for _, s := range []*Search{s, again} {
		if why := strings.Join(s.Reasons(), " "); !strings.Contains(why, "left out 2 runs") || !strings.Contains(why, "disk error") {
			t.Errorf("the end is told as %q", why)
		}
	}
}
