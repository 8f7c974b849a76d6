package of13

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"netsplit/e2e/need"
)

var (
	ones6 = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	ipv4  = EthType(EthTypeIPv4)
	tcp   = IPProto(ProtoTCP)
)

func TestNormalize(t *testing.T) {
	unknown := OXM{Class: ClassNXM1, Field: 31, Value: []byte{1, 2}}
	for _, c := range []struct {
		what    string
		m, want Match
	}{
		{"nothing", nil, nil},
		{"order", Match{ipv4, EthDst(macA), InPort(1)}, Match{InPort(1), EthDst(macA), ipv4}},
		{"all-ones mask goes", Match{EthDstMasked(macA, ones6)}, Match{EthDst(macA)}},
		{"all-zeros mask drops the field", Match{EthDstMasked(macA, [6]byte{}), InPort(1)}, Match{InPort(1)}},
		{"part of a mask stays", Match{EthDstMasked(macA, macMask)}, Match{EthDstMasked(macA, macMask)}},
		{"bits outside the mask are cleared", Match{{Class: ClassBasic, Field: FieldMetadata, HasMask: true,
			Value: []byte{0, 0, 0, 0, 0, 0, 0x12, 0x34}, Mask: []byte{0, 0, 0, 0, 0, 0, 0, 0xff}}}, Match{MetadataMasked(0x34, 0xff)}},
		{"vlan_vid has 13 bits", Match{{Class: ClassBasic, Field: FieldVLANVID, HasMask: true,
			Value: []byte{0x10, 5}, Mask: []byte{0x1f, 0xff}}}, Match{VLANVID(5)}},
		{"vlan_vid, all 16 bits of mask", Match{{Class: ClassBasic, Field: FieldVLANVID, HasMask: true,
			Value: []byte{0x10, 5}, Mask: []byte{0xff, 0xff}}}, Match{VLANVID(5)}},
		{"any tag stays masked", Match{VLANAny()}, Match{VLANAny()}},
		{"flabel has 20 bits in 4 bytes", Match{{Class: ClassBasic, Field: FieldIPv6FLabel, HasMask: true,
			Value: []byte{0, 1, 2, 3}, Mask: []byte{0, 0x0f, 0xff, 0xff}}}, Match{{Class: ClassBasic, Field: FieldIPv6FLabel,
			Value: []byte{0, 1, 2, 3}}}},
		{"/32 is no mask", Match{IPv4SrcPrefix(netip.PrefixFrom(ip4A, 32))}, Match{IPv4Src(ip4A)}},
		{"/0 is no field", Match{ipv4, IPv4SrcPrefix(netip.PrefixFrom(ip4A, 0))}, Match{ipv4}},
		{"tcp_flags, exact", Match{TCPFlags(2, 0xfff)}, Match{{Class: ClassExperimenter, Field: FieldTCPFlags,
			Experimenter: ONF, Value: []byte{0, 2}}}},
		{"unknown fields come last", Match{unknown, InPort(1)}, Match{InPort(1), unknown}},
	} {
		before, _ := AppendMatch(nil, c.m)
		if diff := cmp.Diff(c.want, c.m.Normalize(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
		if after, _ := AppendMatch(nil, c.m); string(before) != string(after) {
			t.Errorf("%s: Normalize changed its receiver", c.what)
		}
		if !c.m.Equal(c.want) || c.m.Key() != c.want.Key() {
			t.Errorf("%s: not equal to its normal form", c.what)
		}
	}
	a := Match{InPort(1), ipv4}
	for _, b := range []Match{{InPort(2), ipv4}, {InPort(1)}, {InPort(1), ipv4, tcp}, {InPort(1), EthType(EthTypeIPv6)},
		{MetadataMasked(1, 1), ipv4}} {
		if a.Equal(b) || a.Key() == b.Key() {
			t.Errorf("%v equals %v", a, b)
		}
	}
}

// TestPrefixes: a prefix that is one address has no mask, one of the wrong
// family or of none does not encode.
func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		got  OXM
		want string
	}{
		{IPv4SrcPrefix(netip.MustParsePrefix("10.1.2.3/32")), "ipv4_src=10.1.2.3"},
		{IPv4DstPrefix(netip.MustParsePrefix("10.1.2.3/12")), "ipv4_dst=10.0.0.0/12"},
		{IPv4DstPrefix(netip.MustParsePrefix("10.1.2.3/0")), "ipv4_dst=0.0.0.0/0"},
		{IPv6SrcPrefix(netip.MustParsePrefix("fd00::1/128")), "ipv6_src=fd00::1"},
		{IPv6DstPrefix(netip.MustParsePrefix("fd00:ffff::1/20")), "ipv6_dst=fd00:f000::/20"},
	} {
		if c.got.String() != c.want || c.got.HasMask != strings.Contains(c.want, "/") {
			t.Errorf("%v, want %s", c.got, c.want)
		}
	}
	for _, o := range []OXM{IPv4SrcPrefix(netip.Prefix{}), IPv4Src(netip.Addr{}), IPv6DstPrefix(netip.PrefixFrom(ip4A, 8)),
		IPv4Dst(netip.MustParseAddr("::ffff:10.0.0.1"))} {
		if _, err := AppendMatch(nil, Match{o}); err == nil {
			t.Errorf("%v encodes", o)
		}
	}
}

func TestValidate(t *testing.T) {
	udp := IPProto(ProtoUDP)
	for _, c := range []struct {
		what   string
		m      Match
		code   ErrorCode
		offset int
	}{
		{"address without eth_type", Match{IPv4Src(ip4A)}, BadMatchBadPrereq, 4},
		{"prerequisite too late", Match{InPort(1), IPv4Src(ip4A), ipv4}, BadMatchBadPrereq, 12},
		{"wrong prerequisite", Match{ipv4, udp, TCPDst(1)}, BadMatchBadPrereq, 15},
		{"ipv6 field in ipv4", Match{ipv4, IPv6Src(ip6A)}, BadMatchBadPrereq, 10},
		{"icmpv6 over ipv4", Match{ipv4, IPProto(ProtoICMPv6), ICMPv6Type(1)}, BadMatchBadPrereq, 15},
		{"nd target of an echo", Match{EthType(EthTypeIPv6), IPProto(ProtoICMPv6), ICMPv6Type(128), IPv6NDTarget(ip6A)}, BadMatchBadPrereq, 20},
		{"pcp without tag", Match{VLANNone(), VLANPCP(1)}, BadMatchBadPrereq, 10},
		{"pcp alone", Match{VLANPCP(1)}, BadMatchBadPrereq, 4},
		{"arp field without arp", Match{ipv4, ARPOp(1)}, BadMatchBadPrereq, 10},
		{"field twice", Match{InPort(1), InPort(1)}, BadMatchDupField, 12},
		{"mask not allowed", Match{{Class: ClassBasic, Field: FieldInPort, HasMask: true, Value: make([]byte, 4), Mask: make([]byte, 4)}}, BadMatchBadMask, 4},
		{"value outside the mask", Match{{Class: ClassBasic, Field: FieldMetadata, HasMask: true,
			Value: []byte{0, 0, 0, 0, 0, 0, 0, 1}, Mask: make([]byte, 8)}}, BadMatchBadWildcards, 4},
		{"unknown basic field", Match{{Class: ClassBasic, Field: 99, Value: []byte{1}}}, BadMatchBadField, 4},
		{"wrong family", Match{ipv4, IPv4Src(ip6A)}, BadMatchBadField, 10},
		{"too many bits", Match{ipv4, basic8(FieldIPDSCP, 64)}, BadMatchBadValue, 10},
		{"mask of another size", Match{{Class: ClassBasic, Field: FieldMetadata, HasMask: true, Value: make([]byte, 8)}}, BadMatchBadField, 4},
	} {
		err := c.m.Validate()
		var p *ParseError
		if !errors.As(err, &p) || p.Type != ErrTypeBadMatch || p.Code != c.code || p.Offset != c.offset {
			t.Errorf("%s: %v: %v, want %v at %d", c.what, c.m, err, errorName(ErrTypeBadMatch, c.code), c.offset)
		}
	}
	for _, s := range samples() {
		if f, ok := s.msg.(*FlowMod); ok && s.refused == "" {
			if err := f.Match.Validate(); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
}

func TestValidateAgreesWithOpenVSwitch(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	for _, m := range []Match{
		{IPv4Src(ip4A)}, {ipv4, IPv4Src(ip4A)}, {ipv4, TCPDst(1)}, {ipv4, tcp, TCPDst(1)}, {InPort(1), InPort(1)},
		{InPort(1), InPort(2)}, {VLANPCP(1)}, {VLANNone(), VLANPCP(1)}, {VLANVID(1), VLANPCP(1)}, {VLANAny(), VLANPCP(1)},
		{IPv4Src(ip4A), ipv4}, {ipv4, IPProto(ProtoICMPv6), ICMPv6Type(1)}, {ipv4, ARPOp(1)},
		{EthType(EthTypeIPv6), IPProto(ProtoICMPv6), ICMPv6Type(128), IPv6NDTarget(ip6A)},
		{EthType(EthTypeIPv6), IPProto(ProtoICMPv6), ICMPv6Type(136), IPv6NDTarget(ip6A)},
		{{Class: ClassBasic, Field: FieldInPort, HasMask: true, Value: make([]byte, 4), Mask: []byte{0, 0, 0, 1}}},
		{{Class: ClassBasic, Field: FieldMetadata, HasMask: true, Value: []byte{0, 0, 0, 0, 0, 0, 0, 1}, Mask: make([]byte, 8)}},
		{{Class: ClassBasic, Field: 99, Value: []byte{1}}}, {ipv4, basic8(FieldIPDSCP, 64)}, {ipv4, basic8(FieldIPECN, 3)},
		{TCPFlags(2, 0x12)}, {ipv4, tcp, TCPFlags(2, 0x12)},
	} {
		b, err := Append(nil, rule(m), 1)
		if err != nil {
			t.Fatal(err)
		}
		text, bad := ovsPrint(t, ofctl, b)
		verr := m.Validate()
		if bad != (verr != nil) {
			t.Errorf("%v: we say %v, Open vSwitch says\n%s", m, verr, text)
			continue
		}
		var p *ParseError
		if errors.As(verr, &p) && !containsError(text, p) {
			t.Errorf("%v: we say %v, Open vSwitch says\n%s", m, verr, text)
		}
	}
}

// containsError reports whether Open vSwitch's text names the same error.
func containsError(text string, p *ParseError) bool {
	_, code, _ := strings.Cut(errorName(p.Type, p.Code), "/")
	return strings.Contains(text, "decode error: "+code)
}

func TestNormalizeInstructions(t *testing.T) {
	a := []Instruction{GotoTable{2}, Apply(Output{Port: 1}), WriteMetadata{0x1234, 0xff}, Meter{1}, WriteActions{},
		ClearActions{}}
	b := []Instruction{Meter{1}, Apply(Output{Port: 1}), ClearActions{}, WriteMetadata{0x34, 0xff}, GotoTable{2}}
	if diff := cmp.Diff(b, NormalizeInstructions(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !EqualInstructions(a, b) || !EqualInstructions(nil, []Instruction{Apply(), WriteMetadata{1, 0}}) {
		t.Error("lists that do the same are not equal")
	}
	for _, c := range [][]Instruction{nil, b[1:], append([]Instruction{Meter{2}}, b[1:]...),
		{Meter{1}, Apply(Output{Port: 2}), ClearActions{}, WriteMetadata{0x34, 0xff}, GotoTable{2}}} {
		if EqualInstructions(b, c) {
			t.Errorf("%v equals %v", b, c)
		}
	}
	if bad := []Instruction{nil, Meter{1}, nil}; EqualInstructions(bad, bad) {
		t.Error("a list that cannot be encoded is equal to itself")
	}
}
