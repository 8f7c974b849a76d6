package of13

import "fmt"

// PacketOut makes the switch send a packet (7.3.7).
type PacketOut struct {
	BufferID uint32 // NoBuffer: the packet is in Data
	InPort   PortNo // as if it had come in there; PortController if nowhere
	Actions  []Action
	Data     []byte
}

// NewPacketOut sends data, which was received on inPort (or PortController),
// through the actions.
func NewPacketOut(inPort PortNo, data []byte, actions ...Action) *PacketOut {
	return &PacketOut{BufferID: NoBuffer, InPort: inPort, Actions: actions, Data: data}
}

// AppendPacketOut appends a packet-out that sends the packet to the given
// ports, without allocating if dst has room. A packet is not sent back to its
// own inPort unless out says PortInPort (5.9, OFPP_IN_PORT); Open vSwitch
// drops it without an error. On error dst comes back as it was.
func AppendPacketOut(dst []byte, xid uint32, inPort PortNo, data []byte, out ...PortNo) ([]byte, error) {
	n := HeaderLen + 16 + outputLen*len(out) + len(data)
	if n > MaxLen {
		return dst, fmt.Errorf("encode %v: length of %d bytes does not fit the 16-bit length field", TypePacketOut, n)
	}
	b := append(dst, Version, byte(TypePacketOut), 0, 0)
	if err := putLen16(b[len(dst)+2:], n); err != nil {
		return dst, err
	}
	b = be.AppendUint32(b, xid)
	b = be.AppendUint32(b, NoBuffer)
	b = be.AppendUint32(b, uint32(inPort))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	if err := putLen16(b[len(dst)+16:], outputLen*len(out)); err != nil {
		return dst, err
	}
	for _, p := range out {
		b = Output{Port: p, MaxLen: MaxLenNoBuffer}.write(b)
	}
	return append(b, data...), nil
}

// String is a one-line summary without the packet's bytes.
func (m *PacketOut) String() string {
	return fmt.Sprintf("PACKET_OUT in_port %v actions %s len %d", m.InPort, actionsString(m.Actions), len(m.Data))
}

// MsgType is TypePacketOut.
func (m *PacketOut) MsgType() MsgType { return TypePacketOut }

func (m *PacketOut) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint32(b, m.BufferID)
	b = be.AppendUint32(b, uint32(m.InPort))
	at := len(b)
	b = appendPad(b, 8)
	b, err := AppendActions(b, m.Actions)
	if err != nil {
		return b, err
	}
	if err := putLen16(b[at:], len(b)-at-8); err != nil {
		return b, err
	}
	return append(b, m.Data...), nil
}

func (m *PacketOut) unmarshal(r *reader) {
	m.BufferID, m.InPort = r.u32(), PortNo(r.u32())
	n := int(r.u16())
	r.pad(6)
	s := r.sub(n, ErrTypeBadAction, BadActionBadLen)
	m.Actions = readActions(s)
	r.join(s)
	m.Data = r.rest()
}
