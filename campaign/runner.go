package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"netsplit/campaign/judge"
	"netsplit/campaign/run"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut/nodes"
	"netsplit/sut/software"
	"netsplit/testbed"
	"netsplit/testbed/lab"
)

// labRunner runs work items on its testbeds, one run per testbed at a time.
type labRunner struct {
	s        *Service
	kit      *nodes.Kit
	testbeds chan *testbed.Testbed
	n        int      // testbeds
	play     run.Play // a script; nil: runs do the target's workloads
}

func (r *labRunner) target() *model.Target               { return r.kit.Target }
func (r *labRunner) templateNotice() string              { return r.kit.News() }
func (r *labRunner) scripts() (map[string]string, error) { return r.kit.Scripts() }
func (r *labRunner) workers() int                        { return r.n }

// slot does not wait: there is a testbed for each worker.
func (r *labRunner) slot(context.Context) (func(), error) { return func() {}, nil }

func (r *labRunner) run(ctx context.Context, w model.WorkItem) (model.RunSummary, error) {
	defer r.s.setView(w.Run, nil)
	began := time.Now()
	err := r.record(ctx, w,
		func(what string) { r.s.runDoes(w.Campaign, w.Run, what) },
		func(live func(uint64) model.LiveState) { r.s.setView(w.Run, live) }, r.s.metrics)
	if ctx.Err() != nil {
		return model.RunSummary{}, context.Cause(ctx)
	}
	return r.s.judgeRun(w, r.kit.Target, began, err)
}

// record makes a run and leaves its record, to be judged. The error is netsplit's own or the
// testbed's failure; the record has it, too.
func (r *labRunner) record(ctx context.Context, w model.WorkItem, doing func(string), watch func(func(uint64) model.LiveState), metrics run.Metrics) error {
	var b *testbed.Testbed
	select {
	case b = <-r.testbeds:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.testbeds <- b }()
	dir := r.s.runDir(w.Campaign, w.Run)
	ev, err := run.Execute(ctx, run.Config{WorkItem: w, Dir: dir,
		Kit: r.kit, Testbed: b, Play: r.play, Metrics: metrics, Version: r.s.cfg.Version, Doing: doing, Watch: watch})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		ev.Incomplete = append(ev.Incomplete, err.Error())
		ev.Ended = time.Now()
	}
	return errors.Join(err, rundir.WriteJSON(filepath.Join(dir, rundir.EvidenceFile), ev))
}

// judgeRun judges the record of a run; failed is why it is not whole.
func (s *Service) judgeRun(w model.WorkItem, t *model.Target, began time.Time, failed error) (model.RunSummary, error) {
	judging := time.Now()
	sum, err := judge.Dir(s.runDir(w.Campaign, w.Run), s.replayCommand(w.Run))
	if sum.Run == "" {
		sum = unjudged(w, t, began, errors.Join(failed, err))
	}
	err = errors.Join(failed, err)
	s.noteRecorded(err)
	sum.Cost.Ours += time.Since(judging)
	return sum, err
}

func unjudged(w model.WorkItem, t *model.Target, began time.Time, err error) model.RunSummary {
	v := model.Verdict{Value: model.VerdictUnknown, Reason: "the run could not be recorded or judged: " + err.Error()}
	return model.RunSummary{
		RunMeta: model.RunMeta{Campaign: w.Campaign, Run: w.Run, Target: t.Name, Started: began, Scenario: w.Scenario, ReplayOf: w.ReplayOf},
		Ended:   time.Now(), Release: t.Release, Verdict: v, Result: model.RunResult{Scenario: w.Scenario.ID, Verdict: v}}
}

// benchConfig is what testbeds for the runs of a campaign are made from.
type benchConfig struct {
	campaign string
	labs     int
	gate     model.Gate
	target   *model.Target
	dir      string // of the target file
	supply   func(context.Context, software.Release) error
	fetching func(string)
	news     func(news, all string) // what a user must know of the templates
}

// runnerOn makes the testbeds of a campaign: n labs of its own, or the outside
// testbed. The function it returns takes the labs down again.
func (s *Service) runnerOn(ctx context.Context, j *job, t *model.Target, dir string) (*labRunner, func(), error) {
	r, end, err := s.bench(ctx, benchConfig{campaign: j.c.ID, labs: j.c.Spec.Labs, gate: j.c.Spec.Gate, target: t, dir: dir, fetching: s.fetching(j),
		news: func(text, all string) {
			s.tell("campaign", j.c.ID, string(model.CampaignRunning), text)
			s.update(j, func(c *model.Campaign) { c.Reason = all })
		}})
	if err == nil && j.script != nil {
		r.play = j.script.Play
	}
	return r, end, err
}

func (s *Service) bench(ctx context.Context, c benchConfig) (*labRunner, func(), error) {
	n, r := c.labs, &labRunner{s: s}
	var err error
	r.kit, err = nodes.NewKit(ctx, nodes.KitConfig{Target: c.target, Dir: c.dir, Netsplit: s.cfg.Binary, Bin: s.cfg.BinDir,
		Supply: c.supply, Fetching: c.fetching, Notify: func(text string) { c.news(text, r.kit.News()) }})
	if err != nil {
		return nil, nil, err
	}
	if s.outside != nil {
		r.testbeds, r.n = make(chan *testbed.Testbed, 1), 1
		if err := s.gated(); err != nil { // one that was queued when the testbed had a switch
			return nil, nil, err
		}
		if err := s.hand.Claim("campaign " + c.campaign); err != nil {
			return nil, nil, err
		}
		if err := s.outside.UseGate(ctx, c.gate); err != nil {
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
		b, err := s.makeLab(ctx, name, c.target, c.gate)
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
func (s *Service) each(ctx context.Context, j *job, r place, item func(n int) model.WorkItem, finished func(model.RunSummary)) error {
	runs, err := s.allRuns(j.c.ID)
	if err != nil {
		return err
	}
	under, err := s.underWay(j, func(model.RunMeta) bool { return true })
	if err != nil {
		return err
	}
	last, n := s.lastRunNumber(j.c.ID, runs, under), 0
	return s.several(ctx, j, r, j.c.Spec.Runs-len(made(runs)), func(int) model.WorkItem {
		if len(under) > 0 {
			w := under[0]
			under = under[1:]
			return w
		}
		n++
		return item(last + n)
	}, finished)
}

// several has n runs made, item(1) to item(n), several at once. item is called by one worker
// at a time, finished side by side.
func (s *Service) several(ctx context.Context, j *job, r place, n int, item func(n int) model.WorkItem, finished func(model.RunSummary)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	i := 0
	next := func() (model.WorkItem, bool) {
		mu.Lock()
		defer mu.Unlock()
		if i++; i > n || ctx.Err() != nil {
			return model.WorkItem{}, false
		}
		w := item(i)
		s.runStarted(j, r.target().Name, w)
		return w, true
	}
	var workers sync.WaitGroup
	one := func() (more bool) {
		defer func() { // a panic ends the campaign, and not the daemon
			if p := recover(); p != nil {
				stop(s.panicked(p))
			}
		}()
		give, err := r.slot(ctx)
		if err != nil {
			return false
		}
		defer give()
		w, ok := next()
		if !ok {
			return false
		}
		sum, err := r.run(ctx, w)
		if model.IsFull(err) { // it is not booked: once there is room, it is made again
			stop(err)
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			s.log.Error("a run failed for reasons that are not the target's", "run", w.Run, "err", err)
		}
		s.runFinished(j, sum)
		finished(sum)
		return true
	}
	for range min(n, r.workers()) {
		workers.Go(func() {
			for one() {
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// made are the runs that were made to their end, whatever their verdict.
func made(runs []model.RunSummary) []model.RunSummary {
	return slices.DeleteFunc(slices.Clone(runs), func(r model.RunSummary) bool { return r.CutShort })
}
