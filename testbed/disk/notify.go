package disk

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id    uint64
	tid   uint32
	flags uint32
	call  int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// ioctlIDValid is SECCOMP_IOCTL_NOTIF_ID_VALID of linux/seccomp.h, which
// golang.org/x/sys/unix lacks.
const ioctlIDValid = 0x40082102

// errOver: the call is no longer waiting; its thread was killed.
var errOver = errors.New("the call is over")

// listener is where the kernel says what programs under one filter ask.
type listener int

func (l listener) ioctl(request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l), request, uintptr(arg))
		switch e {
		case 0:
			return nil
		case unix.EINTR:
		case unix.ENOENT:
			return errOver
		default:
			return e
		}
	}
}

// receive fills n with the next call.
func (l listener) receive(n *notification) error {
	*n = notification{} // the kernel wants it so
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
}

// waits says whether the call still waits for its answer, so that what was read of its
// thread was that thread's.
func (l listener) waits(id uint64) bool { return l.ioctl(ioctlIDValid, unsafe.Pointer(&id)) == nil }

func (l listener) respond(r response) error {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// wait returns when a call has come, or false when no more will: stop is readable, or
// the last process under the filter has ended.
func (l listener) wait(stop int) (bool, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return false, err
		}
		if fds[1].Revents != 0 {
			return false, nil
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			return true, nil
		}
		if fds[0].Revents != 0 {
			return false, nil
		}
	}
}
