package campaign

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"netsplit/campaign/judge"
	"netsplit/campaign/search"
	"netsplit/explorer"
	"netsplit/explorer/prune"
	"netsplit/explorer/sequence"
	"netsplit/model"
)

// source is where the scenarios of a campaign come from.
func (s *Service) source(spec model.CampaignSpec, t *model.Target) (search.Source, error) {
	core := s.coreConfig(spec, t)
	if spec.Strategy != model.StrategySequences {
		return search.FromCore(explorer.NewCore(core)), core.Validate()
	}
	cfg := sequence.Config{Seed: spec.Seed, Clean: spec.Clean, Depth: spec.Depth, Runs: spec.Runs, Retries: spec.Retries}
	for _, k := range sequence.Playable() {
		if len(spec.Faults) == 0 || slices.Contains(spec.Faults, k.Kind) {
			cfg.Kinds = append(cfg.Kinds, k)
		}
	}
	for _, f := range spec.Faults {
		if !slices.ContainsFunc(cfg.Kinds, func(k sequence.FaultAt) bool { return k.Kind == f }) {
			return nil, fmt.Errorf("no fault %q at messages: use crash, isolate or lose", f)
		}
	}
	if p := spec.Policies; p != nil {
		var err error
		cfg.Policies, err = prune.Read(p.Name, []byte(p.Text), func(name string) ([]byte, error) {
			return nil, errors.New("a campaign takes one file of policies: give the other one itself")
		})
		if err != nil {
			return nil, err
		}
	}
	return search.FromSequences(cfg, sequence.Play{Isolating: core.Isolating, MaxCut: core.MaxCut}), cfg.Validate()
}

// cleanPoints reads the points of a campaign's clean runs.
func (s *Service) cleanPoints(campaign string, runs []string) *search.CleanRuns {
	dirs := make([]string, len(runs))
	for i, run := range runs {
		dirs[i] = s.runDir(campaign, run)
	}
	p, err := judge.ProfilesOf(dirs, nil)
	if err != nil {
		return &search.CleanRuns{Unread: []string{err.Error()}}
	}
	out := &search.CleanRuns{Periodic: slices.Sorted(maps.Keys(p.Options.Periodic)), Profiles: map[string]model.Profile{}, Unread: p.Unread}
	for i, id := range p.Scenarios {
		out.Profiles[id] = sequence.Condense(p.Profiles[i], p.Options)
	}
	return out
}

// playedPoints reads the points of the run of a sequence.
func (s *Service) playedPoints(campaign, run string, faults []model.PointFault, periodic []string) (*search.Played, error) {
	types := map[string]bool{}
	for _, t := range periodic {
		types[t] = true
	}
	p, met, err := judge.PlayedProfile(s.runDir(campaign, run), faults, types)
	return &search.Played{Profile: p, Met: met}, err
}
