package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/explorer"
	"netsplit/inference/invariant"
	"netsplit/model"
)

// Config is what a Search is made from.
type Config struct {
	Campaign string // its id
	Strategy model.Strategy
	Seed     uint64
	Core     Source
	// LastFault is that of all its scenarios.
	LastFault time.Duration
	// Keep stores an input of the core before the core is stepped with it.
	Keep func(input json.RawMessage) error
	// Slot waits until there is room for one more run; give gives it back.
	Slot func(ctx context.Context) (give func(), err error)
	// Run makes one run and returns its summary when everything that it started
	// has ended and the network is whole. The error is netsplit's own or the
	// testbed's failure, never the target's.
	Run func(ctx context.Context, w model.WorkItem) (model.RunSummary, error)
	// Mine reads the records of the clean runs: what holds in them, and the
	// inconsistent states each of them met. weak: also what may be chance.
	Mine func(runs []string, weak bool) ([]model.Invariant, []model.RunResult, error)
	// Profiles reads the points of the clean runs, Profile those of the run of a sequence of
	// faults. Of strategy sequences only.
	Profiles func(runs []string) *CleanRuns
	Profile  func(run string, faults []model.PointFault, periodic []string) (*Played, error)
	// WhyMissed says why states of a variable may not have occurred in the runs that waited
	// for them; "" if that is not known. recurs: some such state did occur in several runs.
	WhyMissed func(variable string, recurs bool) string
	// Panicked makes an error of a panic of a worker, which ends the campaign.
	Panicked func(p any) error
	// Started is called before each run, Finished after it.
	Started  func(w model.WorkItem)
	Finished func(model.RunSummary)
}

// Search drives one campaign: it asks the core for scenarios, has them run,
// several at once, and gives the results back. Every input of the core is
// stored before the core is stepped with it, so that a restart rebuilds the
// core by stepping it again.
type Search struct {
	c Config

	mu       sync.Mutex // guards what follows
	cond     *sync.Cond
	runs     int // handed out, for run ids
	out      map[string]bool
	under    []model.WorkItem // of them, those that go on where the last daemon left them
	periodic []string         // of strategy sequences: types that are no points
	unread   []string         // the same: runs whose points could not be read, with the reason
	clean    []string         // judged runs of clean scenarios
	done     bool
	due      bool              // the core waits for invariants
	more     int               // further clean runs to hand out, because those so far gave no invariant
	added    int               // further clean runs asked for so far
	weak     string            // that the invariants may be chance, if there were no better ones
	why      string            // why the core is done
	waited   int               // fault runs that waited for a state
	missed   map[string]missed // of those, where it did not occur, by variable
	met      map[met]int       // runs that met a state
	failures int               // in a row, of netsplit or the testbed
	err      error
}

// missed is what runs waited for in vain.
type missed struct {
	runs   int
	states []met
}

// met is a state of an invariant, by its id.
type met struct {
	invariant string
	state     model.State
}

// maxMoreClean bounds the clean runs that are added, one by one, while no
// invariant can be distinguished from chance.
const maxMoreClean = 3

// moreID begins the scenario ids of those runs; the core does not know them.
const moreID = "more"

// maxFailuresInARow is how many runs in a row may fail because of netsplit or the testbed
// before the campaign ends: more runs would not help.
const maxFailuresInARow = 5

// New continues the search of a campaign after its stored inputs; without any it starts one.
// Scenarios that were being run when the daemon died count as lost, except those of runs that
// go on elsewhere (under). runsMade is the highest run number so far.
func New(c Config, inputs []Input, finished []model.RunSummary, under []model.WorkItem, runsMade int) (*Search, error) {
	s := &Search{c: c, out: map[string]bool{}, under: under, missed: map[string]missed{}, met: map[met]int{}}
	s.cond = sync.NewCond(&s.mu)
	return s, s.restore(inputs, finished, runsMade)
}

func (s *Search) restore(inputs []Input, finished []model.RunSummary, runsMade int) error {
	for _, in := range inputs {
		r := s.c.Core.Step(in)
		for _, sc := range r.Scenarios {
			s.out[sc.ID] = true
		}
		if in.Clean != nil {
			s.periodic, s.unread = in.Clean.Periodic, append(s.unread, in.Clean.Unread...)
		}
		if in.Unread != "" {
			s.unread = append(s.unread, in.Unread)
		}
		if in.Result != nil {
			delete(s.out, in.Result.Scenario)
		}
		if in.Kind == explorer.InputInvariants && s.c.Strategy == model.StrategyCoFI {
			s.noteWeak(in.Invariants)
		}
		for _, m := range in.Results {
			s.meets(m)
		}
		s.done, s.due = r.Done, r.Mine
		if r.Done {
			s.why = r.Why
		}
	}
	s.runs = runsMade
	for _, f := range finished {
		if strings.HasPrefix(f.Scenario.ID, moreID) {
			s.added++
		}
		s.note(f)
	}
	s.under = slices.DeleteFunc(s.under, func(w model.WorkItem) bool {
		return !s.out[w.Scenario.ID] && !strings.HasPrefix(w.Scenario.ID, moreID)
	})
	goesOn := map[string]bool{}
	for _, w := range s.under {
		goesOn[w.Scenario.ID], s.out[w.Scenario.ID] = true, true
		if strings.HasPrefix(w.Scenario.ID, moreID) {
			s.added++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.out)) {
		if goesOn[id] {
			continue
		}
		delete(s.out, id)
		if err := s.step(lost(id)); err != nil {
			return err
		}
	}
	return s.mineIfDue()
}

// step stores an input and steps the core with it. The caller holds mu, or is
// alone.
func (s *Search) step(in Input) error {
	_, err := s.ready(in)
	return err
}

func (s *Search) ready(in Input) (explorer.Ready, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return explorer.Ready{}, err
	}
	if err := s.c.Keep(b); err != nil {
		return explorer.Ready{}, fmt.Errorf("the campaign stops, because its progress cannot be stored: %w", err)
	}
	r := s.c.Core.Step(in)
	s.done, s.due = r.Done, r.Mine
	if r.Done && s.why == "" {
		s.why = r.Why
	}
	return r, nil
}

// Run works until the core is done, ctx ends or the campaign fails.
func (s *Search) Run(ctx context.Context, workers int) error {
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { s.mu.Lock(); s.cond.Broadcast(); s.mu.Unlock() })
	defer stop()
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.work(ctx)
		}()
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.err, context.Cause(ctx))
}

// Reasons explains the outcome of a search, once Run has returned: that its invariants may
// be chance, why the core was done, that states did not recur, and which runs were left
// out. Each is "" if it does not apply.
func (s *Search) Reasons() []string { return []string{s.weak, s.why, s.rare(), s.leftOut()} }

// leftOut names the first runs whose points could not be read.
func (s *Search) leftOut() string {
	const most = 3
	if len(s.unread) == 0 {
		return ""
	}
	text := fmt.Sprintf("left out %s whose points cannot be read: %s", model.Count(len(s.unread), "run", "runs"), strings.Join(s.unread[:min(most, len(s.unread))], "; "))
	if n := len(s.unread) - most; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// rareRuns is how many runs must have waited for a state before it is said that
// states do not recur.
const rareRuns = 5

// meets counts the states that a run met. The caller holds mu, or is alone.
func (s *Search) meets(r model.RunResult) {
	for _, m := range r.States {
		s.met[met{m.Invariant, m.State}]++
	}
}

// note books a finished run: whether it can be mined, what states it met and
// whether it met the one that it waited for. The caller holds mu, or is alone.
func (s *Search) note(sum model.RunSummary) {
	if sum.Minable() {
		s.clean = append(s.clean, sum.Run)
	}
	sc := sum.Scenario
	if sc.Strategy != model.StrategyClean { // what those met comes with the invariants
		s.meets(sum.Result)
	}
	waits := sc.Waits()
	if waits == nil || waits.When.State.State == nil || sum.Verdict.Value == model.VerdictUnknown {
		return
	}
	s.waited++
	if !sum.Result.Reached {
		at := waits.When.State
		name := at.Invariant.A.Name
		m := s.missed[name]
		m.runs++
		m.states = append(m.states, met{at.Invariant.ID, *at.State})
		s.missed[name] = m
	}
}

// Missing says why the states that fault runs waited for in vain may not have
// occurred; "" if none was missed, or nobody knows.
func (s *Search) Missing() string {
	_, most := s.mostMissed()
	if most == "" || s.c.WhyMissed == nil {
		return ""
	}
	return s.c.WhyMissed(most, slices.ContainsFunc(s.missed[most].states, func(m met) bool { return s.met[m] > 1 }))
}

// mostMissed is how many states were missed, and the variable of most of them.
func (s *Search) mostMissed() (all int, most string) {
	for _, name := range slices.Sorted(maps.Keys(s.missed)) {
		all += s.missed[name].runs
		if most == "" || s.missed[name].runs > s.missed[most].runs {
			most = name
		}
	}
	return all, most
}

func (s *Search) rare() string {
	all, most := s.mostMissed()
	if s.waited < rareRuns || 2*all <= s.waited {
		return ""
	}
	text := fmt.Sprintf("in %d of %d fault runs the expected state did not occur, most often one of %s", all, s.waited, most)
	if why := s.Missing(); why != "" {
		text += ": " + why
	}
	return text
}

// work is one worker: take a scenario, run it, give the result back.
func (s *Search) work(ctx context.Context) {
	for s.one(ctx) {
	}
}

// one makes one run; false means that there is nothing more to do. A panic ends the campaign,
// and not the daemon.
func (s *Search) one(ctx context.Context) (more bool) {
	defer func() {
		if p := recover(); p != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fail(s.c.Panicked(p))
		}
	}()
	give, err := s.c.Slot(ctx)
	if err != nil {
		return false
	}
	defer give()
	w, ok := s.next(ctx)
	if !ok {
		return false
	}
	sum, err := s.c.Run(ctx, w)
	if ctx.Err() != nil {
		return false // cut short: on resumption its scenario counts as lost, or it goes on
	}
	if model.IsFull(err) { // it is not booked: once there is room, it goes on, or counts as lost
		s.mu.Lock()
		defer s.mu.Unlock()
		if !errors.Is(err, model.ErrFull) {
			err = fmt.Errorf("%w: %w", model.ErrFull, err)
		}
		s.fail(err)
		return false
	}
	s.c.Finished(sum)
	s.back(w, sum, err)
	return true
}

// next waits for a scenario; false means that there is nothing more to do.
func (s *Search) next(ctx context.Context) (model.WorkItem, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.done || s.err != nil || ctx.Err() != nil {
			return model.WorkItem{}, false
		}
		if len(s.under) > 0 {
			w := s.under[0]
			s.under = s.under[1:]
			s.c.Started(w)
			return w, true
		}
		if s.more > 0 {
			s.more--
			sc := model.Scenario{ID: fmt.Sprint(moreID, s.runs+1), Strategy: model.StrategyClean, Seed: s.c.Seed + uint64(s.runs+1),
				Why: fmt.Sprintf("no invariant can be told from chance after %d clean runs: making one more", len(s.clean))}
			return s.take(sc), true
		}
		r, err := s.ready(Input{Input: explorer.Input{Kind: explorer.InputAsk, Slots: 1}})
		if err != nil {
			s.fail(err)
			return model.WorkItem{}, false
		}
		if len(r.Scenarios) > 0 {
			return s.take(r.Scenarios[0]), true
		}
		if s.due && len(s.out) == 0 {
			if err := s.mineIfDue(); err != nil {
				s.fail(err)
				return model.WorkItem{}, false
			}
			continue
		}
		if r.Done || len(s.out) == 0 {
			s.done = true
			s.cond.Broadcast()
			return model.WorkItem{}, false
		}
		s.cond.Wait()
	}
}

// take makes a work item of a scenario. The caller holds mu.
func (s *Search) take(sc model.Scenario) model.WorkItem {
	s.out[sc.ID] = true
	s.runs++
	if sc.Strategy != model.StrategyClean {
		sc.LastFault = s.c.LastFault
	}
	w := model.WorkItem{Campaign: s.c.Campaign, Run: fmt.Sprintf("%s-r%04d", s.c.Campaign, s.runs), Scenario: sc}
	s.c.Started(w)
	return w
}

// back gives a finished run to the core.
func (s *Search) back(w model.WorkItem, sum model.RunSummary, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.cond.Broadcast()
	delete(s.out, w.Scenario.ID)
	if err != nil {
		s.failures++
		if s.failures >= maxFailuresInARow {
			s.fail(fmt.Errorf("%d runs in a row failed for reasons that are not the target's, the last: %w", s.failures, err))
			return
		}
		if err := s.step(lost(w.Scenario.ID)); err != nil {
			s.fail(err)
		} else if err := s.mineIfDue(); err != nil { // it may have been the last clean run
			s.fail(err)
		}
		return
	}
	s.failures = 0
	s.note(sum)
	res := sum.Result
	res.Verdict = sum.Verdict
	in := Input{Input: explorer.Input{Kind: explorer.InputResult, Result: &res}}
	if w.Scenario.Strategy == model.StrategySequences && sum.Verdict.Value != model.VerdictUnknown {
		var err error
		if in.Played, err = s.c.Profile(w.Run, w.Scenario.Sequence, s.periodic); err != nil {
			in = lost(w.Scenario.ID)
			in.Unread = fmt.Sprintf("%s: %v", w.Run, err)
			s.unread = append(s.unread, in.Unread)
		}
	}
	if err := s.step(in); err != nil {
		s.fail(err)
		return
	}
	if err := s.mineIfDue(); err != nil {
		s.fail(err)
	}
}

// mineIfDue mines once all clean runs are in. The caller holds mu.
func (s *Search) mineIfDue() error {
	if !s.due {
		return nil
	}
	if s.c.Strategy == model.StrategySequences {
		c := s.c.Profiles(s.clean)
		s.periodic, s.unread = c.Periodic, append(s.unread, c.Unread...)
		return s.step(Input{Input: explorer.Input{Kind: inputProfiles}, Clean: c})
	}
	invs, results, err := s.c.Mine(s.clean, false)
	if err != nil {
		return fmt.Errorf("mining after %d clean runs: %w", len(s.clean), err)
	}
	if len(invs) == 0 && s.c.Strategy == model.StrategyCoFI {
		if len(s.clean) > 0 && s.added < maxMoreClean {
			s.more, s.added = 1, s.added+1
			return nil
		}
		if invs, results, err = s.c.Mine(s.clean, true); err != nil {
			return fmt.Errorf("mining after %d clean runs: %w", len(s.clean), err)
		}
		s.noteWeak(invs)
	}
	for _, r := range results {
		s.meets(r)
	}
	if len(invs) == 0 && s.c.Strategy == model.StrategyCoFI {
		s.why = "no clean run could be judged, so no invariant could be mined: the verdict of each run says what is missing"
		if len(s.clean) > 0 {
			s.why = fmt.Sprintf("no invariant can be told from chance after %d clean runs: make more (clean), or use a workload that changes the variables more often", len(s.clean))
		}
	}
	return s.step(Input{Input: explorer.Input{Kind: explorer.InputInvariants, Invariants: invs, Results: results}})
}

func lost(scenario string) Input {
	return Input{Input: explorer.Input{Kind: explorer.InputLost, Scenario: scenario}}
}

func (s *Search) noteWeak(invs []model.Invariant) {
	if len(invs) == 0 || slices.ContainsFunc(invs, func(i model.Invariant) bool { return i.Chance <= invariant.DefaultMaxChance }) {
		return
	}
	s.weak = fmt.Sprintf("no invariant could be told from chance: searched with the %d that held in all clean runs, which may be chance", len(invs))
}

// fail ends the campaign with the first error. The caller holds mu.
func (s *Search) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.cond.Broadcast()
}
