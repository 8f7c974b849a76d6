package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Op is what a program asks of a file.
type Op string

// The operations. Each stands for the system calls behind it.
const (
	OpCreate   Op = "create"   // open, openat, openat2, creat of a file that does not exist
	OpOpen     Op = "open"     // the same of a file that exists, for writing
	OpWrite    Op = "write"    // write, pwrite64, writev, pwritev, pwritev2
	OpCopy     Op = "copy"     // sendfile, copy_file_range, splice: the kernel moves bytes into the file
	OpSync     Op = "sync"     // fsync, fdatasync
	OpTruncate Op = "truncate" // truncate, ftruncate; fallocate that takes content away
	OpAllocate Op = "allocate" // fallocate that asks for room
	OpRename   Op = "rename"   // rename, renameat, renameat2
	OpUnlink   Op = "unlink"   // unlink, unlinkat
)

// Event is one file operation that a program has asked for and that has not begun.
type Event struct {
	// Host and Process are those of the gate: who was started, as the target file
	// names it. A program that it forked has the same.
	Host, Process string
	// PID and TID are the process and the thread that ask.
	PID, TID int
	// Thread is the thread's name, at most 15 bytes (proc_pid_comm(5)). HotSpot
	// names its threads as Java does.
	Thread string
	Op     Op
	// Path is absolute and free of symbolic links; To is the new path of a rename.
	// That of a folder ends with "/".
	Path, To string
	// Kind and ToKind are Path and To below their folder of Config.Folders, as Kind
	// makes them; "" for a path that lies below none.
	Kind, ToKind string
	// Bytes is how many a write or copy offers and an allocation asks for; for
	// OpTruncate the new length, or what is taken away within the file.
	Bytes int64
}

// String is the event in one line, e.g. "n1 redis: write 23 bytes to appendonly.aof.#.incr.aof".
func (e Event) String() string {
	s := e.Host + " " + e.Process + ": " + string(e.Op) + " "
	switch e.Op {
	case OpWrite, OpCopy:
		s += fmt.Sprintf("%d bytes to ", e.Bytes)
	case OpTruncate, OpAllocate:
		s += fmt.Sprintf("%d bytes of ", e.Bytes)
	}
	s += name(e.Kind, e.Path)
	if e.Op == OpRename {
		s += " to " + name(e.ToKind, e.To)
	}
	return s
}

func name(kind, path string) string {
	if kind == "" {
		return path
	}
	return kind
}

type action int

const (
	pass action = iota + 1
	fail
	short
	kill
)

// Answer decides an Event. The zero value decides nothing.
type Answer struct {
	action action
	errno  unix.Errno
	bytes  int
}

// Pass lets the operation go on as if there were no gate.
func Pass() Answer { return Answer{action: pass} }

// Fail ends the operation with an error before it does anything.
func Fail(errno unix.Errno) Answer { return Answer{action: fail, errno: errno} }

// Short writes the first n bytes of a write and reports that n were written, as
// write(2) does "if there is insufficient space on the underlying physical medium".
// n is at least 1.
func Short(n int) Answer { return Answer{action: short, bytes: n} }

// Kill ends the process that asks with SIGKILL. The operation does not happen. What
// other threads of it were doing in the kernel may still end.
func Kill() Answer { return Answer{action: kill} }

// String is the answer in words, e.g. "fail with EIO".
func (a Answer) String() string {
	switch a.action {
	case pass:
		return "pass"
	case fail:
		return "fail with " + unix.ErrnoName(a.errno)
	case short:
		return fmt.Sprintf("write %d bytes only", a.bytes)
	case kill:
		return "kill"
	}
	return "no answer"
}

// errAnswer: the answer cannot be given to the event.
var errAnswer = errors.New("disk gate: an answer that cannot be given")

// check says whether the answer can be given to the event.
func (a Answer) check(e Event) error {
	switch {
	case a.action == 0:
		return fmt.Errorf("%w: %s: none", errAnswer, e)
	case a.action == fail && a.errno == 0:
		return fmt.Errorf("%w: %s: fail without an errno", errAnswer, e)
	case a.action == short && (e.Op != OpWrite || a.bytes < 1 || int64(a.bytes) >= e.Bytes):
		return fmt.Errorf("%w: %s: %s", errAnswer, e, a)
	}
	return nil
}

// Full answers as a full disk does: what needs room fails with ENOSPC. It does not
// know what is allocated already: a write within a file fails, too.
func Full(e Event) Answer {
	switch e.Op {
	case OpCreate, OpWrite, OpCopy, OpAllocate:
		return Fail(unix.ENOSPC)
	}
	return Pass()
}

// Gone answers as a disk that died: every operation fails with EIO. Reads are not
// seen by the gate. What the kernel has cached stays readable on a dead disk, too.
func Gone(Event) Answer { return Fail(unix.EIO) }
