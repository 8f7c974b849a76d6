package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/e2e/need"
	"netsplit/internal/labtest"
)

const (
	limit = 20 * time.Second // for what a test expects
	hang  = limit + limit/2  // for what must return whatever happens
)

// await takes what must come in time.
func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(hang):
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("%s: nothing came for %v\n%s", what, hang, stacks[:runtime.Stack(stacks, true)])
	panic("not reached")
}

// inTime calls what must return in time.
func inTime(t testing.TB, what string, f func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return await(t, what, ended)
}

func run(t testing.TB, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestMain has the pairs in a sandbox: a test that is killed leaves nothing.
func TestMain(m *testing.M) { os.Exit(labtest.Some(m.Run)) }

// veth makes a pair of interfaces, the second one in a namespace of its own,
// and removes both at the end.
func veth(t testing.TB) (near, far, namespace string) {
	t.Helper()
	need.Root(t, "make network namespaces")
	id := fmt.Sprintf("%d%04x", os.Getpid()%100000, rand.Uint32()&0xffff)
	near, far, namespace = "nst"+id+"a", "nst"+id+"b", "nst"+id
	run(t, "ip", "netns", "add", namespace)
	t.Cleanup(func() {
		exec.Command("ip", "link", "del", near).Run()
		if out, err := exec.Command("ip", "netns", "del", namespace).CombinedOutput(); err != nil {
			t.Errorf("removing the namespace: %v\n%s", err, out)
		}
	})
	run(t, "ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace)
	for _, c := range [][]string{
		{"sysctl", "-qw", "net.ipv6.conf." + near + ".disable_ipv6=1"},
		{"ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv6.conf." + far + ".disable_ipv6=1"},
		{"ip", "link", "set", near, "up"},
		{"ip", "-n", namespace, "link", "set", far, "up"},
	} {
		run(t, c...)
	}
	// Until the kernel has seen that there is a link, which on a busy machine takes
	// its time, what is sent is lost without an error.
	for _, show := range [][]string{{"-o", "link", "show", near}, {"-n", namespace, "-o", "link", "show", far}} {
		for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
			out, err := exec.CommandContext(t.Context(), "ip", show...).CombinedOutput()
			if err == nil && strings.Contains(string(out), " state UP ") {
				break
			}
			if err != nil || time.Now().After(end) {
				t.Fatalf("no link: %v\n%s", err, out)
			}
		}
	}
	return near, far, namespace
}

// sender writes frames to an interface.
func sender(t *testing.T, iface, namespace string) func(frame []byte) {
	t.Helper()
	fd, err := within(namespace, func() (int, error) { return open(iface) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func(frame []byte) {
		t.Helper()
		for end := time.Now().Add(limit); ; {
			_, err := unix.Write(fd, frame)
			if (err == unix.ENOBUFS || err == unix.EAGAIN) && time.Now().Before(end) {
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil {
				t.Fatalf("sending %d bytes: %v", len(frame), err)
			}
			return
		}
	}
}

const etherType = 0x88b5 // IEEE 802 local experimental

func frame(n uint32, tag bool, size int) []byte {
	b := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8} // not addressed to the reader
	if tag {
		b = append(b, 0x81, 0x00, 0x60, 0x2a) // priority 3, VLAN 42
	}
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = binary.BigEndian.AppendUint32(b, n)
	for len(b) < size {
		b = append(b, byte(n)+byte(len(b)))
	}
	return b
}

type got struct {
	ts    time.Time
	bytes []byte
}

// arrived waits until so many frames have reached the socket.
func arrived(t *testing.T, r *Reader, n uint64) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		s, err := r.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if s.Received >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, want %d frames", s, n)
		}
	}
}

// collect reads until n frames have come or the time is over.
func collect(t *testing.T, r *Reader, n int) []got {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var all []got
	if err := inTime(t, "frames to collect", func() error {
		return r.Read(ctx, func(ts time.Time, b []byte) {
			all = append(all, got{ts, bytes.Clone(b)})
			if len(all) == n {
				cancel()
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFramesArriveWholeInOrderWithTheirTags(t *testing.T) {
	near, far, namespace := veth(t)
	r, err := Open(far, namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	send := sender(t, near, "")
	const n = 5000
	var want [][]byte
	before := time.Now()
	for i := range uint32(n) {
		b := frame(i, i%3 == 0, 60+int(i%1400))
		want = append(want, b)
		send(b)
		if i%500 == 499 { // a busy machine drops what has not reached the socket
			arrived(t, r, uint64(i)+1)
		}
	}
	all := collect(t, r, n)
	if len(all) != n {
		t.Fatalf("%d frames arrived, want %d", len(all), n)
	}
	for i, g := range all {
		if !bytes.Equal(g.bytes, want[i]) {
			t.Fatalf("frame %d\n got %x\nwant %x", i, g.bytes, want[i])
		}
		if g.ts.Before(before.Add(-time.Second)) || g.ts.After(time.Now().Add(time.Second)) {
			t.Fatalf("frame %d: time stamp %v, sent after %v", i, g.ts, before)
		}
		if i > 0 && g.ts.Before(all[i-1].ts) {
			t.Fatalf("frame %d: time stamp goes back", i)
		}
	}
	s, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Stats{Received: n}); s != want {
		t.Errorf("statistics %+v, want %+v", s, want)
	}
}

func TestOwnFramesAreLeftOut(t *testing.T) {
	near, far, namespace := veth(t)
	r, err := Open(near, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	send := sender(t, near, "")
	for i := range uint32(100) {
		send(frame(i, false, 60))
	}
	last := frame(7777, false, 60)
	sender(t, far, namespace)(last)
	all := collect(t, r, 1)
	if len(all) != 1 || !bytes.Equal(all[0].bytes, last) {
		t.Fatalf("got %d frames: %v; want only the one from the other side", len(all), all)
	}
}

func TestDropsAreCounted(t *testing.T) {
	near, far, namespace := veth(t)
	r, err := Open(far, namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.socket.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	send := sender(t, near, "")
	const n = 500
	// Some at a time: a busy machine drops what waits in the pair's own queue.
	const some = 20
	var s Stats
	for i := 0; i < n; i += some {
		for k := range some {
			send(frame(uint32(i+k), false, 1000))
		}
		for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
			if s, err = r.Stats(); err != nil {
				t.Fatal(err)
			}
			if int(s.Received+s.Dropped) == i+some {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v: want %d in all", s, i+some)
			}
		}
	}
	if s.Dropped == 0 || s.Received == 0 {
		t.Fatalf("%+v: want some of each", s)
	}
	if got := collect(t, r, int(s.Received)); len(got) != int(s.Received) {
		t.Fatalf("%d frames read, the kernel says %d", len(got), s.Received)
	}
}

func TestAnInterfaceThatGoesAwayIsAnError(t *testing.T) {
	near, far, namespace := veth(t)
	r, err := Open(far, namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run(t, "ip", "link", "del", near)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err = inTime(t, "Read", func() error { return r.Read(ctx, func(time.Time, []byte) {}) })
	if err == nil || !strings.Contains(err.Error(), "went down") {
		t.Fatalf("error %v, want one that says that the interface went down", err)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	need.Root(t, "make network namespaces")
	for _, c := range []struct{ iface, namespace, want string }{
		{"nst-none", "", "no such interface"},
		{"lo", "nst-none", "no such network namespace"},
	} {
		if _, err := Open(c.iface, c.namespace); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open(%q, %q): %v, want %q", c.iface, c.namespace, err, c.want)
		}
	}
}

// TestDrainTakesWhatHasArrived while Read waits, and no frame comes twice or is lost.
func TestDrainTakesWhatHasArrived(t *testing.T) {
	near, far, namespace := veth(t)
	r, err := Open(far, namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	send := sender(t, near, "")
	if err := r.Drain(func(time.Time, []byte) { t.Error("a frame before any was sent") }); err != nil {
		t.Fatal(err)
	}
	send(frame(0, true, 60))
	arrived(t, r, 1)
	var first []got
	if err := r.Drain(func(ts time.Time, b []byte) { first = append(first, got{ts, bytes.Clone(b)}) }); err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || !bytes.Equal(first[0].bytes, frame(0, true, 60)) {
		t.Fatalf("drained %v, want the one frame with its tag", first)
	}

	const n = 3000
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var order []uint32 // calls of either f do not overlap
	take := func(_ time.Time, b []byte) {
		if order = append(order, binary.BigEndian.Uint32(b[14:])); len(order) == n {
			cancel()
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Read(ctx, take) }()
	for i := range uint32(n) {
		send(frame(i, false, 60))
		if i%50 == 0 {
			if err := r.Drain(take); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := await(t, "all frames, by Read or Drain", ended); err != nil {
		t.Fatal(err)
	}
	for i, got := range order {
		if got != uint32(i) {
			t.Fatalf("frame %d came at place %d of %d", got, i, len(order))
		}
	}
	r.Close()
	if err := r.Drain(take); err == nil {
		t.Error("a closed reader drains")
	}
}
