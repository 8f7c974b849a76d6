package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsplit/explorer"
	"netsplit/explorer/sequence"
	"netsplit/model"
)

// sequences is the source of strategy sequences.
type sequences struct {
	s      *sequence.Search
	play   sequence.Play
	keys   []model.PointKey
	out    map[string]sequence.Run
	beside beside
	// held are results of clean runs, until all are back and their profiles are known.
	held map[string]model.RunResult
	// seen are the places of a point in runs after a sequence: they differ from run to run.
	// missed counts how often the fault there did not occur at its point.
	seen   map[at][]model.SeenPoint
	missed map[at]int
	why    string // why the search is done, or notEnded
}

// at is a point, by its identity, after a sequence.
type at struct{ after, point string }

// FromSequences is the source of the strategy that plays sequences of faults at points.
func FromSequences(cfg sequence.Config, play sequence.Play) Source {
	play.Keys = sequence.Options{Keys: cfg.Keys}.Identity()
	return &sequences{s: sequence.New(cfg), play: play, keys: play.Keys,
		out: map[string]sequence.Run{}, held: map[string]model.RunResult{}, seen: map[at][]model.SeenPoint{}, missed: map[at]int{}}
}

func (q *sequences) Step(in Input) explorer.Ready {
	var r sequence.Ready
	switch in.Kind {
	case explorer.InputAsk:
		r = q.s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: in.Slots})
	case explorer.InputResult:
		r = q.result(in)
	case explorer.InputLost:
		delete(q.out, in.Scenario)
		r = q.s.Step(sequence.Input{Kind: sequence.InputLost, Lost: in.Scenario})
	case inputProfiles:
		for _, id := range slices.Sorted(maps.Keys(q.held)) {
			p, ok := in.Clean.Profiles[id]
			if !ok {
				r = q.s.Step(sequence.Input{Kind: sequence.InputLost, Lost: id})
				continue
			}
			r = q.give(q.held[id], sequence.Run{}, &Played{Profile: p})
		}
		clear(q.held)
	}
	out := explorer.Ready{Done: r.Done, Why: r.Why}
	for _, run := range r.Runs {
		q.out[run.ID] = run
		out.Scenarios = append(out.Scenarios, q.scenario(run))
	}
	out.Mine = len(q.out) == 0 && len(q.held) > 0 && in.Kind == explorer.InputAsk
	if q.why = notEnded; out.Done {
		q.why = out.Why
		out.Why += q.levels() + q.beside.words()
	}
	return out
}

func (q *sequences) result(in Input) sequence.Ready {
	res := *in.Result
	run, ok := q.out[res.Scenario]
	delete(q.out, res.Scenario)
	q.beside.note(run, res.Verdict.Value, q.keys)
	switch {
	case !ok:
		return sequence.Ready{}
	case res.Verdict.Value == model.VerdictUnknown || in.Played == nil && len(run.IDs) > 0:
		res.Verdict.Value = model.VerdictUnknown
		return q.give(res, run, &Played{})
	case len(run.IDs) == 0:
		q.held[res.Scenario] = res
		return sequence.Ready{}
	}
	return q.give(res, run, in.Played)
}

// give hands a run to the search and notes where its points were.
func (q *sequences) give(res model.RunResult, run sequence.Run, p *Played) sequence.Ready {
	r := sequence.Result{Run: res.Scenario, Profile: p.Profile, Verdict: res.Verdict.Value, GivenUp: res.GivenUp}
	if r.Verdict != model.VerdictUnknown {
		r.Occurred, r.Other = sequence.Occurred(run.Faults, res.Steps, p.Met, sequence.Options{Keys: q.keys, Nodes: q.play.Nodes})
		q.note(run, p.Profile, r.Occurred)
	}
	return q.s.Step(sequence.Input{Kind: sequence.InputResult, Result: &r})
}

// note keeps where the points of a run were, as far as its faults occurred at theirs.
func (q *sequences) note(run sequence.Run, p model.Profile, occurred int) {
	once := map[at]bool{}
	for _, s := range p.Points {
		if s.Step > occurred {
			break
		}
		k := at{run.IDs[:s.Step].String(), s.Identity(q.keys)}
		if once[k] {
			continue
		}
		once[k] = true
		if !slices.ContainsFunc(q.seen[k], func(t model.SeenPoint) bool { return t.Triggers(q.keys) == s.Triggers(q.keys) && t.Turn == s.Turn }) {
			q.seen[k] = append(q.seen[k], s)
		}
	}
	if occurred < len(run.IDs) {
		q.missed[q.at(run, occurred)]++
	}
}

// at is the point of a fault of a run, after those before it.
func (q *sequences) at(r sequence.Run, i int) at {
	return at{r.IDs[:i].String(), r.Faults[i].Identity(q.keys)}
}

func (q *sequences) scenario(r sequence.Run) model.Scenario {
	sc := model.Scenario{ID: r.ID, Strategy: model.StrategySequences, Seed: r.Seed, Files: q.play.Files, Sequence: r.Faults, Why: r.Why}
	if len(r.IDs) == 0 {
		sc.Strategy = model.StrategyClean
		return sc
	}
	var faults []sequence.Placed
	for i, f := range r.Faults {
		k, turn := q.at(r, i), 0
		if n := len(q.seen[k]); n > 0 {
			where := q.seen[k][q.missed[k]%n]
			f.Point, turn = where.Point, where.Turn
		}
		faults = append(faults, sequence.Placed{PointFault: f, Turn: turn})
	}
	sc.Steps = q.play.Steps(faults)
	sc.Why = fmt.Sprintf("sequence %s: %s", r.IDs, r.Why)
	return sc
}

// Account says what became of every sequence so far.
func (q *sequences) Account() model.Account { return q.s.Report().Account(q.why) }

// levels says what was run, kept and pruned, and why.
func (q *sequences) levels() string {
	var b strings.Builder
	rep := q.s.Report()
	for _, l := range rep.Levels {
		fmt.Fprintf(&b, "; with %s: %s, %d kept, %d run with all faults, of which %d failed, %d given up as a point did not come", model.Count(l.Depth, "fault", "faults"), model.Count(l.Candidates, "sequence", "sequences"), l.Kept, l.Run, l.Failed, l.Vacuous)
		by := map[string]int{}
		for _, p := range l.Pruned {
			if p.Policy != "vacuous" {
				by[p.Policy]++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(by)) {
			fmt.Fprintf(&b, ", %d pruned by %s", by[name], name)
		}
	}
	return b.String()
}
