package fabric

import (
	"errors"
	"fmt"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
)

// ErrInTheWay: rules of somebody else would take packets round ours.
var ErrInTheWay = errors.New("rules of somebody else are in the way")

// obstructed says why our rules cannot do their work beside those that the
// switch has; nil if they can. m.rules is held. installed: ours are there, and stay,
// and what matters is whether what they cut is cut.
func (m *member) obstructed(have []of13.FlowStats, installed bool) error {
	n, first, where := 0, "", fmt.Sprintf("switch %s", m.id)
	if !installed {
		where += " is left as it is"
	}
	for _, f := range flowrules.InTheWay(have, m.at.Load().in) {
		if f.Drops || installed && !f.Uncuts() {
			continue // no cut is defeated by it; the reading reports it as a conflict
		}
		if n++; n == 1 {
			first = f.String()
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w: %s", where, ErrInTheWay, first)
	}
	return fmt.Errorf("%s: %w: %s; and %d more", where, ErrInTheWay, first, n-1)
}

// refuse leaves the switch alone and says why, once.
func (m *member) refuse(sw *controller.Switch, why error) {
	m.known = nil
	m.alive.hold(nil, nil)
	m.state.Lock()
	news := m.sw == sw && (m.why == nil || m.why.Error() != why.Error())
	if m.sw == sw {
		m.unready(why)
	}
	m.state.Unlock()
	if !news {
		return
	}
	m.f.cfg.Log.Error("switch refused", "dpid", m.id.String(), "err", why)
	if cb := m.f.cfg.Events.Refused; cb != nil {
		cb(m.id, why)
	}
}

// Refused lists why switches that are connected are left alone, or not used in
// part since they do not have the ports that the testbed names, or do not hold what is
// cut since rules of others go round it; sorted by datapath id.
func (f *Fabric) Refused() []error {
	var out []error
	for _, m := range f.members {
		m.state.Lock()
		switch {
		case m.sw == nil:
		case errors.Is(m.why, ErrInTheWay) || errors.Is(m.why, ErrPorts):
			out = append(out, m.why)
		case m.inWay != nil: // it came later: our rules stay
			out = append(out, m.inWay)
		}
		m.state.Unlock()
	}
	return out
}
