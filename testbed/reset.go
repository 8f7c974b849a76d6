package testbed

import (
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"

	"github.com/google/gopacket/layers"

	"netsplit/inference/packet"
	"netsplit/model"
)

// RST builds a TCP RST as src would send it. Linux accepts an RST only at
// exactly the next sequence number it expects (RFC 5961 §3.2), so seq must be
// the receiver's RCV.NXT; any other in its window only draws a challenge ACK.
//
// A host that has sent a SYN and heard nothing yet accepts only one that
// acknowledges it (RFC 9293 §3.10.7.3): ack, if acks is set.
//
// tags are the VLAN tags that it gets, as in model.Packet: a host with a tagged
// interface takes no other there.
func RST(srcMAC, dstMAC net.HardwareAddr, tags []byte, src, dst netip.AddrPort, seq, ack uint32, acks bool) ([]byte, error) {
	tcp := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), Seq: seq, Ack: ack, ACK: acks, RST: true}
	return packet.MakeIP(srcMAC, dstMAC, tags, src.Addr(), dst.Addr(), layers.IPProtocolTCP, tcp, nil)
}

// answer is a reset, and the host that it goes to.
type answer struct {
	to    model.NodeID
	frame []byte
}

// answers are the resets for a TCP packet that a cut has dropped: to its sender
// what the destination would say that knows no such connection (RFC 9293
// §3.10.7.1), and to its destination, unless it opens a connection, one at the
// number of the bytes that it did not get, which it expects if none before were
// lost. A reset is not answered, nor is what cannot be read.
func answers(frame []byte, from, to model.NodeID) ([]answer, error) {
	p := packet.Decode(model.Frame{Data: frame}, func(netip.Addr) (model.NodeID, bool) { return "", false })
	if p.Proto != model.ProtoTCP || p.Fragment || p.Has(model.FlagRST) {
		return nil, nil
	}
	seq, ack, acks := p.Ack, uint32(0), !p.Has(model.FlagACK)
	if acks {
		seq, ack = 0, p.Seq+uint32(len(p.Payload))
		if p.Has(model.FlagSYN) {
			ack++
		}
	}
	mine := net.HardwareAddr(model.ResetMAC[:])
	back, err := RST(mine, p.EthSrc[:], p.Tags, p.Dst, p.Src, seq, ack, acks)
	if err != nil {
		return nil, err
	}
	out := []answer{{from, back}}
	if to == "" || p.Has(model.FlagSYN) {
		return out, nil
	}
	on, err := RST(mine, p.EthDst[:], p.Tags, p.Src, p.Dst, p.Seq, 0, false)
	if err != nil {
		return out, err
	}
	return append(out, answer{to, on}), nil
}

// crossed ends the connection of a TCP packet that wanted to cross a cut with
// effect reset.
func (b *Testbed) crossed(id uint32, from model.NodeID, frame []byte) {
	v, standing := b.standing.Load(id)
	if !standing {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("netsplit itself failed at a packet that a cut dropped, please report it", "from", from, "frame", fmt.Sprintf("%x", frame), "panic", p, "stack", string(debug.Stack()))
			b.trouble("netsplit itself failed at a packet of %s that a cut dropped, please report it: %v; its connection was not reset", from, p)
		}
	}()
	c := v.(*Cut)
	to, _ := b.fabric.HostOf(frame)
	all, err := answers(frame, from, to)
	for _, a := range all {
		if err == nil {
			err = b.fabric.Inject(a.frame, a.to)
		}
		if err == nil {
			c.resets.Add(1)
		}
	}
	if err != nil {
		b.log.Warn("a connection across a cut was not reset", "from", from, "to", to, "err", err)
		b.trouble("a connection from %s to %s could not be reset: %v", from, to, err)
	}
}
