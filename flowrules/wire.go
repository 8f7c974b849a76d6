package flowrules

import (
	"fmt"
	"time"

	"netsplit/controller/of13"
)

// TCP flags (RFC 9293 §3.1).
const (
	flagSYN uint16 = 0x02
	flagACK uint16 = 0x10
)

// OXMs is the match in OpenFlow's form, prerequisites first.
func (m Match) OXMs() of13.Match {
	var out of13.Match
	if m.InPort != 0 {
		out = append(out, of13.InPort(of13.PortNo(m.InPort)))
	}
	if m.Metadata != 0 {
		out = append(out, of13.Metadata(m.Metadata))
	}
	if m.VLAN != 0 {
		out = append(out, of13.VLANVID(m.VLAN))
	}
	if m.EthSrcMask != (MAC{}) {
		out = append(out, of13.EthSrcMasked(m.EthSrc, m.EthSrcMask))
	}
	switch m.EthDstMask {
	case MAC{}:
	case allOnes:
		out = append(out, of13.EthDst(m.EthDst))
	default:
		out = append(out, of13.EthDstMasked(m.EthDst, m.EthDstMask))
	}
	if m.EthType != 0 {
		out = append(out, of13.EthType(m.EthType))
	}
	if m.ARPTarget.IsValid() {
		out = append(out, of13.ARPTPA(m.ARPTarget))
	}
	if m.IPProto != 0 {
		out = append(out, of13.IPProto(m.IPProto))
	}
	src, dst := of13.TCPSrc, of13.TCPDst
	if m.IPProto == protoUDP {
		src, dst = of13.UDPSrc, of13.UDPDst
	}
	if m.SrcPort != 0 {
		out = append(out, src(m.SrcPort))
	}
	if m.DstPort != 0 {
		out = append(out, dst(m.DstPort))
	}
	if m.Opening {
		out = append(out, of13.TCPFlags(flagSYN, flagSYN|flagACK))
	}
	if m.ICMPv6 != 0 {
		out = append(out, of13.ICMPv6Type(m.ICMPv6))
	}
	return out
}

// Instructions is what the rule does in OpenFlow's form; none drops.
func (d Do) Instructions() []of13.Instruction {
	var out []of13.Instruction
	if d.Meter != 0 {
		out = append(out, of13.Meter{ID: of13.MeterID(d.Meter)})
	}
	var acts []of13.Action
	if d.Pop {
		acts = append(acts, of13.PopVLAN{})
	}
	for _, p := range d.Output {
		acts = append(acts, of13.Output{Port: of13.PortNo(p), MaxLen: maxLen(p)})
	}
	if d.Push != 0 {
		acts = append(acts, of13.PushVLAN{EthType: of13.EthTypeVLAN}, of13.SetField{OXM: of13.VLANVID(d.Push)}, of13.Output{Port: of13.PortNo(d.PushTo)})
	}
	if len(acts) > 0 {
		out = append(out, of13.Apply(acts...))
	}
	if d.Metadata != 0 {
		out = append(out, of13.WriteMetadata{Metadata: d.Metadata, Mask: ^uint64(0)})
	}
	if d.Goto != 0 {
		out = append(out, of13.GotoTable{Table: of13.TableID(d.Goto)})
	}
	return out
}

// maxLen is only looked at for the controller; switches hand 0 back for the
// others.
func maxLen(port uint32) uint16 {
	if port == portController {
		return of13.MaxLenNoBuffer
	}
	return 0
}

// Add is the flow-mod that installs the rule, or overwrites one with the same
// match and priority; sent again it renews the hard timeout.
func (r Rule) Add() *of13.FlowMod {
	m := of13.NewFlowMod(of13.FlowAdd)
	m.Cookie, m.TableID, m.Priority = uint64(r.Cookie), of13.TableID(r.Table), r.Priority
	m.HardTimeout = time.Duration(r.HardTimeout) * time.Second
	m.Flags = r.flags()
	m.Match, m.Instructions = r.Match.OXMs(), r.Do.Instructions()
	return m
}

// flags: the switch reports when a rule that expires goes, so that one removed
// by somebody else is put back at once.
func (r Rule) flags() of13.FlowFlags {
	if r.HardTimeout != 0 {
		return of13.FlowSendRemoved
	}
	return 0
}

// remove is the flow-mod that deletes exactly this rule of the dump, and only
// while it carries the cookie seen.
func remove(s of13.FlowStats) *of13.FlowMod {
	m := of13.NewFlowMod(of13.FlowDeleteStrict)
	m.Cookie, m.CookieMask = s.Cookie, MaskAll
	m.TableID, m.Priority, m.Match = s.TableID, s.Priority, s.Match
	return m
}

// RemoveAll is the flow-mod that deletes every rule of the lab, in all tables,
// and nobody else's.
func RemoveAll(lab uint16) *of13.FlowMod { return removeAll(NewCookie(0, lab, 0), MaskLab) }

func removeAll(c Cookie, mask uint64) *of13.FlowMod {
	m := of13.NewFlowMod(of13.FlowDelete)
	m.TableID = of13.TableAll
	m.Cookie, m.CookieMask = uint64(c), mask
	return m
}

// Key identifies a rule within a switch: table, priority and match. A switch
// holds at most one rule with a given key.
func (r Rule) Key() string { return key(r.Table, r.Priority, r.Match.OXMs()) }

// KeyOf is the Key of a rule in a dump.
func KeyOf(s of13.FlowStats) string { return key(uint8(s.TableID), s.Priority, s.Match) }

func key(table uint8, priority uint16, m of13.Match) string {
	return fmt.Sprintf("%d/%d/%s", table, priority, m.Key())
}

// Stats is the rule as a switch that holds it would report it, counters zero.
func (r Rule) Stats() of13.FlowStats {
	return of13.FlowStats{TableID: of13.TableID(r.Table), Priority: r.Priority, Cookie: uint64(r.Cookie),
		HardTimeout: time.Duration(r.HardTimeout) * time.Second, Flags: r.flags(),
		Match: r.Match.OXMs(), Instructions: r.Do.Instructions()}
}

// State is what a switch holds.
type State struct {
	Flows  []of13.FlowStats
	Meters []of13.MeterConfig
}

// State is the plan as a switch that holds exactly it would report it.
func (p Plan) State() State {
	var s State
	for _, r := range p.Rules {
		s.Flows = append(s.Flows, r.Stats())
	}
	for _, m := range p.Meters {
		s.Meters = append(s.Meters, m.config(p.Lab))
	}
	return s
}
