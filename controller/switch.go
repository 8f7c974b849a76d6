package controller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

// readBuffer holds the longest OpenFlow message (65,535 bytes) several times,
// so that a message can be looked at where it lies.
const readBuffer = 256 << 10

// Switch is the session of one connected switch. Its methods may be called
// from any goroutine; those that wait must not be called from a Handler.
type Switch struct {
	c        *Controller
	conn     net.Conn
	in       *bufio.Reader
	id       model.DatapathID
	features of13.FeaturesReply
	lastSeen atomic.Int64 // of the last message; see Controller.clock
	role     atomic.Uint32
	noRoles  bool // the switch does not know roles
	present  bool // the handshake is over; guarded by c.mu
	handler  atomic.Pointer[registration]
	packetIn of13.PacketIn // reused by the reader
	overhear atomic.Pointer[func(time.Time, *of13.PacketIn) bool]

	out *outbox
	// xid and sent are guarded by out.mu, so that xids rise in wire order.
	xid  uint32
	sent ring

	// mu guards the fields below. It may be taken while out.mu is held.
	mu      sync.Mutex
	waiting map[uint32]*request
	batches []*batch
	err     error // why the session ended
	over    chan struct{}

	reads  chan struct{} // closed when the session reads: until then no answer arrives
	gone   chan struct{} // closed when SwitchDown has returned
	before chan struct{} // gone of the switch's last session, if it was still open
	// announcing makes SwitchUp and SwitchDown alternate per handler.
	announcing sync.Mutex
	retired    bool
}

// registration boxes a handler so that it has an identity.
type registration struct{ Handler }

func newSwitch(c *Controller, conn net.Conn) *Switch {
	return &Switch{c: c, conn: conn, in: bufio.NewReaderSize(conn, readBuffer), out: newOutbox(func() { _ = conn.SetWriteDeadline(time.Now()) }),
		waiting: map[uint32]*request{}, over: make(chan struct{}), reads: make(chan struct{}), gone: make(chan struct{})}
}

// ID is the datapath id.
func (sw *Switch) ID() model.DatapathID { return sw.id }

// Addr is the switch's end of the connection.
func (sw *Switch) Addr() string { return remote(sw.conn) }

// Features is what the switch said about itself (OpenFlow 1.3 §7.3.1).
func (sw *Switch) Features() of13.FeaturesReply { return sw.features }

// Done is closed when the session has ended.
func (sw *Switch) Done() <-chan struct{} { return sw.over }

// Overhear calls f with every packet-in before the handler, which does not get those for
// which f returns true. stop ends this. There is one f at a time. The reader calls f as it
// calls a Handler, so f must not block.
func (sw *Switch) Overhear(f func(at time.Time, in *of13.PacketIn) bool) (stop func(), err error) {
	if !sw.overhear.CompareAndSwap(nil, &f) {
		return nil, fmt.Errorf("switch %s: another examination uses its packets: try again when it is over", sw.id)
	}
	return func() { sw.overhear.CompareAndSwap(&f, nil) }, nil
}

// SwitchError is an error message of the switch with the message it is about.
type SwitchError struct {
	Datapath model.DatapathID
	// Sent is the refused message; nil if it was too long ago, or if the switch
	// names none (xid 0). A packet-out is given without its data.
	Sent of13.Message
	Err  *of13.Error
}

// Error names what was refused and why.
func (e *SwitchError) Error() string {
	what := "a message that it does not name, or that was sent too long ago"
	if e.Sent != nil {
		what = fmt.Sprint(e.Sent)
	}
	return fmt.Sprintf("switch %s: %v; it refused %s", e.Datapath, e.Err, what)
}

// Unwrap returns the switch's own error.
func (e *SwitchError) Unwrap() error { return e.Err }

// ringSize is how many sent messages are remembered.
const ringSize = 4096

// ring remembers what was sent, by xid.
type ring [ringSize]sentMessage

type sentMessage struct {
	xid     uint32
	msg     of13.Message // nil for a packet-out
	outPort of13.PortNo  // of a packet-out
}

func (r *ring) put(m sentMessage) { r[m.xid%ringSize] = m }

func (r *ring) get(xid uint32) of13.Message {
	m := r[xid%ringSize]
	switch {
	case xid == 0, m.xid != xid: // 0 is none of ours, and what an empty place has
		return nil
	case m.msg == nil:
		return packetOutNote(m.outPort)
	}
	return m.msg
}

// nextXID must be called with out.mu held. Xid 0 is left to the switch.
func (sw *Switch) nextXID() uint32 {
	if sw.xid++; sw.xid == 0 {
		sw.xid = 1
	}
	return sw.xid
}

// appendMessage encodes m behind b; out.mu is held.
func (sw *Switch) appendMessage(b []byte, m of13.Message) ([]byte, uint32, error) {
	xid := sw.nextXID()
	b, err := of13.Append(b, m, xid)
	if err == nil {
		sw.sent.put(sentMessage{xid: xid, msg: m})
	}
	return b, xid, err
}

// Send queues messages, together, and does not wait. An error of the switch
// about them goes to Handler.Error. m must not be changed afterwards.
func (sw *Switch) Send(ms ...of13.Message) error {
	return sw.fail(sw.out.append(func(b []byte) ([]byte, error) {
		var err error
		for _, m := range ms {
			if b, _, err = sw.appendMessage(b, m); err != nil {
				return b, err
			}
		}
		return b, nil
	}))
}

// fail gives an error of the outbox its context.
func (sw *Switch) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("switch %s: %w", sw.id, err)
}

// request waits for the replies to one xid.
type request struct {
	got   []of13.Message
	bytes int
	err   error
	done  chan struct{}
}

// maxReply bounds a multipart reply; 10,000 rules are 800 kB.
const maxReply = 64 << 20

// Request sends m and waits for its reply: one message, or all parts of a
// multipart reply.
func (sw *Switch) Request(ctx context.Context, m of13.Message) ([]of13.Message, error) {
	r := &request{done: make(chan struct{})}
	var xid uint32
	err := sw.out.append(func(b []byte) ([]byte, error) {
		b, x, err := sw.appendMessage(b, m)
		if err == nil {
			xid = x
			err = sw.await(x, r)
		}
		return b, err
	})
	if err != nil {
		return nil, sw.fail(err)
	}
	select {
	case <-r.done:
		return r.got, r.err
	case <-ctx.Done():
		sw.mu.Lock()
		delete(sw.waiting, xid)
		sw.mu.Unlock()
		return nil, fmt.Errorf("switch %s: no reply to %T: %w", sw.id, m, context.Cause(ctx))
	}
}

func (sw *Switch) await(xid uint32, r *request) error {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if sw.err != nil {
		return sw.err
	}
	sw.waiting[xid] = r
	return nil
}

// Barrier returns once the switch has processed all that was sent before
// (OpenFlow 1.3 §7.3.8). On Open vSwitch that is the rule table, not the cache
// of forwarding decisions.
func (sw *Switch) Barrier(ctx context.Context) error {
	_, err := sw.Request(ctx, barrierRequest())
	return err
}

// batch collects the errors about a run of xids.
type batch struct {
	first, last uint32
	errs        []error
}

// Apply sends messages and a barrier and waits for its reply. The error joins
// a *SwitchError for each of the first messages that were refused, and counts further ones.
// All other messages are in effect.
func (sw *Switch) Apply(ctx context.Context, ms ...of13.Message) error {
	bt := &batch{}
	r := &request{done: make(chan struct{})}
	var xid uint32
	err := sw.out.append(func(b []byte) ([]byte, error) {
		var err error
		for i, m := range append(ms[:len(ms):len(ms)], barrierRequest()) {
			if b, xid, err = sw.appendMessage(b, m); err != nil {
				return b, fmt.Errorf("%T: %w", m, err)
			}
			if i == 0 {
				bt.first = xid
			}
		}
		bt.last = xid
		if err = sw.await(xid, r); err != nil {
			return b, err
		}
		sw.mu.Lock()
		sw.batches = append(sw.batches, bt)
		sw.mu.Unlock()
		return b, nil
	})
	if err != nil {
		return sw.fail(err)
	}
	var waited error
	select {
	case <-r.done:
		waited = r.err
	case <-ctx.Done():
		waited = fmt.Errorf("switch %s: no reply to a barrier behind %d messages: %w", sw.id, len(ms), context.Cause(ctx))
	}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	delete(sw.waiting, xid)
	for i, o := range sw.batches {
		if o == bt {
			sw.batches = append(sw.batches[:i], sw.batches[i+1:]...)
			break
		}
	}
	return errors.Join(append(firstOf(bt.errs, sw.id), waited)...)
}

// maxRefusals bounds how many refusals of one batch are told: a full table
// refuses thousands of flows in the same words.
const maxRefusals = 3

func firstOf(errs []error, id model.DatapathID) []error {
	if len(errs) <= maxRefusals {
		return errs
	}
	return append(errs[:maxRefusals:maxRefusals], fmt.Errorf("switch %s: and it refused %d more", id, len(errs)-maxRefusals))
}

// finish ends the session: what waits fails, nothing more is sent.
func (sw *Switch) finish(err error) {
	sw.out.close(err)
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if sw.err != nil {
		return
	}
	sw.err = err
	close(sw.over)
	for xid, r := range sw.waiting {
		r.err = fmt.Errorf("switch %s: session ended: %w", sw.id, err)
		close(r.done)
		delete(sw.waiting, xid)
	}
}

// announce installs the handler that is registered for the switch now, and calls its
// SwitchUp.
func (sw *Switch) announce() {
	sw.announcing.Lock()
	defer sw.announcing.Unlock()
	h := sw.c.handlerOf(sw.id) // calls take turns, so the last one sees the newest registration
	if sw.retired || sw.handler.Load() == h {
		return
	}
	sw.handler.Store(h)
	if h != nil {
		h.SwitchUp(sw)
	}
}

// retire tells the handler that the session ended.
func (sw *Switch) retire(err error) {
	sw.announcing.Lock()
	defer sw.announcing.Unlock()
	sw.retired = true
	if h := sw.handler.Load(); h != nil {
		h.SwitchDown(sw, err)
	}
}

// keepAlive asks for an echo when the switch is silent, and ends the session
// when it stays so.
func (sw *Switch) keepAlive(stop <-chan struct{}) {
	tick := time.NewTicker(sw.c.cfg.EchoInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		silent := sw.c.clock(sw.c.cfg.Now()) - time.Duration(sw.lastSeen.Load())
		if silent >= sw.c.cfg.EchoTimeout {
			sw.finish(fmt.Errorf("%w: nothing heard for %v", ErrSilent, silent.Round(time.Millisecond)))
			sw.conn.Close()
			return
		}
		if silent >= sw.c.cfg.EchoInterval {
			sw.sendEcho()
		}
	}
}

func (sw *Switch) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, err := sw.Request(ctx, echoRequest())
	return err == nil
}

func (sw *Switch) sendEcho() { _ = sw.Send(echoRequest()) }
