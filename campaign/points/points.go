package points

import (
	"fmt"
	"math"
	"slices"

	"netsplit/campaign/judge"
	"netsplit/explorer/prune"
	"netsplit/explorer/sequence"
	"netsplit/model"
)

// Of answers a query from the points of clean runs, and of runs of single faults for sequences of
// two. What is wrong with it wraps model.ErrInvalid.
func Of(p *judge.Profiles, q model.PointsQuery) (model.FaultPoints, error) {
	out, err := answer(p, q)
	if err != nil || len(q.Only) == 0 || len(p.Apart) == 0 || slices.ContainsFunc(out.Faults, notByOnly) {
		return out, err
	}
	for _, a := range p.Apart {
		other, err := judge.ProfilesOf(a.Dirs, q.Keys)
		if err != nil {
			continue // they are told as left out already
		}
		there, err := answer(other, model.PointsQuery{Keys: q.Keys, Faults: q.Faults, Only: q.Only, Seed: q.Seed})
		if n := count(there.Faults, notByOnly); err == nil && n > 0 {
			out.Elsewhere = append(out.Elsewhere, fmt.Sprintf("%s, %s", a.Campaign, model.Count(n, "fault", "faults")))
		}
	}
	return out, nil
}

// notByOnly says whether a fault is asked for, whatever policies make of it.
func notByOnly(f model.FaultPoint) bool { return f.Pruned != prune.OnlyName }

func count[T any](all []T, is func(T) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

// answer is Of without what runs of other setups have.
func answer(p *judge.Profiles, q model.PointsQuery) (model.FaultPoints, error) {
	out := model.FaultPoints{Target: p.Target, Release: p.Setup.Release, Args: p.Setup.Args, Runs: len(p.Runs), Files: hasFiles(p), LeftOut: p.Unread, Torn: p.Torn}
	for _, a := range p.Apart {
		out.Apart = append(out.Apart, a.String())
	}
	for _, t := range p.Periodic {
		out.Periodic = append(out.Periodic, model.PeriodicType{Type: t.Type, Every: t.Every})
	}
	if q.Depth < 0 || q.Depth > 2 {
		return out, fmt.Errorf("%w: depth %d: single faults and sequences of two are shown: use 1 or 2", model.ErrInvalid, q.Depth)
	}
	policies, err := PoliciesOf(q)
	if err != nil {
		return out, err
	}
	kinds, err := sequence.Kinds(q.Faults, p.Around, out.Files)
	if err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	cfg := sequence.Config{Seed: q.Seed, Depth: max(q.Depth, 1), Runs: math.MaxInt, Kinds: kinds, Policies: policies, Clean: len(p.Profiles), Keys: p.Options.Keys}
	if err := cfg.Validate(); err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	s := sequence.New(cfg)
	for i, run := range s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: cfg.Clean}).Runs {
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: run.ID, Profile: p.Profiles[i], Verdict: model.VerdictPass}})
	}
	firsts := s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: math.MaxInt}).Runs
	in, keys := counted(p), p.Options.Identity()
	row := func(c sequence.Candidate) model.FaultPoint {
		return model.FaultPoint{ID: c.IDs[0], PointFault: c.Last(), Runs: in[c.Last().Identity(keys)]}
	}
	for _, c := range s.Level() {
		out.Faults = append(out.Faults, row(c))
	}
	if rep := s.Report(); rep.Err == nil {
		for _, c := range rep.Levels[0].Pruned {
			f := row(c.Candidate)
			f.Pruned, f.Why, f.Like = c.Policy, c.Why, c.Like
			out.Faults = append(out.Faults, f)
		}
		if q.Depth == 2 {
			if out.Pairs, err = pairs(p, s, firsts); err != nil {
				return out, err
			}
		}
	}
	for _, pol := range policies {
		if star, ok := pol.(*prune.Star); ok {
			out.Printed = append(out.Printed, star.Printed()...)
		}
	}
	if err := s.Report().Err; err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return out, nil
}

// pairs gives the search the recorded runs of first faults, as if it had made them, and asks it
// for sequences of two. firsts are the runs of the faults that policies keep.
func pairs(p *judge.Profiles, s *sequence.Search, firsts []sequence.Run) (*model.FaultPairs, error) {
	keys, by := p.Options.Identity(), map[model.FaultID]judge.SingleFault{}
	found, unread, err := p.SingleFaults(func(f model.PointFault) bool {
		return slices.ContainsFunc(firsts, func(r sequence.Run) bool { return r.IDs[0] == f.ID(keys) })
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		by[f.Fault.ID(keys)] = f
	}
	out := &model.FaultPairs{Firsts: len(firsts), Recorded: len(by), LeftOut: unread}
	for _, r := range firsts {
		f, ok := by[r.IDs[0]]
		if !ok {
			s.Step(sequence.Input{Kind: sequence.InputLost, Lost: r.ID})
			continue
		}
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: r.ID, Profile: f.Profile, Occurred: 1, Verdict: f.Verdict}})
	}
	s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
	rep := s.Report()
	if len(rep.Levels) < 2 || rep.Err != nil {
		return out, nil
	}
	out.Seen, out.Kept = rep.Levels[1].Candidates, rep.Levels[1].Kept
	add := func(c sequence.Candidate, pruned sequence.Pruned) {
		if len(out.List) < model.MaxFaultPairs {
			out.List = append(out.List, model.FaultPair{IDs: c.IDs, Faults: c.Faults, Pruned: pruned.Policy, Why: pruned.Why, Like: pruned.Like})
		}
	}
	for _, c := range s.Level() {
		add(c, sequence.Pruned{})
	}
	for _, c := range rep.Levels[1].Pruned {
		add(c.Candidate, c)
	}
	return out, nil
}

// PoliciesOf are the policies of a query: what it narrows to first.
func PoliciesOf(q model.PointsQuery) (out []sequence.Policy, err error) {
	if len(q.Only) > 0 {
		p, err := prune.Only(q.Only)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
		}
		out = append(out, p)
	}
	if p := q.Policies; p != nil {
		read, err := prune.Read(p.Name, []byte(p.Text), func(name string) ([]byte, error) {
			text, ok := p.Files[name]
			if !ok {
				return nil, fmt.Errorf("no text of a file %s came with it", name)
			}
			return []byte(text), nil
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
		}
		out = append(out, read...)
	}
	return out, nil
}

// counted says how many of the profiles have each point, by its identity.
func counted(p *judge.Profiles) map[string]int {
	out, keys := map[string]int{}, p.Options.Identity()
	for _, prof := range p.Profiles {
		once := map[string]bool{}
		for _, s := range prof.Points {
			if id := s.Identity(keys); !once[id] {
				once[id] = true
				out[id]++
			}
		}
	}
	return out
}

// hasFiles says whether a record has operations on files.
func hasFiles(p *judge.Profiles) bool {
	return slices.ContainsFunc(p.Profiles, func(prof model.Profile) bool {
		return slices.ContainsFunc(prof.Points, func(s model.SeenPoint) bool { return s.Side == model.SideFile })
	})
}
