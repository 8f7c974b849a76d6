package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withTag is a frame with a tag on top.
func withTag(tpid, tci uint16, f []byte) []byte {
	out := binary.BigEndian.AppendUint16(slices.Clone(f[:12]), tpid)
	return append(binary.BigEndian.AppendUint16(out, tci), f[12:]...)
}

func openPort(t *testing.T, iface, namespace string) *Port {
	t.Helper()
	p, err := OpenPort(iface, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestFramesGoRoundAPortAsTheyAre sends frames with none, one and two tags of
// their own through a port that writes each back with another tag of its own.
func TestFramesGoRoundAPortAsTheyAre(t *testing.T) {
	near, far, namespace := veth(t)
	for _, c := range [][]string{{"ip", "link", "set", near, "mtu", "1600"}, {"ip", "-n", namespace, "link", "set", far, "mtu", "1600"}} {
		run(t, c...)
	}
	p := openPort(t, far, namespace)
	back, err := Open(near, "")
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	const n = 3000
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var want [][]byte
	ended := make(chan error, 1)
	go func() {
		i := 0
		ended <- p.Read(ctx, func(_ time.Time, vid uint16, f []byte) {
			switch {
			case int(vid) != i%4093+1:
				t.Errorf("frame %d came with tag %d", i, vid)
			case !bytes.Equal(f, want[i]):
				t.Errorf("frame %d came as\n%x, was\n%x", i, f, want[i])
			}
			if err := p.Write(vid+1, f); err != nil {
				t.Error(err)
			}
			clear(f) // it may be reused
			i++
			if i == n {
				cancel()
			}
		})
	}()
	send := sender(t, near, "")
	for i := range n {
		f := frame(uint32(i), i%3 > 0, 60+i%1450)
		if i%3 == 2 {
			f = withTag(0x88a8, 0x2007, f)
		}
		want = append(want, f)
	}
	for i, f := range want {
		send(withTag(0x8100, 0xe000|uint16(i%4093+1), f)) // with a priority, which is no part of the id
	}
	for i, g := range collect(t, back, n) {
		if w := withTag(0x8100, uint16(i%4093+2), want[i]); !bytes.Equal(g.bytes, w) {
			t.Fatalf("frame %d went back as\n%x, want\n%x", i, g.bytes, w)
		}
	}
	if err := await(t, "Read", ended); err != nil {
		t.Error(err)
	}
	s, err := p.Stats()
	if want := (PortStats{Stats: Stats{Received: n}, Sent: n}); err != nil || s != want {
		t.Errorf("statistics %+v, want %+v: %v", s, want, err)
	}
}

func TestFramesWithoutAPortsTagHaveIDZero(t *testing.T) {
	near, far, namespace := veth(t)
	p := openPort(t, far, namespace)
	send := sender(t, near, "")
	send(frame(1, false, 60))
	send(withTag(0x88a8, 5, frame(2, false, 60))) // a provider's tag is none of ours
	send(withTag(0x8100, 5, frame(3, false, 60)))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var vids []uint16
	if err := inTime(t, "Read", func() error {
		return p.Read(ctx, func(_ time.Time, vid uint16, _ []byte) {
			if vids = append(vids, vid); len(vids) == 3 {
				cancel()
			}
		})
	}); err != nil || !slices.Equal(vids, []uint16{0, 0, 5}) {
		t.Errorf("tags %v: %v", vids, err)
	}
}

// A frame written while nothing is read goes at once, and one written while a
// batch is handed over does not wait for the end of a slow callback for ever.
func TestWrittenFramesDoNotWait(t *testing.T) {
	near, far, namespace := veth(t)
	p := openPort(t, far, namespace)
	back, err := Open(near, "")
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if err := p.Write(7, frame(1, false, 60)); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, back, 1); len(got) != 1 || !bytes.Equal(got[0].bytes, withTag(0x8100, 7, frame(1, false, 60))) {
		t.Fatalf("got %v", got)
	}
	send := sender(t, near, "")
	for i := range uint32(2) {
		send(withTag(0x8100, 1, frame(i, false, 60)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	seen, ended := 0, make(chan error, 1)
	first := make(chan struct{})
	go func() {
		ended <- p.Read(ctx, func(_ time.Time, _ uint16, f []byte) {
			if seen++; seen == 1 {
				if err := p.Write(2, f); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
				return
			}
			<-first // the one before has arrived
		})
	}()
	if got := collect(t, back, 1); len(got) != 1 {
		t.Error("the first frame waited for the second's callback")
	}
	close(first)
	cancel()
	if err := await(t, "Read", ended); err != nil {
		t.Error(err)
	}
}

// TestAReaderThatLingersHoldsUpNobody: the garbage collector, which needs every
// processor, gets that of a reader which would keep it for an hour, and so does
// whoever ends the reading.
func TestAReaderThatLingersHoldsUpNobody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	near, far, namespace := veth(t)
	for _, end := range []string{"its context", "Close"} {
		p := openPort(t, far, namespace)
		l := p.r.socket.(*lingerer)
		if l.linger != lingerFor {
			t.Errorf("it lingers for %v", l.linger)
		}
		l.linger = time.Hour
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		came, ended := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			ended <- p.Read(ctx, func(time.Time, uint16, []byte) { came <- struct{}{} })
		}()
		send := sender(t, near, "")
		for i := range uint32(5) {
			send(withTag(0x8100, 1, frame(i, false, 60)))
			await(t, "the frame", came)
			for until := time.Now().Add(limit); !lingering.Load(); {
				if time.Now().After(until) {
					t.Fatal("it does not linger")
				}
				time.Sleep(time.Millisecond)
			}
			_ = inTime(t, "a collection", func() error { runtime.GC(); return nil })
		}
		var want error
		if end == "Close" {
			want = os.ErrClosed
			p.Close()
		} else {
			cancel()
		}
		if err := await(t, "Read", ended); !errors.Is(err, want) {
			t.Errorf("ended by %s: %v", end, err)
		}
		if lingering.Load() {
			t.Errorf("ended by %s: it lingers on", end)
		}
		cancel()
		p.Close()
	}
}

// TestAReaderThatLingersHasAProcessorMore, also where there was one only: the rest
// keeps what it had. The number is a process's, so it is another process's.
func TestAReaderThatLingersHasAProcessorMore(t *testing.T) {
	const inside = "NETSPLIT_TAP_LINGERS"
	if os.Getenv(inside) == "" {
		for had, want := range map[string]string{"1": "2", "4": "5"} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.cpu="+had)
			cmd.Env = append(os.Environ(), inside+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "processors: "+want+",") {
				t.Errorf("with %s, want %s: %v\n%s", had, want, err, out)
			}
		}
		return
	}
	for range 2 { // once for all
		spare()
	}
	t.Logf("processors: %d,", runtime.GOMAXPROCS(0))
}

func TestAFrameTooLongForThePortIsAnError(t *testing.T) {
	_, far, namespace := veth(t)
	p := openPort(t, far, namespace)
	if err := p.Write(1, frame(1, false, 1514)); err != nil {
		t.Errorf("a full frame: %v", err)
	}
	err := p.Write(1, frame(1, true, 1518))
	if err == nil || !strings.Contains(err.Error(), "raise its MTU") || !strings.Contains(err.Error(), "by 4 or more") {
		t.Errorf("a full frame with a tag of its own: %v", err)
	}
	if err := p.Write(1, []byte("short")); err == nil {
		t.Error("a frame without a header was written")
	}
	if s, err := p.Stats(); err != nil || s.Sent != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestAPortThatTakesNothingIsAnError: a queue that hardly moves fills, in one case
// with what the socket may have on its way, in the other with what it holds itself.
func TestAPortThatTakesNothingIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		queue, sendBuffer int // bytes
		want              error
	}{
		"socket": {1 << 20, 4096, unix.EAGAIN},
		"queue":  {3000, 1 << 20, unix.ENOBUFS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far, namespace := veth(t)
			p := openPort(t, far, namespace)
			if err := p.r.socket.Control(func(fd uintptr) {
				if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, c.sendBuffer); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			run(t, "tc", "-n", namespace, "qdisc", "add", "dev", far, "root", "tbf", "rate", "8bit", "burst", "2000", "limit", fmt.Sprint(c.queue))
			written := uint64(0)
			fails := func(what string, lost int, f func() error) {
				t.Helper()
				began := time.Now()
				err := inTime(t, what, f)
				if lost := fmt.Sprintf("took nothing for 1s, its queue is full; %d frames were not sent", lost); !errors.Is(err, c.want) || !strings.Contains(err.Error(), lost) {
					t.Fatalf("%s: %v, want %v and %q", what, err, c.want, lost)
				}
				if took := time.Since(began); took < fullLimit {
					t.Errorf("%s: an error after %v", what, took)
				}
			}
			write := func() error { written++; return p.Write(1, frame(1, false, 1000)) }
			fails("Write", 1, func() error {
				for range 100 {
					if err := write(); err != nil {
						return err
					}
				}
				return nil
			})
			// Within a batch: Read ends, and what is written later does not wait for it.
			send := sender(t, near, "")
			for range 2 {
				send(withTag(0x8100, 1, frame(1, false, 60)))
			}
			arrived(t, p.r, 2)
			fails("Read", 3, func() error {
				return p.Read(context.Background(), func(time.Time, uint16, []byte) {
					for range 3 {
						if err := write(); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(2 * flushAfter)
				})
			})
			fails("Write after Read", 1, write)
			if s, err := p.Stats(); err != nil || s.Unsent != 5 || s.Sent+s.Unsent != written {
				t.Errorf("%+v of %d frames: %v", s, written, err)
			}
			run(t, "tc", "-n", namespace, "qdisc", "del", "dev", far, "root")
			if err := inTime(t, "Write", write); err != nil {
				t.Errorf("once the queue is gone: %v", err)
			}
		})
	}
}

func TestAPortThatGoesAwayIsAnErrorBothWays(t *testing.T) {
	near, far, namespace := veth(t)
	p := openPort(t, far, namespace)
	run(t, "ip", "link", "del", near)
	if err := p.Write(1, frame(1, false, 60)); err == nil || !strings.Contains(err.Error(), "1 frames were not sent") {
		t.Errorf("write: %v", err)
	}
	p.mu.Lock()
	if p.unsent != 1 {
		t.Errorf("%d frames are counted as not sent", p.unsent)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := inTime(t, "Read", func() error { return p.Read(ctx, func(time.Time, uint16, []byte) {}) })
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
}

func TestAPortThatIsDownIsNotOpened(t *testing.T) {
	_, far, namespace := veth(t)
	run(t, "ip", "-n", namespace, "link", "set", far, "down")
	if p, err := OpenPort(far, namespace); err == nil || !strings.Contains(err.Error(), "is down") {
		t.Errorf("%v, %v", p, err)
	}
}
