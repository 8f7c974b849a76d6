package of13

import (
	"fmt"
	"strings"
	"time"
)

// FlowCommand says what a flow-mod does (7.3.4.1, ofp_flow_mod_command).
type FlowCommand uint8

// Commands. The strict ones compare priority and masks too; the others reach
// every rule that the match covers.
const (
	FlowAdd          FlowCommand = 0
	FlowModify       FlowCommand = 1
	FlowModifyStrict FlowCommand = 2
	FlowDelete       FlowCommand = 3
	FlowDeleteStrict FlowCommand = 4
)

// String names the command.
func (c FlowCommand) String() string {
	return nameOf([]string{"ADD", "MODIFY", "MODIFY_STRICT", "DELETE", "DELETE_STRICT"}, c, "COMMAND")
}

// FlowFlags are the flags of a flow-mod and of a rule (7.3.4.1).
type FlowFlags uint16

// Flags.
const (
	FlowSendRemoved  FlowFlags = 1 << 0 // send FLOW_REMOVED when the rule goes
	FlowCheckOverlap FlowFlags = 1 << 1
	FlowResetCounts  FlowFlags = 1 << 2
	FlowNoPktCounts  FlowFlags = 1 << 3
	FlowNoBytCounts  FlowFlags = 1 << 4
)

// String names the bits.
func (f FlowFlags) String() string {
	return flagNames([]string{"SEND_FLOW_REM", "CHECK_OVERLAP", "RESET_COUNTS", "NO_PKT_COUNTS", "NO_BYT_COUNTS"}, f)
}

// FlowMod adds, changes or deletes rules (7.3.4.1). Start from [NewFlowMod]:
// in a zero FlowMod BufferID, OutPort and OutGroup mean buffer, port and group
// 0, so that a delete silently deletes nothing.
type FlowMod struct {
	Cookie     uint64
	CookieMask uint64 // filter for modify and delete; 0 is no filter
	TableID    TableID
	Command    FlowCommand
	// IdleTimeout and HardTimeout are whole seconds up to 65535 s; 0 is never.
	IdleTimeout, HardTimeout time.Duration
	Priority                 uint16
	BufferID                 uint32  // NoBuffer
	OutPort                  PortNo  // delete only rules with this output; PortAny
	OutGroup                 GroupID // delete only rules with this group; GroupAny
	Flags                    FlowFlags
	Match                    Match
	Instructions             []Instruction // none: drop
}

// NewFlowMod is a flow-mod without filters or buffer.
func NewFlowMod(c FlowCommand) *FlowMod {
	return &FlowMod{Command: c, BufferID: NoBuffer, OutPort: PortAny, OutGroup: GroupAny}
}

// String is a one-line summary.
func (m *FlowMod) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "FLOW_MOD %v table %d priority %d cookie 0x%x", m.Command, m.TableID, m.Priority, m.Cookie)
	if m.CookieMask != 0 {
		fmt.Fprintf(&b, "/0x%x", m.CookieMask)
	}
	if m.IdleTimeout != 0 {
		fmt.Fprintf(&b, " idle %v", m.IdleTimeout)
	}
	if m.HardTimeout != 0 {
		fmt.Fprintf(&b, " hard %v", m.HardTimeout)
	}
	if m.OutPort != PortAny {
		fmt.Fprintf(&b, " out_port %v", m.OutPort)
	}
	if m.OutGroup != GroupAny {
		fmt.Fprintf(&b, " out_group %v", m.OutGroup)
	}
	if m.Flags != 0 {
		fmt.Fprintf(&b, " flags %v", m.Flags)
	}
	fmt.Fprintf(&b, " %v %s", m.Match, instructionsString(m.Instructions))
	return b.String()
}

// MsgType is TypeFlowMod.
func (m *FlowMod) MsgType() MsgType { return TypeFlowMod }

func (m *FlowMod) marshal(b []byte) ([]byte, error) {
	idle, err := seconds16(m.IdleTimeout)
	if err != nil {
		return b, fmt.Errorf("idle %w", err)
	}
	hard, err := seconds16(m.HardTimeout)
	if err != nil {
		return b, fmt.Errorf("hard %w", err)
	}
	b = be.AppendUint64(b, m.Cookie)
	b = be.AppendUint64(b, m.CookieMask)
	b = append(b, byte(m.TableID), byte(m.Command))
	b = be.AppendUint16(b, idle)
	b = be.AppendUint16(b, hard)
	b = be.AppendUint16(b, m.Priority)
	b = be.AppendUint32(b, m.BufferID)
	b = be.AppendUint32(b, uint32(m.OutPort))
	b = be.AppendUint32(b, uint32(m.OutGroup))
	b = be.AppendUint16(b, uint16(m.Flags))
	b = appendPad(b, 2)
	if b, err = AppendMatch(b, m.Match); err != nil {
		return b, err
	}
	return AppendInstructions(b, m.Instructions)
}

func (m *FlowMod) unmarshal(r *reader) {
	m.Cookie, m.CookieMask = r.u64(), r.u64()
	m.TableID, m.Command = TableID(r.u8()), FlowCommand(r.u8())
	m.IdleTimeout, m.HardTimeout = r.timeout(), r.timeout()
	m.Priority, m.BufferID = r.u16(), r.u32()
	m.OutPort, m.OutGroup, m.Flags = PortNo(r.u32()), GroupID(r.u32()), FlowFlags(r.u16())
	r.pad(2)
	m.Match = readMatch(r)
	m.Instructions = readInstructions(r)
}
