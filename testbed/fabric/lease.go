package fabric

import (
	"errors"
	"fmt"
	"time"

	"netsplit/model"
)

// LeaseExpiry says until when at least the switches keep the rules of a partition that was
// cut, unless they are renewed, and what hinders that they are; nil: they are
// renewed. Its drop rules are on the switches of the senders; broadcasts are held
// back at those of the receivers, too. It does not wait.
func (f *Fabric) LeaseExpiry(p model.Partition) (time.Time, error) {
	var until time.Time
	var why error
	asked := map[*member]bool{}
	ask := func(m *member) {
		if asked[m] {
			return
		}
		asked[m] = true
		u, err := m.kept()
		if until.IsZero() || !u.IsZero() && u.Before(until) {
			until = u
		}
		if why == nil {
			why = err
		}
	}
	for _, l := range p.Links() {
		ask(f.byHost[l.Src])
		m := f.byHost[l.Dst]
		if _, some := m.alive.end(); some {
			ask(m)
		}
	}
	return until, why
}

func (m *member) kept() (time.Time, error) {
	until, some := m.alive.end()
	m.state.Lock()
	sw, why := m.sw, m.why
	m.state.Unlock()
	switch {
	case sw == nil:
		return until, fmt.Errorf("switch %s is not connected: what is cut there is not renewed, expires within seconds, and is cut again once it is back", m.id)
	case why != nil && (!errors.Is(why, ErrPorts) || errors.Is(why, errPortsUnknown)): // by a port that is not there nothing passes
		return until, fmt.Errorf("switch %s: what is cut there may not hold: %w", m.id, why)
	case some && !until.After(time.Now()):
		return until, fmt.Errorf("switch %s has not confirmed for %v that it keeps what is cut there", m.id, m.f.cfg.HardTimeout)
	}
	return until, nil
}
