package of13

import (
	"fmt"
	"strings"
	"time"
)

// MsgType is the type of a message (7.1.1, ofp_type).
type MsgType uint8

// Message types.
const (
	TypeHello MsgType = iota
	TypeError
	TypeEchoRequest
	TypeEchoReply
	TypeExperimenter
	TypeFeaturesRequest
	TypeFeaturesReply
	TypeGetConfigRequest
	TypeGetConfigReply
	TypeSetConfig
	TypePacketIn
	TypeFlowRemoved
	TypePortStatus
	TypePacketOut
	TypeFlowMod
	TypeGroupMod
	TypePortMod
	TypeTableMod
	TypeMultipartRequest
	TypeMultipartReply
	TypeBarrierRequest
	TypeBarrierReply
	TypeQueueGetConfigRequest
	TypeQueueGetConfigReply
	TypeRoleRequest
	TypeRoleReply
	TypeGetAsyncRequest
	TypeGetAsyncReply
	TypeSetAsync
	TypeMeterMod
)

var msgTypeNames = []string{"HELLO", "ERROR", "ECHO_REQUEST", "ECHO_REPLY", "EXPERIMENTER",
	"FEATURES_REQUEST", "FEATURES_REPLY", "GET_CONFIG_REQUEST", "GET_CONFIG_REPLY", "SET_CONFIG",
	"PACKET_IN", "FLOW_REMOVED", "PORT_STATUS", "PACKET_OUT", "FLOW_MOD", "GROUP_MOD", "PORT_MOD",
	"TABLE_MOD", "MULTIPART_REQUEST", "MULTIPART_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY",
	"QUEUE_GET_CONFIG_REQUEST", "QUEUE_GET_CONFIG_REPLY", "ROLE_REQUEST", "ROLE_REPLY",
	"GET_ASYNC_REQUEST", "GET_ASYNC_REPLY", "SET_ASYNC", "METER_MOD"}

// String is the name in the specification without OFPT_.
func (t MsgType) String() string { return nameOf(msgTypeNames, t, "TYPE") }

// PortNo numbers a port of a switch (7.2.1, ofp_port_no).
type PortNo uint32

// Port numbers with a meaning of their own. Physical and logical ports are 1
// to PortMax.
const (
	PortMax        PortNo = 0xffffff00
	PortInPort     PortNo = 0xfffffff8 // back where the packet came from
	PortTable      PortNo = 0xfffffff9 // through the flow tables; packet-out only
	PortNormal     PortNo = 0xfffffffa
	PortFlood      PortNo = 0xfffffffb
	PortAll        PortNo = 0xfffffffc
	PortController PortNo = 0xfffffffd
	PortLocal      PortNo = 0xfffffffe
	PortAny        PortNo = 0xffffffff // no filter, in requests and deletes
)

// String is the number, or the reserved port's name.
func (p PortNo) String() string {
	if p >= PortInPort {
		return [...]string{"IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY"}[p-PortInPort]
	}
	return fmt.Sprintf("%d", uint32(p))
}

// TableID numbers a flow table (7.3.4.1).
type TableID uint8

// Table numbers.
const (
	TableMax TableID = 0xfe // largest usable number
	TableAll TableID = 0xff // all tables, in deletes and statistics requests
)

// GroupID numbers a group (7.3.4.2).
type GroupID uint32

// Group numbers with a meaning of their own.
const (
	GroupMax GroupID = 0xffffff00
	GroupAll GroupID = 0xfffffffc // all groups, when deleting
	GroupAny GroupID = 0xffffffff // no filter, in requests and deletes
)

// String is the number, or the reserved group's name.
func (g GroupID) String() string {
	switch g {
	case GroupAll:
		return "ALL"
	case GroupAny:
		return "ANY"
	}
	return fmt.Sprintf("%d", uint32(g))
}

// MeterID numbers a meter (7.3.4.4); 1 to MeterMax.
type MeterID uint32

// Meter numbers with a meaning of their own.
const (
	MeterMax        MeterID = 0xffff0000
	MeterSlowpath   MeterID = 0xfffffffd
	MeterController MeterID = 0xfffffffe
	MeterAll        MeterID = 0xffffffff
)

// NoBuffer as a buffer id says that the packet is not kept by the switch
// (7.4.1, OFP_NO_BUFFER).
const NoBuffer uint32 = 0xffffffff

// MaxLenNoBuffer as the MaxLen of an [Output] to the controller, or as
// MissSendLen, asks for the whole packet (7.2.5, OFPCML_NO_BUFFER).
const MaxLenNoBuffer uint16 = 0xffff

// Elapsed is a duration as switches send it. All ones in both parts is what
// Open vSwitch sends for "not known".
type Elapsed struct{ Sec, Nsec uint32 }

// Duration is e as a duration.
func (e Elapsed) Duration() time.Duration {
	return time.Duration(e.Sec)*time.Second + time.Duration(e.Nsec)
}

// String is e in seconds, or "unknown".
func (e Elapsed) String() string {
	if e.Sec == 0xffffffff && e.Nsec == 0xffffffff {
		return "unknown"
	}
	return e.Duration().String()
}

func (r *reader) elapsed() Elapsed { return Elapsed{r.u32(), r.u32()} }

func appendElapsed(b []byte, e Elapsed) []byte {
	return be.AppendUint32(be.AppendUint32(b, e.Sec), e.Nsec)
}

// seconds16 is a timeout on the wire: whole seconds, 16 bits.
func seconds16(d time.Duration) (uint16, error) {
	if d < 0 || d%time.Second != 0 || d/time.Second > 0xffff {
		return 0, fmt.Errorf("timeout %v: want whole seconds from 0 to 65535", d)
	}
	return uint16(d / time.Second), nil
}

func (r *reader) timeout() time.Duration { return time.Duration(r.u16()) * time.Second }

// macString is a hardware address in hex with colons.
func macString(m [6]byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

func (r *reader) mac() (m [6]byte) {
	copy(m[:], r.take(6))
	return m
}

// nameOf is the name at v's place in the table, else prefix and number.
func nameOf[T ~uint8 | ~uint16 | ~uint32](table []string, v T, prefix string) string {
	if uint64(v) < uint64(len(table)) && table[v] != "" {
		return table[v]
	}
	return fmt.Sprintf("%s_%d", prefix, v)
}

// flagNames joins the names of the bits set in v; bits without a name as hex,
// no bits as "0".
func flagNames[T ~uint8 | ~uint16 | ~uint32](table []string, v T) string {
	if v == 0 {
		return "0"
	}
	var parts []string
	for i, n := range table {
		if bit := uint64(1) << i; n != "" && uint64(v)&bit != 0 {
			parts = append(parts, n)
			v &^= T(bit)
		}
	}
	if v != 0 {
		parts = append(parts, fmt.Sprintf("0x%x", uint64(v)))
	}
	return strings.Join(parts, "|")
}
