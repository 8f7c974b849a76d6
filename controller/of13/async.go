package of13

import "fmt"

// AsyncMasks say which of a kind of message a controller gets unasked: bit n
// stands for reason n (7.3.10).
type AsyncMasks struct {
	Master uint32 // while it is master or equal
	Slave  uint32
}

// AsyncConfig is the filter of the three kinds of messages that a switch sends
// unasked (7.3.10). Open vSwitch begins with masters 0x3, 0x7, 0xf and slaves
// 0, 0x7, 0.
type AsyncConfig struct{ PacketIn, PortStatus, FlowRemoved AsyncMasks }

// GetAsyncRequest asks for the filter in force on this connection (7.3.10).
type GetAsyncRequest struct{}

// GetAsyncReply answers a GetAsyncRequest (7.3.10).
type GetAsyncReply struct{ AsyncConfig }

// SetAsync sets the filter; there is no reply (7.3.10).
type SetAsync struct{ AsyncConfig }

// String is a one-line summary.
func (c AsyncConfig) String() string {
	return fmt.Sprintf("packet-in 0x%x slave 0x%x, port-status 0x%x slave 0x%x, flow-removed 0x%x slave 0x%x",
		c.PacketIn.Master, c.PacketIn.Slave, c.PortStatus.Master, c.PortStatus.Slave, c.FlowRemoved.Master, c.FlowRemoved.Slave)
}

func (c *AsyncConfig) masks() [6]*uint32 {
	return [...]*uint32{&c.PacketIn.Master, &c.PacketIn.Slave, &c.PortStatus.Master, &c.PortStatus.Slave,
		&c.FlowRemoved.Master, &c.FlowRemoved.Slave}
}

func (c *AsyncConfig) marshal(b []byte) ([]byte, error) {
	for _, m := range c.masks() {
		b = be.AppendUint32(b, *m)
	}
	return b, nil
}

func (c *AsyncConfig) unmarshal(r *reader) {
	for _, m := range c.masks() {
		*m = r.u32()
	}
}

// MsgType is TypeGetAsyncRequest.
func (m *GetAsyncRequest) MsgType() MsgType { return TypeGetAsyncRequest }

func (m *GetAsyncRequest) marshal(b []byte) ([]byte, error) { return b, nil }
func (m *GetAsyncRequest) unmarshal(*reader)                {}

// MsgType is TypeGetAsyncReply.
func (m *GetAsyncReply) MsgType() MsgType { return TypeGetAsyncReply }

// MsgType is TypeSetAsync.
func (m *SetAsync) MsgType() MsgType { return TypeSetAsync }
