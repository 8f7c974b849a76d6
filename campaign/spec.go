package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"netsplit/campaign/cluster"
	"netsplit/explorer"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
)

// Defaults of a campaign, used where a spec says nothing.
const (
	defaultRuns    = 20
	defaultClean   = 3
	defaultRetries = 2
	defaultDepth   = 1 // faults of a sequence
	maxLabs        = 64
)

// complete fills in defaults and refuses what makes no sense.
func (s *Service) complete(spec model.CampaignSpec) (model.CampaignSpec, *model.Target, error) {
	bad := func(format string, args ...any) (model.CampaignSpec, *model.Target, error) {
		return spec, nil, fmt.Errorf("%w: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
	}
	var err error
	if spec.Target, err = s.named(spec.Target); err != nil {
		return spec, nil, err
	}
	if spec.Script != nil && (spec.Replay != "" || spec.Scenario != nil) {
		return bad("a script is played by itself: leave out the replay and the scenario")
	}
	if spec.Replay != "" {
		if spec, err = s.replaySpec(spec); err != nil {
			return spec, nil, fmt.Errorf("replay %s: %w", spec.Replay, err)
		}
	}
	if spec.Script != nil && spec.Replay == "" {
		if spec, err = s.completeScript(spec); err != nil {
			return spec, nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
		}
	}
	if spec.Replay == "" {
		spec.Kept = s.keep(spec.Target)
	}
	t, _, err := s.load(spec)
	if err != nil {
		return spec, nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if spec.Scenario != nil {
		if spec.Replay != "" {
			return bad("a replay has a scenario: leave out one of them")
		}
		if spec.Scenario, err = s.userScenario(spec, t); err != nil {
			return spec, nil, err
		}
		spec.Strategy = spec.Scenario.Strategy
	}
	if spec.Strategy == "" {
		spec.Strategy = model.StrategyCoFI
	}
	if spec.Effect == "" {
		spec.Effect = model.Drop
	}
	if spec.Labs == 0 && s.hub == nil {
		spec.Labs = 1
	}
	switch {
	case spec.Strategy == model.StrategyClean && spec.Replay == "":
		spec.Runs = 0 // nothing is cut
	case spec.Runs == 0 && (spec.Scenario != nil || spec.Script != nil && spec.Replay == ""):
		spec.Runs = 1
	case spec.Runs == 0:
		spec.Runs = defaultRuns
	}
	if spec.Clean == 0 {
		spec.Clean = defaultClean
	}
	sequences := spec.Strategy == model.StrategySequences && spec.Replay == ""
	if !sequences && searchesSequences(spec) {
		return bad("depth and faults are of strategies sequences and random, policies, prioritised, only and keys of sequences: use that strategy, or leave them out")
	}
	if sequences {
		spec.Depth = cmp.Or(spec.Depth, defaultDepth)
		if spec.Keys == nil { // the same after a restart, whatever is in the target then
			spec.Keys = t.Points.Keys
		}
	}
	if spec, err = s.completeShrink(spec); err != nil {
		return spec, nil, err
	}
	if spec.Gate == "" {
		spec.Gate = s.cfg.Gate
	}
	if spec.Retries == 0 {
		spec.Retries = defaultRetries
	}
	if spec.Seed == 0 {
		spec.Seed = uint64(time.Now().UnixNano())
	}
	switch {
	case s.hub != nil && (spec.Labs < 0 || spec.Labs > maxRemote):
		return bad("labs %d: use at most %d, or 0 for as many as the runners have", spec.Labs, maxRemote)
	case s.hub == nil && (spec.Labs < 1 || spec.Labs > maxLabs):
		return bad("labs %d: use 1 to %d", spec.Labs, maxLabs)
	case s.hub == nil && len(spec.Needs) > 0:
		return bad("needs are of runners, and this daemon makes the runs itself: leave them out, or start it with --cluster")
	case cluster.CheckNeeds(spec.Needs) != nil:
		return bad("needs: %v", cluster.CheckNeeds(spec.Needs))
	case spec.Runs < 0 || spec.Clean < 0 || spec.Retries < 0 || spec.Budget < 0:
		return bad("runs, clean, retries and budget must not be negative")
	case spec.Replay == "" && spec.Scenario == nil && spec.Strategy == model.StrategyCoFI && spec.Clean < 3:
		return bad("clean %d: invariants are mined from at least 3 clean runs", spec.Clean)
	}
	if spec.StopWhenBroken && (spec.Replay != "" || spec.Scenario != nil || spec.Script != nil || spec.Strategy == model.StrategyClean) {
		return bad("to stop when a promise is broken takes a search that cuts: leave stopWhenBroken out of a replay, a scenario, a script or clean runs")
	}
	if spec.WithoutCut && spec.Replay == "" {
		return bad("withoutCut takes a replay; clean runs of a search come with strategy clean")
	}
	if spec.Strategy == model.StrategyScripted && spec.Script == nil {
		return bad("strategy scripted needs a script: add one; a run that netsplit script run or a Go test played is repeated by that command or test")
	}
	if spec.Script != nil && (spec.WithoutCut || spec.Shrink > 0) {
		return bad("a script is played whole: leave out withoutCut and shrink")
	}
	if spec.Strategy == model.StrategySteps && spec.Scenario == nil && spec.Replay == "" {
		return bad("strategy steps needs a scenario: add one (netsplit run TARGET --scenario FILE), or leave out the strategy")
	}
	if len(t.Workloads) == 0 && spec.Script == nil {
		return bad("target %s has no workloads, only operations: it is for scripts (netsplit script run)", t.Name)
	}
	if _, err := sut.Args(t, spec.Args); err != nil {
		return spec, nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if err := spec.Gate.Validate(); err != nil {
		return bad("%v", err)
	}
	if err := s.gated(); err != nil {
		return spec, nil, err
	}
	if s.cfg.Testbed != nil {
		spec.Labs = 1
		if spec.Gate == model.GateByPort {
			if err := s.outside.HasGatePorts(); err != nil {
				return bad("%v", err)
			}
		}
		for _, h := range slices.Concat(t.Nodes, t.Clients) {
			if _, ok := s.cfg.Testbed.Host(h); !ok {
				return bad("target %s needs host %q and testbed %s has %v: name its hosts so", t.Name, h, s.cfg.Testbed.Name, s.cfg.Testbed.Names())
			}
		}
	}
	if spec.Scenario != nil || spec.Replay != "" || spec.Script != nil { // nothing is searched
		if spec.Replay == "" {
			spec.Clean = 0
		}
		return spec, t, nil
	}
	if _, err := s.source(spec, t); err != nil {
		return bad("%v", err)
	}
	return spec, t, nil
}

func (s *Service) gated() error {
	if s.outside == nil || s.outside.HasSwitches() {
		return nil
	}
	return fmt.Errorf("%w: the hosts of testbed %s drop packets themselves (backend: %s), and campaigns take a switch that holds each packet until it is decided: cut by hand here (netsplit partition, or the API's /v1/partitions), and run campaigns on a lab or on a testbed with a switch",
		model.ErrInvalid, s.outside.Testbed.Name, s.outside.Testbed.Backend)
}

// replaySpec fills a replay with what the run was made with: the target on the
// release that ran then, whatever is its default now, the settings and the
// bounds. Another target, release or setting that is asked for is refused: what
// fails on it, or does not, says nothing of the run.
func (s *Service) replaySpec(spec model.CampaignSpec) (model.CampaignSpec, error) {
	sum, err := s.store.GetRun(spec.Replay)
	if err != nil {
		return spec, err
	}
	if spec.WithoutCut && !sum.Scenario.Faulty() {
		return spec, fmt.Errorf("%w: nothing was done to its network: leave withoutCut out", model.ErrInvalid)
	}
	for i := range sum.Scenario.Steps {
		if err := s.holdsFiles(&sum.Scenario.Steps[i]); err != nil {
			return spec, fmt.Errorf("%w: step %d: %w", model.ErrInvalid, i+1, err)
		}
	}
	orig, err := s.getCampaign(sum.Campaign)
	if err != nil {
		return spec, err
	}
	release := sum.Release
	if release == "" { // a run that was cut short has no summary of its own
		var used model.Target
		if rundir.ReadJSON(filepath.Join(s.runDir(sum.Campaign, sum.Run), rundir.TargetFile), &used) == nil {
			release = used.Release
		}
	}
	then, kept := orig.Spec.Target, orig.Spec.Kept
	if release != "" {
		then = sut.At(then, release)
		if kept != "" {
			kept = sut.At(kept, release)
		}
	}
	if requested := spec.Target; requested != "" && requested != then && requested != sut.At(then, "") {
		return spec, fmt.Errorf("%w: it was made on %s, not on %s: leave out the target, or start a campaign on the other one", model.ErrInvalid, then, requested)
	}
	if len(spec.Args) > 0 && !maps.Equal(spec.Args, orig.Spec.Args) {
		return spec, fmt.Errorf("%w: it was made with the settings %v, not %v: leave out the settings, or start a campaign with the others", model.ErrInvalid, orig.Spec.Args, spec.Args)
	}
	spec.Target, spec.Kept, spec.Args, spec.Effect = then, kept, orig.Spec.Args, orig.Spec.Effect
	spec.Script = orig.Spec.Script
	spec.Strategy, spec.MaxLost, spec.MaxWindow = orig.Spec.Strategy, orig.Spec.MaxLost, orig.Spec.MaxWindow
	if spec.Gate == "" {
		spec.Gate = orig.Spec.Gate
	}
	return spec, nil
}

func (s *Service) coreConfig(spec model.CampaignSpec, t *model.Target) explorer.Config {
	return explorer.Config{Strategy: spec.Strategy, Seed: spec.Seed, Nodes: t.Nodes, Clients: t.Clients,
		Hosts: slices.Concat(t.Nodes, t.Clients), Effect: spec.Effect, IsolateClients: t.Isolation.Clients,
		Retries: spec.Retries, Runs: spec.Runs, Clean: spec.Clean, MaxCut: t.Timing.MaxCut, Workload: t.Timing.Workload}
}

// checkMemory says whether the machine has what the labs of a campaign take.
func checkMemory(t *model.Target, labs int) error {
	many := *t
	many.Memory *= max(labs, 1)
	if _, err := sut.CheckMemory(&many); err != nil {
		return fmt.Errorf("%w: with %d lab(s): %w", model.ErrUnavailable, labs, err)
	}
	return nil
}
