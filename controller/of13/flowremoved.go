package of13

import (
	"fmt"
	"time"
)

// FlowRemovedReason says why a rule went (7.4.2).
type FlowRemovedReason uint8

// Reasons.
const (
	RemovedIdleTimeout FlowRemovedReason = 0
	RemovedHardTimeout FlowRemovedReason = 1
	RemovedDelete      FlowRemovedReason = 2
	RemovedGroupDelete FlowRemovedReason = 3
)

// String names the reason.
func (r FlowRemovedReason) String() string {
	return nameOf([]string{"IDLE_TIMEOUT", "HARD_TIMEOUT", "DELETE", "GROUP_DELETE"}, r, "REASON")
}

// FlowRemoved says that a rule with FlowSendRemoved has gone (7.4.2).
type FlowRemoved struct {
	Cookie                   uint64
	Priority                 uint16
	Reason                   FlowRemovedReason
	TableID                  TableID
	Elapsed                  Elapsed // since the rule was added
	IdleTimeout, HardTimeout time.Duration
	// Packets and Bytes may lack what matched shortly before.
	Packets, Bytes uint64
	Match          Match
}

// String is a one-line summary.
func (m *FlowRemoved) String() string {
	return fmt.Sprintf("FLOW_REMOVED %v table %d priority %d cookie 0x%x after %v packets %d bytes %d %v",
		m.Reason, m.TableID, m.Priority, m.Cookie, m.Elapsed, m.Packets, m.Bytes, m.Match)
}

// MsgType is TypeFlowRemoved.
func (m *FlowRemoved) MsgType() MsgType { return TypeFlowRemoved }

func (m *FlowRemoved) marshal(b []byte) ([]byte, error) {
	idle, err := seconds16(m.IdleTimeout)
	if err != nil {
		return b, fmt.Errorf("idle %w", err)
	}
	hard, err := seconds16(m.HardTimeout)
	if err != nil {
		return b, fmt.Errorf("hard %w", err)
	}
	b = be.AppendUint64(b, m.Cookie)
	b = be.AppendUint16(b, m.Priority)
	b = append(b, byte(m.Reason), byte(m.TableID))
	b = appendElapsed(b, m.Elapsed)
	b = be.AppendUint16(b, idle)
	b = be.AppendUint16(b, hard)
	b = be.AppendUint64(b, m.Packets)
	b = be.AppendUint64(b, m.Bytes)
	return AppendMatch(b, m.Match)
}

func (m *FlowRemoved) unmarshal(r *reader) {
	m.Cookie, m.Priority = r.u64(), r.u16()
	m.Reason, m.TableID = FlowRemovedReason(r.u8()), TableID(r.u8())
	m.Elapsed = r.elapsed()
	m.IdleTimeout, m.HardTimeout = r.timeout(), r.timeout()
	m.Packets, m.Bytes = r.u64(), r.u64()
	m.Match = readMatch(r)
}
