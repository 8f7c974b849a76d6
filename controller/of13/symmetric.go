package of13

import "fmt"

// EchoRequest asks the peer whether it is alive (7.5.2).
type EchoRequest struct{ Data []byte }

// EchoReply answers an EchoRequest with the same data and xid (7.5.3).
type EchoReply struct{ Data []byte }

// Experimenter is a message defined by somebody else than the ONF (7.5.4).
type Experimenter struct {
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// BarrierRequest asks the switch to finish everything before it (7.3.8).
type BarrierRequest struct{}

// BarrierReply confirms a BarrierRequest. On Open vSwitch it confirms the rule
// table, not the cached flows: packets keep following old rules for a while.
type BarrierReply struct{}

// MsgType is TypeEchoRequest.
func (m *EchoRequest) MsgType() MsgType { return TypeEchoRequest }

func (m *EchoRequest) marshal(b []byte) ([]byte, error) { return append(b, m.Data...), nil }
func (m *EchoRequest) unmarshal(r *reader)              { m.Data = r.rest() }

// MsgType is TypeEchoReply.
func (m *EchoReply) MsgType() MsgType { return TypeEchoReply }

func (m *EchoReply) marshal(b []byte) ([]byte, error) { return append(b, m.Data...), nil }
func (m *EchoReply) unmarshal(r *reader)              { m.Data = r.rest() }

// MsgType is TypeExperimenter.
func (m *Experimenter) MsgType() MsgType { return TypeExperimenter }

// String names the experimenter and the message; the rest is its own.
func (m *Experimenter) String() string {
	return fmt.Sprintf("EXPERIMENTER 0x%08x type %d, %d bytes", m.Experimenter, m.ExpType, len(m.Data))
}

func (m *Experimenter) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint32(b, m.Experimenter)
	b = be.AppendUint32(b, m.ExpType)
	return append(b, m.Data...), nil
}

func (m *Experimenter) unmarshal(r *reader) {
	m.Experimenter, m.ExpType, m.Data = r.u32(), r.u32(), r.rest()
}

// MsgType is TypeBarrierRequest.
func (m *BarrierRequest) MsgType() MsgType { return TypeBarrierRequest }

func (m *BarrierRequest) marshal(b []byte) ([]byte, error) { return b, nil }
func (m *BarrierRequest) unmarshal(*reader)                {}

// MsgType is TypeBarrierReply.
func (m *BarrierReply) MsgType() MsgType { return TypeBarrierReply }

func (m *BarrierReply) marshal(b []byte) ([]byte, error) { return b, nil }
func (m *BarrierReply) unmarshal(*reader)                {}
