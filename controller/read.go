package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
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
		sw.heard.Store(int64(sw.c.clock(now)))
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

// reply sends a message with the peer's xid.
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

// handshake agrees on a version, learns the datapath id and asks for whole
// packets (OpenFlow 1.3 §6.3.1, §7.3.1, §7.3.2).
func (sw *Switch) handshake() error {
	end := time.Now().Add(sw.c.cfg.HandshakeTimeout)
	if err := sw.conn.SetReadDeadline(end); err != nil {
		return err
	}
	ours := of13.NewHello(of13.Version)
	if err := sw.Send(ours); err != nil {
		return err
	}
	b, err := sw.next(0)
	if err != nil {
		return sw.late("hello", err)
	}
	if isTLS(b) {
		return fmt.Errorf("%w: it speaks TLS and this port plain TCP: set its controller to tcp:ADDRESS:PORT, or give netsplit serve --tls-cert, --tls-key and --tls-ca", ErrTLS)
	}
	m, _, err := of13.Parse(b)
	if err != nil {
		return sw.reject(b, err)
	}
	theirs, ok := m.(*of13.Hello)
	if !ok {
		return fmt.Errorf("%w: the first message is %v, not a hello", ErrProtocol, m.MsgType())
	}
	if v, err := of13.Negotiate(ours, theirs); err != nil || v != of13.Version {
		return sw.wrongVersion(theirs, b, len(b), err)
	}
	want := &of13.FeaturesRequest{}
	if err := sw.Send(want, &of13.SetConfig{SwitchConfig: of13.SwitchConfig{MissSendLen: of13.MaxLenNoBuffer}}); err != nil {
		return err
	}
	for last := len(b); ; last = len(b) {
		if b, err = sw.next(last); err != nil {
			return sw.late("features reply", err)
		}
		if m, _, err = of13.Parse(b); err != nil {
			return sw.reject(b, err)
		}
		switch m := m.(type) {
		case *of13.EchoRequest:
			_, xid, _ := of13.Parse(b)
			if err := sw.reply(&of13.EchoReply{Data: m.Data}, xid); err != nil {
				return err
			}
		case *of13.Error:
			return fmt.Errorf("during the handshake: %w", m)
		case *of13.FeaturesReply:
			if m.AuxiliaryID != 0 {
				return fmt.Errorf("%w: auxiliary connection %d: only main connections are served", ErrProtocol, m.AuxiliaryID)
			}
			sw.features, sw.id = *m, model.DatapathID(m.DatapathID)
			if _, err := sw.in.Discard(len(b)); err != nil {
				return err
			}
			sw.heard.Store(int64(sw.c.clock(sw.c.cfg.Now())))
			return sw.conn.SetReadDeadline(time.Time{})
		}
	}
}

func (sw *Switch) late(what string, err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return fmt.Errorf("no %s within %v: %w; is that an OpenFlow switch?", what, sw.c.cfg.HandshakeTimeout, err)
	}
	return fmt.Errorf("waiting for %s: %w", what, err)
}

// wrongVersion refuses the switch, and waits shortly for its own words: Open
// vSwitch sends them when it has seen our hello.
func (sw *Switch) wrongVersion(theirs *of13.Hello, hello []byte, last int, cause error) error {
	speaks := of13.VersionName(theirs.Version)
	var pe *of13.ParseError
	if errors.As(cause, &pe) {
		_ = sw.reply(pe.Reply(hello), 0)
	}
	err := fmt.Errorf("%w: it speaks %s; allow 1.3 on it (ovs-vsctl set bridge BR protocols=OpenFlow13)", ErrVersion, speaks)
	_ = sw.conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		b, rerr := sw.next(last)
		if rerr != nil {
			return err
		}
		if m, _, perr := of13.Parse(b); perr == nil {
			if e, ok := m.(*of13.Error); ok {
				return fmt.Errorf("%w; the switch says: %q", err, printable(e.Data))
			}
		}
		last = len(b)
	}
}

// printable cuts what a peer says to something a log can hold.
func printable(b []byte) string {
	const most = 200
	if len(b) > most {
		b = b[:most]
	}
	return string(b)
}

// DumpFlows reads the rules whose cookie agrees with cookie in the bits of
// mask, in all tables; mask 0 reads every rule.
func (sw *Switch) DumpFlows(ctx context.Context, cookie, mask uint64) ([]of13.FlowStats, error) {
	parts, err := sw.Request(ctx, of13.NewFlowStatsRequest(of13.TableAll, cookie, mask))
	return join[of13.FlowStatsReply](parts, err)
}

// PortDesc reads the switch's ports.
func (sw *Switch) PortDesc(ctx context.Context) ([]of13.Port, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartPortDesc))
	return join[of13.PortDescReply](parts, err)
}

// PortStats reads the counters of every port.
func (sw *Switch) PortStats(ctx context.Context) ([]of13.PortStats, error) {
	parts, err := sw.Request(ctx, of13.NewPortStatsRequest(of13.PortAny))
	return join[of13.PortStatsReply](parts, err)
}

// Desc reads what the switch says about its make.
func (sw *Switch) Desc(ctx context.Context) (of13.DescReply, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartDesc))
	if err != nil {
		return of13.DescReply{}, err
	}
	if r, ok := parts[0].(*of13.MultipartReply); ok {
		if d, ok := r.Body.(*of13.DescReply); ok {
			return *d, nil
		}
	}
	return of13.DescReply{}, fmt.Errorf("%w: a description was asked for, %v came", ErrProtocol, parts[0].MsgType())
}

// join puts the parts of a multipart reply together.
func join[B ~[]E, E any](parts []of13.Message, err error) ([]E, error) {
	if err != nil {
		return nil, err
	}
	var out []E
	for _, p := range parts {
		r, ok := p.(*of13.MultipartReply)
		if !ok {
			return nil, fmt.Errorf("%w: multipart reply expected, %v came", ErrProtocol, p.MsgType())
		}
		b, ok := r.Body.(any).(B)
		if !ok && r.Body != nil {
			return nil, fmt.Errorf("%w: multipart reply carries %T", ErrProtocol, r.Body)
		}
		out = append(out, b...)
	}
	return out, nil
}

// PacketOut sends a frame out of the given ports, as if it had come in on
// inPort (of13.PortController for frames of our own). The frame may be reused
// when PacketOut returns. A switch tells nobody when a port does not exist or
// is inPort itself.
func (sw *Switch) PacketOut(inPort of13.PortNo, frame []byte, out ...of13.PortNo) error {
	o := sw.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.room(); err != nil {
		return sw.fail(err)
	}
	xid := sw.nextXID()
	b, err := of13.AppendPacketOut(o.queued, xid, inPort, frame, out...)
	if err != nil {
		return sw.fail(err)
	}
	o.queued = b
	s := sentMessage{xid: xid}
	if len(out) > 0 {
		s.outPort = out[0]
	}
	sw.sent.put(s)
	o.signal()
	return nil
}
