package controller

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
)

// slow takes its time when a session ends, and notes what it is told.
type slow struct {
	reported
	mu   sync.Mutex
	said []string
	came chan struct{}
}

func (h *slow) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, what)
	h.came <- struct{}{}
}

func (h *slow) SwitchUp(*Switch) { h.note("up") }

func (h *slow) SwitchDown(*Switch, error) {
	time.Sleep(300 * time.Millisecond)
	h.note("down")
}

// The end of a session is told before the next one of the same switch.
func TestSessionsAreToldInOrder(t *testing.T) {
	h := slow{came: make(chan struct{}, 10)}
	c := New(Config{Handler: &h})
	defer c.Close()
	join := func() net.Conn {
		ours, theirs := net.Pipe()
		go func() { _ = switchtest.New(switchtest.Config{Datapath: 7}).Serve(theirs) }()
		go func() { _ = c.Serve(ours) }()
		return theirs
	}
	first := join()
	<-h.came
	first.Close()
	for c.Switch(7) != nil {
		time.Sleep(time.Millisecond)
	}
	defer join().Close() // as a switch that comes back at once
	<-h.came
	<-h.came
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.said, []string{"up", "down", "up"}) {
		t.Errorf("told %q", h.said)
	}
}

// setForward is the time as it is read after somebody set the machine's clock: its
// monotonic reading goes on. Wall seconds are above the 30 bits of the nanoseconds
// (package time, Time.wall).
func setForward(now time.Time, seconds uint64) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += seconds << 30
	return now
}

// A clock that is set forward makes no switch silent.
func TestKeepaliveIsNotOfTheWallClock(t *testing.T) {
	if now := time.Now(); setForward(now, 3600).Round(0).Sub(now.Round(0)) != time.Hour || setForward(now, 3600).Sub(now) != 0 {
		t.Fatal("package time keeps its times otherwise now: setForward has to be written anew")
	}
	var mu sync.Mutex
	ahead := uint64(0)
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return setForward(time.Now(), ahead)
	}
	h := slow{came: make(chan struct{}, 10)}
	c := New(Config{Handler: &h, Now: now, EchoInterval: 20 * time.Millisecond, EchoTimeout: 10 * time.Second})
	defer c.Close()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _ = switchtest.New(switchtest.Config{Datapath: 7}).Serve(theirs) }()
	go func() { _ = c.Serve(ours) }()
	<-h.came
	sw := c.Switch(7)
	mu.Lock()
	ahead = 15
	mu.Unlock()
	select {
	case <-sw.Done():
		t.Error("the session ended")
	case <-time.After(300 * time.Millisecond):
	}
}

// An error that names no message of ours is about none: its xid 0 is what an empty
// place has.
func TestAnErrorAboutNothing(t *testing.T) {
	var r ring
	if m := r.get(0); m != nil {
		t.Errorf("xid 0 is taken for %v", m)
	}
	r.put(sentMessage{xid: 5, msg: barrierRequest()})
	r.put(sentMessage{xid: 6, outPort: of13.PortTable})
	if r.get(5) == nil || r.get(6) == nil || r.get(7) != nil {
		t.Errorf("%v %v %v", r.get(5), r.get(6), r.get(7))
	}
}
