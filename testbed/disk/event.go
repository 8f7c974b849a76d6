package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"netsplit/model"
)

type action int

const (
	pass action = iota + 1
	fail
	short
)

// Answer decides a file operation. The zero value decides nothing.
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

// String is the answer in words, e.g. "fail with EIO".
func (a Answer) String() string {
	switch a.action {
	case pass:
		return "pass"
	case fail:
		return "fail with " + unix.ErrnoName(a.errno)
	case short:
		return fmt.Sprintf("write %d bytes only", a.bytes)
	}
	return "no answer"
}

// errAnswer: the answer cannot be given to the event.
var errAnswer = errors.New("disk gate: an answer that cannot be given")

// check says whether the answer can be given to the event.
func (a Answer) check(e model.FileOperation) error {
	switch {
	case a.action == 0:
		return fmt.Errorf("%w: %s: none", errAnswer, e)
	case a.action == fail && a.errno == 0:
		return fmt.Errorf("%w: %s: fail without an errno", errAnswer, e)
	case a.action == short && (e.Op != model.FileWrite || a.bytes < 1 || int64(a.bytes) >= e.Bytes):
		return fmt.Errorf("%w: %s: %s", errAnswer, e, a)
	}
	return nil
}

// errnos are the errors of disks, by name.
var errnos = map[string]unix.Errno{"EIO": unix.EIO, "ENOSPC": unix.ENOSPC}

// Answered is the answer that a run has decided.
func Answered(a model.FileAnswer) Answer {
	switch {
	case a.Errno != "":
		return Fail(errnos[a.Errno])
	case a.Written > 0:
		return Short(int(a.Written))
	}
	return Pass()
}
