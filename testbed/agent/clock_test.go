package agent

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

// far is a host of another machine: its clock shows skew more than ours, and half a
// round trip goes by before a request is read and before its answer is.
type far struct {
	skew, half time.Duration
	arrived    []time.Time // by our clock
}

func (f *far) answer(r request) response {
	now := func() time.Time { return time.Now().Add(f.skew) }
	time.Sleep(f.half)
	defer time.Sleep(f.half)
	if r.Op == opClock {
		return response{Now: now().UnixNano()}
	}
	from := netip.MustParseAddr("10.0.0.1").As16()
	t := tally{limit: maxPackets}
	for _, at := range f.arrived {
		t.add(arrival{at: at.Add(f.skew).UnixNano(), src: from, way: toHost, digest: 7})
	}
	if r.Op == opArrivals {
		got := t.arrivals(r.Digests)
		return response{Arrivals: &got}
	}
	to := r.Query.To
	if r.Op == opFirst {
		to = now().UnixNano()
	}
	time.Sleep(time.Unix(0, to).Sub(now()))
	n := t.count(wanted{sources: map[[16]byte]bool{from: true}}, r.Query.From, to)
	return response{Count: &n, First: n.First}
}

// client talks to it; remote as a testbed file tells.
func (f *far) client(t *testing.T, remote bool) *Client {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	c := &Client{host: "n1", remote: remote, stdin: w, ended: make(chan struct{}), writing: make(chan struct{}, 1), waiting: map[uint64]chan response{}}
	go func() {
		defer r.Close()
		for dec := json.NewDecoder(r); ; {
			var q request
			if dec.Decode(&q) != nil {
				return
			}
			go func() {
				a := f.answer(q)
				c.mu.Lock()
				defer c.mu.Unlock()
				if w := c.waiting[q.ID]; w != nil { // who asked may have given up
					w <- a
				}
				delete(c.waiting, q.ID)
			}()
		}
	}()
	return c
}

// TestAClockOfAnotherMachine may lie anywhere within a round trip, also where nothing
// shows that it is not ours; that of this machine is ours.
func TestAClockOfAnotherMachine(t *testing.T) {
	for _, skew := range []time.Duration{-20 * time.Millisecond, 20 * time.Millisecond} {
		f := far{skew: skew, half: 30 * time.Millisecond}
		o, err := f.client(t, true).Clock(t.Context())
		if err != nil || o.Within < f.half || (o.Ahead-skew).Abs() > o.Within {
			t.Errorf("%v ahead: taken for %v within %v, %v", skew, o.Ahead, o.Within, err)
		}
		if o, err = f.client(t, false).Clock(t.Context()); err != nil || o.Ahead != 0 || o.Within != 0 {
			t.Errorf("this machine's clock is taken for %v ahead within %v, %v", o.Ahead, o.Within, err)
		}
	}
}

// TestAnAnswerThatNobodyWaitsFor any more hinders no other.
func TestAnAnswerThatNobodyWaitsFor(t *testing.T) {
	f := far{half: 30 * time.Millisecond}
	c := f.client(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := c.call(ctx, request{Op: opClock}); err == nil {
		t.Error("answered at once")
	}
	time.Sleep(4 * f.half)
	answered := make(chan error, 1)
	go func() {
		_, err := c.call(t.Context(), request{Op: opClock})
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}

// TestCountsAllowForTheClock: what arrived in the time surely counts; what arrived near
// its ends is not counted and told; nothing is missed and nothing far from it is told.
func TestCountsAllowForTheClock(t *testing.T) {
	const half = 15 * time.Millisecond
	src := Sender{Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	from := time.Now()
	to := from.Add(200 * time.Millisecond)
	var work sync.WaitGroup
	for _, skew := range []time.Duration{-10 * time.Millisecond, 0, 10 * time.Millisecond} {
		for _, k := range []struct {
			name         string
			at           time.Time
			sure, unsure int
		}{
			{"long before", from.Add(-150 * time.Millisecond), 0, 0},
			{"just before", from.Add(-time.Millisecond), 0, 1},
			{"at once", from.Add(time.Millisecond), 0, 1},
			{"in the middle", from.Add(100 * time.Millisecond), 1, 0},
			{"at last", to.Add(-time.Millisecond), 0, 1},
			{"just after", to.Add(time.Millisecond), 0, 1},
			{"long after", to.Add(150 * time.Millisecond), 0, 0},
		} {
			work.Go(func() {
				f := far{skew: skew, half: half, arrived: []time.Time{k.at}}
				c := f.client(t, true)
				n, err := c.CountFrom(t.Context(), src, from, to)
				if err != nil || n.Packets != k.sure || n.Unsure != k.unsure {
					t.Errorf("%v ahead, a packet %s: %+v, %v", skew, k.name, n, err)
				}
				if got, err := c.ArrivalsOf(t.Context(), []uint64{7}, k.at); err != nil || len(got[0]) != 1 || got[0][0].Before(k.at) {
					t.Errorf("%v ahead, a packet %s: arrived at %v, sent at %v, %v", skew, k.name, got, k.at, err)
				}
			})
		}
	}
	work.Wait()
	// So short a time as a proof looks for silence.
	for _, skew := range []time.Duration{-10 * time.Millisecond, 10 * time.Millisecond} {
		now := time.Now()
		f := far{skew: skew, half: half, arrived: []time.Time{now.Add(time.Millisecond)}}
		if n, err := f.client(t, true).CountFrom(t.Context(), src, now, now.Add(10*time.Millisecond)); err != nil || n.Packets+n.Unsure == 0 {
			t.Errorf("%v ahead: a packet is not seen: %+v, %v", skew, n, err)
		}
		if at, err := f.client(t, true).FirstFrom(t.Context(), src, now.Add(2*time.Millisecond)); err != nil || !at.IsZero() {
			t.Errorf("%v ahead: what arrived before is told for what came after: %v, %v", skew, at, err)
		}
	}
}
