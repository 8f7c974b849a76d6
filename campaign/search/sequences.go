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
	s    *sequence.Search
	play sequence.Play
	keys []model.PointKey
	out  map[string]sequence.Run
	// held are results of clean runs: their profiles are known once all are back.
	held map[string]model.RunResult
	// turns has the turn of each point, by its identity, in the run of a sequence.
	turns map[string]map[string]int
}

// FromSequences is the source of the strategy that plays sequences of faults at points.
func FromSequences(cfg sequence.Config, play sequence.Play) Source {
	return &sequences{s: sequence.New(cfg), play: play, keys: sequence.Options{Keys: cfg.Keys}.Identity(),
		out: map[string]sequence.Run{}, held: map[string]model.RunResult{}, turns: map[string]map[string]int{}}
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
			r = q.give(q.held[id], nil, p, 0)
		}
		clear(q.held)
	}
	out := explorer.Ready{Done: r.Done, Why: r.Why}
	for _, run := range r.Runs {
		q.out[run.ID] = run
		out.Scenarios = append(out.Scenarios, q.scenario(run))
	}
	out.Mine = len(q.out) == 0 && len(q.held) > 0 && in.Kind == explorer.InputAsk
	if out.Done {
		out.Why += q.levels()
	}
	return out
}

func (q *sequences) result(in Input) sequence.Ready {
	res := *in.Result
	run, ok := q.out[res.Scenario]
	delete(q.out, res.Scenario)
	switch {
	case !ok:
		return sequence.Ready{}
	case res.Verdict.Value == model.VerdictUnknown:
		return q.give(res, run.IDs, model.Profile{}, 0)
	case len(run.IDs) == 0:
		q.held[res.Scenario] = res
		return sequence.Ready{}
	}
	return q.give(res, run.IDs, *in.Profile, sequence.Occurred(run.Faults, res.Steps))
}

// give hands a judged run to the search and notes the turns of its points.
func (q *sequences) give(res model.RunResult, ids model.Sequence, p model.Profile, occurred int) sequence.Ready {
	if occurred == len(ids) {
		of := ids.String()
		if q.turns[of] == nil {
			q.turns[of] = map[string]int{}
		}
		for _, s := range p.Points {
			id := s.Identity(q.keys)
			if _, ok := q.turns[of][id]; s.Step == len(ids) && !ok {
				q.turns[of][id] = s.Turn
			}
		}
	}
	return q.s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: res.Scenario, Profile: p, Occurred: occurred, Verdict: res.Verdict.Value}})
}

func (q *sequences) scenario(r sequence.Run) model.Scenario {
	sc := model.Scenario{ID: r.ID, Strategy: model.StrategySequences, Seed: r.Seed, Sequence: r.Faults, Why: r.Why}
	if len(r.IDs) == 0 {
		sc.Strategy = model.StrategyClean
		return sc
	}
	var faults []sequence.Placed
	for i, f := range r.Faults {
		faults = append(faults, sequence.Placed{PointFault: f, Turn: q.turns[r.IDs[:i].String()][f.Identity(q.keys)]})
	}
	sc.Steps = q.play.Steps(faults)
	sc.Why = fmt.Sprintf("sequence %s: %s", r.IDs, r.Why)
	return sc
}

// levels says what was run, kept and pruned, and why.
func (q *sequences) levels() string {
	var b strings.Builder
	rep := q.s.Report()
	for _, l := range rep.Levels {
		fmt.Fprintf(&b, "; with %d fault(s): %d sequences, %d kept, %d run with all faults, of which %d failed, %d given up as a point did not come", l.Depth, l.Candidates, l.Kept, l.Run, l.Failed, l.Vacuous)
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
