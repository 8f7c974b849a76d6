package controller

import (
	"errors"
	"fmt"
	"net"
	"time"

	"netsplit/controller/of13"
	"netsplit/model"
)

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
		var xid uint32
		if m, xid, err = of13.Parse(b); err != nil {
			return sw.reject(b, err)
		}
		switch m := m.(type) {
		case *of13.EchoRequest:
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
			sw.lastSeen.Store(int64(sw.c.clock(sw.c.cfg.Now())))
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
