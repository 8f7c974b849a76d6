package of13

import "fmt"

// FeaturesRequest asks for the switch's identity (7.3.1).
type FeaturesRequest struct{}

// FeaturesReply is the switch's identity (7.3.1).
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32 // packets the switch can keep at once
	Tables       uint8
	AuxiliaryID  uint8 // 0 on the main connection
	Capabilities Capabilities
	Reserved     uint32
}

// Capabilities are the bits of ofp_capabilities (7.3.1).
type Capabilities uint32

// Capabilities.
const (
	CapFlowStats   Capabilities = 1 << 0
	CapTableStats  Capabilities = 1 << 1
	CapPortStats   Capabilities = 1 << 2
	CapGroupStats  Capabilities = 1 << 3
	CapIPReasm     Capabilities = 1 << 5
	CapQueueStats  Capabilities = 1 << 6
	CapPortBlocked Capabilities = 1 << 8
)

// String names the bits.
func (c Capabilities) String() string {
	return flagNames([]string{"FLOW_STATS", "TABLE_STATS", "PORT_STATS", "GROUP_STATS", "", "IP_REASM",
		"QUEUE_STATS", "", "PORT_BLOCKED"}, c)
}

// String is a one-line summary.
func (m *FeaturesReply) String() string {
	return fmt.Sprintf("FEATURES_REPLY dpid %016x tables %d buffers %d aux %d capabilities %v",
		m.DatapathID, m.Tables, m.Buffers, m.AuxiliaryID, m.Capabilities)
}

// MsgType is TypeFeaturesRequest.
func (m *FeaturesRequest) MsgType() MsgType { return TypeFeaturesRequest }

func (m *FeaturesRequest) marshal(b []byte) ([]byte, error) { return b, nil }
func (m *FeaturesRequest) unmarshal(*reader)                {}

// MsgType is TypeFeaturesReply.
func (m *FeaturesReply) MsgType() MsgType { return TypeFeaturesReply }

func (m *FeaturesReply) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint64(b, m.DatapathID)
	b = be.AppendUint32(b, m.Buffers)
	b = append(b, m.Tables, m.AuxiliaryID, 0, 0)
	b = be.AppendUint32(b, uint32(m.Capabilities))
	return be.AppendUint32(b, m.Reserved), nil
}

func (m *FeaturesReply) unmarshal(r *reader) {
	m.DatapathID, m.Buffers, m.Tables, m.AuxiliaryID = r.u64(), r.u32(), r.u8(), r.u8()
	r.pad(2)
	m.Capabilities, m.Reserved = Capabilities(r.u32()), r.u32()
}
