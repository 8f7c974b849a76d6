package tap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// receiveBuffer is asked of the kernel for the socket: some 80,000 small
// frames, which lasts for a tenth of a second at the fastest mirror measured.
const receiveBuffer = 64 << 20

// Stats counts frames since Open.
type Stats struct {
	Received  uint64 // handed to the callback or waiting for it
	Dropped   uint64 // lost by the kernel: the socket's buffer was full
	Truncated uint64 // longer than maxFrame, handed over cut
}

// Reader reads one interface.
type Reader struct {
	iface  string
	socket socket
	batch  *batch
	closed atomic.Bool

	reading sync.Mutex // guards batch: Drain may be called while Read runs

	mu    sync.Mutex // guards stats: Stats may be called while Read runs
	stats Stats
}

// Open starts capturing on the interface, in the named network namespace or, if
// that is "", in the calling thread's. Frames gather from here on. The error
// says whether the namespace, the interface or a privilege is missing.
func Open(iface, namespace string) (*Reader, error) { return openReader(iface, namespace, 0) }

// openReader opens one that lingers for that long after a frame; see newSocket.
func openReader(iface, namespace string, linger time.Duration) (*Reader, error) {
	done := stamped()
	defer done()
	fd, err := within(namespace, func() (int, error) { return open(iface) })
	if err != nil {
		return nil, fmt.Errorf("tap: %s: %w", where(iface, namespace), err)
	}
	socket, err := newSocket(fd, "packet:"+iface, linger)
	if err != nil {
		return nil, fmt.Errorf("tap: %s: %w", where(iface, namespace), err)
	}
	return &Reader{iface: where(iface, namespace), socket: socket, batch: newBatch()}, nil
}

func where(iface, namespace string) string {
	if namespace == "" {
		return iface
	}
	return iface + " in namespace " + namespace
}

// within runs f in a network namespace. It uses a thread of its own, which ends
// with the goroutine if the way back fails.
func within(namespace string, f func() (int, error)) (int, error) {
	if namespace == "" {
		return f()
	}
	type result struct {
		fd  int
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		fd, err := func() (int, error) {
			home, err := netns.Get()
			if err != nil {
				return -1, fmt.Errorf("own network namespace: %w", err)
			}
			defer home.Close()
			ns, err := netns.GetFromName(namespace)
			if err != nil {
				return -1, fmt.Errorf("no such network namespace (ip netns list shows them): %w", err)
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				return -1, fmt.Errorf("entering the network namespace needs root: %w", err)
			}
			fd, err := f()
			if netns.Set(home) == nil {
				runtime.UnlockOSThread()
			}
			return fd, err
		}()
		done <- result{fd, err}
	}()
	r := <-done
	return r.fd, r.err
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// open makes the socket. It is bound last: a packet socket with a protocol
// receives from every interface until it is bound to one.
func open(iface string) (fd int, err error) {
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return -1, fmt.Errorf("no such interface (ip link shows them): %w", err)
	}
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a packet socket needs root or CAP_NET_RAW: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if e := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); e != nil {
		// Without CAP_NET_ADMIN the limit of net.core.rmem_max holds.
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return -1, fmt.Errorf("receive buffer: %w", err)
		}
	}
	for _, o := range []struct {
		level, name int
		what        string
	}{
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, "time stamps"},
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, "PACKET_AUXDATA"},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING (Linux 4.20 or later)"},
	} {
		if err = unix.SetsockoptInt(fd, o.level, o.name, 1); err != nil {
			return -1, fmt.Errorf("%s: %w", o.what, err)
		}
	}
	mreq := unix.PacketMreq{Ifindex: int32(link.Index), Type: unix.PACKET_MR_PROMISC}
	if err = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mreq); err != nil {
		return -1, fmt.Errorf("promiscuous mode: %w", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: link.Index}); err != nil {
		return -1, fmt.Errorf("binding: %w", err)
	}
	return fd, nil
}

// Read calls f for each frame, in order, until ctx ends (nil is returned), the
// reader is closed (os.ErrClosed) or the interface fails. frame is valid
// during the call only. Only one Read may run at a time.
func (r *Reader) Read(ctx context.Context, f func(ts time.Time, frame []byte)) error {
	return r.batches(ctx, func(n int) error { return r.each(n, f) })
}

func (r *Reader) each(n int, f func(ts time.Time, frame []byte)) error {
	for i := range n {
		ts, frame, truncated := r.batch.frame(i)
		if truncated {
			r.truncated()
		}
		f(ts, frame)
	}
	return nil
}

// Drain is Read for the frames that have arrived already: it does not wait for
// others. It may be called while Read runs, whose f is then not called for them;
// calls of either f do not overlap.
func (r *Reader) Drain(f func(ts time.Time, frame []byte)) error {
	var failed error
	err := r.socket.Control(func(fd uintptr) {
		_, failed = r.drain(context.Background(), int(fd), func(n int) error { return r.each(n, f) })
	})
	if failed == nil && err != nil {
		return r.failure("", err)
	}
	return failed
}

func (r *Reader) truncated() {
	r.mu.Lock()
	r.stats.Truncated++
	r.mu.Unlock()
}

// batches fills r.batch again and again and calls f with the number of frames
// in it; an error of f ends it.
func (r *Reader) batches(ctx context.Context, f func(n int) error) error {
	rung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(rung)
		r.socket.ring()
	})
	defer func() {
		if !stop() {
			<-rung
			r.socket.silence() // or the next Read would not wait
		}
	}()
	var failed error
	err := r.socket.Read(func(fd uintptr) (done bool) {
		done, failed = r.drain(ctx, int(fd), f)
		return done
	})
	if failed == nil && err != nil {
		return r.failure("", err)
	}
	return failed
}

// failure gives an error its context; once the reader is closed that is the cause.
func (r *Reader) failure(what string, err error) error {
	if r.closed.Load() {
		what, err = "", os.ErrClosed
	}
	return fmt.Errorf("tap: %s: %s%w", r.iface, what, err)
}

// drain is batches with what is there: it does not wait, and says whether that
// was the last.
func (r *Reader) drain(ctx context.Context, fd int, f func(n int) error) (done bool, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	for ctx.Err() == nil {
		if r.closed.Load() {
			return true, r.failure("", os.ErrClosed)
		}
		n, err := r.batch.receive(fd)
		switch {
		case err == unix.EAGAIN:
			return false, nil
		case err == unix.EINTR:
			continue
		case err == unix.ENETDOWN:
			return true, r.failure("the interface went down: ", err)
		case err != nil:
			return true, r.failure("receiving: ", err)
		}
		if err := f(n); err != nil {
			return true, err
		}
		if n < batchFrames {
			return false, nil // that was all there was
		}
	}
	return true, nil
}

// Stats reads the kernel's counters. It may be called while Read runs.
func (r *Reader) Stats() (Stats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sysErr error
	err := r.socket.Control(func(fd uintptr) {
		var s *unix.TpacketStats
		// Reading resets the counters.
		if s, sysErr = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); sysErr == nil {
			r.stats.Received += uint64(s.Packets - s.Drops)
			r.stats.Dropped += uint64(s.Drops)
		}
	})
	if err = errors.Join(err, sysErr); err != nil {
		return r.stats, fmt.Errorf("tap: %s: PACKET_STATISTICS: %w", r.iface, err)
	}
	return r.stats, nil
}

// Close ends the capture; a Read that runs returns, soon but maybe after Close.
func (r *Reader) Close() error {
	if !r.closed.CompareAndSwap(false, true) {
		return r.failure("", os.ErrClosed)
	}
	return r.socket.Close()
}
