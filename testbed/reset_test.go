package testbed

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/inference/packet"
	"netsplit/model"
)

// segment is a TCP segment from a, 02:..:0a, to b, 02:..:0b.
func segment(t *testing.T, a, b string, tcp layers.TCP, payload string) []byte {
	t.Helper()
	src, dst := netip.MustParseAddr(a), netip.MustParseAddr(b)
	tcp.SrcPort, tcp.DstPort = 1000, 2000
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 10}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 11}, EthernetType: layers.EthernetTypeIPv4}
	var ip gopacket.SerializableLayer = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	if src.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	if err := tcp.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, &tcp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestAnswersFitWhatTheHostsExpect(t *testing.T) {
	type want struct {
		to       model.NodeID
		src      uint16
		seq, ack uint32
		hasACK   bool
	}
	for _, c := range []struct {
		name    string
		tcp     layers.TCP
		payload string
		want    []want
	}{
		// RFC 9293 §3.10.7.1: <SEQ=SEG.ACK><CTL=RST>, or, without an
		// acknowledgement, <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>.
		{"data", layers.TCP{Seq: 100, Ack: 700, ACK: true, PSH: true}, "hello", []want{{"a", 2000, 700, 0, false}, {"b", 1000, 100, 0, false}}},
		{"opens", layers.TCP{Seq: 100, SYN: true}, "", []want{{"a", 2000, 0, 101, true}}},
		{"opens with data", layers.TCP{Seq: 100, SYN: true}, "tfo", []want{{"a", 2000, 0, 104, true}}},
		{"is accepted", layers.TCP{Seq: 500, Ack: 101, SYN: true, ACK: true}, "", []want{{"a", 2000, 101, 0, false}}},
		{"at the end of the numbers", layers.TCP{Seq: 0xffffffff, SYN: true}, "", []want{{"a", 2000, 0, 0, true}}},
		{"reset", layers.TCP{Seq: 100, RST: true}, "", nil},
		{"reset with acknowledgement", layers.TCP{Seq: 0, Ack: 5, RST: true, ACK: true}, "", nil},
	} {
		for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
			got, err := answers(segment(t, addrs[0], addrs[1], c.tcp, c.payload), "a", "b")
			if err != nil || len(got) != len(c.want) {
				t.Errorf("%s, %v: %d answers, %v; want %d", c.name, addrs, len(got), err, len(c.want))
				continue
			}
			for i, w := range c.want {
				p := packet.Decode(model.Frame{Data: got[i].frame}, func(netip.Addr) (model.NodeID, bool) { return "", false })
				toMAC := byte(10)
				if w.to == "b" {
					toMAC = 11
				}
				if got[i].to != w.to || p.EthSrc != model.ResetMAC || p.EthDst != [6]byte{2, 0, 0, 0, 0, toMAC} || p.Src.Port() != w.src ||
					!p.Has(model.FlagRST) || p.Seq != w.seq || p.Ack != w.ack || p.Has(model.FlagACK) != w.hasACK || p.Note != "" {
					t.Errorf("%s, %v: to %s: %v; want %+v", c.name, addrs, got[i].to, p.String(), w)
				}
			}
		}
	}
	plain := segment(t, "10.0.0.1", "10.0.0.2", layers.TCP{Seq: 100, Ack: 700, ACK: true}, "hello")
	tags := []byte{0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x60, 0x08}
	bare, err1 := answers(plain, "a", "b")
	got, err2 := answers(slices.Concat(plain[:12], tags, plain[12:]), "a", "b")
	if err1 != nil || err2 != nil || len(bare) != 2 || len(got) != 2 {
		t.Fatalf("%d and %d answers, %v, %v", len(bare), len(got), err1, err2)
	}
	for i, b := range bare {
		if want := slices.Concat(b.frame[:12], tags, b.frame[12:]); !bytes.Equal(got[i].frame, want) {
			t.Errorf("in two VLANs, to %s: %x, want %x", b.to, got[i].frame, want)
		}
	}
	if got, err := answers([]byte("no frame at all, really"), "a", "b"); len(got) > 0 || err != nil {
		t.Errorf("garbage was answered: %v, %v", got, err)
	}
}
