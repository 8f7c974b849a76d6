package of13

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hotPacketIn is a packet-in as the gate gets it: 1,400 bytes from port 3.
func hotPacketIn(t testing.TB) []byte {
	t.Helper()
	b, err := Append(nil, packetIn(Match{InPort(3), Metadata(0x1234)}, bytes.Repeat([]byte{0x5a}, 1400)), 7)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	in := hotPacketIn(t)
	var p PacketIn
	out := make([]byte, 0, 4096)
	reused := NewPacketOut(3, nil, Output{Port: 2}, Output{Port: 4})
	for name, f := range map[string]func(){
		"decode packet-in": func() {
			if _, err := p.Decode(in); err != nil {
				t.Fatal(err)
			}
			if port, ok := p.InPort(); !ok || port != 3 {
				t.Fatal("in_port", port, ok)
			}
		},
		"append packet-out": func() {
			if _, err := AppendPacketOut(out, 7, 3, p.Data, 2, 4); err != nil {
				t.Fatal(err)
			}
		},
		"append a reused PacketOut": func() {
			reused.Data = p.Data
			if _, err := Append(out, reused, 7); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestAppendPacketOutIsAppend(t *testing.T) {
	for _, ports := range [][]PortNo{nil, {2}, {2, PortInPort, PortTable}} {
		m := NewPacketOut(3, frame)
		for _, p := range ports {
			m.Actions = append(m.Actions, Output{Port: p, MaxLen: MaxLenNoBuffer})
		}
		want, err := Append([]byte("x"), m, 9)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendPacketOut([]byte("x"), 9, 3, frame, ports...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ports %v (-Append +AppendPacketOut):\n%s", ports, diff)
		}
	}
	room := MaxLen - HeaderLen - 16 - outputLen
	if b, err := AppendPacketOut(nil, 1, 1, make([]byte, room), 2); err != nil || len(b) != MaxLen {
		t.Errorf("largest packet-out: %d bytes, error %v", len(b), err)
	}
	if b, err := AppendPacketOut([]byte("x"), 1, 1, make([]byte, room+1), 2); err == nil || string(b) != "x" {
		t.Errorf("packet-out of %d bytes: %d bytes, no error", MaxLen+1, len(b))
	}
}

func BenchmarkPacketInDecode(b *testing.B) {
	in := hotPacketIn(b)
	var p PacketIn
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Decode(in); err != nil {
			b.Fatal(err)
		}
		if _, ok := p.InPort(); !ok {
			b.Fatal("no in_port")
		}
	}
}

func BenchmarkPacketOutEncode(b *testing.B) {
	data := bytes.Repeat([]byte{0x5a}, 1400)
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendPacketOut(out, 7, 3, data, 2); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFlowModEncode(b *testing.B) {
	f := rule(Match{InPort(1), EthType(EthTypeIPv4), IPv4Src(ip4A), IPv4Dst(ip4B)}, Apply(ToController()))
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(out, f, 7); err != nil {
			b.Fatal(err)
		}
	}
}
