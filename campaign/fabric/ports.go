package fabric

import (
	"context"
	"fmt"

	"netsplit/controller"
	"netsplit/controller/of13"
)

// ports is what is known of the ports of a switch's hosts; guarded by
// member.state.
type ports struct {
	on   *controller.Switch // the session that was asked for its ports
	name map[of13.PortNo]string
	gone map[of13.PortNo]error // ports of hosts that are not there, or without a link
}

// learnPorts asks a switch that has connected for its ports, and tells which
// ports of hosts are not as they should be.
func (m *member) learnPorts(ctx context.Context, sw *controller.Switch) error {
	m.state.Lock()
	known := m.ports.on == sw
	m.state.Unlock()
	if known {
		return nil
	}
	have, err := sw.PortDesc(ctx)
	if err != nil {
		return fmt.Errorf("switch %s: its ports: %w", m.id, err)
	}
	at := map[of13.PortNo]of13.Port{}
	m.state.Lock()
	m.ports.on = sw
	if m.ports.name == nil {
		m.ports.name, m.ports.gone = map[of13.PortNo]string{}, map[of13.PortNo]error{}
	}
	for _, p := range have {
		at[p.No], m.ports.name[p.No] = p, p.Name
	}
	m.state.Unlock()
	for _, h := range m.hosts {
		no := of13.PortNo(h.Port)
		p, there := at[no]
		switch {
		case !there:
			m.hostPort(no, fmt.Errorf("the switch has no port %d", no))
		case p.State&of13.PortStateLinkDown != 0:
			m.hostPort(no, noLink(p))
		default:
			m.hostPort(no, nil)
		}
	}
	return nil
}

func noLink(p of13.Port) error {
	return fmt.Errorf("port %d (%s) has no link", p.No, p.Name)
}

// portStatus books what a switch says of a port.
func (m *member) portStatus(s *of13.PortStatus) {
	m.state.Lock()
	if m.ports.on == nil { // learnPorts is to come
		m.state.Unlock()
		return
	}
	was := of13.PortNo(0) // the number of a host's port that is gone and had this name
	for no := range m.ports.gone {
		if s.Reason == of13.PortAdded && no != s.Port.No && m.ports.name[no] == s.Port.Name {
			was = no
		}
	}
	if s.Reason != of13.PortDeleted {
		m.ports.name[s.Port.No] = s.Port.Name
	}
	m.state.Unlock()
	switch {
	case was != 0:
		m.hostPort(was, fmt.Errorf("port %d (%s) came back as port %d: correct the testbed, or give it its number (ovs-vsctl set interface %s ofport_request=%d)",
			was, s.Port.Name, s.Port.No, s.Port.Name, was))
	case s.Reason == of13.PortDeleted:
		m.hostPort(s.Port.No, fmt.Errorf("port %d (%s) was removed from the switch", s.Port.No, s.Port.Name))
	case s.Port.State&of13.PortStateLinkDown != 0:
		m.hostPort(s.Port.No, noLink(s.Port))
	default:
		m.hostPort(s.Port.No, nil)
	}
}

// hostPort tells, if the port is a host's, that it is not as it should be, or
// is again (nil). The same is not told twice.
func (m *member) hostPort(no of13.PortNo, why error) {
	host, ok := m.hostAt[no]
	if !ok {
		return
	}
	m.state.Lock()
	before := m.ports.gone[no]
	if why == nil {
		delete(m.ports.gone, no)
	} else {
		m.ports.gone[no] = why
	}
	m.state.Unlock()
	if fmt.Sprint(before) == fmt.Sprint(why) {
		return
	}
	if cb := m.f.cfg.Events.HostPort; cb != nil {
		cb(m.id, host, why)
	}
}
