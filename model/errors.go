package model

import (
	"errors"
	"syscall"
)

// Kinds of errors that cross rooms. They are wrapped (%w) by an error that
// says what failed and what to do; callers ask with errors.Is. The REST API
// gives each its own status.
var (
	// ErrNotFound: no such campaign, run, finding, invariant, partition or file.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request makes no sense whatever the state is.
	ErrInvalid = errors.New("invalid request")
	// ErrConflict: the request makes sense, but not in the present state.
	ErrConflict = errors.New("conflicts with the present state")
	// ErrUnavailable: a part that is needed is not there now (no switch).
	ErrUnavailable = errors.New("not available now")
	// ErrFull: the disk, or the limit set on the store, is full. What was
	// recorded is kept and readable.
	ErrFull = errors.New("disk full")
	// ErrDamaged: the store's file is not what was written to it.
	ErrDamaged = errors.New("store damaged")
)

// IsFull says whether the disk, a user's quota of it, or the limit set on the store, is full.
func IsFull(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
