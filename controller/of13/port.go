package of13

import "fmt"

// Port describes a port of the switch, 64 bytes (7.2.1, ofp_port).
type Port struct {
	No     PortNo
	HWAddr [6]byte
	Name   string // at most 16 bytes
	Config PortConfig
	State  PortState
	// Curr to Peer are ofp_port_features bits: what is, is offered, can be
	// and is offered by the far end.
	Curr, Advertised, Supported, Peer uint32
	CurrSpeed, MaxSpeed               uint32 // kbit/s
}

// PortConfig is what the administrator set (7.2.1, ofp_port_config).
type PortConfig uint32

// Configuration bits.
const (
	PortConfigDown       PortConfig = 1 << 0
	PortConfigNoRecv     PortConfig = 1 << 2
	PortConfigNoFwd      PortConfig = 1 << 5
	PortConfigNoPacketIn PortConfig = 1 << 6
)

// String names the bits.
func (c PortConfig) String() string {
	return flagNames([]string{"PORT_DOWN", "", "NO_RECV", "", "", "NO_FWD", "NO_PACKET_IN"}, c)
}

// PortState is what the switch sees (7.2.1, ofp_port_state).
type PortState uint32

// State bits.
const (
	PortStateLinkDown PortState = 1 << 0
	PortStateBlocked  PortState = 1 << 1
	PortStateLive     PortState = 1 << 2
)

// String names the bits.
func (s PortState) String() string { return flagNames([]string{"LINK_DOWN", "BLOCKED", "LIVE"}, s) }

// String is a one-line summary.
func (p Port) String() string {
	return fmt.Sprintf("port %v %q %s config %v state %v", p.No, p.Name, macString(p.HWAddr), p.Config, p.State)
}

func (p *Port) append(b []byte) ([]byte, error) {
	b = appendPad(be.AppendUint32(b, uint32(p.No)), 4)
	b = appendPad(append(b, p.HWAddr[:]...), 2)
	b, err := appendText(b, p.Name, 16)
	if err != nil {
		return b, fmt.Errorf("name of port %v: %w", p.No, err)
	}
	for _, v := range [...]uint32{uint32(p.Config), uint32(p.State), p.Curr, p.Advertised, p.Supported,
		p.Peer, p.CurrSpeed, p.MaxSpeed} {
		b = be.AppendUint32(b, v)
	}
	return b, nil
}

func (p *Port) read(r *reader) {
	p.No = PortNo(r.u32())
	r.pad(4)
	p.HWAddr = r.mac()
	r.pad(2)
	p.Name = r.text(16)
	p.Config, p.State = PortConfig(r.u32()), PortState(r.u32())
	p.Curr, p.Advertised, p.Supported, p.Peer = r.u32(), r.u32(), r.u32(), r.u32()
	p.CurrSpeed, p.MaxSpeed = r.u32(), r.u32()
}

// PortReason says why a port status was sent (7.4.3).
type PortReason uint8

// Reasons.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// String names the reason.
func (r PortReason) String() string { return nameOf([]string{"ADD", "DELETE", "MODIFY"}, r, "REASON") }

// PortStatus says that a port came, went or changed (7.4.3).
type PortStatus struct {
	Reason PortReason
	Port   Port
}

// String is a one-line summary.
func (m *PortStatus) String() string { return fmt.Sprintf("PORT_STATUS %v %v", m.Reason, m.Port) }

// MsgType is TypePortStatus.
func (m *PortStatus) MsgType() MsgType { return TypePortStatus }

func (m *PortStatus) marshal(b []byte) ([]byte, error) {
	return m.Port.append(appendPad(append(b, byte(m.Reason)), 7))
}

func (m *PortStatus) unmarshal(r *reader) {
	m.Reason = PortReason(r.u8())
	r.pad(7)
	m.Port.read(r)
}
