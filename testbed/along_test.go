package testbed

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"netsplit/model"
)

// recorder is a run that notes what it is given.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (h *recorder) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, what)
}

func (h *recorder) Mirror(_ time.Time, frame []byte)               { h.note("mirror " + string(frame)) }
func (h *recorder) Gate(_ model.NodeID, _ time.Time, frame []byte) { h.note("gate " + string(frame)) }
func (h *recorder) Fail(format string, args ...any)                { h.note(fmt.Sprintf("fail "+format, args...)) }

// mirrorPort is one with frames that nobody has read.
type mirrorPort struct {
	mu    sync.Mutex
	there []copied
}

func (m *mirrorPort) Drain(f func(time.Time, []byte)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.there {
		f(c.at, c.frame)
	}
	m.there = nil
	return nil
}

// TestMirroredFramesAreInOrderWithHeldOnes: what arrived before a held frame is entered
// before it, read or not, and what arrived after it is not.
func TestMirroredFramesAreInOrderWithHeldOnes(t *testing.T) {
	run, port := &recorder{}, &mirrorPort{}
	a := &along{run: run, mirror: port, lag: time.Hour}
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	mirrored := func(ms int) copied { return copied{at: at(ms), frame: fmt.Append(nil, ms)} }
	held := func(ms int) { a.hold("n1", at(ms), fmt.Append(nil, ms)) }

	a.read(at(1), []byte("1"))
	a.read(at(5), []byte("5"))
	held(3)
	port.there = []copied{mirrored(6), mirrored(8), mirrored(20)}
	held(8)
	held(9)
	want := []string{"mirror 1", "gate 3", "mirror 5", "mirror 6", "mirror 8", "gate 8", "gate 9"}
	if !slices.Equal(run.all, want) {
		t.Errorf("entered %q, want %q", run.all, want)
	}
	a.close()
	a.read(at(30), []byte("30")) // nobody hears any more
	a.hold("n1", at(31), []byte("31"))
	if want = append(want, "mirror 20", "gate 31"); !slices.Equal(run.all, want) {
		t.Errorf("entered %q, want %q", run.all, want)
	}
}

// TestAMirroredFrameIsEnteredWithoutHeldOnes, and a frame's bytes may be used again
// once it was handed over.
func TestAMirroredFrameIsEnteredWithoutHeldOnes(t *testing.T) {
	run := &recorder{}
	a := &along{run: run, mirror: &mirrorPort{}, lag: time.Millisecond}
	defer a.close()
	frame := []byte("0")
	var want []string
	for i := range 5 {
		frame[0] = '0' + byte(i)
		a.read(time.Now(), frame)
		want = append(want, fmt.Sprintf("mirror %d", i))
	}
	frame[0] = 'x'
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		run.mu.Lock()
		got := slices.Clone(run.all)
		run.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("entered %q, want %q", got, want)
		}
	}
}

// TestBothTapsAtOnce: the gate's reader and the mirror port's wait for one another's
// locks in one order only.
func TestBothTapsAtOnce(t *testing.T) {
	run, port := &recorder{}, &mirrorPort{}
	a := &along{run: run, mirror: port}
	const n = 2000
	var work sync.WaitGroup
	work.Go(func() { // as tap.Reader.Read, which has its lock while it calls
		for range n {
			port.mu.Lock()
			a.read(time.Now(), []byte("m"))
			port.mu.Unlock()
		}
	})
	work.Go(func() {
		for range n {
			a.hold("n1", time.Now(), []byte("g"))
		}
	})
	work.Wait()
	a.close()
	run.mu.Lock()
	defer run.mu.Unlock()
	if len(run.all) != 2*n {
		t.Errorf("%d frames entered, want %d", len(run.all), 2*n)
	}
}

// TestFlushEntersAllThatWasShown, whether it has been read or not, in order.
func TestFlushEntersAllThatWasShown(t *testing.T) {
	run, port := &recorder{}, &mirrorPort{there: []copied{{at: time.Unix(2, 0), frame: []byte("2")}}}
	a := &along{run: run, mirror: port, lag: time.Hour}
	a.read(time.Unix(1, 0), []byte("1"))
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mirror 1", "mirror 2"}; !slices.Equal(run.all, want) {
		t.Errorf("entered %q, want %q", run.all, want)
	}
}

// TestARunThatReadNothingDoesNotTakeTheGate: what was said before is not known.
func TestARunThatReadNothingDoesNotTakeTheGate(t *testing.T) {
	if err := (&Testbed{}).Hold(t.Context(), nil, nil); !errors.Is(err, ErrUnread) {
		t.Errorf("%v", err)
	}
}
