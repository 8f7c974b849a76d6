package of13

import (
	"fmt"
	"time"
)

// FlowStatsRequest asks for rules, or for their sum (7.3.5.2, 7.3.5.3). Start
// from [NewFlowStatsRequest]: in a zero request OutPort and OutGroup are
// filters that nothing passes.
type FlowStatsRequest struct {
	TableID            TableID
	OutPort            PortNo  // only rules with this output; PortAny
	OutGroup           GroupID // only rules with this group; GroupAny
	Cookie, CookieMask uint64  // only rules whose cookie agrees in the mask's bits
	Match              Match   // only rules at least as narrow
}

// NewFlowStatsRequest asks for the rules of one table, or of all, whose cookie
// agrees with cookie in the bits of mask (0: all rules).
func NewFlowStatsRequest(table TableID, cookie, mask uint64) *MultipartRequest {
	return &MultipartRequest{Type: MultipartFlow, Body: &FlowStatsRequest{TableID: table, OutPort: PortAny,
		OutGroup: GroupAny, Cookie: cookie, CookieMask: mask}}
}

func (q *FlowStatsRequest) fits(t MultipartType, reply bool) bool {
	return !reply && (t == MultipartFlow || t == MultipartAggregate)
}

func (q *FlowStatsRequest) appendBody(b []byte) ([]byte, error) {
	b = appendPad(append(b, byte(q.TableID)), 3)
	b = be.AppendUint32(b, uint32(q.OutPort))
	b = be.AppendUint32(b, uint32(q.OutGroup))
	b = appendPad(b, 4)
	b = be.AppendUint64(b, q.Cookie)
	b = be.AppendUint64(b, q.CookieMask)
	return AppendMatch(b, q.Match)
}

func (q *FlowStatsRequest) read(r *reader) {
	q.TableID = TableID(r.u8())
	r.pad(3)
	q.OutPort, q.OutGroup = PortNo(r.u32()), GroupID(r.u32())
	r.pad(4)
	q.Cookie, q.CookieMask = r.u64(), r.u64()
	q.Match = readMatch(r)
}

// FlowStats is one rule with its counters (7.3.5.2).
type FlowStats struct {
	TableID                  TableID
	Elapsed                  Elapsed // since the rule was added
	Priority                 uint16
	IdleTimeout, HardTimeout time.Duration // whole seconds
	Flags                    FlowFlags
	Cookie                   uint64
	Packets, Bytes           uint64 // Open vSwitch counts some 0.3 s late
	Match                    Match
	Instructions             []Instruction
}

// String is a one-line summary.
func (s FlowStats) String() string {
	return fmt.Sprintf("table %d priority %d cookie 0x%x packets %d bytes %d age %v idle %v hard %v flags %v %v %s",
		s.TableID, s.Priority, s.Cookie, s.Packets, s.Bytes, s.Elapsed, s.IdleTimeout, s.HardTimeout, s.Flags,
		s.Match, instructionsString(s.Instructions))
}

// FlowStatsReply is the rules in one part of the answer (7.3.5.2).
type FlowStatsReply []FlowStats

func (l FlowStatsReply) fits(t MultipartType, reply bool) bool { return reply && t == MultipartFlow }

func (l FlowStatsReply) appendBody(b []byte) ([]byte, error) {
	for i := range l {
		start := len(b)
		var err error
		if b, err = l[i].append(b); err == nil {
			err = putLen16(b[start:], len(b)-start)
		}
		if err != nil {
			return b, fmt.Errorf("rule %d: %w", i, err)
		}
	}
	return b, nil
}

func (s *FlowStats) append(b []byte) ([]byte, error) {
	idle, err := seconds16(s.IdleTimeout)
	if err != nil {
		return b, fmt.Errorf("idle %w", err)
	}
	hard, err := seconds16(s.HardTimeout)
	if err != nil {
		return b, fmt.Errorf("hard %w", err)
	}
	b = append(b, 0, 0, byte(s.TableID), 0)
	b = appendElapsed(b, s.Elapsed)
	b = be.AppendUint16(b, s.Priority)
	b = be.AppendUint16(b, idle)
	b = be.AppendUint16(b, hard)
	b = be.AppendUint16(b, uint16(s.Flags))
	b = appendPad(b, 4)
	b = be.AppendUint64(b, s.Cookie)
	b = be.AppendUint64(b, s.Packets)
	b = be.AppendUint64(b, s.Bytes)
	if b, err = AppendMatch(b, s.Match); err != nil {
		return b, err
	}
	return AppendInstructions(b, s.Instructions)
}

func readFlowStats(r *reader) FlowStatsReply {
	var list FlowStatsReply
	for r.err == nil && len(r.b) > 0 {
		n := int(r.u16())
		s := r.sub(n-2, ErrTypeBadRequest, BadRequestBadLen)
		var f FlowStats
		f.TableID = TableID(s.u8())
		s.pad(1)
		f.Elapsed = s.elapsed()
		f.Priority = s.u16()
		f.IdleTimeout, f.HardTimeout = s.timeout(), s.timeout()
		f.Flags = FlowFlags(s.u16())
		s.pad(4)
		f.Cookie, f.Packets, f.Bytes = s.u64(), s.u64(), s.u64()
		f.Match = readMatch(s)
		f.Instructions = readInstructions(s)
		r.join(s)
		list = append(list, f)
	}
	return list
}

// AggregateReply is the sum over the requested rules (7.3.5.3).
type AggregateReply struct {
	Packets, Bytes uint64
	Flows          uint32
}

func (d *AggregateReply) fits(t MultipartType, reply bool) bool {
	return reply && t == MultipartAggregate
}

func (d *AggregateReply) appendBody(b []byte) ([]byte, error) {
	b = be.AppendUint64(b, d.Packets)
	b = be.AppendUint64(b, d.Bytes)
	return appendPad(be.AppendUint32(b, d.Flows), 4), nil
}

// DescReply describes the switch in words (7.3.5.1): at most 256 bytes each,
// the serial number 32.
type DescReply struct{ Manufacturer, Hardware, Software, SerialNumber, Datapath string }

func (d *DescReply) fits(t MultipartType, reply bool) bool { return reply && t == MultipartDesc }

func (d *DescReply) appendBody(b []byte) ([]byte, error) {
	for _, f := range [...]struct {
		s string
		n int
	}{{d.Manufacturer, 256}, {d.Hardware, 256}, {d.Software, 256}, {d.SerialNumber, 32}, {d.Datapath, 256}} {
		var err error
		if b, err = appendText(b, f.s, f.n); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (d *DescReply) read(r *reader) {
	d.Manufacturer, d.Hardware, d.Software = r.text(256), r.text(256), r.text(256)
	d.SerialNumber, d.Datapath = r.text(32), r.text(256)
}

// TableStats counts the lookups of one table (7.3.5.4).
type TableStats struct {
	TableID          TableID
	Active           uint32 // rules
	Lookups, Matched uint64 // packets
}

// TableStatsReply is the tables in one part of the answer (7.3.5.4).
type TableStatsReply []TableStats

func (l TableStatsReply) fits(t MultipartType, reply bool) bool { return reply && t == MultipartTable }

func (l TableStatsReply) appendBody(b []byte) ([]byte, error) {
	for _, s := range l {
		b = be.AppendUint32(appendPad(append(b, byte(s.TableID)), 3), s.Active)
		b = be.AppendUint64(be.AppendUint64(b, s.Lookups), s.Matched)
	}
	return b, nil
}

func readTableStats(r *reader) TableStatsReply {
	var list TableStatsReply
	for r.err == nil && len(r.b) > 0 {
		var s TableStats
		s.TableID = TableID(r.u8())
		r.pad(3)
		s.Active, s.Lookups, s.Matched = r.u32(), r.u64(), r.u64()
		list = append(list, s)
	}
	return list
}

// PortStatsRequest asks for the counters of one port, or of PortAny (7.3.5.6).
type PortStatsRequest struct{ Port PortNo }

// NewPortStatsRequest asks for the counters of one port, or of PortAny.
func NewPortStatsRequest(p PortNo) *MultipartRequest {
	return &MultipartRequest{Type: MultipartPortStats, Body: &PortStatsRequest{p}}
}

func (q *PortStatsRequest) fits(t MultipartType, reply bool) bool {
	return !reply && t == MultipartPortStats
}

func (q *PortStatsRequest) appendBody(b []byte) ([]byte, error) {
	return appendPad(be.AppendUint32(b, uint32(q.Port)), 4), nil
}

// PortStats are the counters of one port (7.3.5.6). All ones in a counter is
// "not counted".
type PortStats struct {
	Port                                        PortNo
	RxPackets, TxPackets, RxBytes, TxBytes      uint64
	RxDropped, TxDropped, RxErrors, TxErrors    uint64
	RxFrameErr, RxOverErr, RxCRCErr, Collisions uint64
	Elapsed                                     Elapsed // since the port came up
}

// PortStatsReply is the ports in one part of the answer (7.3.5.6).
type PortStatsReply []PortStats

func (l PortStatsReply) fits(t MultipartType, reply bool) bool {
	return reply && t == MultipartPortStats
}

func (s *PortStats) counters() [12]*uint64 {
	return [...]*uint64{&s.RxPackets, &s.TxPackets, &s.RxBytes, &s.TxBytes, &s.RxDropped, &s.TxDropped,
		&s.RxErrors, &s.TxErrors, &s.RxFrameErr, &s.RxOverErr, &s.RxCRCErr, &s.Collisions}
}

func (l PortStatsReply) appendBody(b []byte) ([]byte, error) {
	for i := range l {
		b = appendPad(be.AppendUint32(b, uint32(l[i].Port)), 4)
		for _, c := range l[i].counters() {
			b = be.AppendUint64(b, *c)
		}
		b = appendElapsed(b, l[i].Elapsed)
	}
	return b, nil
}

func readPortStats(r *reader) PortStatsReply {
	var list PortStatsReply
	for r.err == nil && len(r.b) > 0 {
		var s PortStats
		s.Port = PortNo(r.u32())
		r.pad(4)
		for _, c := range s.counters() {
			*c = r.u64()
		}
		s.Elapsed = r.elapsed()
		list = append(list, s)
	}
	return list
}

// PortDescReply is the ports of the switch (7.3.5.7).
type PortDescReply []Port

func (l PortDescReply) fits(t MultipartType, reply bool) bool { return reply && t == MultipartPortDesc }

func (l PortDescReply) appendBody(b []byte) (_ []byte, err error) {
	for i := range l {
		if b, err = l[i].append(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

func readPortDescs(r *reader) PortDescReply {
	var list PortDescReply
	for r.err == nil && len(r.b) > 0 {
		var p Port
		p.read(r)
		list = append(list, p)
	}
	return list
}
