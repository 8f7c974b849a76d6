package controller

import (
	"errors"
	"io"
	"sync"
)

// maxQueued bounds the bytes waiting for a switch that does not read.
const maxQueued = 64 << 20

// errQueueFull ends a session whose switch does not read what we send.
var errQueueFull = errors.New("64 MiB wait to be sent and the switch does not read: connection given up")

// outbox joins many senders to one writer.
type outbox struct {
	// mu guards the fields below; it is never held during a write.
	mu     sync.Mutex
	queued []byte
	err    error // set once; nothing is queued any more
	wake   chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

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
		o.signal()
	}
	return o.err
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close makes every later append fail with err and ends the writer once what
// is queued was written.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.signal()
}

// run writes to w until the outbox is closed or a write fails; it returns why.
func (o *outbox) run(w io.Writer) error {
	var spare []byte
	for range o.wake {
		o.mu.Lock()
		b, err := o.queued, o.err
		o.queued = spare[:0]
		o.mu.Unlock()
		if len(b) > 0 {
			if _, werr := w.Write(b); werr != nil {
				o.close(werr)
				return werr
			}
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
