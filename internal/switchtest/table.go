package switchtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"netsplit/controller/of13"
)

// entry is one rule.
type entry struct {
	of13.FlowStats
	match string    // its Key
	added time.Time // when the hard timeout's clock started
}

// flowMod applies a flow-mod. It returns the error to answer with, or nil, and
// the rules it removed that asked for a message.
func (s *Switch) flowMod(m *of13.FlowMod) (*of13.Error, []*of13.FlowRemoved) {
	if err := m.Match.Validate(); err != nil {
		if pe, ok := err.(*of13.ParseError); ok {
			return &of13.Error{Type: pe.Type, Code: pe.Code}, nil
		}
	}
	if m.BufferID != of13.NoBuffer && m.Command < of13.FlowDelete {
		return &of13.Error{Type: of13.ErrTypeBadRequest, Code: of13.BadRequestBufferUnknown}, nil
	}
	match := m.Match.Key()
	switch m.Command {
	case of13.FlowAdd:
		return s.add(m, match), nil
	case of13.FlowDelete, of13.FlowDeleteStrict:
		return nil, s.remove(of13.RemovedDelete, func(e *entry) bool { return selects(m, match, e) })
	case of13.FlowModify, of13.FlowModifyStrict:
		for _, e := range s.flows {
			if selects(m, match, e) {
				e.Instructions = m.Instructions
			}
		}
		return nil, nil
	}
	return &of13.Error{Type: of13.ErrTypeFlowModFailed, Code: of13.FlowModFailedBadCommand}, nil
}

func (s *Switch) add(m *of13.FlowMod, match string) *of13.Error {
	if m.TableID >= of13.TableID(s.cfg.Tables) {
		return &of13.Error{Type: of13.ErrTypeFlowModFailed, Code: of13.FlowModFailedBadTableID}
	}
	for _, i := range m.Instructions {
		if g, ok := i.(of13.GotoTable); ok && (g.Table <= m.TableID || g.Table >= of13.TableID(s.cfg.Tables)) {
			return &of13.Error{Type: of13.ErrTypeBadInstruction, Code: of13.BadInstructionBadTableID}
		}
		if mt, ok := i.(of13.Meter); ok && !s.knows(mt.ID) {
			return &of13.Error{Type: of13.ErrTypeMeterModFailed, Code: of13.MeterModFailedInvalidMeter}
		}
	}
	e := &entry{match: match, added: s.cfg.Now(), FlowStats: of13.FlowStats{TableID: m.TableID, Priority: m.Priority, Cookie: m.Cookie,
		HardTimeout: m.HardTimeout, IdleTimeout: m.IdleTimeout, Flags: m.Flags &^ of13.FlowResetCounts,
		Match: m.Match.Normalize(), Instructions: of13.NormalizeInstructions(m.Instructions)}}
	used := 0
	for i, o := range s.flows {
		if o.TableID != e.TableID {
			continue
		}
		used++
		if o.Priority == e.Priority && o.match == match {
			// "If a flow entry with identical match fields and priority
			// currently resides in the requested table, then that flow entry
			// must be cleared from the table" (6.4); its counters stay unless
			// OFPFF_RESET_COUNTS is set.
			if m.Flags&of13.FlowResetCounts == 0 {
				e.Packets, e.Bytes = o.Packets, o.Bytes
			}
			s.flows[i] = e
			return nil
		}
	}
	if s.cfg.Limit > 0 && used >= s.cfg.Limit {
		return &of13.Error{Type: of13.ErrTypeFlowModFailed, Code: of13.FlowModFailedTableFull}
	}
	s.flows = append(s.flows, e)
	return nil
}

// selects reports whether a delete or modify is about the rule (6.4); match is its Key.
func selects(m *of13.FlowMod, match string, e *entry) bool {
	if m.TableID != of13.TableAll && m.TableID != e.TableID {
		return false
	}
	if m.CookieMask != 0 && (m.Cookie^e.Cookie)&m.CookieMask != 0 {
		return false
	}
	if m.Command == of13.FlowDelete || m.Command == of13.FlowDeleteStrict {
		if m.OutGroup != of13.GroupAny || (m.OutPort != of13.PortAny && !outputs(e, m.OutPort)) {
			return false
		}
	}
	if m.Command == of13.FlowDeleteStrict || m.Command == of13.FlowModifyStrict {
		return m.Priority == e.Priority && match == e.match
	}
	return covers(m.Match, e.Match)
}

func outputs(e *entry, p of13.PortNo) bool {
	for _, i := range e.Instructions {
		if a, ok := i.(of13.ApplyActions); ok {
			for _, act := range a.Actions {
				if o, ok := act.(of13.Output); ok && o.Port == p {
					return true
				}
			}
		}
	}
	return false
}

// covers reports whether every packet that narrow matches, wide matches too.
func covers(wide, narrow of13.Match) bool {
	for _, w := range wide.Normalize() {
		n, ok := narrow.Get(w.Class, w.Field)
		if !ok || len(n.Value) != len(w.Value) {
			return false
		}
		for i := range w.Value {
			wm, nm := maskAt(w, i), maskAt(n, i)
			if wm&^nm != 0 || (w.Value[i]^n.Value[i])&wm != 0 {
				return false
			}
		}
	}
	return true
}

func maskAt(o of13.OXM, i int) byte {
	if !o.HasMask {
		return 0xff
	}
	return o.Mask[i]
}

// remove deletes rules and returns the messages about them.
func (s *Switch) remove(why of13.FlowRemovedReason, gone func(*entry) bool) []*of13.FlowRemoved {
	var out []*of13.FlowRemoved
	s.flows = slices.DeleteFunc(s.flows, func(e *entry) bool {
		if !gone(e) {
			return false
		}
		if e.Flags&of13.FlowSendRemoved != 0 {
			out = append(out, &of13.FlowRemoved{Cookie: e.Cookie, Priority: e.Priority, Reason: why, TableID: e.TableID,
				HardTimeout: e.HardTimeout, Packets: e.Packets, Bytes: e.Bytes, Match: e.Match})
		}
		return true
	})
	return out
}

// expire removes what has lived long enough.
func (s *Switch) expire() []*of13.FlowRemoved {
	now := s.cfg.Now()
	return s.remove(of13.RemovedHardTimeout, func(e *entry) bool {
		return e.HardTimeout > 0 && now.Sub(e.added) >= e.HardTimeout
	})
}

// packet is a frame on its way through the tables.
type packet struct {
	frame    []byte
	inPort   of13.PortNo
	metadata uint64
	bare     []byte // frame without its outermost tag; nil: not taken off yet
	vid      uint16 // of that tag, with the bit that says that there is one
}

// become changes the frame on its way.
func (p *packet) become(frame []byte) { p.frame, p.bare = frame, nil }

// field is the value of a match field, nil if the packet does not have it.
func (p *packet) field(f of13.Field) []byte {
	be := binary.BigEndian
	// Fields behind the tag are those of the frame without it (7.2.3.7).
	if p.bare == nil {
		p.bare, p.vid = untagged(p.frame)
	}
	b := p.bare
	typ := be.Uint16(b[12:])
	at := func(ok bool, from, n int) []byte {
		if !ok || len(b) < from+n {
			return nil
		}
		return b[from : from+n]
	}
	ip4, ip6 := typ == of13.EthTypeIPv4 && len(b) >= 34, typ == of13.EthTypeIPv6 && len(b) >= 54
	protoAt, l4 := above6(b)
	if ip4 {
		l4, protoAt = 14+int(b[14]&15)*4, 23
	}
	is := func(proto uint8) bool {
		return (ip6 || ip4 && be.Uint16(b[20:])&0x1fff == 0) && b[protoAt] == proto
	}
	arp := typ == of13.EthTypeARP
	switch f {
	case of13.FieldInPort:
		return be.AppendUint32(nil, uint32(p.inPort))
	case of13.FieldMetadata:
		return be.AppendUint64(nil, p.metadata)
	case of13.FieldEthDst:
		return b[0:6]
	case of13.FieldEthSrc:
		return b[6:12]
	case of13.FieldEthType:
		return b[12:14]
	case of13.FieldVLANVID:
		return be.AppendUint16(nil, p.vid)
	case of13.FieldIPProto:
		return at(ip4 || ip6, protoAt, 1)
	case of13.FieldIPv4Src:
		return at(ip4, 26, 4)
	case of13.FieldIPv4Dst:
		return at(ip4, 30, 4)
	case of13.FieldTCPSrc:
		return at(is(of13.ProtoTCP), l4, 2)
	case of13.FieldTCPDst:
		return at(is(of13.ProtoTCP), l4+2, 2)
	case of13.FieldUDPSrc:
		return at(is(of13.ProtoUDP), l4, 2)
	case of13.FieldUDPDst:
		return at(is(of13.ProtoUDP), l4+2, 2)
	case of13.FieldICMPv6Type:
		return at(is(of13.ProtoICMPv6), l4, 1)
	case of13.FieldARPOp:
		return at(arp, 20, 2)
	case of13.FieldARPSPA:
		return at(arp, 28, 4)
	case of13.FieldARPTPA:
		return at(arp, 38, 4)
	}
	return nil
}

// above6 says where the number of what is above IPv6 is, and where that begins: behind
// hop-by-hop options and the header of a first fragment. A later fragment has the
// number of fragments, as with Open vSwitch.
func above6(b []byte) (protoAt, l4 int) {
	protoAt, l4 = 20, 54
	for len(b) >= l4+8 {
		switch {
		case b[protoAt] == 0:
			protoAt, l4 = l4, l4+8+8*int(b[l4+1])
		case b[protoAt] == 44 && binary.BigEndian.Uint16(b[l4+2:])&0xfff8 == 0:
			protoAt, l4 = l4, l4+8
		default:
			return protoAt, l4
		}
	}
	return protoAt, l4
}

// tcpFlags is the field of the ONF's extension: 12 bits.
func (p *packet) tcpFlags() []byte {
	if src := p.field(of13.FieldTCPSrc); src == nil || len(p.frame) < 54 {
		return nil
	}
	l4 := 54
	if p.frame[12] == 0x08 {
		l4 = 14 + int(p.frame[14]&15)*4
	}
	if len(p.frame) < l4+14 {
		return nil
	}
	return []byte{p.frame[l4+12] & 0x0f, p.frame[l4+13]}
}

// untagged is a frame without its outermost VLAN tag, and the tag's id with the
// bit that says that there is one; 0 where there is none.
func untagged(b []byte) ([]byte, uint16) {
	switch typ := binary.BigEndian.Uint16(b[12:]); {
	case typ != 0x8100 && typ != 0x88a8, len(b) < 18:
		return b, 0
	}
	return append(slices.Clone(b[:12]), b[16:]...), of13.VLANPresent | binary.BigEndian.Uint16(b[14:])&0xfff
}

// push puts a tag on top of a frame: with the id and priority of the one
// beneath, or 0 (5.12.1).
func push(b []byte, tpid uint16) []byte {
	tci := uint16(0)
	if _, vid := untagged(b); vid != 0 {
		tci = binary.BigEndian.Uint16(b[14:])
	}
	out := binary.BigEndian.AppendUint16(slices.Clone(b[:12]), tpid)
	return append(binary.BigEndian.AppendUint16(out, tci), b[12:]...)
}

// setVID writes the id of the outermost tag.
func setVID(b []byte, o of13.OXM) []byte {
	b = slices.Clone(b)
	vid := binary.BigEndian.Uint16(o.Value) & 0xfff
	binary.BigEndian.PutUint16(b[14:], binary.BigEndian.Uint16(b[14:])&^0xfff|vid)
	return b
}

func (p *packet) matches(m of13.Match) bool {
	for _, o := range m {
		v := p.field(o.Field)
		if o.Class == of13.ClassExperimenter && o.Experimenter == of13.ONF && o.Field == of13.FieldTCPFlags {
			v = p.tcpFlags()
		} else if o.Class != of13.ClassBasic {
			return false
		}
		if len(v) != len(o.Value) {
			return false
		}
		if o.HasMask {
			v = slices.Clone(v)
			for i := range v {
				v[i] &= o.Mask[i]
			}
		}
		if !bytes.Equal(v, o.Value) {
			return false
		}
	}
	return true
}

// walk takes the packet through the tables, from table 0 on, and returns where
// it leaves. "If the packet does not match a flow entry in a flow table, this
// is a table miss", and without a table-miss rule it is dropped (5.4).
func (s *Switch) walk(p *packet) []Output {
	var out []Output
	for table := of13.TableID(0); ; {
		var hit, other *entry
		for _, e := range s.flows {
			switch {
			case e.TableID != table || hit != nil && e.Priority < hit.Priority || !p.matches(e.Match):
			case hit == nil || e.Priority > hit.Priority:
				hit, other = e, nil
			case !of13.EqualInstructions(e.Instructions, hit.Instructions):
				other = e
			}
		}
		if other != nil {
			s.undefined = append(s.undefined, fmt.Sprintf("%v and %v", hit.FlowStats, other.FlowStats))
		}
		if hit == nil {
			return out
		}
		hit.Packets++
		hit.Bytes += uint64(len(p.frame))
		next := table
		for _, i := range hit.Instructions {
			switch i := i.(type) {
			case of13.Meter: // the first to be carried out (5.9)
				if s.stops(i.ID) {
					return out
				}
			case of13.ApplyActions:
				out = append(out, s.apply(p, i.Actions, hit)...)
			case of13.WriteMetadata:
				p.metadata = p.metadata&^i.Mask | i.Metadata&i.Mask
			case of13.GotoTable:
				next = i.Table
			}
		}
		if next == table {
			return out
		}
		table = next
	}
}

// apply carries out actions; hit is nil for a packet-out.
func (s *Switch) apply(p *packet, actions []of13.Action, hit *entry) []Output {
	var out []Output
	for _, a := range actions {
		switch a := a.(type) {
		case of13.PushVLAN:
			p.become(push(p.frame, a.EthType))
		case of13.PopVLAN:
			bare, _ := untagged(p.frame)
			p.become(bare)
		case of13.SetField:
			if a.OXM.Class == of13.ClassBasic && a.OXM.Field == of13.FieldVLANVID {
				p.become(setVID(p.frame, a.OXM))
			}
		}
		o, ok := a.(of13.Output)
		if !ok {
			continue
		}
		switch {
		case o.Port == of13.PortInPort:
			out = append(out, Output{Port: uint32(p.inPort), Frame: slices.Clone(p.frame), InPort: uint32(p.inPort)})
		case o.Port == of13.PortTable && hit == nil:
			out = append(out, s.walk(p)...)
		case o.Port == of13.PortController:
			in := Output{Port: uint32(o.Port), Frame: slices.Clone(p.frame), InPort: uint32(p.inPort), Cookie: ^uint64(0)}
			if hit != nil {
				in.Cookie, in.Table = hit.Cookie, uint8(hit.TableID)
			}
			out = append(out, in)
		case o.Port == of13.PortNormal: // what it does by itself is not modelled
			out = append(out, Output{Port: uint32(o.Port), Frame: slices.Clone(p.frame), InPort: uint32(p.inPort)})
		case o.Port == p.inPort: // nothing, and no error
		case slices.Contains(s.cfg.Ports, uint32(o.Port)):
			out = append(out, Output{Port: uint32(o.Port), Frame: slices.Clone(p.frame), InPort: uint32(p.inPort)})
		}
	}
	return out
}
