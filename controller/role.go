package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsplit/controller/of13"
)

// ErrRole: the switch did not make us its master though Config.Role asks for
// that; test with errors.Is.
var ErrRole = errors.New("switch did not grant the master role")

// claims bounds how often the master role is asked for again when another
// controller was faster.
const claims = 5

// Role is the role that this controller has at the switch, as far as is known:
// RoleMaster, RoleEqual or RoleSlave (OpenFlow 1.3 §6.3.4). A switch without
// roles counts as RoleEqual. When another controller becomes master a switch
// tells nobody: Role is late by Config.RoleInterval at most, or by less if
// the switch refuses something before.
func (sw *Switch) Role() of13.Role { return of13.Role(sw.role.Load()) }

// Claim asks for the role of the configuration again, from a switch that has
// made us a slave.
func (sw *Switch) Claim(ctx context.Context) error {
	_, err := sw.wish(func(s of13.RoleState) (of13.RoleState, error) {
		got, err := sw.Request(ctx, &of13.RoleRequest{RoleState: s})
		if err != nil {
			return of13.RoleState{}, err
		}
		r, ok := got[0].(*of13.RoleReply)
		if !ok {
			return of13.RoleState{}, fmt.Errorf("%w: a role was asked for, %v came", ErrProtocol, got[0].MsgType())
		}
		return r.RoleState, nil
	})
	if err != nil {
		return fmt.Errorf("switch %s: asking for the %v role: %w", sw.id, sw.c.cfg.Role, err)
	}
	return nil
}

// wish learns the role and asks for that of the configuration. The generation
// id must be greater than the last, by a signed difference (§6.3.4); the switch
// tells the last.
func (sw *Switch) wish(ask func(of13.RoleState) (of13.RoleState, error)) (of13.RoleState, error) {
	wish := sw.c.cfg.Role
	now, err := ask(of13.RoleState{Role: of13.RoleNoChange})
	for i := 0; err == nil && now.Role != wish; i++ {
		if i == claims {
			return now, fmt.Errorf("%w within %d attempts: other controllers ask for it at the same time; stop one of them", ErrRole, claims)
		}
		got, rerr := ask(of13.RoleState{Role: wish, GenerationID: now.GenerationID + 1})
		if errors.Is(rerr, &of13.Error{Type: of13.ErrTypeRoleRequestFailed, Code: of13.RoleRequestFailedStale}) {
			got, rerr = ask(of13.RoleState{Role: of13.RoleNoChange}) // somebody was faster
		}
		now, err = got, rerr
	}
	return now, err
}

// claim asks for the role of the configuration before the session begins.
func (sw *Switch) claim() error {
	if err := sw.conn.SetReadDeadline(time.Now().Add(sw.c.cfg.HandshakeTimeout)); err != nil {
		return err
	}
	sw.role.Store(uint32(of13.RoleEqual))
	now, err := sw.wish(sw.askRole)
	switch {
	case errors.Is(err, &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBadType}),
		errors.Is(err, &of13.Error{Type: of13.ErrTypeRoleRequestFailed, Code: of13.RoleRequestFailedUnsup}):
		sw.noRoles = true
		sw.c.cfg.Log.Info("switch has no controller roles: other controllers also receive the packets that the gate holds", "dpid", sw.id.String())
	case err != nil:
		return fmt.Errorf("asking for the %v role: %w", sw.c.cfg.Role, err)
	default:
		sw.role.Store(uint32(now.Role))
	}
	return sw.conn.SetReadDeadline(time.Time{})
}

// askRole asks and waits, where nobody else reads.
func (sw *Switch) askRole(wish of13.RoleState) (of13.RoleState, error) {
	if err := sw.Send(&of13.RoleRequest{RoleState: wish}); err != nil {
		return of13.RoleState{}, err
	}
	for {
		b, err := sw.next(0)
		if err != nil {
			return of13.RoleState{}, sw.late("role reply", err)
		}
		m, xid, err := of13.Parse(b)
		if err != nil {
			return of13.RoleState{}, sw.reject(b, err)
		}
		size := len(b)
		switch m := m.(type) {
		case *of13.EchoRequest:
			err = sw.reply(&of13.EchoReply{Data: m.Data}, xid)
		case *of13.Error:
			err = m
		case *of13.RoleReply:
			_, err = sw.in.Discard(size)
			return m.RoleState, err
		}
		if _, derr := sw.in.Discard(size); err == nil {
			err = derr
		}
		if err != nil {
			return of13.RoleState{}, err
		}
	}
}

// watchRole asks for the role again and again: 1.3 has no message that tells a
// controller of its demotion.
func (sw *Switch) watchRole(stop <-chan struct{}) {
	if sw.noRoles {
		return
	}
	tick := time.NewTicker(sw.c.cfg.RoleInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			_ = sw.Send(&of13.RoleRequest{}) // a failure ends the session
		}
	}
}

func (sw *Switch) noteRole(r of13.Role, h *registration) {
	old := of13.Role(sw.role.Swap(uint32(r)))
	if old == r {
		return
	}
	if r == of13.RoleSlave {
		sw.c.cfg.Log.Warn("another controller became master of the switch; this one is slave now", "dpid", sw.id.String(), "was", old.String())
	} else {
		sw.c.cfg.Log.Info("role changed", "dpid", sw.id.String(), "role", r.String(), "was", old.String())
	}
	if h != nil {
		h.RoleChanged(sw, r)
	}
}

// asSlave says whether the switch refused something because another controller
// is its master.
func asSlave(m *of13.Error) bool {
	return m.Type == of13.ErrTypeBadRequest && m.Code == of13.BadRequestIsSlave
}
