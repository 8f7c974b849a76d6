package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/campaign/judge"
	"netsplit/campaign/record"
	"netsplit/campaign/search"
	"netsplit/campaign/target"
	"netsplit/explorer"
	"netsplit/explorer/check"
	"netsplit/inference/invariant"
	"netsplit/model"
)

// job is a campaign that is queued or under way.
type job struct {
	ctx    context.Context
	c      model.Campaign
	cancel context.CancelCauseFunc
}

var errCancelled = errors.New("cancelled")

// Defaults of a campaign, used where a spec says nothing.
const (
	defaultRuns    = 20
	defaultClean   = 3
	defaultRetries = 2
	maxLabs        = 64
)

// CreateCampaign checks and queues a campaign.
func (s *Service) CreateCampaign(ctx context.Context, spec model.CampaignSpec) (model.Campaign, error) {
	spec, t, err := s.complete(spec)
	if err != nil {
		return model.Campaign{}, err
	}
	if err := target.CheckNeeds(t); err != nil {
		return model.Campaign{}, fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	s.mu.Lock()
	idle := len(s.jobs) == 0
	s.mu.Unlock()
	if idle { // or else what is free now says nothing of its turn
		if err := checkMemory(t, spec.Labs); err != nil {
			return model.Campaign{}, err
		}
	}
	c := model.Campaign{ID: s.newID(), Spec: spec, State: model.CampaignQueued, Created: time.Now()}
	c.Planned = spec.Runs
	if spec.Replay == "" && spec.Scenario == nil {
		c.Planned += spec.Clean
	}
	if err := s.store.PutCampaign(c); err != nil {
		return model.Campaign{}, err
	}
	s.enqueue(c)
	return c, nil
}

// checkMemory says whether the machine has what the labs of a campaign take.
func checkMemory(t *model.Target, labs int) error {
	many := *t
	many.Memory *= max(labs, 1)
	if _, err := target.CheckMemory(&many); err != nil {
		return fmt.Errorf("%w: with %d lab(s): %w", model.ErrUnavailable, labs, err)
	}
	return nil
}

// complete fills in defaults and refuses what makes no sense.
func (s *Service) complete(spec model.CampaignSpec) (model.CampaignSpec, *model.Target, error) {
	bad := func(format string, args ...any) (model.CampaignSpec, *model.Target, error) {
		return spec, nil, fmt.Errorf("%w: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if spec.Replay != "" {
		var err error
		if spec, err = s.asThen(spec); err != nil {
			return spec, nil, fmt.Errorf("replay %s: %w", spec.Replay, err)
		}
	}
	t, _, err := target.Load(spec.Target)
	if err != nil {
		return spec, nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	spec.Target = target.Absolute(spec.Target)
	if spec.Scenario != nil {
		if spec.Replay != "" {
			return bad("a replay has a scenario: leave out one of them")
		}
		if spec.Scenario, err = s.given(spec, t); err != nil {
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
	if spec.Labs == 0 {
		spec.Labs = 1
	}
	switch {
	case spec.Strategy == model.StrategyClean && spec.Replay == "":
		spec.Runs = 0 // nothing is cut
	case spec.Runs == 0 && spec.Scenario != nil:
		spec.Runs = 1
	case spec.Runs == 0:
		spec.Runs = defaultRuns
	}
	if spec.Clean == 0 {
		spec.Clean = defaultClean
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
	case spec.Labs < 1 || spec.Labs > maxLabs:
		return bad("labs %d: use 1 to %d", spec.Labs, maxLabs)
	case spec.Runs < 0 || spec.Clean < 0 || spec.Retries < 0 || spec.Budget < 0:
		return bad("runs, clean, retries and budget must not be negative")
	case spec.Replay == "" && spec.Scenario == nil && spec.Strategy == model.StrategyCoFI && spec.Clean < 3:
		return bad("clean %d: invariants are mined from at least 3 clean runs", spec.Clean)
	}
	if spec.Strategy == model.StrategyScripted {
		return bad("a script is no search: play it with netsplit script run, or the Go test that it is")
	}
	if len(t.Workloads) == 0 {
		return bad("target %s has no workloads, only operations: it is for scripts (netsplit script run)", t.Name)
	}
	if _, err := target.Args(t, spec.Args); err != nil {
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
	if spec.Scenario != nil || spec.Replay != "" { // nothing is searched
		if spec.Scenario != nil {
			spec.Clean = 0
		}
		return spec, t, nil
	}
	return spec, t, s.coreConfig(spec, t).Validate()
}

// gated says why no campaign can be run, if none can.
func (s *Service) gated() error {
	if s.outside == nil || s.outside.HasSwitches() {
		return nil
	}
	return fmt.Errorf("%w: the hosts of testbed %s drop packets themselves (backend: %s), and campaigns take a switch that holds each packet until it is decided: cut by hand here (netsplit partition, or the API's /v1/partitions), and run campaigns on a lab or on a testbed with a switch",
		model.ErrInvalid, s.outside.Testbed.Name, s.outside.Testbed.Backend)
}

// asThen fills a replay with what the run was made with: the target on the
// release that ran then, whatever is its default now, the settings and the
// bounds. Another target, release or setting that is asked for is refused: what
// fails on it, or does not, says nothing of the run.
func (s *Service) asThen(spec model.CampaignSpec) (model.CampaignSpec, error) {
	sum, err := s.store.GetRun(spec.Replay)
	if err != nil {
		return spec, err
	}
	orig, err := s.store.GetCampaign(sum.Campaign)
	if err != nil {
		return spec, err
	}
	release := sum.Release
	if release == "" { // a run that was cut short has no summary of its own
		var used model.Target
		if record.ReadJSON(filepath.Join(s.runDir(sum.Campaign, sum.Run), record.TargetFile), &used) == nil {
			release = used.Release
		}
	}
	then := orig.Spec.Target
	if release != "" {
		then = target.At(then, release)
	}
	if asked := target.Absolute(spec.Target); asked != "" && asked != then && asked != target.At(then, "") {
		return spec, fmt.Errorf("%w: it was made on %s, not on %s: leave the target out, or begin a campaign on the other one", model.ErrInvalid, then, asked)
	}
	if len(spec.Args) > 0 && !maps.Equal(spec.Args, orig.Spec.Args) {
		return spec, fmt.Errorf("%w: it was made with the settings %v, not %v: leave the settings out, or begin a campaign with the other ones", model.ErrInvalid, orig.Spec.Args, spec.Args)
	}
	spec.Target, spec.Args, spec.Effect = then, orig.Spec.Args, orig.Spec.Effect
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

// CancelCampaign ends a campaign; its runs under way are cut short and what
// was recorded stays. Cancelling one that has ended is harmless.
func (s *Service) CancelCampaign(ctx context.Context, id string) (model.Campaign, error) {
	s.mu.Lock()
	j := s.jobs[id]
	i := slices.Index(s.queue, j)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if j != nil {
		j.cancel(errCancelled)
	}
	if i >= 0 { // nothing of it is under way that would have to end first
		s.ended(j, errCancelled)
	}
	return s.Campaign(ctx, id)
}

// runCampaign executes one campaign to its end.
func (s *Service) runCampaign(ctx context.Context, j *job) error {
	spec := j.c.Spec
	base, dir, err := target.Load(spec.Target)
	if err != nil {
		return err
	}
	t, err := target.Expand(base, target.ExpandInput{Args: spec.Args, Seed: spec.Seed})
	if err != nil {
		return err
	}
	s.metrics.KnownTarget(t.Name, spec.Strategy)
	if spec.Budget > 0 {
		deadline := j.c.Created.Add(spec.Budget)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline, errBudget)
		defer cancel()
	}
	if err := checkMemory(t, spec.Labs); err != nil {
		return err
	}
	r, closeBeds, err := s.runnerOn(ctx, j, t, dir)
	if err != nil {
		return errors.Join(context.Cause(ctx), err) // cancelled while labs are made is no failure
	}
	defer closeBeds()
	s.update(j, func(c *model.Campaign) { c.Reason = "" })
	if spec.Replay != "" {
		return s.replay(ctx, j, r)
	}
	if spec.Scenario != nil {
		return s.runGiven(ctx, j, r)
	}
	return s.search(ctx, j, t, r)
}

var errBudget = errors.New("the budget of wall time is spent")

// search runs a campaign's search, from its start or from where the daemon
// that began it died.
func (s *Service) search(ctx context.Context, j *job, t *model.Target, r *labRunner) error {
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return err
	}
	raw, err := s.store.Inputs(j.c.ID)
	if err != nil {
		return err
	}
	inputs := make([]explorer.Input, len(raw))
	for i, b := range raw {
		if err := json.Unmarshal(b, &inputs[i]); err != nil {
			return fmt.Errorf("stored input %d of campaign %s: %w", i+1, j.c.ID, err)
		}
	}
	se, err := search.New(search.Config{Campaign: j.c.ID, Strategy: j.c.Spec.Strategy, Seed: j.c.Spec.Seed,
		Core: explorer.NewCore(s.coreConfig(j.c.Spec, t)),
		Keep: func(input json.RawMessage) error { return s.store.AppendInput(j.c.ID, input) },
		Run: func(ctx context.Context, w search.Work) (model.RunSummary, error) {
			return r.run(ctx, work{campaign: j.c.ID, run: w.Run, spec: j.c.Spec, scenario: w.Scenario})
		},
		Mine: func(clean []string, weak bool) ([]model.Invariant, []model.RunResult, error) {
			return s.mine(j, t, clean, weak)
		},
		Started:  func(w search.Work) { s.runStarted(j, t.Name, w.Run, w.Scenario) },
		Finished: func(sum model.RunSummary) { s.runFinished(j, sum) }},
		inputs, runs, s.lastRunNumber(j.c.ID, runs))
	if err != nil {
		return err
	}
	err = se.Run(ctx, r.n)
	if err == nil {
		s.update(j, func(c *model.Campaign) { c.Reason = joinReasons(append([]string{r.kit.News()}, se.Reasons()...)...) })
	}
	return err
}

// joinReasons puts those that are not empty one after the other.
func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// mine mines the clean runs, keeps what a person pinned or dropped, and stores
// the result. weak: see invariant.Options.
func (s *Service) mine(j *job, t *model.Target, clean []string, weak bool) ([]model.Invariant, []model.RunResult, error) {
	mined, logs, err := judge.Mine(t, clean, func(run string) string { return s.runDir(j.c.ID, run) },
		invariant.Options{Weak: weak})
	if err != nil {
		return nil, nil, err
	}
	if err := s.store.PutInvariants(t.Name, mined); err != nil {
		return nil, nil, err
	}
	kept, err := s.store.ListInvariants(t.Name)
	if err != nil {
		return nil, nil, err
	}
	var use []model.Invariant
	for _, k := range kept {
		again := slices.ContainsFunc(mined, func(m model.Invariant) bool { return m.ID == k.ID })
		if k.Status == model.InvariantPinned || again && k.Status != model.InvariantDrop {
			use = append(use, k.Invariant)
		}
	}
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return nil, nil, err
	}
	s.tell("invariant", j.c.ID, "mined", fmt.Sprintf("%d invariants mined from %d clean runs, %d in use", len(mined), len(clean), len(use)))
	return use, judge.StatesMet(use, runs, logs), nil
}

// runStarted books a run before it begins, so that a restart knows of it.
// It has the target's name, as its summary will; the campaign's spec says where
// the target file is.
func (s *Service) runStarted(j *job, target, run string, sc model.Scenario) {
	meta := model.RunMeta{Campaign: j.c.ID, Run: run, Target: target, Started: time.Now(), Scenario: sc}
	if err := s.store.StartRun(meta); err != nil {
		s.log.Error("a run's start could not be stored", "run", run, "err", err)
	}
	s.update(j, func(c *model.Campaign) { c.Running = append(c.Running, run) })
	s.tell("run", run, "running", sc.Why)
}

// runFinished stores a run and what it found.
func (s *Service) runFinished(j *job, sum model.RunSummary) {
	if err := s.store.PutRun(sum); err != nil {
		s.log.Error("a run could not be stored; its record is complete", "run", sum.Run, "err", err)
	}
	s.metrics.RunDone(sum.Target, sum.Scenario.Strategy, sum.Verdict.Value)
	s.tell("run", sum.Run, string(sum.Verdict.Value), sum.Verdict.Reason)
	findings := 0
	if j.c.Spec.Replay == "" {
		findings = s.mergeFindings(j.c.ID)
	}
	s.update(j, func(c *model.Campaign) {
		c.Done++
		if c.Spec.Replay == "" {
			c.Findings = findings
		}
		c.Running = slices.DeleteFunc(c.Running, func(r string) bool { return r == sum.Run })
	})
	s.tryReportCampaign(j.c.ID)
}

// mergeFindings derives the campaign's findings from all its runs.
func (s *Service) mergeFindings(campaign string) int {
	runs, err := s.allRuns(campaign)
	if err != nil {
		s.log.Error("findings could not be derived", "campaign", campaign, "err", err)
		return 0
	}
	found := check.Merge(campaign, runs)
	for _, f := range found {
		old, err := s.store.GetFinding(f.ID)
		if err == nil {
			f.Replays, f.Reproduced = old.Replays, old.Reproduced
		}
		if err := s.store.PutFinding(f); err != nil {
			s.log.Error("a finding could not be stored", "finding", f.ID, "err", err)
		}
		if old.ID == "" {
			s.metrics.Finding(f)
			s.tell("finding", f.ID, string(f.Class), f.Failure.Summary)
		}
	}
	return len(found)
}

// replay repeats a run's scenario and counts how often it failed as it did.
func (s *Service) replay(ctx context.Context, j *job, r *labRunner) error {
	orig, err := s.store.GetRun(j.c.Spec.Replay)
	if err != nil {
		return err
	}
	err = s.each(ctx, j, r, func(n int) work {
		sc := explorer.Replay(orig.Scenario, orig.Result)
		sc.ID = fmt.Sprintf("s%04d", n)
		return work{campaign: j.c.ID, run: fmt.Sprintf("%s-r%04d", j.c.ID, n), spec: j.c.Spec, scenario: sc, replayOf: orig.Run}
	}, func(sum model.RunSummary) {
		if reproduces(orig, sum) {
			s.update(j, func(c *model.Campaign) { c.Reproduced++ })
		}
	})
	if err != nil {
		return err
	}
	return s.bookReplay(orig)
}

// reproduces says whether a replay shows one of the failures of the original.
func reproduces(orig, again model.RunSummary) bool {
	return slices.ContainsFunc(orig.Verdict.Failures, func(f model.Failure) bool {
		return slices.ContainsFunc(again.Verdict.Failures, func(g model.Failure) bool { return f.Signature == g.Signature })
	})
}

// bookReplay adds what all replays of a run showed to the findings it stands for.
func (s *Service) bookReplay(orig model.RunSummary) error {
	findings, err := s.allFindings(orig.Campaign)
	if err != nil {
		return err
	}
	again, err := s.replaysOf(orig.Run)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Run != orig.Run {
			continue
		}
		f.Replays, f.Reproduced = len(again), 0
		for _, r := range again {
			if slices.ContainsFunc(r.Verdict.Failures, func(g model.Failure) bool { return g.Signature == f.Failure.Signature }) {
				f.Reproduced++
			}
		}
		if err := s.store.PutFinding(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) runDir(campaign, run string) string {
	return filepath.Join(s.cfg.RunsDir, campaign, run)
}
