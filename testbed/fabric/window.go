package fabric

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsplit/flowrules"
)

// What is written to a gate port waits in the receive buffer of the switch's
// end, and nobody is told when that is full. Linux gives 212,992 bytes by
// default (net.core.rmem_default): no more than that is on its way at a time.
const (
	// windowSize is how much may be on its way into the switch, in bytes of
	// that buffer.
	windowSize = 200_000
	// fenceEvery is after how much of it a fence says how far it got.
	fenceEvery = windowSize / 4
	// maxWaiting is how many released frames may wait for their turn, and
	// stallLimit for how long none of them may get it.
	maxWaiting = 1 << 15
	maxSpare   = 1 << 8 // buffers of such, kept for the next
	stallLimit = 2 * time.Second
)

// weight is how much of a receive buffer a frame takes at most: the kernel
// counts its data's memory, in powers of two with 320 bytes of its own, and 256
// for the record of it (768 bytes for 64, 2,304 for 1,518 on Linux 6.18).
func weight(frame []byte) uint64 { return uint64(1024 + len(frame) + len(frame)/4) }

var errBehind = fmt.Errorf("%d released frames wait for the gate port already: the switch takes them too slowly", maxWaiting)

// window writes frames to a gate port at the pace at which the switch takes
// them, in the order of the calls.
type window struct {
	write func(vid uint16, frame []byte) error
	lost  func(error)   // what was released and did not reach the switch
	stall time.Duration // stallLimit

	mu      sync.Mutex // guards the fields below; held while writing
	waiting []item
	spare   [][]byte // buffers of items that were written
	written sent     // so far
	taken   sent     // of that, what the switch is known to have taken
	since   uint64   // weight written at the last fence
	number  uint64   // of the last fence
	marks   []mark   // fences on their way, in order
	frame   []byte   // of a fence; its number stands at 14
	watched bool     // stalled will be called
}

func newWindow(write func(vid uint16, frame []byte) error, lost func(error)) *window {
	return &window{write: write, lost: lost, stall: stallLimit, frame: fenceFrame()}
}

// item is a frame that waits for its turn, or a fence.
type item struct {
	vid   uint16
	frame []byte
	back  chan struct{} // of a fence: closed when it is back
}

// sent counts what was written.
type sent struct {
	frames uint64 // without fences
	weight uint64 // with them
}

// mark is a fence on its way: behind so much.
type mark struct {
	number  uint64
	written sent
	back    chan struct{} // closed when it is back; nil: nobody waits
}

// open says whether there is room for another frame on its way.
func (w *window) open() bool { return w.written.weight-w.taken.weight < windowSize }

// put writes a frame, or has it wait for its turn.
func (w *window) put(vid uint16, frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 && w.open() {
		return w.send(item{vid: vid, frame: frame})
	}
	if len(w.waiting) >= maxWaiting {
		return errBehind
	}
	var b []byte
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	w.waiting = append(w.waiting, item{vid: vid, frame: append(b[:0], frame...)})
	w.watch()
	return nil
}

// fence writes a fence behind all that was put; the channel is closed when it
// is back.
func (w *window) fence() (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := item{vid: flowrules.GateFence, back: make(chan struct{})}
	if len(w.waiting) > 0 {
		w.waiting = append(w.waiting, it)
		w.watch()
		return it.back, nil
	}
	return it.back, w.send(it)
}

// send writes one item now, and a fence if it is time for one; w.mu is held.
func (w *window) send(it item) error {
	if it.vid == flowrules.GateFence {
		return w.mark(it.back)
	}
	if err := w.write(it.vid, it.frame); err != nil {
		return err
	}
	w.written.frames++
	w.written.weight += weight(it.frame)
	if w.written.weight-w.since < fenceEvery {
		return nil
	}
	return w.mark(nil)
}

func (w *window) mark(back chan struct{}) error {
	w.number++
	binary.BigEndian.PutUint64(w.frame[14:], w.number)
	if err := w.write(flowrules.GateFence, w.frame); err != nil {
		return err
	}
	w.written.weight += weight(w.frame)
	w.since = w.written.weight
	w.marks = append(w.marks, mark{w.number, w.written, back})
	return nil
}

// echo takes a fence that came back. One that did not come back is behind it:
// nothing overtakes at a port.
func (w *window) echo(frame []byte) {
	if len(frame) < 22 {
		return
	}
	n := binary.BigEndian.Uint64(frame[14:])
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.marks, func(m mark) bool { return m.number == n })
	if i < 0 {
		return
	}
	m := w.marks[i]
	if i > 0 {
		if n := w.marks[i-1].written.frames - w.taken.frames; n > 0 {
			w.lost(fmt.Errorf("up to %d released packets were lost on their way into the switch", n))
		}
		for _, o := range w.marks[:i] {
			if o.back != nil {
				close(o.back) // a later one is back
			}
		}
	}
	w.taken = m.written
	w.marks = w.marks[i+1:]
	if m.back != nil {
		close(m.back)
	}
	w.pump()
}

// pump writes what waits, as far as there is room; w.mu is held.
func (w *window) pump() {
	i := 0
	for ; i < len(w.waiting) && w.open(); i++ {
		it := w.waiting[i]
		if err := w.send(it); err != nil {
			w.lost(fmt.Errorf("a released packet was lost: %w", err))
		}
		if it.frame != nil && len(w.spare) < maxSpare {
			w.spare = append(w.spare, it.frame)
		}
	}
	clear(w.waiting[:i])
	w.waiting = w.waiting[i:]
}

// watch has stalled called in time; w.mu is held.
func (w *window) watch() {
	if w.watched {
		return
	}
	w.watched = true
	taken := w.taken.frames
	time.AfterFunc(w.stall, func() { w.stalled(taken) })
}

// stalled goes on where no fence came back for too long.
func (w *window) stalled(taken uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = false
	if len(w.waiting) == 0 {
		return
	}
	if w.taken.frames == taken {
		w.lost(fmt.Errorf("%d released packets were lost on their way into the switch, or wait there: none was taken for %v", w.written.frames-w.taken.frames, w.stall))
		w.taken, w.marks = w.written, nil
		w.pump()
	}
	if len(w.waiting) > 0 {
		w.watch()
	}
}

// drop gives up what waits, for a port that is gone, and says how much it was.
func (w *window) drop() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, it := range w.waiting {
		if it.frame != nil {
			n++
		}
	}
	w.waiting, w.marks, w.taken = nil, nil, w.written
	return n
}

// fenceType is the Ethernet type of a fence: IEEE 802 local experimental.
const fenceType = 0x88b5

// fenceFrame is a fence without its number, as long as an Ethernet frame must be
// without its check sum.
func fenceFrame() []byte {
	b := make([]byte, 60)
	copy(b, []byte{0x02, 'g', 'a', 't', 'e', 1, 0x02, 'g', 'a', 't', 'e', 2})
	binary.BigEndian.PutUint16(b[12:], fenceType)
	return b
}
