package fabric

import (
	"context"
	"fmt"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
)

// ports is what is known of a switch's ports; guarded by member.state.
type ports struct {
	on         *controller.Switch // the session that was asked for its ports
	statuses   int                // how many port statuses came, on any session
	have       map[of13.PortNo]of13.Port
	name       map[of13.PortNo]string // that a number had last, also of ports that are gone
	told       map[model.NodeID]error // of hosts whose ports are not as they should be
	toldOthers map[model.Port]error   // the same of links and mirrors, by name
}

// learnPorts asks a switch that has connected for its ports, and tells which
// ports of hosts are not as they should be.
func (m *member) learnPorts(ctx context.Context, sw *controller.Switch) error {
	for {
		m.state.Lock()
		known, statuses := m.ports.on == sw, m.ports.statuses
		m.state.Unlock()
		if known {
			return nil
		}
		have, err := sw.PortDesc(ctx)
		if err != nil {
			return fmt.Errorf("switch %s: its ports: %w", m.id, err)
		}
		m.state.Lock()
		if m.ports.statuses != statuses { // the list may be older than what was told since
			m.state.Unlock()
			continue
		}
		if m.sw != sw {
			m.state.Unlock()
			return fmt.Errorf("switch %s: its ports: %w", m.id, ErrDown)
		}
		m.ports.on, m.ports.have = sw, map[of13.PortNo]of13.Port{}
		for _, p := range have {
			m.ports.have[p.No], m.ports.name[p.No] = p, p.Name
		}
		m.place()
		m.state.Unlock()
		m.tellPorts(false)
		return nil
	}
}

// portStatus books what a switch says of a port. What comes in by a number that
// was a host's is not the host's any more when it returns; the rules follow.
func (m *member) portStatus(sw *controller.Switch, s *of13.PortStatus) {
	m.state.Lock()
	m.ports.statuses++
	if m.ports.on != sw { // learnPorts is to come
		m.state.Unlock()
		return
	}
	if s.Reason == of13.PortDeleted {
		delete(m.ports.have, s.Port.No)
	} else {
		m.ports.have[s.Port.No] = s.Port
	}
	m.ports.name[s.Port.No] = s.Port.Name
	moved := m.place()
	m.state.Unlock()
	m.tellPorts(false)
	if moved || m.named {
		m.check()
	}
}

// hostPort says why the port of a host is not as it should be; m.state is held.
func (m *member) hostPort(s hostPort) error {
	at := m.at.Load()
	if why := at.wrong[s.at]; why != nil {
		return why
	}
	no := of13.PortNo(at.numbers[s.at])
	p, there := m.ports.have[no]
	if there {
		if p.State&of13.PortStateLinkDown != 0 {
			return fmt.Errorf("port %d (%s) has no link", p.No, p.Name)
		}
		return nil
	}
	name := m.ports.name[no]
	for _, o := range m.ports.have {
		if name != "" && o.Name == name {
			return fmt.Errorf("port %d (%s) came back as port %d: name it in the testbed (port: %s), correct the number there, or give it its number (ovs-vsctl set interface %s ofport_request=%d)",
				no, name, o.No, name, name, no)
		}
	}
	if name != "" {
		return fmt.Errorf("port %d (%s) was removed from the switch", no, name)
	}
	return fmt.Errorf("the switch has no port %d", no)
}

// tellPorts tells what has changed: which ports of hosts are not as they should
// be, or are again. Of a port by name the latter is told once rules are installed
// for it. The same is not told twice.
func (m *member) tellPorts(installed bool) {
	type news struct {
		host model.NodeID
		port model.Port
		why  error
	}
	var all []news
	m.telling.Lock() // what is told last is what is so
	defer m.telling.Unlock()
	m.state.Lock()
	for _, s := range m.hosts {
		why := m.hostPort(s)
		if fmt.Sprint(why) == fmt.Sprint(m.ports.told[s.Name]) || why == nil && s.at.Name != "" && !installed {
			continue
		}
		m.ports.told[s.Name] = why
		all = append(all, news{host: s.Name, why: why})
	}
	wrong := m.at.Load().wrong
	others := append([]model.Port{m.mirrorPort}, m.route.Trunks...)
	if m.line != nil {
		others = append(others, m.line.where.Port)
	}
	for _, p := range others {
		why := wrong[p]
		if p.Name == "" || fmt.Sprint(why) == fmt.Sprint(m.ports.toldOthers[p]) || why == nil && !installed {
			continue
		}
		m.ports.toldOthers[p] = why
		all = append(all, news{port: p, why: why})
	}
	m.state.Unlock()
	for _, n := range all {
		switch {
		case n.host != "":
			if cb := m.f.cfg.Events.HostPort; cb != nil {
				cb(m.id, n.host, n.why)
			}
		default:
			m.f.cfg.Log.Warn("port of the testbed", "dpid", m.id.String(), "port", n.port.Name, "err", n.why)
			if cb := m.f.cfg.Events.OtherPort; cb != nil {
				cb(m.id, n.port, n.why)
			}
		}
	}
}

// Unplugged says why the port of a host is not as it should be, as was told last; nil:
// it is, or nobody knows.
func (f *Fabric) Unplugged(h model.NodeID) error {
	m := f.byHost[h]
	m.state.Lock()
	defer m.state.Unlock()
	return m.ports.told[h]
}
