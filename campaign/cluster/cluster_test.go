package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
	"netsplit/record/rundir"
)

// short are times for tests.
var short = times{lease: 1500 * time.Millisecond, beat: 100 * time.Millisecond, retry: 300 * time.Millisecond}

const patience = 30 * time.Second

// class is a daemon with its runners.
type class struct {
	*testing.T
	dir   string
	hub   *Hub
	goes  func(string) bool
	times times

	mu      sync.Mutex
	changes []model.Runner
	made    map[string][]string // by run: the runners that made it
}

func newClass(t *testing.T) *class {
	t.Parallel()
	c := &class{T: t, dir: t.TempDir(), goes: func(string) bool { return true }, made: map[string][]string{}, times: short}
	c.open("127.0.0.1:0")
	t.Cleanup(func() { c.hub.Close() })
	return c
}

// open starts the daemon's side.
func (c *class) open(address string) {
	c.Helper()
	var err error
	c.hub, err = Open(c.Context(), Config{Dir: filepath.Join(c.dir, "cluster"), Address: address, Goes: c.goes, Log: slog.New(slog.DiscardHandler), times: c.times, Doing: func(string, string, string) {},
		Software: func(set string) (string, string, error) { return c.dir, "", fmt.Errorf("no set %s", set) },
		Changed:  func(r model.Runner) { c.mu.Lock(); c.changes = append(c.changes, r); c.mu.Unlock() }})
	if err != nil {
		c.Fatal(err)
	}
}

// reopen ends the daemon and starts the next one at the same address.
func (c *class) reopen(after time.Duration) {
	c.Helper()
	address := c.hub.Address()
	c.hub.Close()
	time.Sleep(after)
	c.open(address)
}

func (c *class) until(what string, ok func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("never: %s; the broker has %v", what, c.left())
		}
	}
}

func (c *class) makers(run string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.made[run])
}

// hand is a runner of a test: its worker makes records of a few bytes.
type hand struct {
	c     *class
	name  string
	slots int
	// makes is what a run does before it is recorded; nil: nothing. change changes what is
	// recorded.
	makes  func(ctx context.Context, w model.WorkItem) error
	change func(dir string, m *model.RunMeta)
	lacks  error
	times  times

	r     *Runner
	done  chan struct{}
	ended error
	end   context.CancelFunc
}

func (h *hand) Open(context.Context, Work, Files) (Bench, error) { return h, h.lacks }
func (h *hand) Slots() int                                       { return max(h.slots, 1) }
func (h *hand) Close()                                           {}
func (h *hand) Forget(dir string)                                { _ = os.RemoveAll(dir) }

func (h *hand) Run(ctx context.Context, w model.WorkItem, say Say) (string, error) {
	say.Doing("workload")
	if h.makes != nil {
		if err := h.makes(ctx, w); err != nil {
			return "", err
		}
	}
	h.c.mu.Lock()
	h.c.made[w.Run] = append(h.c.made[w.Run], h.name)
	h.c.mu.Unlock()
	dir, err := os.MkdirTemp(h.c.dir, "made-")
	meta := model.RunMeta{Campaign: w.Campaign, Run: w.Run, Scenario: w.Scenario, ReplayOf: w.ReplayOf, Version: "v1", Lab: h.name}
	if h.change != nil {
		h.change(dir, &meta)
	}
	return dir, errors.Join(err, rundir.WriteJSON(filepath.Join(dir, rundir.MetaFile), meta))
}

// starts has a runner join.
func (c *class) starts(h *hand) *hand {
	c.Helper()
	i, err := Authority{filepath.Join(c.dir, "cluster")}.Invite(h.name, c.hub.Address())
	if err != nil {
		c.Fatal(err)
	}
	return c.startsWith(h, i)
}

func (c *class) startsWith(h *hand, i Invitation) *hand {
	c.Helper()
	h.c, h.done = c, make(chan struct{})
	var err error
	h.r, err = Join(RunnerConfig{Invitation: i, About: model.Runner{Version: "v1", Has: []string{"lab"}, State: model.RunnerIdle}, Worker: h, times: cmp.Or(h.times, short), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	h.end = end
	go func() {
		defer close(h.done)
		h.ended = h.r.Run(ctx)
	}()
	c.Cleanup(func() { end(); <-h.done })
	return h
}

// dies ends a runner as kill -9 does: it says nothing more.
func (h *hand) dies() {
	h.r.nc.Close()
	h.end()
	<-h.done
}

func (c *class) offer(needs ...string) *Offer {
	c.Helper()
	o, err := c.hub.Offer(c.Context(), Work{Campaign: "c-1", Version: "v1", Needs: needs}, nil)
	if err != nil {
		c.Fatal(err)
	}
	return o
}

func item(n int) model.WorkItem {
	return model.WorkItem{Campaign: "c-1", Run: fmt.Sprintf("c-1-r%04d", n), Scenario: model.Scenario{ID: fmt.Sprintf("s%04d", n), Strategy: model.StrategyRandom, Seed: uint64(n)}}
}

func (c *class) record(run string) string { return filepath.Join(c.dir, "runs", run) }

// one has a run made, and says what the record of it is.
func (c *class) one(ctx context.Context, o *Offer, w model.WorkItem) (model.RunMeta, error) {
	give, err := o.Slot(ctx)
	if err != nil {
		return model.RunMeta{}, err
	}
	defer give()
	made, err := o.Run(ctx, w, c.record(w.Run), func(string) error { return nil })
	var m model.RunMeta
	if made {
		err = errors.Join(err, rundir.ReadJSON(filepath.Join(c.record(w.Run), rundir.MetaFile), &m))
	}
	return m, err
}

// left is what the broker stores of campaigns.
func (c *class) left() (out []string) {
	ctx := c.Context()
	for _, s := range []jetstream.Stream{c.hub.items, c.hub.results, c.hub.givenUp} {
		info, err := s.Info(ctx)
		if err != nil {
			c.Fatal(err)
		}
		if info.State.Msgs > 0 {
			out = append(out, fmt.Sprintf("%s: %d messages", info.Config.Name, info.State.Msgs))
		}
	}
	for bucket := range c.hub.js.ObjectStoreNames(ctx).Name() {
		if bucket == c.hub.n.files() {
			continue
		}
		records, err := c.hub.js.ObjectStore(ctx, bucket)
		if err != nil {
			c.Fatal(err)
		}
		objects, err := records.List(ctx)
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			c.Fatal(err)
		}
		for _, o := range objects {
			out = append(out, o.Name)
		}
	}
	return out
}

func TestRunnersMakeTheRuns(t *testing.T) {
	c := newClass(t)
	c.starts(&hand{name: "m1", slots: 3})
	c.starts(&hand{name: "m2", slots: 2})
	o := c.offer()
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			w := item(n)
			m, err := c.one(t.Context(), o, w)
			if err != nil || m.Run != w.Run || m.Scenario.Seed != w.Scenario.Seed {
				t.Errorf("run %d: %+v, %v", n, m, err)
			}
			if by := c.makers(w.Run); len(by) != 1 || by[0] != m.Lab {
				t.Errorf("run %d was made by %v, and the record is of %s", n, by, m.Lab)
			}
		})
	}
	all.Wait()
	o.End()
	c.until("nothing of the campaign is left", func() bool { return len(c.left()) == 0 })
	c.until("the runners are idle", func() bool {
		for _, r := range c.hub.Runners() {
			if r.State != model.RunnerIdle {
				return false
			}
		}
		return len(c.hub.Runners()) == 2
	})
	if left, _ := filepath.Glob(filepath.Join(c.dir, "made-*")); len(left) > 0 {
		t.Errorf("records stay with the runners: %v", left)
	}
}

// TestNoMoreThanThereIsRoomFor: runs are handed out as runners have room, and a runner that
// joins later has some.
func TestNoMoreThanThereIsRoomFor(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	var mu sync.Mutex
	now, most := 0, 0
	blocks := make(chan struct{})
	busy := func(ctx context.Context, _ model.WorkItem) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-blocks
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return now }
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			if _, err := c.one(t.Context(), o, item(n)); err != nil {
				t.Error(err)
			}
		})
	}
	c.starts(&hand{name: "m1", slots: 2, makes: busy})
	c.until("two runs are under way", func() bool { return count() == 2 })
	time.Sleep(3 * short.beat)
	if handed, err := c.hub.items.Info(t.Context()); err != nil || handed.State.Msgs != 2 {
		t.Errorf("%v items are handed out to a runner with room for 2, %v", handed.State.Msgs, err)
	}
	c.starts(&hand{name: "m2", slots: 1, makes: busy})
	c.until("three runs are under way", func() bool { return count() == 3 })
	close(blocks)
	all.Wait()
	if most != 3 {
		t.Errorf("%d runs at once on runners with room for 3", most)
	}
}

func TestARunnerThatIsKilled(t *testing.T) {
	c := newClass(t)
	took := make(chan string, 10)
	m1 := c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ctx.Done()
		return ctx.Err()
	}})
	o := c.offer()
	ends := make(chan error)
	var m model.RunMeta
	go func() {
		var err error
		m, err = c.one(t.Context(), o, item(1))
		ends <- err
	}()
	<-took
	c.starts(&hand{name: "m2"})
	m1.dies()
	if err := <-ends; err != nil || m.Lab != "m2" {
		t.Errorf("the run of a runner that was killed: made by %q, %v", m.Lab, err)
	}
	c.until("it is told that the runner is gone", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.changes, func(r model.Runner) bool { return r.Name == "m1" && r.State == model.RunnerGone })
	})
}

// TestARunnerThatIsStopped gives its run back, so that nobody waits for the end of its lease.
func TestARunnerThatIsStopped(t *testing.T) {
	c := newClass(t)
	c.hub.c.times.lease = time.Hour
	took := make(chan string, 10)
	m1 := c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ctx.Done()
		return ctx.Err()
	}})
	o := c.offer()
	ends := make(chan error)
	go func() {
		_, err := c.one(t.Context(), o, item(1))
		ends <- err
	}()
	<-took
	c.starts(&hand{name: "m2"})
	m1.end()
	select {
	case err := <-ends:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("nobody made the run that was given back")
	}
}

// TestADaemonThatIsKilled: what runners make meanwhile is not lost, and not made twice.
func TestADaemonThatIsKilled(t *testing.T) {
	for _, before := range []bool{true, false} { // the run ends before, or after the next daemon starts
		t.Run(fmt.Sprint("ends before the next daemon ", before), func(t *testing.T) {
			c := newClass(t)
			took, goOn := make(chan string, 10), make(chan struct{})
			c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
				took <- w.Run
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return ctx.Err()
			}})
			o := c.offer()
			ctx, dies := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = c.one(ctx, o, item(1))
			}()
			<-took
			dies()
			<-ended
			o.Leave()
			if before {
				close(goOn)
				c.until("it is made", func() bool { return len(c.makers("c-1-r0001")) == 1 })
			}
			c.reopen(2 * short.lease)
			o = c.offer()
			if !before {
				go func() {
					time.Sleep(short.lease)
					close(goOn)
				}()
			}
			m, err := c.one(t.Context(), o, item(1))
			if err != nil || m.Lab != "m1" || len(c.makers("c-1-r0001")) != 1 {
				t.Errorf("made by %v, the record is of %q, %v", c.makers("c-1-r0001"), m.Lab, err)
			}
			// A daemon that was killed between the record and its store asks again.
			if m, err = c.one(t.Context(), o, item(1)); err != nil || m.Lab != "m1" || len(c.makers("c-1-r0001")) != 1 {
				t.Errorf("asked again it is made by %v, %v", c.makers("c-1-r0001"), err)
			}
		})
	}
}

// TestADaemonThatIsAwayForLong: leases ended meanwhile, so a run may be made twice, by the
// runner that has it and by one that is idle. It counts once, and no runner makes a run beside
// itself.
func TestADaemonThatIsAwayForLong(t *testing.T) {
	c := newClass(t)
	took, goOn := make(chan string, 10), make(chan struct{})
	c.starts(&hand{name: "m1", slots: 2, makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-goOn
		return nil
	}})
	o := c.offer()
	ctx, dies := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.one(ctx, o, item(1))
	}()
	<-took
	c.starts(&hand{name: "m2"})
	dies()
	<-ended
	o.Leave()
	c.reopen(2 * short.lease)
	o = c.offer()
	time.AfterFunc(2*short.lease, func() { close(goOn) })
	m, err := c.one(t.Context(), o, item(1))
	if err != nil || m.Run != "c-1-r0001" {
		t.Errorf("made by %q, %v", m.Lab, err)
	}
	<-goOn
	if len(took) > 0 {
		t.Error("the runner that has the run took it once more")
	}
	c.until("nothing but one record is left", func() bool { return len(c.left()) == 0 })
	var kept model.RunMeta
	if err := rundir.ReadJSON(filepath.Join(c.record("c-1-r0001"), rundir.MetaFile), &kept); err != nil || kept.Lab != m.Lab {
		t.Errorf("the record is now of %q and was of %q, %v", kept.Lab, m.Lab, err)
	}
}

// TestARunThatEndsItsRunners is given up after three of them, and the others are told who
// they were. Another run is made.
func TestARunThatEndsItsRunners(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	var hands []*hand
	for n := range 4 {
		h := &hand{name: fmt.Sprint("m", n)}
		h.makes = func(ctx context.Context, w model.WorkItem) error {
			if w.Run == "c-1-r0001" {
				h.r.nc.Close()
				go h.end()
				<-ctx.Done()
			}
			return ctx.Err()
		}
		hands = append(hands, h)
	}
	ends := make(chan error)
	go func() {
		_, err := c.one(t.Context(), o, item(1))
		ends <- err
	}()
	for _, h := range hands {
		c.starts(h)
	}
	err := <-ends
	if !errors.Is(err, ErrGivenUp) || !strings.Contains(fmt.Sprint(err), "3 runners") || len(regexp.MustCompile(`\bm[0-3]\b`).FindAllString(fmt.Sprint(err), -1)) != 3 {
		t.Errorf("a run that ends its runners: %v", err)
	}
	if _, err := c.one(t.Context(), o, item(2)); err != nil {
		t.Errorf("another run: %v", err)
	}
	o.End()
	c.until("nothing of it is left", func() bool { return len(c.left()) == 0 })
}

// TestTwoMakeOneRun: the first lost touch, and was thought dead. One result counts.
func TestTwoMakeOneRun(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	took := make(chan string, 10)
	c.starts(&hand{name: "m1", times: times{lease: time.Hour, beat: short.beat, retry: short.retry}, makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		for len(c.makers(w.Run)) == 0 && w.Run == "c-1-r0001" {
			time.Sleep(10 * time.Millisecond)
		}
		return nil // and does not hear that it should stop
	}})
	ends := make(chan error)
	var m model.RunMeta
	go func() {
		var err error
		m, err = c.one(t.Context(), o, item(1))
		ends <- err
	}()
	<-took
	c.starts(&hand{name: "m2"})
	if err := <-ends; err != nil {
		t.Error(err)
	}
	first := m.Lab
	c.until("the first has ended it, too", func() bool { return len(c.makers("c-1-r0001")) == 2 })
	c.until("what it brought is removed", func() bool { return len(c.left()) == 0 })
	if _, err := c.one(t.Context(), o, item(2)); err != nil {
		t.Error(err)
	}
	if err := rundir.ReadJSON(filepath.Join(c.record("c-1-r0001"), rundir.MetaFile), &m); err != nil || m.Lab != first {
		t.Errorf("the record was of %q and is of %q, %v", first, m.Lab, err)
	}
	o.End()
	c.until("nothing of it is left", func() bool { return len(c.left()) == 0 })
}

// TestOutagesEndNoRun: a lease that ends because the broker was away is not a runner that
// ended, however often.
func TestOutagesEndNoRun(t *testing.T) {
	c := newClass(t)
	took, goOn := make(chan string, 10), make(chan struct{})
	c.starts(&hand{name: "m1", slots: 2, times: times{lease: time.Hour, beat: short.beat, retry: short.retry}, makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-goOn
		return nil
	}})
	o := c.offer()
	time.AfterFunc(6*short.lease, func() { close(goOn) })
	m, err := c.one(t.Context(), o, item(1))
	if err != nil || m.Lab != "m1" || len(took) != 1 {
		t.Errorf("a run whose lease ended again and again: made by %q, taken %d times, %v", m.Lab, len(took), err)
	}
}

// TestAnotherVersionsRecord, of a runner of before an upgrade, is thrown away and the run made
// again.
func TestAnotherVersionsRecord(t *testing.T) {
	c := newClass(t)
	var once sync.Once
	c.starts(&hand{name: "m1", change: func(_ string, m *model.RunMeta) { once.Do(func() { m.Version = "v0" }) }})
	o := c.offer()
	if m, err := c.one(t.Context(), o, item(1)); err != nil || m.Version != "v1" || len(c.makers("c-1-r0001")) != 2 {
		t.Errorf("%+v, %v, made %d times", m, err, len(c.makers("c-1-r0001")))
	}
	o.End()
	c.until("nothing of it is left", func() bool { return len(c.left()) == 0 })
}

// TestATargetStaysForItsCampaign when the daemon starts again, and goes when that is over.
func TestATargetStaysForItsCampaign(t *testing.T) {
	c := newClass(t)
	if _, err := c.hub.Offer(t.Context(), Work{Campaign: "c-1", Version: "v1"}, []byte("target")); err != nil {
		t.Fatal(err)
	}
	c.reopen(0)
	if b, err := c.hub.files.GetBytes(t.Context(), sum([]byte("target"))); err != nil || string(b) != "target" {
		t.Errorf("%q, %v", b, err)
	}
	c.goes = func(string) bool { return false }
	c.reopen(0)
	if _, err := c.hub.files.GetInfo(t.Context(), sum([]byte("target"))); err == nil {
		t.Error("it stays when its campaign is over")
	}
}

// TestACampaignThatEnds stops its runs.
func TestACampaignThatEnds(t *testing.T) {
	c := newClass(t)
	took, stopped := make(chan string, 10), make(chan error, 10)
	c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	}})
	o := c.offer()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled by a user")
	ended := make(chan error)
	go func() {
		_, err := c.one(ctx, o, item(1))
		ended <- err
	}()
	<-took
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Error(err)
	}
	o.End()
	select {
	case err := <-stopped:
		if !errors.Is(err, errStopped) && !errors.Is(err, errOver) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the run goes on")
	}
	c.until("nothing of it is left", func() bool { return len(c.left()) == 0 })
}

// TestASickMachine takes no more runs for a while: of one whose disk is full another machine
// makes the run, and one on which runs fail does not fail those of a whole campaign.
func TestASickMachine(t *testing.T) {
	for name, sick := range map[string]error{"full disk": fmt.Errorf("write: %w", syscall.ENOSPC), "something else": errors.New("its switch does not answer")} {
		t.Run(name, func(t *testing.T) {
			c := newClass(t)
			slots := map[string]int{"full disk": 2, "something else": 1}[name]
			c.starts(&hand{name: "sick", slots: slots, times: times{lease: short.lease, beat: short.beat, retry: time.Hour}, makes: func(context.Context, model.WorkItem) error { return sick }})
			o := c.offer()
			failed := make(chan error, 10)
			var all sync.WaitGroup
			for n := range 6 {
				all.Go(func() {
					if _, err := c.one(t.Context(), o, item(n)); err != nil {
						failed <- err
					}
				})
			}
			c.until("it says that it is sick", func() bool {
				l := c.hub.Runners()
				return len(l) == 1 && l[0].State == model.RunnerUnfit && strings.Contains(l[0].Reason, sick.Error())
			})
			c.starts(&hand{name: "well"})
			all.Wait()
			close(failed)
			n := 0
			for err := range failed {
				n++
				if !strings.Contains(err.Error(), "runner sick: its switch does not answer") {
					t.Error(err)
				}
			}
			if want := map[string]int{"full disk": 0, "something else": maxFailures}[name]; n != want {
				t.Errorf("%d runs failed, want %d", n, want)
			}
		})
	}
}
