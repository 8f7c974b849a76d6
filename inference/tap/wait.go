package tap

import (
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

// bell ends the wait of a reader (eventfd(2)).
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

// ring ends waits until silence is called.
func (b *bell) ring() { _, _ = b.f.Write([]byte{0, 0, 0, 1, 0, 0, 0, 0}) } // any number, in any byte order

// silence makes waits last again. It waits for a ring if there was none.
func (b *bell) silence() { _, _ = b.f.Read(make([]byte, 8)) }

// wait returns when fd can be read, when the bell has rung, or for a signal.
//
// Until linger it waits without telling Go's scheduler. To give a processor up
// and to get one back wakes other threads, which on a machine that has little to
// do takes longer than all else that is done for a frame: of the round trip that
// a gate port adds, a third (e2e/bench, part gate). The garbage collector gets the
// processor by a signal, as from a loop, and the wait ends. What the frame's owner
// woke does not: another processor takes it over, or this one does at the end.
func wait(fd, bell uintptr, linger time.Time) error {
	fds := [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(bell), Events: unix.POLLIN}}
	if left := time.Until(linger); left > 0 && lingering.CompareAndSwap(false, true) {
		limit := unix.NsecToTimespec(int64(left))
		n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		lingering.Store(false)
		if n != 0 || errno != 0 {
			return waited(errno)
		}
	}
	_, err := unix.Poll(fds[:], -1)
	return waited(err)
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
