package controller

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// maxQueued bounds the bytes waiting for a switch that does not read.
const maxQueued = 64 << 20

// errQueueFull ends a session whose switch does not read what we send.
var errQueueFull = errors.New("64 MiB wait to be sent and the switch does not read: connection given up")

// corkLimit is how many bytes wait in a corked outbox before its writer is
// woken all the same.
const corkLimit = 64 << 10

// outbox joins many senders to one writer. The reader of the connection, which
// causes most of what is sent, corks it while it works through what it has
// read, and then sends the answers itself, in one piece: waking the writer for
// every packet costs more than all the rest of a packet's way.
type outbox struct {
	// mu guards the fields below; it is never held during a write that could
	// wait.
	mu      sync.Mutex
	queued  []byte
	corked  bool
	writing bool  // run writes what it took out of queued
	err     error // set once; nothing is queued any more
	wake    chan struct{}
	giveUp  func() // ends a write that waits
}

func newOutbox(giveUp func()) *outbox { return &outbox{wake: make(chan struct{}, 1), giveUp: giveUp} }

// append lets f append bytes to the queue and wakes the writer. What f appends
// goes out in one piece; if f fails nothing of it does.
func (o *outbox) append(f func(b []byte) ([]byte, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.room(); err != nil {
		return err
	}
	b, err := f(o.queued)
	if err != nil {
		return err
	}
	o.queued = b
	o.signal()
	return nil
}

// room reports why nothing can be queued; mu is held.
func (o *outbox) room() error {
	if o.err == nil && len(o.queued) > maxQueued {
		o.err = errQueueFull
		o.giveUp()
		o.signal()
	}
	return o.err
}

func (o *outbox) signal() {
	if o.corked && o.err == nil && len(o.queued) < corkLimit {
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// cork keeps what is queued from here on back until uncork. One goroutine
// only, the reader, may call the two.
func (o *outbox) cork() {
	o.mu.Lock()
	o.corked = true
	o.mu.Unlock()
}

// uncork sends what is queued, as far as try, which must not wait, takes it;
// the writer does the rest. try may be nil.
func (o *outbox) uncork(try func(b []byte) int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.corked = false
	if try != nil && o.err == nil && !o.writing && len(o.queued) > 0 && len(o.queued) <= corkLimit {
		n := try(o.queued)
		o.queued = o.queued[:copy(o.queued, o.queued[n:])]
	}
	if len(o.queued) > 0 || o.err != nil {
		o.signal()
	}
}

// tryWriter returns a function that writes what a connection takes at once and
// says how much that was; nil if the connection is no socket. Errors are left
// to the next write that waits.
func tryWriter(conn any) func(b []byte) int {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	var b []byte
	var n int
	once := func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b) // the runtime's sockets do not block
		return true
	}
	return func(p []byte) int {
		b, n = p, 0
		if raw.Write(once) != nil {
			return 0
		}
		b = nil
		return max(n, 0)
	}
}

// close makes every later append fail with err, if it has no error yet, and ends the writer
// once what is queued was written. It returns the error.
func (o *outbox) close(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.signal()
	return o.err
}

// run writes to w until the outbox is closed or a write fails; it returns why.
func (o *outbox) run(w io.Writer) error {
	var spare []byte
	for range o.wake {
		o.mu.Lock()
		b, err := o.queued, o.err
		o.queued = spare[:0]
		o.writing = len(b) > 0
		o.mu.Unlock()
		if len(b) > 0 {
			if _, werr := w.Write(b); werr != nil {
				return o.close(werr)
			}
			o.mu.Lock()
			o.writing = false
			o.mu.Unlock()
		}
		if err != nil {
			return err
		}
		if spare = b; cap(spare) > 8<<20 {
			spare = nil
		}
	}
	return nil
}
