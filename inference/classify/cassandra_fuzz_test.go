package classify

import (
	"encoding/binary"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"netsplit/model"
)

// binSteps reads a conversation from binary fuzz input: a byte whose bits are
// direction and gap, a length of two bytes, and the bytes.
func binSteps(in []byte) []step {
	var out []step
	for len(in) >= 3 {
		s := step{dir: int(in[0] & 1)}
		n := int(binary.BigEndian.Uint16(in[1:]))
		gap := in[0]&2 != 0
		in = in[3:]
		if gap {
			if s.gap = n; n == 0 {
				continue
			}
		} else {
			if n = min(n, len(in)); n == 0 {
				continue
			}
			s.b, in = in[:n], in[n:]
		}
		out = append(out, s)
	}
	return out
}

func binInput(ss []step) []byte {
	var b []byte
	for _, s := range ss {
		for len(s.b) > 0 {
			k := min(len(s.b), 65535)
			b = append(b, byte(s.dir), byte(k>>8), byte(k))
			b = append(b, s.b[:k]...)
			s.b = s.b[k:]
		}
	}
	return b
}

// captured returns the conversations of a capture on a port, by connection, as
// the segments came (a capture with losses or repeats is not for this).
func captured(t testing.TB, name string, port uint16) [][]step {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "cassandra", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	type conn struct {
		ss   []step
		next [2]uint32
	}
	conns := map[string]*conn{}
	var order []string
	for {
		b, _, err := r.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
		tcp, _ := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if tcp == nil || uint16(tcp.SrcPort) != port && uint16(tcp.DstPort) != port {
			continue
		}
		flow, dir := p.NetworkLayer().NetworkFlow().String()+tcp.TransportFlow().String(), 0
		if uint16(tcp.SrcPort) == port {
			flow, dir = p.NetworkLayer().NetworkFlow().Reverse().String()+tcp.TransportFlow().Reverse().String(), 1
		}
		c := conns[flow]
		if c == nil {
			c = &conn{}
			conns[flow] = c
			order = append(order, flow)
		}
		if tcp.SYN {
			c.next[dir] = tcp.Seq + 1
			continue
		}
		pl := tcp.Payload
		if skip := int32(c.next[dir] - tcp.Seq); len(pl) == 0 || skip < 0 || int(skip) >= len(pl) {
			continue
		} else {
			pl = pl[skip:]
		}
		c.next[dir] += uint32(len(pl))
		c.ss = append(c.ss, step{dir: dir, b: append([]byte(nil), pl...)})
	}
	var out [][]step
	for _, flow := range order {
		if len(conns[flow].ss) > 0 {
			out = append(out, conns[flow].ss)
		}
	}
	return out
}

var cassCaptures = []struct {
	name, dissector string
	port            uint16
}{
	{"3.11.5.pcap", NameCassandra, 7000}, {"4.1.7.pcap", NameCassandra, 7000}, {"5.0.4.pcap", NameCassandra, 7000},
	{"1.0.8.pcap", NameCassandra, 7000}, {"0.7.0.pcap", NameCassandra, 7000},
	{"3.11.5.pcap", NameCQL, 9042}, {"4.1.7.pcap", NameCQL, 9042}, {"5.0.4.pcap", NameCQL, 9042},
	{"1.0.8-thrift.pcap", NameThrift, 9160}, {"0.7.0-thrift.pcap", NameThrift, 9160},
}

// fuzzBinary fuzzes a dissector with the short conversations of the captures
// as seeds.
func fuzzBinary(f *testing.F, name string) {
	for _, c := range cassCaptures {
		if c.dissector != name {
			continue
		}
		for _, ss := range captured(f, c.name, c.port) {
			if in := binInput(ss); len(in) < 8<<10 {
				f.Add(in, int64(1))
			} else {
				f.Add(in[:8<<10], int64(1))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: name}, binSteps(in), seed, fuzzCuts)
	})
}

func FuzzCassandra(f *testing.F) { fuzzBinary(f, NameCassandra) }
func FuzzCQL(f *testing.F)       { fuzzBinary(f, NameCQL) }
func FuzzThrift(f *testing.F)    { fuzzBinary(f, NameThrift) }

// Real conversations keep the rules too, cut anywhere, with a loss anywhere,
// and seen from anywhere on.
func TestCassandraConversationsKeepTheRules(t *testing.T) {
	for _, c := range cassCaptures {
		t.Run(c.name+" "+c.dissector, func(t *testing.T) {
			rng := rand.New(rand.NewSource(7))
			known, all := 0, 0
			for i, ss := range captured(t, c.name, c.port) {
				for _, us := range rules(t, model.Protocol{Dissector: c.dissector}, ss, int64(i), fuzzCuts) {
					for _, u := range us {
						if all++; u.Type != model.TypeUnknown {
							known++
						} else if u.Bytes > 0 {
							t.Errorf("conversation %d: %d unknown bytes at %d", i, u.Bytes, u.Offset)
						}
					}
				}
				lossy := append([]step(nil), ss...)
				for k := range lossy {
					if rng.Intn(8) == 0 {
						lossy[k] = step{dir: ss[k].dir, gap: len(ss[k].b)}
					}
				}
				rules(t, model.Protocol{Dissector: c.dissector}, lossy, int64(i), fuzzCuts)
				rules(t, model.Protocol{Dissector: c.dissector}, ss[len(ss)/2:], int64(i), fuzzCuts)
			}
			if known == 0 {
				t.Error("nothing was read")
			}
		})
	}
}
