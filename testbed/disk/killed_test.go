package disk

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

// killed decides as a run that kills who asks: it is dead before it has an answer.
func killed(t *testing.T, e model.FileOperation) Answer {
	if err := end(e.PID); err != nil {
		t.Error(err)
	}
	return Pass()
}

// end kills a process and returns when it is dead.
func end(pid int) error {
	const limit = 10 * time.Second
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("process %d does not die", pid)
		default:
			return nil
		}
	}
}
