package run

import (
	"net"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/inference"
	"netsplit/model"
)

// rstFrame builds a TCP RST as src would send it. Linux accepts an RST only at
// exactly the next sequence number it expects (RFC 5961 §3.2), so seq must be
// the receiver's RCV.NXT; any other in its window only draws a challenge ACK.
//
// A host that has sent a SYN and heard nothing yet accepts only one that
// acknowledges it (RFC 9293 §3.10.7.3): ack, where it is not 0.
func rstFrame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, seq, ack uint32) ([]byte, error) {
	eth := &layers.Ethernet{SrcMAC: srcMAC, DstMAC: dstMAC, EthernetType: layers.EthernetTypeIPv4}
	tcp := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), Seq: seq, Ack: ack, ACK: ack != 0, RST: true}
	var ip gopacket.SerializableLayer
	if src.Addr().Is4() {
		v4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		if err := tcp.SetNetworkLayerForChecksum(v4); err != nil {
			return nil, err
		}
		ip = v4
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
		if err := tcp.SetNetworkLayerForChecksum(v6); err != nil {
			return nil, err
		}
		ip = v6
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp)
	return buf.Bytes(), err
}

// reset resets the TCP connections that cross the cut, at both ends, and
// returns how many. The caller holds mu. held is the packet whose arrival
// started the cut: the pipeline has read it and its receiver has not got it.
func (s *session) reset(held *heldFrame) int {
	crossing := map[model.Link]bool{}
	for _, l := range s.scn.Partition.Links() {
		crossing[l] = true
	}
	n := 0
	for _, c := range s.pipe.Connections() {
		ab, ba := model.Link{Src: c.HostA, Dst: c.HostB}, model.Link{Src: c.HostB, Dst: c.HostA}
		if !crossing[ab] && !crossing[ba] {
			continue
		}
		n++
		s.resetConn(c, held)
	}
	return n
}

// resetConn resets a connection at both ends. Where message faults keep or lost
// packets of it, its receiver may be behind what the pipeline has read: then it
// gets one for what it has acknowledged as well. The one that does not fit is
// answered by a challenge that says what does (RFC 5961 §3.2).
func (s *session) resetConn(c inference.Connection, held *heldFrame) {
	fromA, fromB := c.NextSeqA, c.NextSeqB
	if held != nil && held.packet.Proto == model.ProtoTCP && held.packet.Dst == c.B && held.packet.Src == c.A {
		fromA = c.BeforeA
	} else if held != nil && held.packet.Proto == model.ProtoTCP && held.packet.Dst == c.A && held.packet.Src == c.B {
		fromB = c.BeforeB
	}
	if !c.Established && len(s.scn.Faults) > 0 {
		s.resetEnd(c.B, c.A, c.HostB, c.HostA, 0, c.NextSeqA)
		return
	}
	s.resetEnd(c.A, c.B, c.HostA, c.HostB, fromA, 0)
	s.resetEnd(c.B, c.A, c.HostB, c.HostA, fromB, 0)
	if len(s.scn.Faults) > 0 {
		if c.AckedA != fromA {
			s.resetEnd(c.A, c.B, c.HostA, c.HostB, c.AckedA, 0)
		}
		if c.AckedB != fromB {
			s.resetEnd(c.B, c.A, c.HostB, c.HostA, c.AckedB, 0)
		}
	}
}

// resetEnd sends an RST to dst as if src had sent it.
func (s *session) resetEnd(src, dst netip.AddrPort, srcHost, dstHost model.NodeID, seq, ack uint32) {
	a, okA := s.gate.MAC(srcHost)
	b, okB := s.gate.MAC(dstHost)
	if !okA || !okB {
		return
	}
	frame, err := rstFrame(a, b, src, dst, seq, ack)
	if err == nil {
		err = s.gate.Release(frame, dstHost)
	}
	if err != nil {
		s.incomplete = append(s.incomplete, "a connection could not be reset: "+err.Error())
	}
}
