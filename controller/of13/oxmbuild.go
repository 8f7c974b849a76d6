package of13

import "net/netip"

func basic(f Field, value []byte) OXM { return OXM{Class: ClassBasic, Field: f, Value: value} }

func masked(o OXM, mask []byte) OXM {
	o.HasMask, o.Mask = true, mask
	for i := range min(len(o.Value), len(mask)) {
		o.Value[i] &= mask[i] // bits outside the mask must be 0 (7.2.3.5)
	}
	return o
}

func basic8(f Field, v uint8) OXM   { return basic(f, []byte{v}) }
func basic16(f Field, v uint16) OXM { return basic(f, be.AppendUint16(nil, v)) }
func basic32(f Field, v uint32) OXM { return basic(f, be.AppendUint32(nil, v)) }
func basic64(f Field, v uint64) OXM { return basic(f, be.AppendUint64(nil, v)) }

func basicMAC(f Field, m [6]byte) OXM { return basic(f, m[:]) }

// basicAddr is a field holding an address. One of the wrong family gives a
// value of the wrong size, which Append refuses.
func basicAddr(f Field, a netip.Addr) OXM { return basic(f, a.AsSlice()) }

// InPort is the port on which the packet came in.
func InPort(p PortNo) OXM { return basic32(FieldInPort, uint32(p)) }

// Metadata is the 64 bits that rules hand from table to table.
func Metadata(v uint64) OXM { return basic64(FieldMetadata, v) }

// EthDst is the destination MAC address.
func EthDst(m [6]byte) OXM { return basicMAC(FieldEthDst, m) }

// EthDstMasked compares the bits set in mask only.
func EthDstMasked(m, mask [6]byte) OXM { return masked(EthDst(m), mask[:]) }

// EthSrc is the source MAC address.
func EthSrc(m [6]byte) OXM { return basicMAC(FieldEthSrc, m) }

// EthSrcMasked compares the bits set in mask only.
func EthSrcMasked(m, mask [6]byte) OXM { return masked(EthSrc(m), mask[:]) }

// EthType is the Ethernet type after VLAN tags.
func EthType(t uint16) OXM { return basic16(FieldEthType, t) }

// Ethernet types and IP protocols that other fields need before them.
const (
	EthTypeIPv4 uint16 = 0x0800
	EthTypeARP  uint16 = 0x0806
	EthTypeVLAN uint16 = 0x8100
	EthTypeIPv6 uint16 = 0x86dd

	ProtoICMP   uint8 = 1
	ProtoTCP    uint8 = 6
	ProtoUDP    uint8 = 17
	ProtoICMPv6 uint8 = 58
	ProtoSCTP   uint8 = 132
)

// VLANPresent is the bit that stands for "has a tag" in vlan_vid (7.2.3.7).
const VLANPresent uint16 = 0x1000

// VLANVID is a packet tagged with VLAN id n (0 to 4095).
func VLANVID(n uint16) OXM { return basic16(FieldVLANVID, VLANPresent|n&0xfff) }

// IPProto is the IP protocol, or IPv6 next header.
func IPProto(p uint8) OXM { return basic8(FieldIPProto, p) }

// TCPSrc is the source port; needs ProtoTCP.
func TCPSrc(p uint16) OXM { return basic16(FieldTCPSrc, p) }

// TCPDst is the destination port; needs ProtoTCP.
func TCPDst(p uint16) OXM { return basic16(FieldTCPDst, p) }

// TCPFlags compares the TCP flags set in mask; needs ProtoTCP. It is an ONF
// extension (EXT-109) that Open vSwitch understands over 1.3.
func TCPFlags(flags, mask uint16) OXM {
	o := OXM{Class: ClassExperimenter, Field: FieldTCPFlags, Experimenter: ONF, Value: be.AppendUint16(nil, flags)}
	return masked(o, be.AppendUint16(nil, mask))
}

// UDPSrc is the source port; needs ProtoUDP.
func UDPSrc(p uint16) OXM { return basic16(FieldUDPSrc, p) }

// UDPDst is the destination port; needs ProtoUDP.
func UDPDst(p uint16) OXM { return basic16(FieldUDPDst, p) }

// ICMPv6Type is the ICMPv6 type; needs EthTypeIPv6 and ProtoICMPv6.
func ICMPv6Type(t uint8) OXM { return basic8(FieldICMPv6Type, t) }

// ARPTPA is the target's protocol address; needs EthTypeARP.
func ARPTPA(a netip.Addr) OXM { return basicAddr(FieldARPTPA, a) }
