package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netsplit/campaign/judge"
	"netsplit/campaign/run"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut/nodes"
	"netsplit/testbed"
	"netsplit/testbed/lab"
)

// labRunner runs work items on its testbeds, one run per testbed at a time.
type labRunner struct {
	s        *Service
	kit      *nodes.Kit
	testbeds chan *testbed.Testbed
	n        int      // testbeds
	play     run.Play // of a stage; nil: runs do their workloads
}

// run makes one run and returns its summary when everything that it started has
// ended and the network is whole. The error is netsplit's own or the testbed's
// failure, never the target's; the summary is then a run of verdict unknown.
func (r *labRunner) run(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
	var b *testbed.Testbed
	select {
	case b = <-r.testbeds:
	case <-ctx.Done():
		return model.RunSummary{}, context.Cause(ctx)
	}
	defer func() { r.testbeds <- b }()
	defer r.s.setView(w.Run, nil)

	dir := r.s.runDir(w.Campaign, w.Run)
	began := time.Now()
	ev, err := run.Execute(ctx, run.Config{WorkItem: w, Dir: dir,
		Kit: r.kit, Testbed: b, Play: r.play, Metrics: r.s.metrics, Version: r.s.cfg.Version,
		Doing: func(what string) { r.s.runDoes(w.Campaign, w.Run, what) },
		Watch: func(live func(uint64) model.LiveState) { r.s.setView(w.Run, live) }})
	if ctx.Err() != nil {
		return model.RunSummary{}, context.Cause(ctx)
	}
	if err != nil {
		ev.Incomplete = append(ev.Incomplete, err.Error())
		ev.Ended = time.Now()
	}
	judging := time.Now()
	if werr := rundir.WriteJSON(filepath.Join(dir, rundir.EvidenceFile), ev); werr != nil {
		err = errors.Join(err, werr)
	}
	sum, jerr := judge.Dir(dir, r.s.replayCommand(w.Run))
	if sum.Run == "" {
		sum = unjudged(w, r.kit.Target, began, jerr)
	}
	err = errors.Join(err, jerr)
	r.s.noteRecorded(err)
	sum.Cost.Ours += time.Since(judging)
	return sum, err
}

func unjudged(w model.WorkItem, t *model.Target, began time.Time, err error) model.RunSummary {
	v := model.Verdict{Value: model.VerdictUnknown, Reason: "the run could not be recorded or judged: " + err.Error()}
	return model.RunSummary{
		RunMeta: model.RunMeta{Campaign: w.Campaign, Run: w.Run, Target: t.Name, Started: began, Scenario: w.Scenario, ReplayOf: w.ReplayOf},
		Ended:   time.Now(), Release: t.Release, Verdict: v, Result: model.RunResult{Scenario: w.Scenario.ID, Verdict: v}}
}

// runnerOn makes the testbeds of a campaign: n labs of its own, or the outside
// testbed. The function it returns takes the labs down again.
func (s *Service) runnerOn(ctx context.Context, j *job, t *model.Target, dir string) (*labRunner, func(), error) {
	campaign, n := j.c.ID, j.c.Spec.Labs
	r := &labRunner{s: s}
	var err error
	r.kit, err = nodes.NewKit(ctx, nodes.KitConfig{Target: t, Dir: dir, Netsplit: s.cfg.Binary, Bin: s.cfg.BinDir, Fetching: s.fetching(j),
		Notify: func(text string) {
			s.tell("campaign", campaign, string(model.CampaignRunning), text)
			s.update(j, func(c *model.Campaign) { c.Reason = r.kit.News() })
		}})
	if err != nil {
		return nil, nil, err
	}
	if s.outside != nil {
		r.testbeds, r.n = make(chan *testbed.Testbed, 1), 1
		if err := s.gated(); err != nil { // one that was queued when the testbed had a switch
			return nil, nil, err
		}
		if err := s.hand.Claim("campaign " + campaign); err != nil {
			return nil, nil, err
		}
		if err := s.outside.UseGate(ctx, j.c.Spec.Gate); err != nil {
			s.hand.Release()
			return nil, nil, err
		}
		r.testbeds <- s.outside
		return r, s.hand.Release, nil
	}
	r.testbeds, r.n = make(chan *testbed.Testbed, n), n
	var made []*testbed.Testbed
	var labs []string
	closeAll := func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for _, b := range made {
			s.removeTestbed(b)
			if err := b.Close(); err != nil {
				s.log.Warn("a testbed did not close cleanly", "testbed", b.Testbed.Name, "err", err)
			}
			s.forgetSwitches(&b.Testbed)
		}
		for _, name := range labs {
			if err := lab.Down(cctx, name); err != nil {
				s.log.Warn("a lab did not go down cleanly; the next lab up or down cleans up", "lab", name, "err", err)
			}
		}
	}
	for i := range n {
		name := fmt.Sprintf("p%d-%d", os.Getpid(), i+1)
		labs = append(labs, name)
		b, err := s.makeLab(ctx, name, t, j.c.Spec.Gate)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("lab %d of %d: %w", i+1, n, err)
		}
		made = append(made, b)
		s.addTestbed(b)
		r.testbeds <- b
	}
	return r, closeAll, nil
}

// fetching tells what is fetched as the reason why no run is under way yet.
func (s *Service) fetching(j *job) func(string) {
	return func(line string) {
		s.log.Info("fetching", "campaign", j.c.ID, "what", line)
		s.update(j, func(c *model.Campaign) { c.Reason = line })
	}
}

// each has the runs of a campaign made that are known beforehand, several at
// once; after a restart of the daemon those that are left, among them as many as
// it cut short.
func (s *Service) each(ctx context.Context, j *job, r *labRunner, item func(n int) model.WorkItem, finished func(model.RunSummary)) error {
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return err
	}
	last := s.lastRunNumber(j.c.ID, runs)
	return s.several(ctx, j, r, j.c.Spec.Runs-len(made(runs)), func(n int) model.WorkItem { return item(last + n) }, finished)
}

// several has n runs made, item(1) to item(n), several at once. finished is called side by
// side.
func (s *Service) several(ctx context.Context, j *job, r *labRunner, n int, item func(n int) model.WorkItem, finished func(model.RunSummary)) error {
	todo, done := make(chan model.WorkItem), make(chan struct{}, r.n)
	go func() {
		defer close(todo)
		for i := range n {
			select {
			case todo <- item(i + 1):
			case <-ctx.Done():
				return
			}
		}
	}()
	for range r.n {
		go func() {
			defer func() { done <- struct{}{} }()
			for w := range todo {
				s.runStarted(j, r.kit.Target.Name, w)
				sum, err := r.run(ctx, w)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					s.log.Error("a run failed for reasons that are not the target's", "run", w.Run, "err", err)
				}
				s.runFinished(j, sum)
				finished(sum)
			}
		}()
	}
	for range r.n {
		<-done
	}
	return context.Cause(ctx)
}

// made are the runs that were made to their end, whatever their verdict.
func made(runs []model.RunSummary) []model.RunSummary {
	return slices.DeleteFunc(slices.Clone(runs), func(r model.RunSummary) bool { return r.CutShort })
}
