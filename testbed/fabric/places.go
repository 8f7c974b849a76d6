package fabric

import (
	"errors"
	"fmt"
	"slices"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed/config"
)

// ErrPorts: a switch does not have the ports that the testbed names.
var ErrPorts = errors.New("ports are not as the testbed names them")

// errPortsUnknown: a switch that has ports by name has not listed its ports yet.
var errPortsUnknown = errors.New("the switch has not told its ports yet")

// hostPort is a host as the testbed has it, on a port of the switch.
type hostPort struct {
	Name model.NodeID
	at   model.Port
}

// places is where everything of the testbed is on a switch now, by the numbers
// of its ports. What is on none, since the switch has no port that is named so,
// is left out: no rule has its old number, which another may have got. It is not
// changed once it was made.
type places struct {
	in                   flowrules.Input // without what is cut or tapped
	mirrorPort, gatePort uint32          // 0: none
	hostAt               map[of13.PortNo]model.NodeID
	portOf               map[model.NodeID]of13.PortNo
	numbers              map[model.Port]uint32
	wrong                map[model.Port]error // ports that cannot be used, and why
}

// locate lays the switch's part of the testbed out. told says whether has is
// what it has.
func (m *member) locate(has []model.Port, told bool) *places {
	p := &places{hostAt: map[of13.PortNo]model.NodeID{}, portOf: map[model.NodeID]of13.PortNo{}}
	p.numbers, p.wrong = config.Locate(m.f.cfg.Testbed, m.id, has)
	if !told {
		for port := range p.wrong {
			p.wrong[port] = errPortsUnknown
		}
	}
	p.in = flowrules.Place(m.f.cfg.Testbed, m.id, m.route, m.f.macs, p.numbers)
	p.mirrorPort = p.numbers[m.mirrorPort]
	if m.line != nil {
		p.gatePort = p.numbers[m.line.where.Port]
	}
	for _, h := range p.in.Hosts {
		if h.Via == 0 {
			p.hostAt[of13.PortNo(h.Port)], p.portOf[h.Name] = h.Name, of13.PortNo(h.Port)
		}
	}
	return p
}

// missing says which ports of the testbed the switch does not have; nil: none.
// Of ports by number that says nothing: rules can be made for those that are not
// there yet.
func (m *member) missing(p *places) error {
	if len(p.wrong) == 0 {
		return nil
	}
	var all []error
	seen := map[string]bool{}
	add := func(port model.Port, what string) {
		why := p.wrong[port]
		if why == nil || seen[why.Error()] { // two on one port have one reason
			return
		}
		seen[why.Error()] = true
		all = append(all, fmt.Errorf("%s: %w", what, why))
	}
	for _, s := range m.hosts {
		add(s.at, "host "+string(s.Name))
	}
	for _, t := range m.route.Trunks {
		add(t, "link")
	}
	if m.line != nil {
		add(m.line.where.Port, "gate port")
	}
	add(m.mirrorPort, "mirror port")
	if len(all) == 0 { // a gate port that is not used
		return nil
	}
	return fmt.Errorf("switch %s: %w: %w", m.id, ErrPorts, errors.Join(all...))
}

// place has the switch's part of the testbed laid out anew and says whether that
// changed something; m.state is held.
func (m *member) place() bool {
	if !m.named {
		return false
	}
	var has []model.Port
	for _, p := range m.ports.have {
		has = append(has, model.Port{Number: uint32(p.No), Name: p.Name})
	}
	was, now := m.at.Load(), m.locate(has, m.ports.on != nil)
	m.at.Store(now)
	if why := m.missing(now); why != nil {
		m.unready(why)
	}
	same := len(was.numbers) == len(now.numbers)
	for port, n := range now.numbers {
		same = same && was.numbers[port] == n
	}
	if !same {
		m.moved.Store(true)
	}
	return !same
}

// located says why rules cannot be made for a session yet.
func (m *member) located(sw *controller.Switch) error {
	m.state.Lock()
	defer m.state.Unlock()
	if m.named && m.ports.on != sw {
		return fmt.Errorf("switch %s: %w: it is being asked, try again", m.id, errPortsUnknown)
	}
	return nil
}

// onPorts says why a partition cannot be cut: a host of it is on no port that is
// known, or its hosts reach one another by one. What is meant by a name that is
// not there now, nobody knows.
func (m *member) onPorts(p model.Partition) error {
	at := m.at.Load()
	if len(at.wrong) == 0 {
		return nil
	}
	if _, err := m.command(); errors.Is(err, ErrDown) { // it tells them when it connects
		return err
	}
	here, there := false, false
	for _, l := range p.Links() {
		for _, h := range []model.NodeID{l.Src, l.Dst} {
			i := slices.IndexFunc(m.hosts, func(s hostPort) bool { return s.Name == h })
			if i < 0 {
				there = true
				continue
			}
			here = true
			if why := at.wrong[m.hosts[i].at]; why != nil {
				return fmt.Errorf("switch %s: %w: host %s: %w", m.id, ErrPorts, h, why)
			}
		}
	}
	for _, t := range m.route.Trunks {
		if why := at.wrong[t]; why != nil && here && there {
			return fmt.Errorf("switch %s: %w: link: %w", m.id, ErrPorts, why)
		}
	}
	return nil
}

// Testbed is the testbed with the numbers that ports have now; 0 for names that
// no switch has told.
func (f *Fabric) Testbed() model.Testbed {
	t := f.cfg.Testbed
	for _, m := range f.members {
		at := m.at.Load()
		t = config.Renumbered(t, m.id, func(p model.Port) uint32 { return at.numbers[p] })
	}
	return t
}
