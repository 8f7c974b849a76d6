package tap

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneReaderLingersAtATime: the others wait without a processor of Go's
// scheduler, in a system call that it knows of. All would wait here for an hour.
func TestOneReaderLingersAtATime(t *testing.T) {
	const readers = 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(readers + 1))
	silent, bell := newTestBell(t), newTestBell(t)
	ended := make(chan error, readers)
	for range readers {
		go func() {
			for { // a wait may end for a signal
				_, err := wait(silent.fd, bell.fd, time.Now().Add(time.Hour))
				if err != nil || bell.rung.Load() {
					ended <- err
					return
				}
			}
		}()
	}
	calls := []metrics.Sample{{Name: "/sched/goroutines/not-in-go:goroutines"}}
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		metrics.Read(calls)
		if calls[0].Value.Uint64() >= readers-1 && lingering.Load() {
			break
		}
		if time.Now().After(end) {
			t.Errorf("of %d readers %d wait without a processor; one lingers: %v", readers, calls[0].Value.Uint64(), lingering.Load())
			break
		}
	}
	bell.rung.Store(true)
	bell.ring()
	for range readers {
		if err := await(t, "the bell", ended); err != nil {
			t.Error(err)
		}
	}
	if lingering.Load() {
		t.Error("one lingers on")
	}
}

// testBell is a bell whose descriptor is at hand.
type testBell struct {
	*bell
	fd   uintptr
	rung atomic.Bool
}

func newTestBell(t *testing.T) *testBell {
	t.Helper()
	b, err := newBell()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.f.Close() })
	return &testBell{bell: b, fd: b.f.Fd()}
}

// bothWays runs a test with a reader of each kind.
func bothWays(t *testing.T, f func(t *testing.T, near string, r *Reader)) {
	for name, linger := range map[string]time.Duration{"mirror": 0, "gate": lingerFor} {
		t.Run(name, func(t *testing.T) {
			near, far, namespace := veth(t)
			r, err := openReader(far, namespace, linger)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			f(t, near, r)
		})
	}
}

func TestReadEndsWithItsContextAndCanGoOn(t *testing.T) {
	bothWays(t, func(t *testing.T, near string, r *Reader) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- r.Read(ctx, func(time.Time, []byte) {}) }()
		time.Sleep(20 * time.Millisecond)
		cancel()
		if err := await(t, "Read after its context", ended); err != nil {
			t.Fatal(err)
		}
		sender(t, near, "")(frame(1, false, 60))
		if all := collect(t, r, 1); len(all) != 1 {
			t.Fatal("no frame after a first Read was ended")
		}
		go func() { ended <- r.Read(context.Background(), func(time.Time, []byte) {}) }()
		time.Sleep(20 * time.Millisecond)
		r.Close()
		if err := await(t, "Read after Close", ended); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Read of a closed reader: %v", err)
		}
	})
}

// TestAReadThatEndedLeavesTheNextOneItsWait: it would turn round and round else.
func TestAReadThatEndedLeavesTheNextOneItsWait(t *testing.T) {
	bothWays(t, func(t *testing.T, _ string, r *Reader) {
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			if err := inTime(t, "Read", func() error { return r.Read(ctx, func(time.Time, []byte) {}) }); err != nil {
				t.Fatal(err)
			}
			var rung atomic.Bool
			time.AfterFunc(20*time.Millisecond, func() {
				rung.Store(true)
				r.socket.ring()
			})
			turns := 0
			err := inTime(t, "the socket's Read", func() error {
				return r.socket.Read(func(uintptr) bool { turns++; return rung.Load() })
			})
			if !rung.Load() || turns > 500 || err != nil { // signals may end waits
				t.Fatalf("%d turns, rung: %v, %v", turns, rung.Load(), err)
			}
			r.socket.silence()
		}
	})
}
