package testbed

import (
	"bytes"
	"sync"
	"time"

	"netsplit/inference/tap"
	"netsplit/model"
)

// alongLag is how long a mirrored frame waits for held ones that arrived before it.
const alongLag = 2 * time.Millisecond

// drainer is the tap.Reader of a mirror port.
type drainer interface {
	Drain(f func(at time.Time, frame []byte)) error
}

var _ drainer = (*tap.Reader)(nil)

// along merges the frames of a mirror port and those that a gate holds into one order:
//
//   - a mirrored frame comes before each held frame that arrived after it, so the run never
//     reads an answer, or a consequence, before its message;
//   - a held frame comes before each mirrored frame that arrived more than alongLag after it,
//     unless it waited longer than that for the gate's reader.
//
// A frame arrives when the kernel has it; by packet-in, when the controller has it.
type along struct {
	run    Run
	mirror drainer
	lag    time.Duration

	mu      sync.Mutex // held while frames are entered; the run's own lock comes after it
	waiting []copied   // read and not entered, in order of arrival
	timer   *time.Timer
	closed  bool
}

// copied is a frame that the mirror port showed.
type copied struct {
	at    time.Time
	due   time.Time // by this machine's monotonic clock: enter it by then
	frame []byte
}

// hold enters a held frame, after what was mirrored before it.
func (a *along) hold(host model.NodeID, at time.Time, frame []byte) {
	err := a.mirror.Drain(a.read) // before the lock: the reader has its own when it calls read
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && !a.closed {
		a.run.Fail("the mirror port can no longer be read: %v", err)
	}
	a.enter(func(c *copied) bool { return !c.at.After(at) })
	a.run.Gate(host, at, frame)
}

func (a *along) flush() error {
	err := a.mirror.Drain(a.read)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enter(func(*copied) bool { return true })
	return err
}

// read takes a frame from the mirror port and keeps it until it is due.
func (a *along) read(at time.Time, frame []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.waiting = append(a.waiting, copied{at, time.Now().Add(a.lag), bytes.Clone(frame)})
	if len(a.waiting) == 1 {
		a.wind()
	}
}

// wind sets the timer for the frame that is due next. a.mu is held.
func (a *along) wind() {
	in := time.Until(a.waiting[0].due)
	if a.timer == nil {
		a.timer = time.AfterFunc(in, a.due)
		return
	}
	a.timer.Reset(in)
}

// due enters the frames that have waited for long enough.
func (a *along) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.enter(func(c *copied) bool { return !c.due.After(now) })
	if len(a.waiting) > 0 {
		a.wind()
	}
}

// enter enters frames from the oldest on, while they are meant. a.mu is held.
func (a *along) enter(meant func(*copied) bool) {
	for len(a.waiting) > 0 && meant(&a.waiting[0]) {
		c := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.run.Mirror(c.at, c.frame)
	}
}

// close enters what waits still.
func (a *along) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enter(func(*copied) bool { return true })
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
