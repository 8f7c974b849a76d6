package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/campaign/judge"
	"netsplit/campaign/search"
	"netsplit/inference/invariant"
	"netsplit/model"
	"netsplit/sut"
)

// job is a campaign that is queued or under way.
type job struct {
	ctx    context.Context
	c      model.Campaign
	cancel context.CancelCauseFunc
	books  *books  // nil: not read yet; guarded by booking
	script *Script // nil: it plays none
	watch  *watch  // nil: it is no search, or not yet; guarded by booking
	// cancelled: somebody cancelled it, be it while it paused; guarded by mu.
	cancelled bool
}

var (
	errCancelled = errors.New("cancelled")
	errPaused    = errors.New("paused")
)

// CreateCampaign checks and queues a campaign.
func (s *Service) CreateCampaign(ctx context.Context, spec model.CampaignSpec) (model.Campaign, error) {
	return s.createCampaign(spec, "")
}

func (s *Service) createCampaign(spec model.CampaignSpec, schedule string) (model.Campaign, error) {
	spec, t, err := s.complete(spec)
	if err != nil {
		return model.Campaign{}, err
	}
	if err := s.checkHere(sut.CheckNeeds(t)); err != nil {
		return model.Campaign{}, fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	s.mu.Lock()
	idle := len(s.jobs) == 0
	s.mu.Unlock()
	if idle && s.hub == nil { // or else what is free now says nothing of its turn
		if err := checkMemory(t, spec.Labs); err != nil {
			return model.Campaign{}, err
		}
	}
	c := model.Campaign{ID: s.newID(), Schedule: schedule, Spec: spec, State: model.CampaignQueued, Created: time.Now()}
	c.Planned, c.Waits = spec.Runs, c.Created
	if spec.Scenario != nil && spec.Replay == "" {
		if p, err := planned(spec.Scenario.Steps, t, spec.Args); err == nil {
			c.Warnings = p.late()
		}
	}
	if spec.Replay == "" && spec.Scenario == nil && spec.Script == nil {
		c.Planned += spec.Clean
	}
	if err := s.store.PutCampaign(c); err != nil {
		return model.Campaign{}, err
	}
	s.enqueue(c)
	return c, nil
}

// CancelCampaign ends a campaign; its runs under way are cut short and what
// was recorded stays. Cancelling one that has ended is harmless.
func (s *Service) CancelCampaign(ctx context.Context, id string) (model.Campaign, error) {
	s.stop(id, errCancelled)
	if err := s.cancelStopped(id); err != nil { // it was paused, or became so meanwhile
		return model.Campaign{}, err
	}
	return s.Campaign(ctx, id)
}

// stop has a campaign that is queued or under way end for a reason. False: it is neither.
func (s *Service) stop(id string, why error) bool {
	s.mu.Lock()
	j := s.jobs[id]
	i := slices.Index(s.queue, j)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	if j != nil && why == errCancelled {
		j.cancelled = true
	}
	s.mu.Unlock()
	if j == nil {
		return false
	}
	j.cancel(why)
	if i >= 0 { // nothing of it is under way that would have to end first
		s.ended(j, why)
	}
	return true
}

func (s *Service) runCampaign(ctx context.Context, j *job) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	spec := j.c.Spec
	base, dir, err := s.load(spec)
	if err != nil {
		return err
	}
	t, err := sut.Expand(base, sut.ExpandInput{Args: spec.Args, Seed: spec.Seed})
	if err != nil {
		return err
	}
	if j.script, err = s.scripted(spec.Script, cmp.Or(spec.Kept, spec.Target), t); err != nil {
		return err
	}
	s.metrics.KnownTarget(t.Name, spec.Strategy)
	if spec.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline(&j.c), errBudget)
		defer cancel()
	}
	r, closePlace, err := s.placeFor(ctx, j, t, dir)
	if err != nil {
		return errors.Join(context.Cause(ctx), err) // cancelled while labs are made is no failure
	}
	defer closePlace()
	s.update(j, func(c *model.Campaign) { c.Reason = "" })
	if spec.Replay != "" && spec.Shrink > 0 {
		return s.shrinkReplay(ctx, j, r)
	}
	if spec.Replay != "" {
		return s.replay(ctx, j, r)
	}
	if spec.Scenario != nil {
		return s.runUserScenario(ctx, j, r)
	}
	if spec.Script != nil {
		return s.playScript(ctx, j, r)
	}
	return s.search(ctx, j, t, r)
}

// deadline is when the budget of a campaign that is under way is spent.
func deadline(c *model.Campaign) time.Time { return c.Created.Add(c.Idle + c.Spec.Budget) }

var errBudget = errors.New("the budget of wall time is spent")

// search runs a campaign's search, from its start or from where the daemon
// that began it died.
func (s *Service) search(ctx context.Context, j *job, t *model.Target, r place) error {
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return err
	}
	under, err := s.underWay(j, func(m model.RunMeta) bool { return m.ReplayOf == "" })
	if err != nil {
		return err
	}
	last := s.lastRunNumber(j.c.ID, runs, under)
	runs = slices.DeleteFunc(runs, func(r model.RunSummary) bool { return r.ReplayOf != "" }) // tries of shrinkCauses
	s.watched(j, t, runs)
	raw, err := s.store.Inputs(j.c.ID)
	if err != nil {
		return err
	}
	inputs := make([]search.Input, len(raw))
	for i, b := range raw {
		if err := json.Unmarshal(b, &inputs[i]); err != nil {
			return fmt.Errorf("stored input %d of campaign %s: %w", i+1, j.c.ID, err)
		}
	}
	source, err := s.source(j.c.Spec, t)
	if err != nil {
		return err
	}
	se, err := search.New(search.Config{Campaign: j.c.ID, Strategy: j.c.Spec.Strategy, Seed: j.c.Spec.Seed,
		Core: source, LastFault: t.Timing.LastFault, Panicked: s.panicked,
		Keep: func(input json.RawMessage) error { return s.store.AppendInput(j.c.ID, input) },
		Slot: r.slot,
		Run: func(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
			w.Spec = j.c.Spec
			return r.run(ctx, w)
		},
		Mine: func(clean []string, weak bool) ([]model.Invariant, []model.RunResult, error) {
			return s.mine(j, t, clean, weak)
		},
		Profiles: func(runs []string) *search.CleanRuns { return s.cleanPoints(j.c.ID, j.c.Spec.Keys, runs) },
		Profile: func(run string, faults []model.PointFault, periodic []string) (*search.Played, error) {
			return s.playedPoints(j.c.ID, j.c.Spec.Keys, run, faults, periodic)
		},
		WhyMissed: func(variable string, recurs bool) string { return s.whyMissed(j, variable, recurs) },
		Started:   func(w model.WorkItem) { s.runStarted(j, t.Name, w) },
		Finished:  func(sum model.RunSummary) { s.runFinished(j, sum) }},
		inputs, runs, under, last)
	if err != nil {
		return err
	}
	err = errors.Join(se.Run(ctx, r.workers()), s.account(j.c.ID, source))
	s.undecided(j, se.Missing())
	if err == nil {
		reasons := se.Reasons() // it asks for what is booked
		s.update(j, func(c *model.Campaign) {
			c.Reason = joinReasons(append([]string{r.templateNotice()}, append(reasons, c.Hint)...)...)
		})
		err = s.shrinkCauses(j, s.triesOn(ctx, j, r))
	}
	return err
}

func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// mine mines the clean runs, keeps what a person pinned or dropped, and stores
// the result. weak: see invariant.Options.
func (s *Service) mine(j *job, t *model.Target, clean []string, weak bool) ([]model.Invariant, []model.RunResult, error) {
	found, err := judge.Mine(t, clean, func(run string) string { return s.runDir(j.c.ID, run) },
		invariant.Options{Weak: weak})
	if err != nil {
		return nil, nil, err
	}
	mined := found.Invariants
	if st := j.c.Spec.Strategy; st == model.StrategyCoFI || st == model.StrategyClean { // others cut at no state of theirs
		s.update(j, func(c *model.Campaign) { c.Hint = found.MoreRuns() })
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
	return use, judge.StatesMet(use, runs, found.Logs), nil
}

// runStarted books a run before it begins, so that a restart knows of it.
// It has the target's name, as its summary will; the campaign's spec says where
// the target file is.
func (s *Service) runStarted(j *job, target string, w model.WorkItem) {
	run, sc := w.Run, w.Scenario
	meta := model.RunMeta{Campaign: j.c.ID, Run: run, Target: target, Started: time.Now(), Scenario: sc, ReplayOf: w.ReplayOf}
	if err := s.store.StartRun(meta); err != nil {
		s.log.Error("a run's start could not be stored", "run", run, "err", err)
	}
	s.update(j, func(c *model.Campaign) {
		c.Running = append(c.Running, run)
		c.Planned = max(c.Planned, c.Done+len(c.Running)) // runs that could not be judged are made again
	})
	s.tell("run", run, "running", sc.Why)
}

func (s *Service) runFinished(j *job, sum model.RunSummary) {
	fresh := s.book(j, &sum)
	s.metrics.RunDone(sum.Target, sum.Scenario.Strategy, sum.Verdict.Value)
	s.tell("run", sum.Run, string(sum.Verdict.Value), sum.Verdict.Reason)
	for _, f := range fresh {
		s.metrics.Finding(f)
		s.tell("finding", f.ID, string(f.Class), f.Failure.Summary)
	}
	s.warn(j, &sum)
	s.tryReportCampaign(j, false)
}

// runDoes books what a run under way begins to do.
func (s *Service) runDoes(campaign, run, what string) {
	s.mu.Lock()
	j := s.jobs[campaign]
	s.mu.Unlock()
	if j == nil {
		return
	}
	s.update(j, func(c *model.Campaign) {
		if c.Doing == nil {
			c.Doing = map[string]string{}
		}
		c.Doing[run] = what
	})
}

func (s *Service) runDir(campaign, run string) string {
	return filepath.Join(s.cfg.RunsDir, campaign, run)
}
