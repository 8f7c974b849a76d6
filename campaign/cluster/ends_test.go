package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

func TestARunnerThatIsKilled(t *testing.T) {
	c := newClass(t)
	took := make(chan string, 10)
	m1 := c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ctx.Done()
		return ctx.Err()
	}})
	o := c.offer()
	made := c.begins(o)
	<-took
	c.starts(&hand{name: "m2"})
	m1.dies()
	m, err := made()
	if err != nil || m.Lab != "m2" {
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
			c.leaves(c.offer(), took)
			if before {
				close(goOn)
				c.until("it is made", func() bool { return len(c.makers("c-1-r0001")) == 1 })
			}
			c.reopen(2 * short.lease)
			o := c.offer()
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
	c.leaves(c.offer(), took)
	c.starts(&hand{name: "m2"})
	c.reopen(2 * short.lease)
	o := c.offer()
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

// TestWhatComesBesideAnOutcomeIsKnown, whether it comes before that is taken or after.
func TestWhatComesBesideAnOutcomeIsKnown(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	tell := func(record string) { o.tell("c-1-r0001", outcome{result: result{Record: record}}) }
	tell("first")
	tell("second")
	if out := <-o.known["c-1-r0001"]; out.Record != "first" {
		t.Errorf("%+v counts", out)
	}
	tell("third")
	got := o.close("c-1-r0001", true)
	if len(got) != 2 || got[0].Record != "second" || got[1].Record != "third" || o.tell("c-1-r0001", outcome{}) {
		t.Errorf("beside it came %+v", got)
	}
}

// TestAResultThatNobodyHeardIsRemovedWithItsRun: the daemon settles a run as a second result comes.
func TestAResultThatNobodyHeardIsRemovedWithItsRun(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	o.Leave() // and hears nothing
	for i, out := range []outcome{{givenUp: true}, {result: result{runner: "m2", Error: "no room"}}} {
		run := item(i + 1).Run
		if _, err := c.hub.js.Publish(t.Context(), c.hub.n.subject("result", "c-1", run, "m1"), []byte(`{"error":"no room"}`)); err != nil {
			t.Fatal(err)
		}
		o.settle(run, out)
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("the broker has %s", left)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.hub.dropResult(ended, "c-1", "c-1-r0001", result{}); err != nil { // of no runner: the broker is not asked
		t.Error(err)
	}
}

// TestTwoMakeOneRun: the first lost touch, and was thought dead. One result counts.
func TestTwoMakeOneRun(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	took := make(chan string, 10)
	c.starts(&hand{name: "m1", times: times{lease: time.Hour, beat: short.beat, retry: short.retry}, makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		for len(c.makers(w.Run)) == 0 && w.Run == "c-1-r0001" && c.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		return nil // and does not hear that it should stop
	}})
	made := c.begins(o)
	<-took
	c.starts(&hand{name: "m2"})
	m, err := made()
	if err != nil {
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

// TestARecordThatComesSlowly: a read that waited in vain is made again, until the context ends. The
// deadline that a reader sets a timer for is never far.
func TestARecordThatComesSlowly(t *testing.T) {
	c := newClass(t)
	ctx := t.Context()
	dir, to := t.TempDir(), t.TempDir()
	text := strings.Repeat("0123456789abcdef", 64<<10)
	if err := os.WriteFile(filepath.Join(dir, "packets"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, c.hub.files, "slow", dir); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	short := rolling{soon, 100 * time.Microsecond}
	if at, has := short.Deadline(); !has || time.Until(at) > short.readTime {
		t.Errorf("a deadline at %v", at)
	}
	slow, err := c.hub.files.ObjectStore.Get(short, "slow")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	object := patient{slow}
	if err := unpack(object, to, forOwner, ofRecord); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "packets")); err != nil || string(b) != text {
		t.Errorf("%d bytes came, %v", len(b), err)
	}
	again, err := c.hub.files.Get(soon, "slow")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n, err := again.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	cancel()
	if _, err := again.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("once the context has ended: %v", err)
	}
}

// TestPiecesOfARecord that was half sent go with the next campaign that ends, once they are old.
func TestPiecesOfARecord(t *testing.T) {
	c := newClass(t)
	ctx := t.Context()
	c.starts(&hand{name: "m1"})
	o := c.offer()
	if _, err := c.one(ctx, o, item(1)); err != nil {
		t.Fatal(err)
	}
	records, err := c.hub.records(ctx, "m1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := records.PutBytes(ctx, "c-2/whole", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hub.js.Publish(ctx, "$O."+records.bucket+".C.half", []byte("a piece")); err != nil {
		t.Fatal(err)
	}
	pieces := func() int {
		info, err := records.stream.Info(ctx, jetstream.WithSubjectFilter("$O."+records.bucket+".C.*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(info.State.Subjects)
	}
	o.End()
	if n := pieces(); n != 2 {
		t.Errorf("%d records have pieces, want the whole one and one that may still come", n)
	}
	c.hub.c.times.half = 0
	c.hub.End("c-3")
	if b, err := records.GetBytes(ctx, "c-2/whole"); err != nil || string(b) != "whole" || pieces() != 1 {
		t.Errorf("%q, %v, and %d records have pieces, want one", b, err, pieces())
	}
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

// TestABrokerThatHadNoRoom stores nothing until there is room; then it goes on, with who was
// connected and with what was stored.
func TestABrokerThatHadNoRoom(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	goOn := make(chan struct{})
	c.starts(&hand{name: "m1", slots: 2, makes: func(_ context.Context, w model.WorkItem) error {
		if w.Run == item(1).Run {
			<-goOn
		}
		return nil
	}})
	first := c.begins(o)
	c.until("a run is under way", func() bool { return o.takers(item(1).Run) == 1 })
	c.room.Store(false)
	if err := c.hub.broker.srv.Load().DisableJetStream(); err != nil { // as the server does without room
		t.Fatal(err)
	}
	_, underWay := first()
	_, next := c.one(t.Context(), o, item(2))
	if !model.IsFull(underWay) || !model.IsFull(next) || !model.IsFull(c.hub.Away()) {
		t.Errorf("without room: the run under way: %v; the next: %v; the cluster: %v", underWay, next, c.hub.Away())
	}
	c.room.Store(true)
	c.until("the broker goes on", func() bool { return c.hub.Away() == nil })
	close(goOn)
	for n := range 2 {
		if m, err := c.one(t.Context(), o, item(n+1)); err != nil || m.Run != item(n+1).Run || len(c.makers(m.Run)) != 1 {
			t.Errorf("%+v, %v, made by %v", m, err, c.makers(item(n+1).Run))
		}
	}
}

// TestACampaignThatEndsAfterItWasLeft, as one that is cancelled while it waits for room: runners
// stop its runs, and nothing of it stays.
func TestACampaignThatEndsAfterItWasLeft(t *testing.T) {
	c := newClass(t)
	took, stopped := make(chan string, 10), make(chan struct{})
	c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ctx.Done()
		close(stopped)
		return ctx.Err()
	}})
	c.leaves(c.offer(), took)
	c.hub.End("c-1")
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Error("its runner goes on")
	}
	c.until("nothing of it is left", func() bool { return len(c.left()) == 0 })
}

// TestRunnersSayWhatIsInForce there, by shapes that netsplit knows.
func TestRunnersSayWhatIsInForce(t *testing.T) {
	c := newClass(t)
	over := make(chan struct{})
	c.starts(&hand{name: "m1", makes: func(ctx context.Context, _ model.WorkItem) error {
		<-over
		return nil
	}})
	o := c.offer()
	done := make(chan error, 1)
	go func() {
		_, err := c.one(t.Context(), o, item(1))
		done <- err
	}()
	inForce := func(want map[model.Shape]int) func() bool {
		return func() bool {
			all := c.hub.Runners()
			return len(all) == 1 && maps.Equal(all[0].InForce, want)
		}
	}
	c.until("a partition is in force", inForce(map[model.Shape]int{model.Partial: 1}))
	close(over)
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.until("none is in force", inForce(nil))
}

// TestABrokerThatIsLost, as where a backup is restored without it: runners join with the invitation
// that they have, and runs are made again.
func TestABrokerThatIsLost(t *testing.T) {
	c := newClass(t)
	c.starts(&hand{name: "m1"})
	o := c.offer()
	if _, err := c.one(t.Context(), o, item(1)); err != nil {
		t.Fatal(err)
	}
	o.Leave()
	address := c.hub.Address()
	c.hub.Close()
	if err := os.RemoveAll(filepath.Join(c.dir, "cluster", "broker")); err != nil {
		t.Fatal(err)
	}
	c.open(address)
	if m, err := c.one(t.Context(), c.offer(), item(2)); err != nil || m.Lab != "m1" {
		t.Errorf("made by %q, %v", m.Lab, err)
	}
}
