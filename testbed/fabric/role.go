package fabric

import (
	"context"
	"errors"
	"fmt"

	"netsplit/controller"
	"netsplit/controller/of13"
)

// ErrSlave: another controller is master of a switch, so that this one can
// change nothing there.
var ErrSlave = errors.New("another controller is master of the switch")

// slave is ErrSlave with what to do. The master role is not taken back at once:
// two controllers that both do would take it in turns, and neither could hold a
// partition.
func (m *member) slave() error {
	return fmt.Errorf("switch %s: %w and this one a slave, which can neither cut nor heal there: stop that controller or have it share the switch as equal; the next run asks for the role again, and so does netsplit serve when it starts", m.id, ErrSlave)
}

func (m *member) command() (*controller.Switch, error) {
	switch sw := m.session(); {
	case sw == nil:
		return nil, fmt.Errorf("switch %s: %w: see that it runs and that its controller is set to this address", m.id, ErrDown)
	case sw.Role() == of13.RoleSlave:
		return nil, m.slave()
	default:
		return sw, nil
	}
}

// Claim asks the switches that have made us a slave for our role again. Ready
// tells when they hold their rules.
func (f *Fabric) Claim(ctx context.Context) error {
	return f.each(ctx, func(ctx context.Context, m *member) error {
		sw := m.session()
		if sw == nil || sw.Role() != of13.RoleSlave {
			return nil
		}
		return sw.Claim(ctx)
	})
}

// refused gives an error that a switch answered a slave with its meaning.
func (m *member) refused(err error) error {
	if errors.Is(err, &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestIsSlave}) {
		return m.slave()
	}
	return err
}

// RoleChanged is told by the controller. A slave's gate and drop rules are not
// renewed any more: they expire.
func (m *member) RoleChanged(sw *controller.Switch, role of13.Role) {
	m.state.Lock()
	if m.sw != sw {
		m.state.Unlock()
		return
	}
	if role == of13.RoleSlave {
		m.unready(m.slave())
	}
	m.state.Unlock()
	if role != of13.RoleSlave {
		m.distrust.Store(true) // rules expired, and the master had others
	}
	if cb := m.f.cfg.Events.Demoted; cb != nil && role == of13.RoleSlave {
		cb(m.id, m.slave())
	}
	m.check()
}

// unready says why the switch does not hold its rules; m.state is held.
func (m *member) unready(why error) {
	m.why, m.lacked = why, m.lacked && errors.Is(why, ErrPorts)
	select {
	case <-m.ready:
		m.lacked = errors.Is(why, ErrPorts)
		m.ready = make(chan struct{})
	default:
	}
}
