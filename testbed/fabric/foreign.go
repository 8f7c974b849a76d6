package fabric

import (
	"context"
	"errors"
	"fmt"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

// ErrInTheWay: rules of somebody else would take packets round ours.
var ErrInTheWay = errors.New("rules of somebody else are in the way")

// others is what rules of somebody else do to ours, as read last.
type others struct {
	around error // some go round what is cut
	drop   error // some drop what nothing of ours does
}

// othersIn says why our rules cannot do their work beside those that the switch has.
// m.rules is held. installed: ours are there, and stay, and what matters is whether what
// they cut is cut.
func (m *member) othersIn(have []of13.FlowStats, installed bool) others {
	where := fmt.Sprintf("switch %s", m.id)
	if !installed {
		where += " is left as it is"
	}
	around, drop := inTheWay{where: where}, inTheWay{where: where}
	for _, f := range flowrules.InTheWay(have, m.at.Load().in) {
		switch {
		case f.Drops:
			drop.add(f)
		case !installed || f.Uncuts(): // else no cut is defeated by it; the reading reports it as a conflict
			around.add(f)
		}
	}
	return others{around.err(), drop.err()}
}

// briefReadings is how many readings in a row are of our rules alone at most: one is made
// a second. They count the rules of others and do not see one that was changed in place, or
// replaced by another meanwhile; the next reading of all does, up to 10 s later. OpenFlow 1.3
// has no cheaper way. What OFPMP_AGGREGATE sums beside the number, packets and bytes (§7.3.5.3),
// changes with the traffic, and not when a rule does (§6.4); a switch tells what others change
// from OpenFlow 1.4 on (flow monitors). So CheckGate reads all before a run is judged: what is
// there then is told. What came and went between two readings is not, and no proof of a cut
// rests on it: the receiving hosts count what arrives.
const briefReadings = 9

// asLeft says, without reading the rules of others, that the switch has ours as they
// were left, and as many of others as when all were read last, none of which hinders
// ours. A switch may have tens of thousands of those. m.rules is held.
func (m *member) asLeft(ctx context.Context, sw *controller.Switch) bool {
	m.state.Lock()
	hindered := m.others != others{}
	m.state.Unlock()
	if m.briefly++; m.briefly > briefReadings || hindered {
		return false
	}
	all, err := sw.CountFlows(ctx)
	if err != nil {
		return false
	}
	have, err := m.look(ctx, sw, uint64(flowrules.NewCookie(0, m.f.lab, 0)), flowrules.MaskLab)
	if err != nil || all != len(have.Flows)+m.foreign {
		return false
	}
	if d := flowrules.Diff(have, m.plan); d.Missing+d.Changed+d.Stale > 0 {
		return false
	}
	m.alive.hold(sw, m.plan.Expiring(have))
	m.repaired = false
	m.drain.saw(0)
	return true
}

// inTheWay counts rules and keeps the first.
type inTheWay struct {
	where, first string
	n            int
}

func (w *inTheWay) add(f flowrules.Foreign) {
	if w.n++; w.n == 1 {
		w.first = f.String()
	}
}

// err is an ErrInTheWay; nil without rules.
func (w *inTheWay) err() error {
	switch w.n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w: %s", w.where, ErrInTheWay, w.first)
	}
	return fmt.Errorf("%s: %w: %s; and %d more", w.where, ErrInTheWay, w.first, w.n-1)
}

// DroppedByOthers says which rules of somebody else, where a host hangs, drop what our
// rules let pass, as read last; nil: none.
func (f *Fabric) DroppedByOthers(h model.NodeID) error {
	m := f.byHost[h]
	if m == nil {
		return nil
	}
	m.state.Lock()
	defer m.state.Unlock()
	return m.others.drop
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

// Refused lists why switches that are connected are left alone, or hold no rules yet, or are
// not used in part since they do not have the ports that the testbed names, or do not hold
// what is cut since rules of others go round it; sorted by datapath id.
func (f *Fabric) Refused() []error {
	var out []error
	for _, m := range f.members {
		m.state.Lock()
		switch {
		case m.sw == nil:
		case errors.Is(m.why, ErrInTheWay) || errors.Is(m.why, ErrPorts):
			out = append(out, m.why)
		case errors.Is(m.why, errInstalling):
			out = append(out, fmt.Errorf("switch %s: %w", m.id, m.why))
		case m.others.around != nil: // it came later: our rules stay
			out = append(out, m.others.around)
		}
		m.state.Unlock()
	}
	return out
}
