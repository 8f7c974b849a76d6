package of13

import "fmt"

// MultipartType says what a multipart message is about (7.3.5).
type MultipartType uint16

// Multipart types.
const (
	MultipartDesc          MultipartType = 0
	MultipartFlow          MultipartType = 1
	MultipartAggregate     MultipartType = 2
	MultipartTable         MultipartType = 3
	MultipartPortStats     MultipartType = 4
	MultipartQueue         MultipartType = 5
	MultipartGroup         MultipartType = 6
	MultipartGroupDesc     MultipartType = 7
	MultipartGroupFeatures MultipartType = 8
	MultipartMeter         MultipartType = 9
	MultipartMeterConfig   MultipartType = 10
	MultipartMeterFeatures MultipartType = 11
	MultipartTableFeatures MultipartType = 12
	MultipartPortDesc      MultipartType = 13
	MultipartExperimenter  MultipartType = 0xffff
)

// String names the type.
func (t MultipartType) String() string {
	if t == MultipartExperimenter {
		return "EXPERIMENTER"
	}
	return nameOf([]string{"DESC", "FLOW", "AGGREGATE", "TABLE", "PORT_STATS", "QUEUE", "GROUP", "GROUP_DESC",
		"GROUP_FEATURES", "METER", "METER_CONFIG", "METER_FEATURES", "TABLE_FEATURES", "PORT_DESC"}, t, "MULTIPART")
}

// MultipartFlags are the flags of both multipart messages (7.3.5).
type MultipartFlags uint16

// MultipartMore says that another part with the same xid follows.
const MultipartMore MultipartFlags = 1

// MultipartRequest asks for something that may need more than one message to
// answer (7.3.5). Its Body is
//
//	Flow, Aggregate:    *FlowStatsRequest
//	PortStats:          *PortStatsRequest
//	Meter, MeterConfig: *MeterRequest
//	any other:          RawBody, or nil if there is none (Desc, Table, PortDesc, …)
type MultipartRequest struct {
	Type  MultipartType
	Flags MultipartFlags
	Body  MultipartBody
}

// MultipartReply is one part of the answer; all parts have the request's xid,
// and all but the last have MultipartMore (7.3.5). Its Body is
//
//	Desc:          *DescReply
//	Flow:          FlowStatsReply
//	Aggregate:     *AggregateReply
//	Table:         TableStatsReply
//	PortStats:     PortStatsReply
//	PortDesc:      PortDescReply
//	Meter:         MeterStatsReply
//	MeterConfig:   MeterConfigReply
//	MeterFeatures: *MeterFeatures
//	any other:     RawBody, or nil if there is none
type MultipartReply struct {
	Type  MultipartType
	Flags MultipartFlags
	Body  MultipartBody
}

// MultipartBody is what follows the multipart header.
type MultipartBody interface {
	appendBody(b []byte) ([]byte, error)
	// fits reports whether the body belongs to that type of request or reply.
	fits(t MultipartType, reply bool) bool
}

// RawBody is the body of a multipart type that is not modelled.
type RawBody []byte

func (d RawBody) appendBody(b []byte) ([]byte, error) { return append(b, d...), nil }
func (d RawBody) fits(MultipartType, bool) bool       { return true }

// More reports whether another part follows.
func (m *MultipartReply) More() bool { return m.Flags&MultipartMore != 0 }

// NewMultipartRequest asks for a type without body: Desc, Table, PortDesc, ….
func NewMultipartRequest(t MultipartType) *MultipartRequest { return &MultipartRequest{Type: t} }

// String is a one-line summary.
func (m *MultipartRequest) String() string {
	return multipartString(m.MsgType(), m.Type, m.Flags, m.Body)
}

// String is a one-line summary; of many rules or ports only the number.
func (m *MultipartReply) String() string {
	return multipartString(m.MsgType(), m.Type, m.Flags, m.Body)
}

func multipartString(msg MsgType, t MultipartType, f MultipartFlags, body MultipartBody) string {
	s := fmt.Sprintf("%v %v", msg, t)
	if f&MultipartMore != 0 {
		s += " more"
	}
	switch d := body.(type) {
	case nil:
	case RawBody:
		s += fmt.Sprintf(" body of %d bytes", len(d))
	case FlowStatsReply:
		s += fmt.Sprintf(" %d rules", len(d))
	case TableStatsReply:
		s += fmt.Sprintf(" %d tables", len(d))
	case PortStatsReply:
		s += fmt.Sprintf(" %d ports", len(d))
	case PortDescReply:
		s += fmt.Sprintf(" %d ports", len(d))
	case *FlowStatsRequest:
		s += fmt.Sprintf(" table %d cookie 0x%x/0x%x out_port %v out_group %v %v",
			d.TableID, d.Cookie, d.CookieMask, d.OutPort, d.OutGroup, d.Match)
	case MeterStatsReply:
		s += fmt.Sprintf(" %d meters", len(d))
	case MeterConfigReply:
		s += fmt.Sprintf(" %d meters", len(d))
	case *MeterRequest:
		s += fmt.Sprintf(" meter %v", d.Meter)
	case *MeterFeatures:
		s += fmt.Sprintf(" max %d meters of %d bands, types 0x%x, capabilities 0x%x", d.MaxMeter, d.MaxBands, d.BandTypes, d.Capabilities)
	case *PortStatsRequest:
		s += fmt.Sprintf(" port %v", d.Port)
	case *AggregateReply:
		s += fmt.Sprintf(" packets %d bytes %d rules %d", d.Packets, d.Bytes, d.Flows)
	case *DescReply:
		s += fmt.Sprintf(" %q %q %q serial %q %q", d.Manufacturer, d.Hardware, d.Software, d.SerialNumber, d.Datapath)
	}
	return s
}

// MsgType is TypeMultipartRequest.
func (m *MultipartRequest) MsgType() MsgType { return TypeMultipartRequest }

// MsgType is TypeMultipartReply.
func (m *MultipartReply) MsgType() MsgType { return TypeMultipartReply }

func (m *MultipartRequest) marshal(b []byte) ([]byte, error) {
	return appendMultipart(b, m.Type, m.Flags, m.Body, false)
}

func (m *MultipartReply) marshal(b []byte) ([]byte, error) {
	return appendMultipart(b, m.Type, m.Flags, m.Body, true)
}

func appendMultipart(b []byte, t MultipartType, f MultipartFlags, body MultipartBody, reply bool) ([]byte, error) {
	b = be.AppendUint16(b, uint16(t))
	b = be.AppendUint16(b, uint16(f))
	b = appendPad(b, 4)
	if body == nil {
		return b, nil
	}
	if !body.fits(t, reply) {
		return b, fmt.Errorf("body %T in a multipart message of type %v", body, t)
	}
	return body.appendBody(b)
}

func (m *MultipartRequest) unmarshal(r *reader) {
	m.Type, m.Flags = MultipartType(r.u16()), MultipartFlags(r.u16())
	r.pad(4)
	switch m.Type {
	case MultipartFlow, MultipartAggregate:
		q := new(FlowStatsRequest)
		q.read(r)
		m.Body = q
	case MultipartPortStats:
		q := &PortStatsRequest{Port: PortNo(r.u32())}
		r.pad(4)
		m.Body = q
	case MultipartMeter, MultipartMeterConfig:
		q := &MeterRequest{Meter: MeterID(r.u32())}
		r.pad(4)
		m.Body = q
	case MultipartDesc, MultipartTable, MultipartPortDesc, MultipartMeterFeatures:
		// no body (7.3.5)
	default:
		m.Body = rawBody(r)
	}
}

func (m *MultipartReply) unmarshal(r *reader) {
	m.Type, m.Flags = MultipartType(r.u16()), MultipartFlags(r.u16())
	r.pad(4)
	switch m.Type {
	case MultipartDesc:
		d := new(DescReply)
		d.read(r)
		m.Body = d
	case MultipartFlow:
		m.Body = readFlowStats(r)
	case MultipartAggregate:
		d := &AggregateReply{Packets: r.u64(), Bytes: r.u64(), Flows: r.u32()}
		r.pad(4)
		m.Body = d
	case MultipartTable:
		m.Body = readTableStats(r)
	case MultipartPortStats:
		m.Body = readPortStats(r)
	case MultipartPortDesc:
		m.Body = readPortDescs(r)
	case MultipartMeter:
		m.Body = readMeterStats(r)
	case MultipartMeterConfig:
		m.Body = readMeterConfigs(r)
	case MultipartMeterFeatures:
		d := new(MeterFeatures)
		d.read(r)
		m.Body = d
	default:
		m.Body = rawBody(r)
	}
}

func rawBody(r *reader) MultipartBody {
	if d := r.rest(); d != nil {
		return RawBody(d)
	}
	return nil
}
