package of13

import "net/netip"

// Fields that no rule of ours matches on: the codec is tried with all there are.

func basicPrefix(f Field, p netip.Prefix) OXM {
	o := basicAddr(f, p.Addr())
	if p.IsSingleIP() || !p.IsValid() {
		return o
	}
	mask := make([]byte, len(o.Value))
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return masked(o, mask)
}

// MetadataMasked compares the bits set in mask only.
func MetadataMasked(v, mask uint64) OXM { return masked(Metadata(v), be.AppendUint64(nil, mask)) }

// VLANNone is a packet without tag.
func VLANNone() OXM { return basic16(FieldVLANVID, 0) }

// VLANAny is a packet with any tag.
func VLANAny() OXM {
	return masked(basic16(FieldVLANVID, VLANPresent), be.AppendUint16(nil, VLANPresent))
}

// VLANPCP is the priority in the VLAN tag.
func VLANPCP(p uint8) OXM { return basic8(FieldVLANPCP, p) }

// IPv4Src is the source address; needs EthTypeIPv4.
func IPv4Src(a netip.Addr) OXM { return basicAddr(FieldIPv4Src, a) }

// IPv4SrcPrefix compares the prefix only.
func IPv4SrcPrefix(p netip.Prefix) OXM { return basicPrefix(FieldIPv4Src, p) }

// IPv4Dst is the destination address; needs EthTypeIPv4.
func IPv4Dst(a netip.Addr) OXM { return basicAddr(FieldIPv4Dst, a) }

// IPv4DstPrefix compares the prefix only.
func IPv4DstPrefix(p netip.Prefix) OXM { return basicPrefix(FieldIPv4Dst, p) }

// IPv6Src is the source address; needs EthTypeIPv6.
func IPv6Src(a netip.Addr) OXM { return basicAddr(FieldIPv6Src, a) }

// IPv6SrcPrefix compares the prefix only.
func IPv6SrcPrefix(p netip.Prefix) OXM { return basicPrefix(FieldIPv6Src, p) }

// IPv6Dst is the destination address; needs EthTypeIPv6.
func IPv6Dst(a netip.Addr) OXM { return basicAddr(FieldIPv6Dst, a) }

// IPv6DstPrefix compares the prefix only.
func IPv6DstPrefix(p netip.Prefix) OXM { return basicPrefix(FieldIPv6Dst, p) }

// SCTPSrc is the source port; needs ProtoSCTP.
func SCTPSrc(p uint16) OXM { return basic16(FieldSCTPSrc, p) }

// SCTPDst is the destination port; needs ProtoSCTP.
func SCTPDst(p uint16) OXM { return basic16(FieldSCTPDst, p) }

// ICMPv4Type is the ICMP type; needs EthTypeIPv4 and ProtoICMP.
func ICMPv4Type(t uint8) OXM { return basic8(FieldICMPv4Type, t) }

// ICMPv4Code is the ICMP code; needs EthTypeIPv4 and ProtoICMP.
func ICMPv4Code(c uint8) OXM { return basic8(FieldICMPv4Code, c) }

// ICMPv6Code is the ICMPv6 code; needs EthTypeIPv6 and ProtoICMPv6.
func ICMPv6Code(c uint8) OXM { return basic8(FieldICMPv6Code, c) }

// ARPOp is 1 for a request, 2 for a reply; needs EthTypeARP.
func ARPOp(op uint16) OXM { return basic16(FieldARPOp, op) }

// ARPSPA is the sender's protocol address; needs EthTypeARP.
func ARPSPA(a netip.Addr) OXM { return basicAddr(FieldARPSPA, a) }

// ARPSHA is the sender's hardware address; needs EthTypeARP.
func ARPSHA(m [6]byte) OXM { return basicMAC(FieldARPSHA, m) }

// ARPTHA is the target's hardware address; needs EthTypeARP.
func ARPTHA(m [6]byte) OXM { return basicMAC(FieldARPTHA, m) }

// IPv6NDTarget is the target address of a neighbour solicitation or
// advertisement; needs ICMPv6Type 135 or 136.
func IPv6NDTarget(a netip.Addr) OXM { return basicAddr(FieldIPv6NDTarget, a) }

// IPv6NDSLL is the sender's hardware address in a neighbour solicitation; needs
// ICMPv6Type 135.
func IPv6NDSLL(m [6]byte) OXM { return basicMAC(FieldIPv6NDSLL, m) }

// IPv6NDTLL is the target's hardware address in a neighbour advertisement;
// needs ICMPv6Type 136.
func IPv6NDTLL(m [6]byte) OXM { return basicMAC(FieldIPv6NDTLL, m) }
