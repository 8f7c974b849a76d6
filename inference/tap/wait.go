package tap

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lingerFor is how long a reader that lingers keeps its processor of Go's
// scheduler after a frame.
const lingerFor = 3 * time.Millisecond

// lingering: one reader does. Several would leave no processor to the rest.
var lingering atomic.Bool

// spare has the scheduler use one processor more, for the reader that lingers:
// what else there is to do has as many as it would have had.
var spare = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) })

// socket is a packet socket and how its reader waits.
type socket interface {
	// RawConn's Read calls its argument until that returns true, and waits for
	// frames in between. A ring ends it, or has it called once more.
	syscall.RawConn
	ring()    // ends waits until silence
	silence() // makes waits last again
	Close() error
}

// newSocket takes fd over. Its reader lingers for that long after a frame; if
// that is 0, it waits in the scheduler's poller.
func newSocket(fd int, name string, linger time.Duration) (socket, error) {
	if err := unix.SetNonblock(fd, linger == 0); err != nil { // one that blocks has no part in the poller
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	f := os.NewFile(uintptr(fd), name)
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if linger == 0 {
		return polled{conn, f}, nil
	}
	b, err := newBell()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lingerer{conn, f, b, linger}, nil
}

// polled waits in the scheduler's poller. Whom its reader wakes gets the reader's
// processor when that waits, and need not wait until somebody takes it away from
// a thread in a system call (BenchmarkWake).
type polled struct {
	syscall.RawConn
	f *os.File
}

func (p polled) Read(f func(fd uintptr) (done bool)) error {
	err := p.RawConn.Read(f)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (p polled) ring()        { _ = p.f.SetReadDeadline(time.Unix(1, 0)) }
func (p polled) silence()     { _ = p.f.SetReadDeadline(time.Time{}) }
func (p polled) Close() error { return p.f.Close() }

// lingerer waits in poll(2); see wait.
type lingerer struct {
	syscall.RawConn
	f *os.File
	*bell
	linger time.Duration
}

func (l *lingerer) Read(f func(fd uintptr) (done bool)) error {
	var failed error
	err := l.bell.conn.Control(func(bell uintptr) {
		err := l.Control(func(fd uintptr) {
			var until time.Time
			for came := true; failed == nil && !f(fd); { // maybe before the first wait
				if came {
					until = time.Now().Add(l.linger)
				}
				came, failed = wait(fd, bell, until)
			}
		})
		failed = errors.Join(failed, err)
	})
	return errors.Join(failed, err)
}

func (l *lingerer) Close() error {
	l.ring()
	return errors.Join(l.f.Close(), l.bell.f.Close())
}

// bell ends waits in poll(2) (eventfd(2)).
type bell struct {
	f    *os.File
	conn syscall.RawConn
}

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	f := os.NewFile(uintptr(fd), "bell")
	conn, err := f.SyscallConn()
	return &bell{f, conn}, err
}

func (b *bell) ring()    { _, _ = b.f.Write([]byte{0, 0, 0, 1, 0, 0, 0, 0}) } // any number, in any byte order
func (b *bell) silence() { _, _ = b.f.Read(make([]byte, 8)) }                 // it has rung

// wait returns when fd can be read, which it says, when the bell has rung, or
// for a signal.
//
// Until linger it waits without telling Go's scheduler. To give a processor up
// and to get one back wakes other threads, which on a machine that has little to
// do takes longer than all else that is done for a frame: of the round trip that
// a gate port adds, a third (e2e/research/bench, part gate). The garbage collector gets the
// processor by a signal, as from a loop, and the wait ends. What the frame's owner
// woke does not: another processor takes it over, or this one does at the end.
func wait(fd, bell uintptr, linger time.Time) (came bool, err error) {
	fds := [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(bell), Events: unix.POLLIN}}
	if left := time.Until(linger); left > 0 && lingering.CompareAndSwap(false, true) {
		limit := unix.NsecToTimespec(int64(left))
		n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		lingering.Store(false)
		if n != 0 || errno != 0 {
			return fds[0].Revents != 0, waited(errno)
		}
	}
	_, err = unix.Poll(fds[:], -1)
	return fds[0].Revents != 0, waited(err)
}

func waited(err error) error {
	if errno, ok := err.(syscall.Errno); ok && (errno == 0 || errno == unix.EINTR) {
		return nil
	}
	return os.NewSyscallError("poll", err)
}

// sendable waits until more can be written to fd, but not for long.
func sendable(fd uintptr) {
	const most = 100 // ms
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, most)
}
