package manual

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/model"
)

// TestAPartitionGoesItsWay: what rules dropped is counted while there are rules, hosts
// are asked for leaks when they are gone, and a heal is told when packets pass.
func TestAPartitionGoesItsWay(t *testing.T) {
	r := newRoom(t)
	r.cut("p1", "n1", "n2")
	if got, want := r.so(), "put n1>n2; measured a cut; prove n1>n2; told p1 in_force"; got != want {
		t.Errorf("cut: %s\nwant %s", got, want)
	}
	r.set(r.cuts["p1"], func(*model.PartitionStatus) {})
	if got := r.so(); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	for range 2 { // twice is harmless
		if st, err := r.Delete(t.Context(), "p1"); err != nil || st.State != model.PartitionHealed || st.CutBy != "meters, then drop rules" {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	want := "count drops n1>n2; told p1 healing; lift n1>n2; remove n1>n2; measured its end by-hand; count leaks n1>n2; pass again n1>n2; measured a heal; told p1 healed"
	if got := r.so(); got != want {
		t.Errorf("healed: %s\nwant %s", got, want)
	}
	if len(r.cuts) != 0 {
		t.Errorf("%d partitions are kept in memory", len(r.cuts))
	}
}

// TestAHealThatOvertakesItsCut takes its rules away all the same.
func TestAHealThatOvertakesItsCut(t *testing.T) {
	r := newRoom(t)
	putting, goOn := make(chan struct{}), make(chan struct{})
	r.make = func(c *fakeCut) {
		c.put = func() error {
			close(putting)
			<-goOn
			return nil
		}
	}
	var work sync.WaitGroup
	work.Go(func() {
		if _, err := r.Create(t.Context(), spec("p1", "n1", "n2")); err != nil {
			t.Error(err)
		}
	})
	<-putting
	h := r.cuts["p1"]
	work.Go(func() {
		if _, err := r.Delete(t.Context(), "p1"); err != nil {
			t.Error(err)
		}
	})
	<-h.ctx.Done() // the heal has begun
	if st := h.status(); st.State != model.PartitionRequested {
		t.Errorf("%s while it is being cut", st.State)
	}
	close(goOn)
	work.Wait()
	r.is("p1", model.PartitionHealed)
	if got := r.so(); !strings.HasPrefix(got, "put n1>n2; measured a cut; count drops n1>n2; told p1 healing; lift") || strings.Contains(got, "in_force") {
		t.Error(got)
	}
}

// TestWhatShookAPartitionIsProved: it is in force again when a proof was made that began
// after it.
func TestWhatShookAPartitionIsProved(t *testing.T) {
	r := newRoom(t)
	var kept error
	var mu sync.Mutex
	r.make = func(c *fakeCut) {
		c.kept = func() error {
			mu.Lock()
			defer mu.Unlock()
			return kept
		}
	}
	r.cut("p1", "n1", "n2")
	r.so()
	wait := func(times int) {
		t.Helper()
		for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			n := 0
			for _, what := range r.all {
				if what == "told p1 in_force" {
					n++
				}
			}
			r.mu.Unlock()
			if n == times {
				return
			}
			if time.Now().After(end) {
				t.Fatal(r.so())
			}
		}
	}
	r.Reverify("somebody changed a rule")
	wait(1)
	mu.Lock()
	kept = errors.New("it expired")
	mu.Unlock()
	r.Recheck()
	wait(2)
	if got, want := r.so(), "told p1 requested; prove n1>n2; told p1 in_force; told p1 requested; prove n1>n2; told p1 in_force"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	st := r.status("p1")
	if st.Lapsed != 2 || len(st.Lapses) != 2 || st.Lapses[0].Why != "somebody changed a rule" || !strings.Contains(st.Lapses[1].Why, "it expired") {
		t.Fatalf("%d lapses: %+v", st.Lapsed, st.Lapses)
	}
	for _, l := range st.Lapses {
		if l.From.Before(st.InForce) || !l.To.After(l.From) {
			t.Errorf("in force %v, lapsed from %v to %v", st.InForce, l.From, l.To)
		}
	}
}

func TestALapseEndsWithItsPartition(t *testing.T) {
	for what, end := range map[model.PartitionState]func(*room){
		model.PartitionHealed: func(r *room) {
			if _, err := r.Delete(t.Context(), "p1"); err != nil {
				t.Error(err)
			}
		},
		model.PartitionFailed: func(r *room) { r.LoseSwitch(1, errors.New("another is master")) },
	} {
		r := newRoom(t)
		var now findings
		r.make = func(c *fakeCut) { c.kept, c.proof = now.get("kept"), now.get("kept") }
		r.cut("p1", "n1", "n2")
		now.set("kept", errors.New("it expired"))
		r.Recheck()
		r.says("p1", "it expired")
		if st := r.status("p1"); len(st.Lapses) != 1 || !st.Lapses[0].To.IsZero() {
			t.Errorf("%s, while it lasts: %+v", what, st.Lapses)
		}
		end(r)
		if st := r.is("p1", what); len(st.Lapses) != 1 || !st.Lapses[0].To.After(st.Lapses[0].From) {
			t.Errorf("%s: %+v", what, st.Lapses)
		}
	}
}

// slowStore takes its time to store what is in force.
type slowStore struct {
	Store
	storing chan struct{}
	goOn    chan struct{}
}

func (s *slowStore) PutPartition(p model.PartitionStatus) error {
	if p.State == model.PartitionInForce {
		s.storing <- struct{}{}
		<-s.goOn
	}
	return s.Store.PutPartition(p)
}

// TestTheLastStateIsStoredLast, and told last, though it came while the one before it was
// being stored; and it is told once.
func TestTheLastStateIsStoredLast(t *testing.T) {
	r := newRoom(t)
	s := &slowStore{Store: r.c.Store, storing: make(chan struct{}), goOn: make(chan struct{})}
	r.c.Store = s
	if _, err := r.Create(t.Context(), spec("p1", "n1", "n2")); err != nil {
		t.Fatal(err)
	}
	h := r.cuts["p1"]
	<-s.storing
	r.LoseSwitch(1, errors.New("another is master"))
	<-h.ctx.Done()                    // it is being booked
	time.Sleep(50 * time.Millisecond) // nothing tells that it waits
	close(s.goOn)
	r.is("p1", model.PartitionFailed)
	r.close()
	if err := r.Close(); err != nil { // all is done
		t.Error(err)
	}
	if st := r.status("p1"); st.State != model.PartitionFailed {
		t.Errorf("stored: %s", st.State)
	}
	if got := r.so(); !strings.HasSuffix(got, "told p1 in_force; remove n1>n2; measured its end lost; told p1 failed") && !strings.HasSuffix(got, "remove n1>n2; measured its end lost; told p1 in_force; told p1 failed") {
		t.Error(got)
	}
}

// TestNothingShakesWhatIsToEnd, however much happens to its rules.
func TestNothingShakesWhatIsToEnd(t *testing.T) {
	r := newRoom(t)
	h := r.newManualCut(spec("p1", "n1", "n2"))
	h.stop()
	for range 100 { // of two that are ready select takes either
		select {
		case h.again <- "somebody changed a rule":
		default:
		}
		if why, ok := h.reverify(); ok {
			t.Fatal(why)
		}
	}
}

// TestWhyAPartitionHealed is measured: since its time came or since somebody asked.
func TestWhyAPartitionHealed(t *testing.T) {
	r := newRoom(t)
	p := spec("p1", "n1", "n2")
	p.For = time.Millisecond
	if _, err := r.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.is("p1", model.PartitionHealed)
	if got := r.so(); !strings.Contains(got, "measured its end time") {
		t.Error(got)
	}
}

// TestWhoElseUsesTheTestbed has it alone, and not while anything is cut.
func TestWhoElseUsesTheTestbed(t *testing.T) {
	r := newRoom(t)
	unseen := errors.New("nothing was seen to pass")
	r.make = func(c *fakeCut) { c.heals = func() error { return unseen } }
	r.cut("p1", "n1", "n2")
	if err := r.Claim("campaign c-1"); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), `partition "p1" is in_force`) {
		t.Errorf("claimed while cut: %v", err)
	}
	if busy := r.Busy(); busy != `partition "p1" is in_force` {
		t.Errorf("busy: %q", busy)
	}
	if _, err := r.Delete(t.Context(), "p1"); !errors.Is(err, errUnproved) {
		t.Errorf("healed: %v", err)
	}
	r.so()
	if err := r.Claim("campaign c-1"); err != nil { // its rules are gone
		t.Fatal(err)
	}
	conflict := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "campaign c-1 uses the testbed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := r.Create(t.Context(), spec("p2", "n3", "n4"))
	conflict("cut", err)
	_, err = r.Delete(t.Context(), "p1") // the packets of its proof
	conflict("healed again", err)
	if busy, did := r.Busy(), r.so(); busy != "campaign c-1 is under way" || did != "" {
		t.Errorf("busy: %q, and did %s", busy, did)
	}
	r.Release()
	r.make = func(*fakeCut) {}
	r.cut("p2", "n3", "n4")
}

// TestALossConcernsWhatIsCutThere, of all that was told at once too.
func TestALossConcernsWhatIsCutThere(t *testing.T) {
	for what, c := range map[string]struct {
		lose func(*room)
		lost []string
	}{
		"a switch": {func(r *room) { r.LoseSwitch(1, errors.New("another is master")) }, []string{"across", "left"}},
		"a host":   {func(r *room) { r.LoseHost("n4", errors.New("its agent died")) }, []string{"right"}},
		"no room":  {func(r *room) { r.LoseNewest(1, errors.New("the table is full")) }, []string{"across"}},
		"both hosts": {func(r *room) {
			r.LoseHost("n1", errors.New("its agent died"))
			r.LoseHost("n4", errors.New("its agent died"))
		}, []string{"left", "right"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRoom(t)
			r.cut("left", "n1", "n2")
			r.cut("right", "n3", "n4")
			r.cut("across", "n2", "n3")
			c.lose(r)
			for _, name := range c.lost {
				if st := r.is(name, model.PartitionFailed); st.Reason == "" {
					t.Errorf("%s failed without a reason", name)
				}
			}
			time.Sleep(10 * time.Millisecond)
			list, _, err := r.List(t.Context(), 10, "")
			if err != nil || len(list) != 3 {
				t.Fatal(list, err)
			}
			for _, st := range list {
				if st.Ended() != slices.Contains(c.lost, st.Name) {
					t.Errorf("%s is %s: %s", st.Name, st.State, st.Reason)
				}
			}
		})
	}
}

// TestWhatADeadDaemonLeft is healed when packets pass, or at once where there is nobody
// to ask.
func TestWhatADeadDaemonLeft(t *testing.T) {
	r := newRoom(t)
	left := func(name string, a, b model.NodeID, state model.PartitionState) model.PartitionStatus {
		return model.PartitionStatus{PartitionSpec: spec(name, a, b), State: state, LeakKnown: true, Created: time.Now(), Lapsed: 1, Lapses: []model.Lapse{{From: time.Now(), Why: "it went on"}}}
	}
	if err := r.takeUp([]model.PartitionStatus{left("here", "n1", "n2", model.PartitionInForce), left("gone", "n1", "n9", model.PartitionHealing), left("ended", "n1", "n2", model.PartitionFailed)}); err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{"here": "or were removed", "gone": "its hosts are not in the testbed of this one"} {
		st := r.is(name, model.PartitionHealed)
		if st.LeakKnown || st.Lapses[0].To.IsZero() || !strings.Contains(st.Reason, leftBehind) || !strings.Contains(st.Reason, why) {
			t.Errorf("%s: %+v", name, st)
		}
	}
	r.said("here", model.PartitionHealed)
	if got, want := r.so(), "told here healing; pass again n1>n2; told here healed"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNothingStaysCutWhenTheDaemonGoesDown, though nobody sees packets pass.
func TestNothingStaysCutWhenTheDaemonGoesDown(t *testing.T) {
	r := newRoom(t)
	r.make = func(c *fakeCut) { c.heals = func() error { return errors.New("nothing was seen to pass") } }
	r.cut("p1", "n1", "n2")
	r.so()
	r.close()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got, st := r.so(), r.status("p1"); !strings.Contains(got, "remove n1>n2") || st.State != model.PartitionHealing || !strings.Contains(st.Reason, "nothing was seen to pass") {
		t.Errorf("%s; %+v", got, st)
	}
}
