package controller

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"netsplit/controller/of13"
)

// next returns the next message where it lies in the read buffer; it is valid
// until the next call of next.
func (sw *Switch) next(last int) ([]byte, error) {
	if _, err := sw.in.Discard(last); err != nil {
		return nil, err
	}
	hdr, err := sw.in.Peek(of13.HeaderLen)
	if err != nil {
		return nil, readError(err, len(hdr))
	}
	n, err := of13.PeekLength(hdr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	b, err := sw.in.Peek(n)
	if err != nil {
		return nil, readError(err, len(b))
	}
	return b, nil
}

func readError(err error, had int) error {
	if err == io.EOF {
		if had > 0 {
			return fmt.Errorf("connection ended within a message: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("switch closed the connection: %w", err)
	}
	return err
}

// corkTime bounds how long an answer to one packet waits for the others that
// were read with it, beyond the time that handling one of them takes.
const corkTime = 200 * time.Microsecond

// whole says that the message behind the last one is in the read buffer.
func (sw *Switch) whole(last int) bool {
	have := sw.in.Buffered()
	if have < last+of13.HeaderLen {
		return false
	}
	b, err := sw.in.Peek(last + of13.HeaderLen)
	if err != nil {
		return false
	}
	n, err := of13.PeekLength(b[last:])
	return err == nil && have >= last+n
}

// readGuarded is read; a panic of it, or of the handler that it calls, ends the session
// and nothing else.
func (sw *Switch) readGuarded() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, p)
			sw.c.cfg.Log.Error("netsplit itself failed at a message of a switch, please report it", "dpid", sw.id.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return sw.read()
}

// read handles messages until the connection ends and returns why. Answers to
// the packets that were read together leave together.
func (sw *Switch) read() error {
	try := tryWriter(sw.conn)
	var corked time.Time // since when; zero if not
	defer func() { sw.out.uncork(try) }()
	last := 0
	for {
		more := sw.whole(last)
		if !corked.IsZero() && (!more || sw.c.cfg.Now().Sub(corked) >= corkTime) {
			sw.out.uncork(try)
			corked = time.Time{}
		}
		b, err := sw.next(last)
		if err != nil {
			sw.mu.Lock()
			defer sw.mu.Unlock()
			if sw.err != nil { // the cause is known: silence, say
				return sw.err
			}
			return err
		}
		now := sw.c.cfg.Now()
		sw.lastSeen.Store(int64(sw.c.clock(now)))
		if corked.IsZero() && of13.MsgType(b[1]) == of13.TypePacketIn {
			sw.out.cork()
			corked = now
		}
		if err := sw.handle(b, now); err != nil {
			return err
		}
		last = len(b)
	}
}

func (sw *Switch) handle(b []byte, now time.Time) error {
	if b[0] == of13.Version && of13.MsgType(b[1]) == of13.TypePacketIn {
		if _, err := sw.packetIn.Decode(b); err != nil {
			return sw.reject(b, err)
		}
		if f := sw.overhear.Load(); f != nil && (*f)(now, &sw.packetIn) {
			return nil
		}
		if h := sw.handler.Load(); h != nil {
			h.PacketIn(sw, now, &sw.packetIn)
		}
		return nil
	}
	m, xid, err := of13.Parse(b)
	if err != nil {
		return sw.reject(b, err)
	}
	h := sw.handler.Load()
	switch m := m.(type) {
	case *of13.EchoRequest:
		return sw.reply(&of13.EchoReply{Data: m.Data}, xid)
	case *of13.EchoReply:
		return sw.replied(m, xid, len(b), false) // mostly nobody waits: being heard was all
	case *of13.Hello:
		// A second one is ignored.
	case *of13.Error:
		sw.refused(m, xid, h)
	case *of13.MultipartReply:
		return sw.replied(m, xid, len(b), m.More())
	case *of13.RoleReply:
		sw.noteRole(m.Role, h)
		return sw.replied(m, xid, len(b), false)
	case *of13.BarrierReply, *of13.FeaturesReply, *of13.GetConfigReply, *of13.GetAsyncReply:
		return sw.replied(m, xid, len(b), false)
	case *of13.FlowRemoved:
		if h != nil {
			h.FlowRemoved(sw, m)
		}
	case *of13.PortStatus:
		if h != nil {
			h.PortStatus(sw, m)
		}
	default:
		sw.c.cfg.Log.Debug("message ignored", "dpid", sw.id.String(), "type", m.MsgType().String())
	}
	return nil
}

// reject answers bytes that are not OpenFlow 1.3 with the error they deserve;
// its result ends the session.
func (sw *Switch) reject(b []byte, err error) error {
	var pe *of13.ParseError
	if errors.As(err, &pe) && of13.MsgType(b[1]) != of13.TypeError {
		xid := uint32(b[4])<<24 | uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
		_ = sw.reply(pe.Reply(b), xid)
	}
	return fmt.Errorf("%w: %w", ErrProtocol, err)
}

func (sw *Switch) reply(m of13.Message, xid uint32) error {
	return sw.out.append(func(b []byte) ([]byte, error) { return of13.Append(b, m, xid) })
}

// replied hands a reply to the request that waits for it; one that nobody
// waits for any more is dropped.
func (sw *Switch) replied(m of13.Message, xid uint32, size int, more bool) error {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	r := sw.waiting[xid]
	if r == nil {
		return nil
	}
	r.got = append(r.got, m)
	if r.bytes += size; r.bytes > maxReply {
		return fmt.Errorf("%w: reply of more than %d bytes", ErrProtocol, maxReply)
	}
	if !more {
		delete(sw.waiting, xid)
		close(r.done)
	}
	return nil
}

// refused hands an error to whoever sent its cause.
func (sw *Switch) refused(m *of13.Error, xid uint32, h *registration) {
	sw.out.mu.Lock()
	e := &SwitchError{Datapath: sw.id, Sent: sw.sent.get(xid), Err: m}
	sw.out.mu.Unlock()
	if asSlave(m) {
		sw.noteRole(of13.RoleSlave, h)
	}
	sw.mu.Lock()
	if r := sw.waiting[xid]; r != nil {
		r.err = e
		delete(sw.waiting, xid)
		close(r.done)
		sw.mu.Unlock()
		return
	}
	for _, bt := range sw.batches {
		if xid-bt.first <= bt.last-bt.first {
			bt.errs = append(bt.errs, e)
			sw.mu.Unlock()
			return
		}
	}
	sw.mu.Unlock()
	if asSlave(m) { // RoleChanged said it; there may be hundreds of these
		sw.c.cfg.Log.Debug("refused as slave", "err", e)
		return
	}
	sw.c.cfg.Log.Error("switch refused a message", "err", e)
	if h != nil {
		h.Error(sw, e)
	}
}
