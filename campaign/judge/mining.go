package judge

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/explorer/engine"
	"netsplit/inference/invariant"
	"netsplit/inference/state"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Mined is what clean runs say.
type Mined struct {
	Invariants []model.Invariant
	Logs       map[string][]model.Event // the events of each run
	// Significant is how many invariants can be distinguished from chance: all, unless weak ones
	// were asked for.
	Significant int
	// Scarce counts the pairs of variables that changed and never differed, too
	// seldom seen to be distinguished from chance.
	Scarce int
}

// Mine mines the invariants of recorded clean runs. dir gives a run's directory.
func Mine(target *model.Target, runs []string, dir func(run string) string, opts invariant.Options) (*Mined, error) {
	m := invariant.NewMiner()
	logs := map[string][]model.Event{}
	for _, run := range runs {
		events, _, err := rundir.ReadLines[model.Event](dir(run), rundir.EventsFile)
		if err != nil {
			return nil, fmt.Errorf("read the events of clean run %s: %w", run, err)
		}
		logs[run] = events
		m.Add(run, samplesOf(target, run, events))
	}
	opts.Like = Like(target)
	return mined(m, logs, opts), nil
}

// Like names nodes by the processes that run on them: those with the same ones are
// alike.
func Like(t *model.Target) func(model.NodeID) string {
	names := map[model.NodeID][]string{}
	for _, p := range t.Processes {
		for _, h := range p.Hosts {
			names[h] = append(names[h], p.Name)
		}
	}
	return func(n model.NodeID) string {
		if !slices.Contains(t.Nodes, n) {
			return ""
		}
		return strings.Join(slices.Sorted(slices.Values(names[n])), "+")
	}
}

func mined(m *invariant.Miner, logs map[string][]model.Event, opts invariant.Options) *Mined {
	out := &Mined{Invariants: m.Invariants(opts), Logs: logs}
	out.Significant = len(out.Invariants)
	if opts.Weak { // what may be chance is what more runs may tell from it
		opts.Weak = false
		out.Significant = len(m.Invariants(opts))
	}
	out.Scarce = Scarce(m.Rejected(opts))
	return out
}

// Scarce counts the pairs that more clean runs may show to be invariants: those
// that do change and never differed, at no kind of message: there is nearly always
// one that is too rare to show it.
func Scarce(rejected []invariant.Rejected) int {
	n := 0
	for _, r := range rejected {
		if r.Apart == 0 && r.Changes > 0 {
			n++
		}
	}
	return n
}

// MoreRuns says what more clean runs may bring, if that is much: as many pairs as
// invariants can be distinguished from chance, or more. "" if it is not.
func (m *Mined) MoreRuns() string {
	if runs := len(m.Logs); m.Scarce > 0 && m.Scarce >= m.Significant {
		return fmt.Sprintf("%s of variables changed and never differed, but were seen too seldom in %s to be invariants: more clean runs may help (--clean %d)",
			pairs(m.Scarce), model.Count(runs, "clean run", "clean runs"), max(6, 2*runs))
	}
	return ""
}

func pairs(n int) string {
	if n == 1 {
		return "1 pair"
	}
	return fmt.Sprintf("%d pairs", n)
}

// Remined is what the recorded clean runs of a campaign say when they are mined
// again.
type Remined struct {
	Runs     []string // clean runs that could be mined, sorted
	Torn     []string // what the records of some of them lack, run first
	Kept     []model.Invariant
	Rejected []invariant.Rejected
}

// Remine mines the clean runs recorded below dir, a campaign's directory, as
// the campaign did: without those that could not be judged. It is an error if
// there is none.
func Remine(dir string) (*Remined, error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*", rundir.SummaryFile))
	if err != nil {
		return nil, err
	}
	m, out := invariant.NewMiner(), &Remined{}
	var opts invariant.Options
	for _, d := range dirs { // sorted
		var sum model.RunSummary
		if err := rundir.ReadJSON(d, &sum); err != nil {
			return nil, err
		}
		if !sum.Minable() {
			continue
		}
		f, err := readRun(filepath.Dir(d))
		if err != nil {
			return nil, fmt.Errorf("clean run %s: %w", sum.Run, err)
		}
		for _, lack := range f.torn {
			out.Torn = append(out.Torn, sum.Run+": "+lack)
		}
		m.Add(sum.Run, samplesOf(&f.target, sum.Run, f.events))
		opts.Like = Like(&f.target)
		out.Runs = append(out.Runs, sum.Run)
	}
	if len(out.Runs) == 0 {
		return nil, fmt.Errorf("%w in %s: give the directory of a campaign, such as runs/c-20260102-030405-1", ErrNoCleanRun, dir)
	}
	if out.Kept = m.Invariants(opts); len(out.Kept) == 0 {
		opts.Weak = true
		out.Kept = m.Invariants(opts)
	}
	out.Rejected = m.Rejected(opts)
	return out, nil
}

// samplesOf pairs the values at before-send and after-handle of every message
// between nodes, from the start of the workload to its end: before it the
// target is still settling.
func samplesOf(target *model.Target, run string, events []model.Event) []model.Sample {
	s := state.NewSampler(run, target.Nodes, target.Variables)
	var out []model.Sample
	working := false
	for _, e := range events {
		switch e.Kind {
		case model.EventWorkload:
			working = true
		case model.EventStop:
			return append(out, s.Flush()...)
		}
		got := s.Step(e)
		if working {
			out = append(out, got...)
		}
	}
	return append(out, s.Flush()...)
}

// StatesMet gives each clean run's inconsistent states, now that it is known
// what must agree (Algorithm 1, line 1).
func StatesMet(invs []model.Invariant, runs []model.RunSummary, logs map[string][]model.Event) []model.RunResult {
	var out []model.RunResult
	for _, r := range runs {
		log, ok := logs[r.Run]
		if !ok {
			continue
		}
		out = append(out, model.RunResult{Scenario: r.Scenario.ID, Verdict: r.Verdict,
			States: engine.States(log, invs), Duration: r.Cost.Workload})
	}
	return out
}
