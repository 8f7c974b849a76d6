package controller

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// put queues one byte.
func put(t *testing.T, o *outbox, v byte) {
	t.Helper()
	if err := o.append(func(b []byte) ([]byte, error) { return append(b, v), nil }); err != nil {
		t.Fatal(err)
	}
}

func woken(o *outbox) bool {
	select {
	case <-o.wake:
		return true
	default:
		return false
	}
}

func TestCorkedOutboxWakesNobody(t *testing.T) {
	o := newOutbox(func() {})
	o.cork()
	put(t, o, 1)
	if woken(o) {
		t.Error("the writer was woken though the outbox is corked")
	}
	// The connection takes one byte of three: the rest is the writer's.
	put(t, o, 2)
	put(t, o, 3)
	var took []byte
	o.uncork(func(b []byte) int { took = append(took, b[0]); return 1 })
	if !bytes.Equal(took, []byte{1}) || !bytes.Equal(o.queued, []byte{2, 3}) || !woken(o) {
		t.Errorf("took %v, left %v", took, o.queued)
	}
	o.uncork(func(b []byte) int { return len(b) })
	if len(o.queued) != 0 || woken(o) {
		t.Errorf("everything was taken, and yet %v is left or the writer was woken", o.queued)
	}
	put(t, o, 4)
	if !woken(o) {
		t.Error("not corked, and nobody was woken")
	}
}

func TestCorkHasALimit(t *testing.T) {
	o := newOutbox(func() {})
	o.cork()
	if err := o.append(func(b []byte) ([]byte, error) { return append(b, make([]byte, corkLimit)...), nil }); err != nil {
		t.Fatal(err)
	}
	if !woken(o) {
		t.Error("much is queued and nobody sends it")
	}
	o = newOutbox(func() {})
	o.cork()
	o.close(errors.New("over"))
	if !woken(o) {
		t.Error("a closed outbox must let its writer go, corked or not")
	}
}

func TestUncorkLeavesAWriteUnderWayAlone(t *testing.T) {
	o := newOutbox(func() {})
	o.writing = true
	o.cork()
	put(t, o, 1)
	o.uncork(func([]byte) int { t.Error("wrote between the bytes of the writer"); return 0 })
	if !woken(o) {
		t.Error("the writer must go on")
	}
}

// TestOrderOverASlowSocket has one goroutine cork and uncork while others send,
// to a peer that reads slowly and a socket that takes a part: each sender's
// numbers must arrive whole and in order.
func TestOrderOverASlowSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	_ = ours.(*net.TCPConn).SetWriteBuffer(32 << 10)
	_ = theirs.(*net.TCPConn).SetReadBuffer(64 << 10)

	o := newOutbox(func() {})
	wrote := make(chan error, 1)
	go func() { wrote <- o.run(ours) }()
	const senders, each, size = 3, 3000, 100
	var work sync.WaitGroup
	tried := 0 // by sender 0 alone
	for s := range senders {
		work.Go(func() {
			whole := tryWriter(ours)
			// As a socket that is nearly full does, it takes part of it.
			try := func(b []byte) int { tried++; return whole(b[:1+len(b)*2/3]) }
			for i := range each {
				if s == 0 && i%7 == 0 {
					o.cork()
				}
				rec := make([]byte, size)
				binary.BigEndian.PutUint32(rec, uint32(s))
				binary.BigEndian.PutUint32(rec[4:], uint32(i))
				if err := o.append(func(b []byte) ([]byte, error) { return append(b, rec...), nil }); err != nil {
					t.Error(err)
					return
				}
				if s == 0 && i%7 == 6 {
					o.uncork(try)
				}
				if i%20 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
			}
			if s == 0 {
				o.uncork(try)
			}
		})
	}
	var next [senders]uint32
	_ = theirs.SetReadDeadline(time.Now().Add(20 * time.Second))
	rec := make([]byte, size)
	for n := range senders * each {
		if _, err := io.ReadFull(theirs, rec); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
		s, i := binary.BigEndian.Uint32(rec), binary.BigEndian.Uint32(rec[4:])
		if s >= senders || i != next[s] {
			t.Fatalf("record %d is %d of sender %d, want one of %v", n, i, s, next)
		}
		next[s]++
		if n%3000 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	work.Wait()
	if tried == 0 {
		t.Error("nothing was sent but by the writer: the test shows nothing")
	}
	over := errors.New("over")
	o.close(over)
	if err := <-wrote; !errors.Is(err, over) {
		t.Error(err)
	}
}

// TestASwitchThatDoesNotRead: what would wait without end ends the writer, and says why.
func TestASwitchThatDoesNotRead(t *testing.T) {
	ours, theirs := net.Pipe() // nobody reads theirs
	defer theirs.Close()
	o := newOutbox(func() { _ = ours.SetWriteDeadline(time.Now()) })
	wrote := make(chan error, 1)
	go func() { wrote <- o.run(ours) }()
	piece := make([]byte, 8<<20)
	var err error
	for range 3 * maxQueued / len(piece) {
		if err = o.append(func(b []byte) ([]byte, error) { return append(b, piece...), nil }); err != nil {
			break
		}
	}
	if !errors.Is(err, errQueueFull) {
		t.Errorf("%v, want %v", err, errQueueFull)
	}
	select {
	case err := <-wrote:
		if !errors.Is(err, errQueueFull) {
			t.Errorf("the writer ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the writer waits for the switch")
	}
}
