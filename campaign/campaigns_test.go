package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut/nodes"
	"netsplit/testbed"
)

// A campaign that waits behind another is cancelled at once, not when its turn
// comes; one whose run was cut short says so, and not that it goes on.
func TestAQueuedCampaignIsCancelledAtOnce(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	for _, id := range []string{"c-1", "c-2", "c-3"} {
		c := model.Campaign{ID: id, State: model.CampaignQueued, Spec: model.CampaignSpec{Target: "redis-sentinel"}}
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
		s.enqueue(c)
	}
	if err := s.store.StartRun(model.RunMeta{Campaign: "c-2", Run: "c-2-r0001"}); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(s.runDir("c-2", "c-2-r0001"), nodes.WorkDir, "n1", "data")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is harmless
		c, err := s.CancelCampaign(context.Background(), "c-2")
		if err != nil || c.State != model.CampaignCancelled || c.Ended.IsZero() {
			t.Fatalf("cancelled while queued: %+v, %v", c, err)
		}
	}
	if len(s.queue) != 2 || s.queue[0].c.ID != "c-1" || s.queue[1].c.ID != "c-3" {
		t.Errorf("queue of %d after the middle one of three was cancelled", len(s.queue))
	}

	if _, err := os.Stat(filepath.Dir(filepath.Dir(left))); err == nil {
		t.Error("the data of a run that was cut short is there still")
	}
	r, err := s.store.GetRun("c-2-r0001")
	if want := "cut short by the end of its campaign: cancelled by a user"; err != nil || r.Verdict.Reason != want {
		t.Errorf("the run under way when it was cancelled: %q, %v, want %q", r.Verdict.Reason, err, want)
	}
}

// A replay takes the release that ran, not what the target's default is now,
// and the settings of the run; another one that is asked for is refused.
func TestAReplayIsMadeOnWhatTheRunWasMadeOn(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir(), InProcess: true}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "mine@home", "target.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, file, "name: mine\nnodes: [n1, n2]\nclients: [c1]\nsoftware: {product: mine, default: '2.0', versions: ['1.0', '2.0'], catalog: mine.yaml}\n"+
		"args: {rate: {default: '7', help: h}}\nprocesses: [{name: s, hosts: [n1], command: [sleep, '9']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
		"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n")
	run := func(id, tg, release string) {
		c := model.Campaign{ID: "c-" + id, Spec: model.CampaignSpec{Target: tg, Strategy: model.StrategyRandom, Args: map[string]string{"rate": "3"}}}
		sum := model.RunSummary{RunMeta: model.RunMeta{Campaign: c.ID, Run: id, Target: "mine"}, Release: release}
		if err := errors.Join(s.store.PutCampaign(c), s.store.PutRun(sum)); err != nil {
			t.Fatal(err)
		}
	}
	run("named", file+"@1.0", "1.0")
	run("default", file, "1.0") // the default was 1.0 then
	run("short", file, "")      // cut short: only its record says
	if err := os.MkdirAll(s.runDir("c-short", "short"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(filepath.Join(s.runDir("c-short", "short"), rundir.TargetFile), model.Target{Name: "mine", Release: "1.0"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"named", "default", "short"} {
		for _, requested := range []model.CampaignSpec{{}, {Target: file}, {Target: file + "@1.0", Args: map[string]string{"rate": "3"}}} {
			requested.Replay = id
			spec, tg, err := s.complete(requested)
			if err != nil || tg.Release != "1.0" || spec.Target != file+"@1.0" || spec.Args["rate"] != "3" {
				t.Errorf("%+v: %+v, %v", requested, spec, err)
			}
		}
		for _, requested := range []model.CampaignSpec{{Target: file + "@2.0"}, {Target: "redis-sentinel"}, {Args: map[string]string{"rate": "4"}}} {
			requested.Replay = id
			if _, _, err := s.complete(requested); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "it was made ") {
				t.Errorf("%+v: %v", requested, err)
			}
		}
	}
	for requested, want := range map[*model.CampaignSpec]string{
		{Replay: "named", StopWhenBroken: true}: "takes a search that cuts",
		{Replay: "named", WithoutCut: true}:     "nothing was done to its network",
	} {
		if _, _, err := s.complete(*requested); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", *requested, err, want)
		}
	}
	run("gone", file, "0.9")
	if _, _, err := s.complete(model.CampaignSpec{Replay: "gone"}); err == nil || !strings.Contains(err.Error(), `no release "0.9"`) {
		t.Errorf("a release that there is no more: %v", err)
	}
}

// What cannot be searched is the user's to mend, and is said so.
func TestACampaignThatCannotBeSearchedIsRefused(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir(), InProcess: true}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "target.yaml")
	write(t, file, "name: mine\nnodes: [n1]\nclients: [c1]\nprocesses: [{name: s, hosts: [n1], command: [sleep, '9']}]\nstable: [{name: up, hosts: [n1], probe: {command: [echo, up]}, match: up}]\nvariables: []\n"+
		"workloads: [{name: w, host: c1, command: ['true']}]\nchecks: []\ntiming: {settle: 1s, workload: 1s, max_cut: 1s, recover: 1s}\n")
	for requested, want := range map[*model.CampaignSpec]string{
		{Strategy: model.StrategySteps}:                       "strategy steps needs a scenario",
		{Strategy: model.StrategyCoFI}:                        "isolating n1",
		{Strategy: "else"}:                                    "else",
		{Strategy: model.StrategyClean, StopWhenBroken: true}: "takes a search that cuts",
		{WithoutCut: true}:                                    "withoutCut takes a replay",
	} {
		requested.Target = file
		_, _, err := s.complete(*requested)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", *requested, err, want)
		}
	}
}

// A run has one name of its target, under way and finished, however the user
// named the target.
func TestARunThatBeganHasTheNameOfItsTarget(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
	if err := s.store.PutRun(model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}}); err != nil {
		t.Fatal(err)
	}
	j := &job{c: model.Campaign{ID: "c-2", Spec: model.CampaignSpec{Target: "/targets/mine@1.0", Replay: "c-1-r0001", Runs: 1}}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { // without a testbed it goes no further
		ended <- s.replay(ctx, j, &labRunner{s: s, kit: &nodes.Kit{Target: &model.Target{Name: "mine"}}, testbeds: make(chan *testbed.Testbed), n: 1})
	}()
	var begun []model.RunMeta
	for len(begun) == 0 {
		var err error
		if begun, err = s.store.UnfinishedRuns(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	if begun[0].Run != "c-2-r0001" || begun[0].Target != "mine" || begun[0].ReplayOf != "c-1-r0001" {
		t.Errorf("begun: %+v", begun[0])
	}
}

// A replay that the daemon's end cut short is made again, and none that was cut
// short counts as one that did not fail. What was made counts, also where the
// campaign does not come to its end.
func TestAReplayThatWasCutShortIsMadeAgain(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	failed := model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Signature: "lost"}}}
	run := func(c string, n int, v model.Verdict) {
		sum := model.RunSummary{RunMeta: model.RunMeta{Campaign: c, Run: fmt.Sprintf("%s-r%04d", c, n)}, Verdict: v}
		if err := s.store.PutRun(sum); err != nil {
			t.Fatal(err)
		}
	}
	run("c-1", 1, failed)
	f := model.Finding{ID: "f-1", Campaign: "c-1", Run: "c-1-r0001", Failure: failed.Failures[0]}
	c := model.Campaign{ID: "c-2", State: model.CampaignRunning, Spec: model.CampaignSpec{Replay: "c-1-r0001", Runs: 6}, Done: 3, Planned: 6}
	if err := errors.Join(s.store.PutFinding(f), s.store.PutCampaign(c), s.store.PutCampaign(model.Campaign{ID: "c-1", State: model.CampaignDone})); err != nil {
		t.Fatal(err)
	}
	run("c-2", 1, failed)
	run("c-2", 2, model.Verdict{Value: model.VerdictUnknown}) // made, and judged so
	run("c-2", 4, model.Verdict{Value: model.VerdictPass})
	if err := s.store.StartRun(model.RunMeta{Campaign: "c-2", Run: "c-2-r0003"}); err != nil {
		t.Fatal(err)
	}
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	j := s.queue[0]
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error)
	go func() { // without a testbed it goes no further than to begin runs
		ended <- s.replay(ctx, j, &labRunner{s: s, kit: &nodes.Kit{Target: &model.Target{Name: "mine"}}, testbeds: make(chan *testbed.Testbed), n: 9})
	}()
	var begun []model.RunMeta
	for end := time.Now().Add(20 * time.Second); len(begun) < 3 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		var err error
		if begun, err = s.store.UnfinishedRuns(); err != nil {
			t.Fatal(err)
		}
	}
	cancel(errBudget)
	if err := <-ended; !errors.Is(err, errBudget) {
		t.Error(err)
	}
	var names []string
	for _, m := range begun {
		names = append(names, m.Run)
	}
	if want := []string{"c-2-r0005", "c-2-r0006", "c-2-r0007"}; !slices.Equal(names, want) {
		t.Errorf("begun: %v, want %v", names, want)
	}
	f, err := s.store.GetFinding("f-1")
	if err != nil || f.Replays != 3 || f.Reproduced != 1 {
		t.Errorf("replayed %d of %d, %v", f.Reproduced, f.Replays, err)
	}
}

// noMetrics counts nothing.
type noMetrics struct{ Metrics }

func (noMetrics) SwitchKnown(model.DatapathID) {}

func (noMetrics) RunDone(string, model.Strategy, model.VerdictValue) {}
func (noMetrics) Finding(model.Finding)                              { runtime.Gosched() }

// Workers finish runs side by side: each finding has all runs that showed it,
// and the campaign as stored has counted them all.
func TestRunsThatFinishTogetherAreAllBooked(t *testing.T) {
	const runs, failures = 8, 5
	for n := range 30 {
		s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
			jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
		j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
		var all sync.WaitGroup
		for i := range runs {
			sum := model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", i+1)}}
			sum.Scenario.Strategy = model.StrategyRandom
			if i < runs-1 {
				sum.Proof = &model.Proof{} // only the last one is clean
			}
			for f := range failures {
				sum.Verdict.Failures = append(sum.Verdict.Failures, model.Failure{Signature: fmt.Sprint("failure ", f)})
			}
			all.Go(func() { s.runFinished(j, sum) })
		}
		all.Wait()
		c, err := s.store.GetCampaign("c-1")
		if err != nil || c.Done != runs || c.Findings != failures {
			t.Errorf("%d: campaign: %d done, %d findings, %v", n, c.Done, c.Findings, err)
		}
		findings, err := s.allFindings("c-1")
		if err != nil || len(findings) != failures {
			t.Errorf("%d: %d findings, %v", n, len(findings), err)
		}
		for _, f := range findings {
			if len(f.Runs) != runs || !f.Clean {
				t.Errorf("%d: %s: runs %v, clean %v", n, f.Failure.Signature, f.Runs, f.Clean)
			}
		}
	}
}

// TestRunsThatAreMadeAgainArePlanned: the bound on what is done is one.
func TestRunsThatAreMadeAgainArePlanned(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}}
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning, Planned: 1}}
	for i, want := range []int{1, 2, 3} {
		run := fmt.Sprintf("c-1-r%04d", i+1)
		s.runStarted(j, "mine", model.WorkItem{Run: run})
		if c, err := s.store.GetCampaign("c-1"); err != nil || c.Planned != want {
			t.Errorf("run %d: %d planned, want %d: %v", i+1, c.Planned, want, err)
		}
		s.runFinished(j, model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: run}})
	}
}

// TestWhatARunDoesIsKnownWhileItDoesIt: of the runs under way, and no others.
func TestWhatARunDoesIsKnownWhileItDoesIt(t *testing.T) {
	j := &job{c: model.Campaign{ID: "c-1", State: model.CampaignRunning}}
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{"c-1": j}, subs: map[chan struct{}]bool{}}
	s.runStarted(j, "mine", model.WorkItem{Run: "r1"})
	s.runStarted(j, "mine", model.WorkItem{Run: "r2"})
	s.runDoes("c-1", "r1", model.DoingTemplate)
	s.runDoes("c-1", "r2", model.DoingStart)
	s.runDoes("c-1", "r1", model.DoingWorkload)
	s.runFinished(j, model.RunSummary{RunMeta: model.RunMeta{Campaign: "c-1", Run: "r2"}})
	s.runDoes("c-9", "r1", model.DoingRecovery) // no campaign of ours
	c, err := s.store.GetCampaign("c-1")
	if want := map[string]string{"r1": model.DoingWorkload}; err != nil || !maps.Equal(c.Doing, want) {
		t.Errorf("the runs do %v, want %v (%v)", c.Doing, want, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestABudgetDoesNotRunInTheQueue, nor while there is no daemon.
func TestABudgetDoesNotRunInTheQueue(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t), metrics: noMetrics{},
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	since := time.Now().Add(-time.Hour)
	for _, c := range []model.Campaign{
		{ID: "c-1", State: model.CampaignQueued, Created: since, Waits: since, Spec: model.CampaignSpec{Target: "nosuch"}},
		{ID: "c-2", State: model.CampaignRunning, Created: since.Add(-time.Hour), Waits: since, Spec: model.CampaignSpec{Target: "nosuch"}},
		{ID: "c-4", State: model.CampaignRunning, Created: since.Add(-time.Hour), Running: []string{"c-4-r0001"}, Spec: model.CampaignSpec{Target: "nosuch"}}, // its daemon was killed
	} {
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(s.runDir("c-4", "c-4-r0001"), 0o700); err != nil {
		t.Fatal(err)
	}
	events := filepath.Join(s.runDir("c-4", "c-4-r0001"), rundir.EventsFile)
	write(t, events, "")
	if err := os.Chtimes(events, since, since); err != nil {
		t.Fatal(err)
	}
	killed := model.Campaign{ID: "c-5", State: model.CampaignQueued, Created: since, Waits: since, Spec: model.CampaignSpec{Target: "nosuch"}}
	if err := s.store.PutCampaign(killed); err != nil {
		t.Fatal(err)
	}
	if c, err := s.ResumeCampaign(t.Context(), "c-5"); err != nil || c.Idle < time.Hour || time.Since(c.Waits) > time.Hour { // by a command
		t.Errorf("%+v, %v", c, err)
	}
	s.queue, s.jobs = nil, map[string]*job{}
	if err := s.resume(); err != nil || len(s.queue) != 4 {
		t.Fatalf("%d are queued, %v", len(s.queue), err)
	}
	for _, j := range s.queue {
		s.execute(j)
		if left := time.Until(deadline(&model.Campaign{Created: j.c.Created, Idle: j.c.Idle, Spec: model.CampaignSpec{Budget: 3 * time.Hour}})); left < 2*time.Hour-time.Minute {
			t.Errorf("%s: %v are left of three hours, of which it used one at most", j.c.ID, left)
		}
		if c, err := s.store.GetCampaign(j.c.ID); err != nil || c.State != model.CampaignFailed || !c.Waits.IsZero() || c.Idle < time.Hour || c.Idle > 2*time.Hour {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if err := s.store.PutCampaign(model.Campaign{ID: "c-6", State: model.CampaignQueued, Created: since, Waits: since}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.CancelCampaign(t.Context(), "c-6"); err != nil || c.State != model.CampaignCancelled || !c.Waits.IsZero() || c.Idle < time.Hour {
		t.Errorf("cancelled: %+v, %v", c, err)
	}
	s.cfg.InProcess = true
	if c, err := s.CreateCampaign(t.Context(), model.CampaignSpec{Target: "../e2e/targets/gossip/target.yaml"}); err != nil || !c.Waits.Equal(c.Created) || c.Waits.IsZero() {
		t.Errorf("a new one waits since %v, %v", c.Waits, err)
	}
	closing := &job{c: model.Campaign{ID: "c-3"}}
	closing.ctx, closing.cancel = context.WithCancelCause(t.Context())
	closing.cancel(errClosing)
	s.execute(closing)
	if c, err := s.store.GetCampaign("c-3"); err != nil || c.State != model.CampaignRunning || c.Waits.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
}

// A paused campaign leaves its turn to the next one, stays paused over a restart of the
// daemon, and is resumed with the time between not counted; or it is cancelled.
func TestAPausedCampaignIsResumed(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	for id, c := range map[string]model.Campaign{
		"c-1": {State: model.CampaignQueued}, "c-2": {State: model.CampaignQueued},
		"c-3": {State: model.CampaignDone}, "c-4": {State: model.CampaignRunning, Spec: model.CampaignSpec{Strategy: model.StrategyScripted}},
	} {
		c.ID = id
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
		if c.State == model.CampaignQueued {
			s.enqueue(c)
		}
	}
	for range 2 {
		c, err := s.PauseCampaign(t.Context(), "c-1")
		if err != nil || c.State != model.CampaignPaused || c.Reason != "paused by a user" || len(s.queue) != 1 || s.queue[0].c.ID != "c-2" {
			t.Fatalf("%+v, %v, %d queued", c, err, len(s.queue))
		}
	}
	s.queue, s.jobs = nil, map[string]*job{}
	if err := s.resume(); err != nil || len(s.queue) != 1 || s.queue[0].c.ID != "c-2" {
		t.Errorf("after a restart %d are queued, %v", len(s.queue), err)
	}
	for id, want := range map[string]error{"c-3": model.ErrConflict, "c-4": model.ErrConflict, "c-9": model.ErrNotFound} {
		if _, err := s.PauseCampaign(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	c, err := s.store.GetCampaign("c-1")
	if c.Ended = c.Ended.Add(-time.Hour); err != nil || s.store.PutCampaign(c) != nil {
		t.Fatal(err)
	}
	c, err = s.ResumeCampaign(t.Context(), "c-1")
	if err != nil || c.State != model.CampaignQueued || c.Reason != "" || c.Idle < time.Hour || c.Idle > 2*time.Hour || len(s.queue) != 2 {
		t.Errorf("%+v, %v, %d queued", c, err, len(s.queue))
	}
	// What runs takes its time to stop: it is not resumed meanwhile, and may be cancelled.
	j := s.queue[slices.IndexFunc(s.queue, func(j *job) bool { return j.c.ID == "c-1" })]
	s.queue = nil
	if _, err := s.PauseCampaign(t.Context(), "c-1"); err != nil || context.Cause(j.ctx) != errPaused {
		t.Fatal(err)
	}
	if _, err := s.ResumeCampaign(t.Context(), "c-1"); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "being paused") {
		t.Errorf("resumed while it is being paused: %v", err)
	}
	if _, err := s.CancelCampaign(t.Context(), "c-1"); err != nil {
		t.Fatal(err)
	}
	s.ended(j, context.Cause(j.ctx))
	if c, err := s.store.GetCampaign("c-1"); err != nil || c.State != model.CampaignCancelled {
		t.Errorf("cancelled while it was being paused: %s, %v", c.State, err)
	}
	if c.State = model.CampaignFailed; s.store.PutCampaign(c) != nil {
		t.Fatal("not stored")
	}
	if _, err := s.ResumeCampaign(t.Context(), "c-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PauseCampaign(t.Context(), "c-1"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.CancelCampaign(t.Context(), "c-1"); err != nil || c.State != model.CampaignCancelled || c.Reason != "cancelled by a user" {
		t.Errorf("cancelled while paused: %+v, %v", c, err)
	}
}

// A campaign that failed goes on: the run that was under way is lost and says so, the
// time between does not count, and asking twice is harmless. One that is done has
// nothing to go on with.
func TestAFailedCampaignIsResumed(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, log: slog.New(slog.DiscardHandler), store: storetest.New(t),
		jobs: map[string]*job{}, subs: map[chan struct{}]bool{}, wake: make(chan struct{}, 1)}
	failed := time.Now().Add(-time.Hour)
	for id, c := range map[string]model.Campaign{
		"c-1": {State: model.CampaignFailed, Reason: "disk full", Ended: failed, Running: []string{"c-1-r0002"}},
		"c-2": {State: model.CampaignRunning}, // its end could not be stored
		"c-3": {State: model.CampaignDone},
		"c-4": {State: model.CampaignFailed, Spec: model.CampaignSpec{Strategy: model.StrategyScripted}},
	} {
		c.ID = id
		if err := s.store.PutCampaign(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []model.RunMeta{{Campaign: "c-1", Run: "c-1-r0002"}, {Campaign: "c-5", Run: "c-5-r0001"}} {
		if err := s.store.StartRun(m); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		c, err := s.ResumeCampaign(t.Context(), "c-1")
		if err != nil || c.State != model.CampaignQueued || c.Reason != "" || !c.Ended.IsZero() || len(c.Running) > 0 || c.Idle < time.Hour || c.Idle > 2*time.Hour {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if _, err := s.ResumeCampaign(t.Context(), "c-2"); err != nil || len(s.queue) != 2 || s.queue[0].c.ID != "c-1" || s.queue[1].c.ID != "c-2" {
		t.Errorf("queue of %d: %v", len(s.queue), err)
	}
	r, err := s.store.GetRun("c-1-r0002")
	if err != nil || !r.CutShort || r.Verdict.Value != model.VerdictUnknown || !strings.Contains(r.Verdict.Reason, "disk full") {
		t.Errorf("the run that was under way: %+v, %v", r.Verdict, err)
	}
	if left, err := s.store.UnfinishedRuns(); err != nil || len(left) != 1 || left[0].Campaign != "c-5" {
		t.Errorf("unfinished: %v, %v", left, err)
	}
	for id, want := range map[string]error{"c-3": model.ErrConflict, "c-4": model.ErrConflict, "c-9": model.ErrNotFound} {
		if _, err := s.ResumeCampaign(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}
