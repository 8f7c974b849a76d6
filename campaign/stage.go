package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"netsplit/campaign/run"
	"netsplit/model"
	"netsplit/sut"
)

// StageSpec is what a script asks for.
type StageSpec struct {
	Script string // its name
	Target string // name of a known target, or path of a target file
	Args   map[string]string
	Seed   uint64
	Times  int // how often it is meant to be played
	// Class is what an assertion that does not hold is, broken or documented,
	// and Quote what the documentation says of it.
	Class model.FailureClass
	Quote string
	// Repeat is what a user types to play it again.
	Repeat string
}

// Stage is a testbed on which one script is played, again and again; every time
// the target is started anew. Its runs are kept as those of a campaign are.
type Stage struct {
	s    *Service
	j    *job
	spec StageSpec
	r    *labRunner
	end  func()
	n    int // plays so far
}

// connectLimit is how long the switches of an outside testbed may take to connect
// before a script: Open vSwitch tries every 8 s.
const connectLimit = 20 * time.Second

// OpenStage makes a testbed for a script: a lab of its own, or the outside
// testbed, whose switches it waits for. It must be closed.
func (s *Service) OpenStage(ctx context.Context, spec StageSpec) (*Stage, error) {
	if spec.Seed == 0 {
		spec.Seed = uint64(time.Now().UnixNano())
	}
	base, dir, err := s.uploads().Load(spec.Target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	t, err := sut.Expand(base, sut.ExpandInput{Args: spec.Args, Seed: spec.Seed})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if err := sut.CheckNeeds(t); err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	if err := checkMemory(t, 1); err != nil {
		return nil, err
	}
	if s.cfg.Testbed != nil {
		for _, h := range slices.Concat(t.Nodes, t.Clients) {
			if _, ok := s.cfg.Testbed.Host(h); !ok {
				return nil, fmt.Errorf("%w: target %s needs host %q and testbed %s has %v: name its hosts so", model.ErrInvalid, t.Name, h, s.cfg.Testbed.Name, s.cfg.Testbed.Names())
			}
		}
	}
	if s.outside != nil && s.outside.HasSwitches() {
		rctx, cancel := context.WithTimeout(ctx, connectLimit)
		defer cancel()
		if err := s.outside.Ready(rctx); err != nil {
			return nil, fmt.Errorf("%w: testbed %s is not ready: %w; its switches are waited for at %s", model.ErrUnavailable, s.cfg.Testbed.Name, err, s.ControllerAddr())
		}
	}
	judgedByScript(t, spec.Class, spec.Quote)
	j := &job{c: model.Campaign{ID: s.newID(), State: model.CampaignRunning, Created: time.Now(), Planned: spec.Times,
		Spec: model.CampaignSpec{Target: sut.Absolute(spec.Target), Strategy: model.StrategyScripted, Seed: spec.Seed, Labs: 1, Runs: spec.Times,
			Effect: model.Drop, Args: spec.Args, MaxLost: -1, MaxWindow: -1}}}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	if err := s.store.PutCampaign(j.c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.jobs[j.c.ID] = j
	s.mu.Unlock()
	s.metrics.KnownTarget(t.Name, model.StrategyScripted)
	st := &Stage{s: s, j: j, spec: spec}
	if st.r, st.end, err = s.runnerOn(ctx, j, t, dir); err != nil {
		s.ended(j, err)
		return nil, err
	}
	return st, nil
}

// Play starts the target, plays the script when it is stable, and judges what
// was recorded. The error is netsplit's own or the testbed's failure; the
// summary is then one of verdict unknown.
func (st *Stage) Play(ctx context.Context, play run.Play) (model.RunSummary, error) {
	st.n++
	w := model.WorkItem{Campaign: st.j.c.ID, Run: fmt.Sprintf("%s-r%04d", st.j.c.ID, st.n), Spec: st.j.c.Spec,
		Scenario: model.Scenario{ID: fmt.Sprintf("s%04d", st.n), Strategy: model.StrategyScripted, Seed: st.spec.Seed + uint64(st.n),
			Script: st.spec.Script, Repeat: st.spec.Repeat, Why: fmt.Sprintf("script %s, play %d", st.spec.Script, st.n)}}
	st.r.play = play
	st.s.runStarted(st.j, st.r.kit.Target.Name, w)
	sum, err := st.r.run(ctx, w)
	if ctx.Err() != nil {
		return sum, errors.Join(err, context.Cause(ctx))
	}
	st.s.runFinished(st.j, sum)
	return sum, err
}

// Campaign is the campaign that keeps the runs.
func (st *Stage) Campaign() model.Campaign {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	c := st.j.c
	c.Running, c.Doing = slices.Clone(c.Running), maps.Clone(c.Doing)
	return c
}

// Dir is the directory with the records of all runs.
func (st *Stage) Dir() string { return filepath.Join(st.s.cfg.RunsDir, st.j.c.ID) }

// Findings are the distinct failures of all plays so far.
func (st *Stage) Findings() ([]model.Finding, error) { return st.s.allFindings(st.j.c.ID) }

// Close takes the testbed down and books how it ended: why is nil where all
// plays were made.
func (st *Stage) Close(why error) {
	st.end()
	if errors.Is(why, context.Canceled) {
		why = errCancelled
	}
	st.s.ended(st.j, why)
}
