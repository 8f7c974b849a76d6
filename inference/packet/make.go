package packet

import (
	"net/netip"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Make makes a frame of layers, with lengths and checksums filled in.
func Make(ls ...gopacket.SerializableLayer) ([]byte, error) {
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...)
	return buf.Bytes(), err
}

// Above is what stands above IP and has a checksum over its addresses.
type Above interface {
	gopacket.SerializableLayer
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
}

// MakeIP makes a frame of an IP packet, by the version of its addresses, with what is
// above IP and its payload. tags are its VLAN tags, as in model.Packet.
func MakeIP(srcMAC, dstMAC, tags []byte, src, dst netip.Addr, number layers.IPProtocol, above Above, payload []byte) ([]byte, error) {
	eth := &layers.Ethernet{SrcMAC: srcMAC, DstMAC: dstMAC, EthernetType: layers.EthernetTypeIPv4}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	} = &layers.IPv4{Version: 4, TTL: 64, Protocol: number, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	if !src.Is4() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: number, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	ls := []gopacket.SerializableLayer{eth, ip, above, gopacket.Payload(payload)}
	if err := above.SetNetworkLayerForChecksum(ip); err != nil {
		return nil, err
	}
	b, err := Make(ls...)
	return slices.Insert(b, 12, tags...), err
}
