package of13

import (
	"bytes"
	"fmt"
	"net/netip"
)

// Class is the class of a match field (7.2.3.3, ofp_oxm_class).
type Class uint16

// Classes.
const (
	ClassNXM0         Class = 0x0000 // Nicira, fields of OpenFlow 1.0
	ClassNXM1         Class = 0x0001 // Nicira, extensions
	ClassBasic        Class = 0x8000 // those of the specification
	ClassExperimenter Class = 0xffff
)

// Field numbers a match field within its class (7.2.3.7).
type Field uint8

// Fields of ClassBasic.
const (
	FieldInPort Field = iota
	FieldInPhyPort
	FieldMetadata
	FieldEthDst
	FieldEthSrc
	FieldEthType
	FieldVLANVID
	FieldVLANPCP
	FieldIPDSCP
	FieldIPECN
	FieldIPProto
	FieldIPv4Src
	FieldIPv4Dst
	FieldTCPSrc
	FieldTCPDst
	FieldUDPSrc
	FieldUDPDst
	FieldSCTPSrc
	FieldSCTPDst
	FieldICMPv4Type
	FieldICMPv4Code
	FieldARPOp
	FieldARPSPA
	FieldARPTPA
	FieldARPSHA
	FieldARPTHA
	FieldIPv6Src
	FieldIPv6Dst
	FieldIPv6FLabel
	FieldICMPv6Type
	FieldICMPv6Code
	FieldIPv6NDTarget
	FieldIPv6NDSLL
	FieldIPv6NDTLL
	FieldMPLSLabel
	FieldMPLSTC
	FieldMPLSBOS
	FieldPBBISID
	FieldTunnelID
	FieldIPv6ExtHdr
)

// ONF is the Open Networking Foundation's experimenter id, and FieldTCPFlags
// its field for the TCP flags (12 bits, maskable), which basic 1.3 lacks.
const (
	ONF           uint32 = 0x4f4e4600
	FieldTCPFlags Field  = 42
)

// OXM is one match field (7.2.3.2). Value and Mask are big-endian and as long
// as the field.
type OXM struct {
	Class   Class
	Field   Field // 7 bits
	HasMask bool
	Value   []byte
	Mask    []byte // as long as Value if HasMask, else empty
	// Experimenter is the experimenter id; only with ClassExperimenter.
	Experimenter uint32
}

// fieldKind is how a value is written for people.
type fieldKind uint8

const (
	kindDec fieldKind = iota
	kindHex
	kindMAC
	kindIP
)

// fieldInfo is what the specification says of a basic field (7.2.3.7, table
// 12): bits, whether it may have a mask, and its prerequisite.
type fieldInfo struct {
	name   string
	bits   int
	mask   bool
	kind   fieldKind
	prereq func(before Match) bool
}

// size is the length of a value in bytes. Labels of 20 bits take 4 (7.2.3.7).
func (f fieldInfo) size() int {
	if f.bits == 20 {
		return 4
	}
	return (f.bits + 7) / 8
}

// Prerequisites (7.2.3.6).
var (
	preInPort = func(m Match) bool { _, ok := m.Get(ClassBasic, FieldInPort); return ok }
	preVLAN   = func(m Match) bool {
		o, ok := m.Get(ClassBasic, FieldVLANVID)
		return ok && (o.Uint() != 0 || o.HasMask)
	}
	preIP    = func(m Match) bool { return has(m, FieldEthType, 0x0800) || has(m, FieldEthType, 0x86dd) }
	preIPv4  = func(m Match) bool { return has(m, FieldEthType, 0x0800) }
	preIPv6  = func(m Match) bool { return has(m, FieldEthType, 0x86dd) }
	preARP   = func(m Match) bool { return has(m, FieldEthType, 0x0806) }
	preMPLS  = func(m Match) bool { return has(m, FieldEthType, 0x8847) || has(m, FieldEthType, 0x8848) }
	prePBB   = func(m Match) bool { return has(m, FieldEthType, 0x88e7) }
	preTCP   = func(m Match) bool { return has(m, FieldIPProto, 6) }
	preUDP   = func(m Match) bool { return has(m, FieldIPProto, 17) }
	preSCTP  = func(m Match) bool { return has(m, FieldIPProto, 132) }
	preICMP4 = func(m Match) bool { return has(m, FieldIPProto, 1) && preIPv4(m) }
	preICMP6 = func(m Match) bool { return has(m, FieldIPProto, 58) && preIPv6(m) }
	preNS    = func(m Match) bool { return has(m, FieldICMPv6Type, 135) }
	preNA    = func(m Match) bool { return has(m, FieldICMPv6Type, 136) }
	preND    = func(m Match) bool { return preNS(m) || preNA(m) }
)

// has reports whether m demands exactly that value of a basic field.
func has(m Match, f Field, v uint64) bool {
	o, ok := m.Get(ClassBasic, f)
	return ok && !o.HasMask && o.Uint() == v
}

var basicFields = [...]fieldInfo{
	FieldInPort:       {"in_port", 32, false, kindDec, nil},
	FieldInPhyPort:    {"in_phy_port", 32, false, kindDec, preInPort},
	FieldMetadata:     {"metadata", 64, true, kindHex, nil},
	FieldEthDst:       {"eth_dst", 48, true, kindMAC, nil},
	FieldEthSrc:       {"eth_src", 48, true, kindMAC, nil},
	FieldEthType:      {"eth_type", 16, false, kindHex, nil},
	FieldVLANVID:      {"vlan_vid", 13, true, kindHex, nil},
	FieldVLANPCP:      {"vlan_pcp", 3, false, kindDec, preVLAN},
	FieldIPDSCP:       {"ip_dscp", 6, false, kindDec, preIP},
	FieldIPECN:        {"ip_ecn", 2, false, kindDec, preIP},
	FieldIPProto:      {"ip_proto", 8, false, kindDec, preIP},
	FieldIPv4Src:      {"ipv4_src", 32, true, kindIP, preIPv4},
	FieldIPv4Dst:      {"ipv4_dst", 32, true, kindIP, preIPv4},
	FieldTCPSrc:       {"tcp_src", 16, false, kindDec, preTCP},
	FieldTCPDst:       {"tcp_dst", 16, false, kindDec, preTCP},
	FieldUDPSrc:       {"udp_src", 16, false, kindDec, preUDP},
	FieldUDPDst:       {"udp_dst", 16, false, kindDec, preUDP},
	FieldSCTPSrc:      {"sctp_src", 16, false, kindDec, preSCTP},
	FieldSCTPDst:      {"sctp_dst", 16, false, kindDec, preSCTP},
	FieldICMPv4Type:   {"icmpv4_type", 8, false, kindDec, preICMP4},
	FieldICMPv4Code:   {"icmpv4_code", 8, false, kindDec, preICMP4},
	FieldARPOp:        {"arp_op", 16, false, kindDec, preARP},
	FieldARPSPA:       {"arp_spa", 32, true, kindIP, preARP},
	FieldARPTPA:       {"arp_tpa", 32, true, kindIP, preARP},
	FieldARPSHA:       {"arp_sha", 48, true, kindMAC, preARP},
	FieldARPTHA:       {"arp_tha", 48, true, kindMAC, preARP},
	FieldIPv6Src:      {"ipv6_src", 128, true, kindIP, preIPv6},
	FieldIPv6Dst:      {"ipv6_dst", 128, true, kindIP, preIPv6},
	FieldIPv6FLabel:   {"ipv6_flabel", 20, true, kindHex, preIPv6},
	FieldICMPv6Type:   {"icmpv6_type", 8, false, kindDec, preICMP6},
	FieldICMPv6Code:   {"icmpv6_code", 8, false, kindDec, preICMP6},
	FieldIPv6NDTarget: {"ipv6_nd_target", 128, false, kindIP, preND},
	FieldIPv6NDSLL:    {"ipv6_nd_sll", 48, false, kindMAC, preNS},
	FieldIPv6NDTLL:    {"ipv6_nd_tll", 48, false, kindMAC, preNA},
	FieldMPLSLabel:    {"mpls_label", 20, false, kindDec, preMPLS},
	FieldMPLSTC:       {"mpls_tc", 3, false, kindDec, preMPLS},
	FieldMPLSBOS:      {"mpls_bos", 1, false, kindDec, preMPLS},
	FieldPBBISID:      {"pbb_isid", 24, true, kindHex, prePBB},
	FieldTunnelID:     {"tunnel_id", 64, true, kindHex, nil},
	FieldIPv6ExtHdr:   {"ipv6_exthdr", 9, true, kindHex, preIPv6},
}

// info is what is known of the field; ok is false for fields that are not
// modelled.
func (o OXM) info() (fieldInfo, bool) {
	switch {
	case o.Class == ClassBasic && int(o.Field) < len(basicFields):
		return basicFields[o.Field], true
	case o.Class == ClassExperimenter && o.Experimenter == ONF && o.Field == FieldTCPFlags:
		return fieldInfo{"tcp_flags", 12, true, kindHex, preTCP}, true
	}
	return fieldInfo{}, false
}

// Uint is a value of up to 8 bytes as a number, 0 if it is longer.
func (o OXM) Uint() uint64 { return toUint(o.Value) }

// Addr is a value of 4 or 16 bytes as an IP address, invalid otherwise.
func (o OXM) Addr() netip.Addr {
	a, _ := netip.AddrFromSlice(o.Value)
	return a
}

// MAC is a value of 6 bytes as a hardware address, all zeros otherwise.
func (o OXM) MAC() (m [6]byte) {
	if len(o.Value) == 6 {
		copy(m[:], o.Value)
	}
	return m
}

func toUint(b []byte) (v uint64) {
	if len(b) > 8 {
		return 0
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// String is name=value or name=value/mask.
func (o OXM) String() string {
	info, ok := o.info()
	if !ok || len(o.Value) != info.size() {
		name := fmt.Sprintf("oxm_%04x_%d", uint16(o.Class), o.Field)
		if o.Class == ClassExperimenter {
			name += fmt.Sprintf("_%08x", o.Experimenter)
		}
		if o.HasMask {
			return fmt.Sprintf("%s=0x%x/0x%x", name, o.Value, o.Mask)
		}
		return fmt.Sprintf("%s=0x%x", name, o.Value)
	}
	s := info.name + "=" + info.format(o.Value)
	switch {
	case !o.HasMask:
		return s
	case info.kind == kindIP:
		if bits, ok := prefixLen(o.Mask); ok {
			return fmt.Sprintf("%s/%d", s, bits)
		}
	}
	return s + "/" + info.format(o.Mask)
}

func (f fieldInfo) format(v []byte) string {
	switch f.kind {
	case kindMAC:
		return macString([6]byte(v))
	case kindIP:
		a, _ := netip.AddrFromSlice(v)
		return a.String()
	case kindHex:
		return fmt.Sprintf("0x%x", toUint(v))
	}
	if f.name == "in_port" {
		return PortNo(toUint(v)).String()
	}
	return fmt.Sprintf("%d", toUint(v))
}

// prefixLen is the number of leading ones if only zeros follow them.
func prefixLen(mask []byte) (int, bool) {
	n := 0
	for i, c := range mask {
		for bit := 7; bit >= 0; bit-- {
			if c>>bit&1 == 1 {
				if n != i*8+7-bit {
					return 0, false
				}
				n++
			}
		}
	}
	return n, true
}

// normalize is the field as Open vSwitch hands it back; ok is false if it goes.
func (o OXM) normalize() (_ OXM, ok bool) {
	if !o.HasMask || len(o.Mask) != len(o.Value) {
		return o, true
	}
	bits := 8 * len(o.Value)
	if info, ok := o.info(); ok && len(o.Value) == info.size() {
		bits = info.bits
	}
	zeros, ones := true, true
	value := make([]byte, len(o.Value))
	mask := make([]byte, len(o.Value))
	for i, c := range o.Mask {
		full := fullByte(i, len(o.Value), bits)
		mask[i] = c & full
		value[i] = o.Value[i] & mask[i]
		zeros = zeros && mask[i] == 0
		ones = ones && mask[i] == full
	}
	o.Value, o.Mask = value, mask
	switch {
	case zeros:
		return OXM{}, false
	case ones:
		o.HasMask, o.Mask = false, nil
	}
	return o, true
}

// fullByte is byte i of the largest number of that many bits in size bytes.
func fullByte(i, size, bits int) byte {
	left := bits - 8*(size-1-i) // bits of the number in this byte and above
	switch {
	case left >= 8:
		return 0xff
	case left <= 0:
		return 0
	}
	return 1<<left - 1
}

func (o OXM) validate(before Match, off int) error {
	bad := func(c ErrorCode, format string, args ...any) error {
		return parseErrorf(ErrTypeBadMatch, c, off, "%v: %s", o, fmt.Sprintf(format, args...))
	}
	if _, dup := before.Get(o.Class, o.Field); dup && o.Class != ClassExperimenter {
		return bad(BadMatchDupField, "field appears twice")
	}
	if o.HasMask {
		if len(o.Mask) != len(o.Value) {
			return bad(BadMatchBadField, "mask of %d bytes for a value of %d", len(o.Mask), len(o.Value))
		}
		for i := range o.Value {
			if o.Value[i]&^o.Mask[i] != 0 {
				return bad(BadMatchBadWildcards, "value has bits that the mask leaves out")
			}
		}
	}
	info, ok := o.info()
	if !ok {
		if o.Class == ClassBasic {
			return bad(BadMatchBadField, "no such field")
		}
		return nil
	}
	switch {
	case len(o.Value) != info.size():
		return bad(BadMatchBadField, "value of %d bytes: the field has %d", len(o.Value), info.size())
	case o.HasMask && !info.mask:
		return bad(BadMatchBadMask, "the field takes no mask")
	case info.prereq != nil && !info.prereq(before):
		return bad(BadMatchBadPrereq, "its prerequisite (7.2.3.6) does not come before it")
	}
	for i, c := range o.Value {
		if c&^fullByte(i, info.size(), info.bits) != 0 {
			return bad(BadMatchBadValue, "value has more than %d bits", info.bits)
		}
	}
	return nil
}

// wireLen is the encoded length in bytes.
func (o OXM) wireLen() int {
	n := 4 + len(o.Value) + len(o.Mask)
	if o.Class == ClassExperimenter {
		n += 4
	}
	return n
}

func (o OXM) append(b []byte) ([]byte, error) {
	n := o.wireLen() - 4
	switch {
	case n > 0xff:
		return b, fmt.Errorf("match field %d: %d bytes of payload do not fit its 8-bit length", o.Field, n)
	case o.Field > 0x7f:
		return b, fmt.Errorf("match field number %d has more than 7 bits", o.Field)
	case o.HasMask && len(o.Mask) != len(o.Value), !o.HasMask && len(o.Mask) != 0:
		return b, fmt.Errorf("match field %d: mask of %d bytes for a value of %d (HasMask %v)",
			o.Field, len(o.Mask), len(o.Value), o.HasMask)
	case o.Class != ClassExperimenter && o.Experimenter != 0:
		return b, fmt.Errorf("match field %d: experimenter id in class 0x%04x", o.Field, uint16(o.Class))
	}
	if info, ok := o.info(); ok && len(o.Value) != info.size() {
		return b, fmt.Errorf("%s: value of %d bytes: the field has %d", info.name, len(o.Value), info.size())
	}
	b = be.AppendUint16(b, uint16(o.Class))
	head := byte(o.Field) << 1
	if o.HasMask {
		head |= 1
	}
	b = append(b, head, byte(n))
	if o.Class == ClassExperimenter {
		b = be.AppendUint32(b, o.Experimenter)
	}
	return append(append(b, o.Value...), o.Mask...), nil
}

func readOXM(r *reader) OXM {
	var o OXM
	at := r.off
	o.Class = Class(r.u16())
	head := r.u8()
	o.Field, o.HasMask = Field(head>>1), head&1 != 0
	p := r.take(int(r.u8()))
	if r.err != nil {
		return o
	}
	fail := func(c ErrorCode, format string, args ...any) {
		r.off = at
		r.fail(ErrTypeBadMatch, c, format, args...)
	}
	if o.Class == ClassExperimenter {
		if len(p) < 4 {
			fail(BadMatchBadLen, "experimenter match field of %d bytes has no experimenter id", len(p))
			return o
		}
		o.Experimenter = be.Uint32(p)
		p = p[4:]
	}
	if o.HasMask {
		if len(p)%2 != 0 {
			fail(BadMatchBadLen, "match field of class 0x%04x, number %d: value and mask of %d bytes together",
				uint16(o.Class), o.Field, len(p))
			return o
		}
		o.Mask = p[len(p)/2:]
		p = p[: len(p)/2 : len(p)/2]
	}
	o.Value = p
	if info, ok := o.info(); ok && len(o.Value) != info.size() {
		fail(BadMatchBadField, "%s: value of %d bytes: the field has %d", info.name, len(o.Value), info.size())
	}
	return o
}

// sameOXM reports whether two fields are written with the same bytes.
func sameOXM(a, b OXM) bool {
	return a.Class == b.Class && a.Field == b.Field && a.HasMask == b.HasMask && a.Experimenter == b.Experimenter &&
		bytes.Equal(a.Value, b.Value) && bytes.Equal(a.Mask, b.Mask)
}
