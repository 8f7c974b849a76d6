package fabric

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/flowrules"
)

// slowSwitch takes what a window wrote when it is told to.
type slowSwitch struct {
	mu     sync.Mutex
	buffer [][]byte // written and not taken
	taken  []uint32
	most   uint64 // on their way, in weight
	deaf   bool   // fences are lost
	lost   []error
	fail   error
}

func (s *slowSwitch) write(vid uint16, frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.buffer = append(s.buffer, append(binary.BigEndian.AppendUint16(nil, vid), frame...))
	all := uint64(0)
	for _, b := range s.buffer {
		all += weight(b[2:])
	}
	s.most = max(s.most, all)
	return nil
}

func (s *slowSwitch) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, err)
}

// take takes n frames or fences, and turns the fences back.
func (s *slowSwitch) take(w *window, n int) {
	s.mu.Lock()
	now := s.buffer[:min(n, len(s.buffer))]
	s.buffer = slices.Clone(s.buffer[len(now):])
	deaf := s.deaf
	s.mu.Unlock()
	for _, b := range now {
		if binary.BigEndian.Uint16(b) != flowrules.GateFence {
			s.taken = append(s.taken, binary.BigEndian.Uint32(b[2:]))
		} else if !deaf {
			w.echo(b[2:])
		}
	}
}

// number is a full frame with a number.
func number(n int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, 1514-4)...)
}

// room is how many of those a window has room for: the last one may go beyond.
var room = func() int {
	w := newWindow(func(uint16, []byte) error { return nil }, nil)
	n := 0
	for ; w.open() && n < 1000; n++ {
		w.put(7, number(n))
	}
	return n
}()

func TestAWindowKeepsThePaceOfTheSwitchAndTheOrder(t *testing.T) {
	s := &slowSwitch{}
	w := newWindow(s.write, s.tell)
	w.stall = time.Hour
	const n = 5000
	frame := number(0)
	for i := range n {
		copy(frame, number(i)) // the frame may be reused
		if err := w.put(7, frame); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			s.take(w, 1+i%5)
		}
	}
	last, err := w.fence()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		s.take(w, 7)
	}
	select {
	case <-last:
	default:
		t.Error("a fence behind everything did not come back")
	}
	for i, got := range s.taken {
		if got != uint32(i) {
			t.Fatalf("frame %d was taken as number %d", got, i)
		}
	}
	if len(s.taken) != n || s.most > 212_992 || s.most < windowSize || len(s.lost) > 0 {
		t.Errorf("%d of %d taken, at most %d bytes on their way of %d, lost %v", len(s.taken), n, s.most, windowSize, s.lost)
	}
}

func TestAFenceIsBehindWhatWaits(t *testing.T) {
	s := &slowSwitch{}
	w := newWindow(s.write, s.tell)
	w.stall = time.Hour
	for i := range 2 * room {
		if err := w.put(7, number(i)); err != nil {
			t.Fatal(err)
		}
	}
	back, err := w.fence()
	if err != nil {
		t.Fatal(err)
	}
	for len(s.buffer) > 0 {
		select {
		case <-back:
			t.Fatalf("back when %d of %d were taken", len(s.taken), 2*room)
		default:
		}
		s.take(w, 1)
	}
	<-back
	if len(s.taken) != 2*room {
		t.Errorf("%d taken", len(s.taken))
	}
}

func TestFramesLostOnTheWayIntoTheSwitchAreTold(t *testing.T) {
	s := &slowSwitch{deaf: true}
	w := newWindow(s.write, s.tell)
	w.stall = 50 * time.Millisecond
	for i := range room + 1 {
		if err := w.put(7, number(i)); err != nil {
			t.Fatal(err)
		}
	}
	s.take(w, 1000)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		lost, left := slices.Clone(s.lost), len(s.buffer)
		s.mu.Unlock()
		if len(lost) == 1 && left > 0 {
			if !strings.Contains(lost[0].Error(), fmt.Sprintf("%d released packets were lost", room)) {
				t.Error(lost[0])
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("lost %v, %d written since", lost, left)
		}
	}
	s.deaf = false
	s.take(w, 1000)
	if len(s.taken) != room+1 {
		t.Errorf("%d taken: what waited did not go on", len(s.taken))
	}
}

func TestALostFenceTellsOfWhatWasBeforeIt(t *testing.T) {
	s := &slowSwitch{}
	w := newWindow(s.write, s.tell)
	w.stall = time.Hour
	fence := func() <-chan struct{} {
		back, err := w.fence()
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	fence()
	for i := range 3 {
		if err := w.put(7, number(i)); err != nil {
			t.Fatal(err)
		}
	}
	lost := fence()
	if err := w.put(7, number(3)); err != nil {
		t.Fatal(err)
	}
	last := fence()
	s.buffer = append(s.buffer[:4:4], s.buffer[5:]...) // all but the second fence
	s.take(w, 1000)
	<-lost
	<-last
	if len(s.lost) != 1 || !strings.Contains(s.lost[0].Error(), "up to 3 released packets were lost") {
		t.Errorf("told %v", s.lost)
	}
	lost = fence() // with nothing before it
	s.buffer = nil
	fence()
	s.take(w, 1)
	<-lost
	if len(s.lost) != 1 {
		t.Errorf("told %v", s.lost)
	}
}

func TestAWindowThatIsFullOrBrokenSaysSo(t *testing.T) {
	s := &slowSwitch{}
	w := newWindow(s.write, s.tell)
	w.stall = time.Hour
	for i := range room + maxWaiting {
		if err := w.put(7, number(i)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := w.put(7, number(0)); !errors.Is(err, errBehind) {
		t.Errorf("one too many: %v", err)
	}
	if n := w.drop(); n != maxWaiting {
		t.Errorf("dropped %d, want %d", n, maxWaiting)
	}
	s.fail = errors.New("the interface went down")
	if err := w.put(7, number(0)); !errors.Is(err, s.fail) {
		t.Errorf("a port that fails: %v", err)
	}
	if len(s.lost) > 0 {
		t.Errorf("told %v", s.lost)
	}
	w.echo([]byte("short"))
	w.echo(bytes.Repeat([]byte{9}, 60)) // somebody else's
}
