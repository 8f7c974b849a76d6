package controller_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/internal/switchtest"
)

// requested lists the role requests that the switch got, without the polls.
func requested(m *switchtest.Switch) (out []of13.RoleState) {
	for _, msg := range m.Received() {
		if r, ok := msg.(*of13.RoleRequest); ok && r.Role != of13.RoleNoChange {
			out = append(out, r.RoleState)
		}
	}
	return out
}

func TestMasterIsAskedForWithAFreshGeneration(t *testing.T) {
	rec := newRecorder()
	c := controller.New(controller.Config{Handler: rec})
	t.Cleanup(func() { c.Close() })
	m := switchtest.New(switchtest.Config{Datapath: 1})
	for _, c0 := range []struct{ before, want uint64 }{
		{^uint64(0), 0},      // nobody was ever master
		{41, 42},             // somebody was
		{1<<63 - 1, 1 << 63}, // signed distance, no sign
	} {
		m.Demote(c0.before)
		ours, theirs := net.Pipe()
		served := make(chan struct{})
		go func() { defer close(served); _ = m.Serve(theirs) }() // a new connection is EQUAL
		over := make(chan error, 1)
		go func() { over <- c.Serve(ours) }()
		sw := get(t, "switch up", rec.up)
		if sw.Role() != of13.RoleMaster {
			t.Errorf("role %v", sw.Role())
		}
		list := requested(m)
		if got := list[len(list)-1]; got != (of13.RoleState{Role: of13.RoleMaster, GenerationID: c0.want}) {
			t.Errorf("after generation %x asked for %+v", c0.before, got)
		}
		theirs.Close()
		get(t, "end of the session", over)
		<-served
	}
}

func TestEqualSharesTheSwitch(t *testing.T) {
	sw, m, _, _ := start(t, controller.Config{Role: of13.RoleEqual}, switchtest.Config{})
	if sw.Role() != of13.RoleEqual || len(requested(m)) != 0 {
		t.Errorf("role %v, asked %v", sw.Role(), requested(m))
	}
}

func TestSwitchWithoutRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, m, rec, _ := start(t, controller.Config{RoleInterval: 5 * time.Millisecond}, switchtest.Config{NoRoles: true})
		if err := sw.Apply(soon(t), rule(1)); err != nil || sw.Role() != of13.RoleEqual {
			t.Errorf("role %v, error %v", sw.Role(), err)
		}
		time.Sleep(50 * time.Millisecond)
		polls := 0
		for _, msg := range m.Received() {
			if msg.MsgType() == of13.TypeRoleRequest {
				polls++
			}
		}
		if polls != 1 || len(rec.errs) > 0 {
			t.Errorf("asked for its role %d times, errors %d", polls, len(rec.errs))
		}
	})
}

// TestDemotionIsNoticed: nothing tells us, so we ask; or we are refused first.
func TestDemotionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, m, rec, _ := start(t, controller.Config{RoleInterval: 20 * time.Millisecond}, switchtest.Config{})
		m.Demote(99)
		if role := get(t, "demotion", rec.roles); role != of13.RoleSlave || sw.Role() != of13.RoleSlave {
			t.Errorf("role %v, %v", role, sw.Role())
		}

		sw, m, rec, _ = start(t, controller.Config{RoleInterval: time.Hour}, switchtest.Config{})
		m.Demote(99)
		err := sw.Apply(soon(t), rule(1), rule(2))
		if !errors.Is(err, &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestIsSlave}) || sw.Role() != of13.RoleSlave {
			t.Errorf("role %v, error %v", sw.Role(), err)
		}
		if role := get(t, "demotion", rec.roles); role != of13.RoleSlave {
			t.Errorf("role %v", role)
		}
		if err := sw.Send(rule(3), rule(4)); err != nil {
			t.Fatal(err)
		}
		if err := sw.Barrier(soon(t)); err != nil {
			t.Fatal(err)
		}
		if len(rec.errs) > 0 || len(rec.roles) > 0 {
			t.Errorf("told again: %d errors, %d roles", len(rec.errs), len(rec.roles))
		}
		if err := sw.Claim(soon(t)); err != nil {
			t.Fatal(err)
		}
		if role := get(t, "promotion", rec.roles); role != of13.RoleMaster || sw.Role() != of13.RoleMaster {
			t.Errorf("role %v, %v", role, sw.Role())
		}
		if err := sw.Apply(soon(t), rule(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestClaimThatIsAlwaysLate: a switch whose generation runs away.
func TestClaimThatIsAlwaysLate(t *testing.T) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	go func() {
		stale := &of13.Error{Type: of13.ErrTypeRoleRequestFailed, Code: of13.RoleRequestFailedStale}
		send := func(m of13.Message, xid uint32) {
			b, _ := of13.Append(nil, m, xid)
			_, _ = theirs.Write(b)
		}
		send(of13.NewHello(of13.Version), 1)
		for {
			b, err := of13.ReadFrame(theirs, nil)
			if err != nil {
				return
			}
			m, xid, _ := of13.Parse(b)
			switch m := m.(type) {
			case *of13.FeaturesRequest:
				send(&of13.FeaturesReply{DatapathID: 7}, xid)
			case *of13.RoleRequest:
				if m.Role == of13.RoleNoChange {
					send(&of13.RoleReply{RoleState: of13.RoleState{Role: of13.RoleEqual, GenerationID: 5}}, xid)
				} else {
					send(stale, xid)
				}
			}
		}
	}()
	c := controller.New(controller.Config{Handler: silent{}})
	t.Cleanup(func() { c.Close() })
	if err := c.Serve(ours); !errors.Is(err, controller.ErrRole) || !strings.Contains(err.Error(), "at the same time") {
		t.Errorf("%v", err)
	}
	if c.Switch(7) != nil || len(c.Switches()) != 0 {
		t.Error("the switch stayed")
	}
}
