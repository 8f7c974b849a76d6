package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Verb is the first argument of a program that is to call Main.
const Verb = "disk-gate"

// Main becomes the command of Gate.Argv. It returns only if it cannot, with the exit
// status.
func Main(args []string) int {
	err := enter(args)
	fmt.Fprintln(os.Stderr, "netsplit:", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// enter installs the filter, hands its listener to the gate and becomes the command.
func enter(args []string) error {
	if len(args) < 4 || args[2] != "--" {
		return errors.New("disk gate: it is started by netsplit only")
	}
	pid, err := strconv.Atoi(args[0])
	number, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	argv := args[3:]
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	socket, err := take(pid, number)
	if err != nil {
		return fmt.Errorf("disk gate of process %d: %w", pid, err)
	}
	filter, err := assemble()
	if err != nil {
		return fmt.Errorf("disk gate: %w", err)
	}
	runtime.LockOSThread() // a filter is a thread's; exec takes that of the one that calls it
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	program := make([]unix.SockFilter, len(filter))
	for i, in := range filter {
		program[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	listener, err := install(program)
	if err != nil {
		return fmt.Errorf("disk gate: %w", err)
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("disk gate of process %d: %w", pid, err)
	}
	// The gate alone holds the listener from here on: exec closes this one.
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

// take copies a descriptor of another process.
func take(pid, number int) (int, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, number, 0)
}

// flags of the filter. With the second one (Linux 5.19) only a deadly signal
// interrupts a call that the gate has seen. Else a call that is restarted after a
// signal, as Go sends many to itself, would be seen twice, and written twice.
const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// install makes the filter that of the calling thread and returns its listener
// (seccomp_unotify(2)).
func install(program []unix.SockFilter) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	switch e {
	case 0:
		return int(fd), nil
	case unix.EBUSY:
		return 0, fmt.Errorf("install the filter: the process has a filter with a listener already, as some containers and debuggers make: %w", e)
	}
	return 0, fmt.Errorf("install the filter: %w", e)
}

// able says what the kernel lacks.
func able() error {
	// A filter that does not exist is found missing (EFAULT) after the flags were checked (EINVAL).
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0); e != unix.EFAULT {
		return fmt.Errorf("the kernel has no user notification of system calls that waits for deadly signals only (Linux 5.19): %w", e)
	}
	var sizes struct{ notification, response, data uint16 }
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	if sizes.notification > uint16(unsafe.Sizeof(notification{})) || sizes.response > uint16(unsafe.Sizeof(response{})) {
		return fmt.Errorf("the kernel's notifications have %d and %d bytes: this program is too old for it", sizes.notification, sizes.response)
	}
	return nil
}
