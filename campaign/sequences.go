package campaign

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"netsplit/campaign/judge"
	"netsplit/campaign/points"
	"netsplit/campaign/search"
	"netsplit/explorer"
	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/record/rundir"
)

// source is where the scenarios of a campaign come from.
func (s *Service) source(spec model.CampaignSpec, t *model.Target) (search.Source, error) {
	core := s.coreConfig(spec, t)
	if spec.Strategy != model.StrategySequences && len(spec.Faults) == 0 {
		core.Random.Depth = spec.Depth
		return search.FromCore(explorer.NewCore(core)), core.Validate()
	}
	a, err := s.around(spec, t)
	if err != nil {
		return nil, err
	}
	if spec.Strategy != model.StrategySequences {
		if core.Random, err = s.random(spec, core, a); err != nil {
			return nil, err
		}
		return search.FromCore(explorer.NewCore(core)), core.Validate()
	}
	cfg := sequence.Config{Seed: spec.Seed, Clean: spec.Clean, Depth: spec.Depth, Runs: spec.Runs, Retries: spec.Retries, Keys: spec.Keys}
	if cfg.Kinds, err = sequence.Kinds(spec.Faults, a, false); err != nil {
		return nil, err
	}
	files := slices.ContainsFunc(cfg.Kinds, sequence.FaultAt.Disk)
	if files {
		if err := s.hasDiskGates(); err != nil {
			return nil, err
		}
	}
	if cfg.Policies, err = policiesOf(spec); err != nil {
		return nil, err
	}
	return search.FromSequences(cfg, sequence.Play{Isolating: core.Isolating, MaxCut: core.MaxCut, Files: files, Around: a}), cfg.Validate()
}

// random is what strategy random draws from, given kinds of faults.
func (s *Service) random(spec model.CampaignSpec, core explorer.Config, a sequence.Around) (explorer.Random, error) {
	out := explorer.Random{Depth: spec.Depth, Steps: sequence.Play{Isolating: core.Isolating, Around: a}.Timed}
	var err error
	if out.Kinds, err = sequence.AtTimes(spec.Faults, a); err != nil {
		return out, err
	}
	if slices.ContainsFunc(out.Kinds, func(k model.PointFaultKind) bool {
		return sequence.FaultAt{Kind: k}.Disk() || k == model.PointDiskFailure
	}) {
		err = s.hasDiskGates()
	}
	return out, err
}

// account keeps what became of all that a campaign could have run beside its runs. It is an
// error if a policy failed: what it would have kept is not known.
func (s *Service) account(campaign string, source search.Source) error {
	all, dir := source.Account(), filepath.Join(s.cfg.RunsDir, campaign)
	if _, err := os.Stat(dir); err == nil { // a run was recorded
		if err := rundir.WriteJSON(filepath.Join(dir, rundir.AccountFile), all); err != nil {
			return err
		}
	}
	if all.Error != "" {
		return fmt.Errorf("a policy failed: %s", all.Error)
	}
	return nil
}

// searchesSequences says whether a spec has what strategy sequences alone has; depth and faults
// are of strategy random, too.
func searchesSequences(spec model.CampaignSpec) bool {
	return (spec.Strategy != model.StrategyRandom || spec.Replay != "") && (spec.Depth != 0 || len(spec.Faults) > 0) || spec.Policies != nil || spec.Prioritised || len(spec.Only) > 0 || len(spec.Keys) > 0
}

// policiesOf are what prunes a campaign's sequences, in the order in which they are asked.
func policiesOf(spec model.CampaignSpec) ([]sequence.Policy, error) {
	out, err := points.PoliciesOf(model.PointsQuery{Only: spec.Only, Policies: spec.Policies})
	if err == nil && spec.Prioritised {
		out = append(out, sequence.Prioritised(nil))
	}
	return out, err
}

// cleanPoints reads the points of a campaign's clean runs.
func (s *Service) cleanPoints(campaign string, keys []model.PointKey, runs []string) *search.CleanRuns {
	dirs := make([]string, len(runs))
	for i, run := range runs {
		dirs[i] = s.runDir(campaign, run)
	}
	p, err := judge.ProfilesOf(dirs, keys)
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
func (s *Service) playedPoints(campaign string, keys []model.PointKey, run string, faults []model.PointFault, periodic []string) (*search.Played, error) {
	types := map[string]bool{}
	for _, t := range periodic {
		types[t] = true
	}
	p, met, err := judge.PlayedProfile(s.runDir(campaign, run), faults, types, keys)
	return &search.Played{Profile: p, Met: met}, err
}
