package points

import (
	"fmt"
	"slices"

	"netsplit/campaign/judge"
	"netsplit/explorer/prune"
	"netsplit/explorer/sequence"
	"netsplit/model"
)

// Of answers a query from the points of clean runs. What is wrong with it wraps
// model.ErrInvalid.
func Of(p *judge.Profiles, q model.PointsQuery) (model.FaultPoints, error) {
	out := model.FaultPoints{Target: p.Target, Runs: len(p.Runs), Files: hasFiles(p), LeftOut: p.Unread, Torn: p.Torn}
	for _, t := range p.Periodic {
		out.Periodic = append(out.Periodic, model.PeriodicType{Type: t.Type, Every: t.Every})
	}
	policies, err := PoliciesOf(q)
	if err != nil {
		return out, err
	}
	kinds, err := sequence.Kinds(q.Faults, p.Around, out.Files)
	if err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	cfg := sequence.Config{Seed: q.Seed, Depth: 1, Kinds: kinds, Policies: policies, Clean: len(p.Profiles), Keys: p.Options.Keys}
	if err := cfg.Validate(); err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	s := sequence.New(cfg)
	for i, run := range s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: cfg.Clean}).Runs {
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: run.ID, Profile: p.Profiles[i], Verdict: model.VerdictPass}})
	}
	s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
	for _, pol := range policies {
		if star, ok := pol.(*prune.Star); ok {
			out.Printed = append(out.Printed, star.Printed()...)
		}
	}
	rep := s.Report()
	if rep.Err != nil {
		return out, fmt.Errorf("%w: %w", model.ErrInvalid, rep.Err)
	}
	in, keys := counted(p), p.Options.Identity()
	row := func(c sequence.Candidate) model.FaultPoint {
		return model.FaultPoint{ID: c.IDs[0], PointFault: c.Last(), Runs: in[c.Last().Identity(keys)]}
	}
	for _, c := range s.Level() {
		out.Faults = append(out.Faults, row(c))
	}
	for _, c := range rep.Levels[0].Pruned {
		f := row(c.Candidate)
		f.Pruned, f.Why, f.Like = c.Policy, c.Why, c.Like
		out.Faults = append(out.Faults, f)
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
