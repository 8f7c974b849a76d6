package of13

// GetConfigRequest asks for the switch's configuration (7.3.2).
type GetConfigRequest struct{}

// SwitchConfig is what can be configured for a connection (7.3.2).
type SwitchConfig struct {
	Flags ConfigFlags
	// MissSendLen is how many bytes of a packet without its own MaxLen go to
	// the controller. On a connection made to Open vSwitch it starts at 0,
	// which there means no packet-in at all.
	MissSendLen uint16
}

// GetConfigReply answers a GetConfigRequest (7.3.2).
type GetConfigReply struct{ SwitchConfig }

// SetConfig changes the switch's configuration; there is no reply (7.3.2).
type SetConfig struct{ SwitchConfig }

// ConfigFlags say how fragments are handled (7.3.2, ofp_config_flags).
type ConfigFlags uint16

// Ways to handle fragments. FragNXMatch is Open vSwitch's: fragments are
// matched, the first one with its ports.
const (
	FragNormal  ConfigFlags = 0
	FragDrop    ConfigFlags = 1
	FragReasm   ConfigFlags = 2
	FragNXMatch ConfigFlags = 3
)

// String names the value.
func (f ConfigFlags) String() string {
	return nameOf([]string{"FRAG_NORMAL", "FRAG_DROP", "FRAG_REASM", "FRAG_NX_MATCH"}, f, "FLAGS")
}

func (c *SwitchConfig) marshal(b []byte) ([]byte, error) {
	return be.AppendUint16(be.AppendUint16(b, uint16(c.Flags)), c.MissSendLen), nil
}

func (c *SwitchConfig) unmarshal(r *reader) {
	c.Flags, c.MissSendLen = ConfigFlags(r.u16()), r.u16()
}

// MsgType is TypeGetConfigRequest.
func (m *GetConfigRequest) MsgType() MsgType { return TypeGetConfigRequest }

func (m *GetConfigRequest) marshal(b []byte) ([]byte, error) { return b, nil }
func (m *GetConfigRequest) unmarshal(*reader)                {}

// MsgType is TypeGetConfigReply.
func (m *GetConfigReply) MsgType() MsgType { return TypeGetConfigReply }

// MsgType is TypeSetConfig.
func (m *SetConfig) MsgType() MsgType { return TypeSetConfig }
