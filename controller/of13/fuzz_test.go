package of13

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The targets hold to one rule: what parses is written with the same bytes,
// padding zeroed, and what does not parse gives an error that can be answered.
// Seeds are the samples; testdata/fuzz keeps Open vSwitch's own encodings and
// what the fuzzer found.

func FuzzMessage(f *testing.F) {
	for _, s := range samples() {
		b, err := Append(nil, s.msg, sampleXID)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		m := roundTrip(t, b)
		if !bytes.Equal(b, before) {
			t.Fatal("parsing changed its input")
		}
		_ = fmt.Sprint(m) // must not panic
		switch m := m.(type) {
		case *PacketIn:
			checkDecode(t, b, m)
		case *FlowMod:
			checkNormalize(t, m.Match)
			if !EqualInstructions(m.Instructions, NormalizeInstructions(m.Instructions)) {
				t.Fatalf("%v is not equal to itself normalized", m.Instructions)
			}
		case *Error:
			_ = m.Error()
		case *Hello:
			_, _ = Negotiate(NewHello(Version), m)
		}
	})
}

// checkDecode compares the fast path with the general parser's result.
func checkDecode(t *testing.T, b []byte, want *PacketIn) {
	t.Helper()
	var p PacketIn
	xid, err := p.Decode(b)
	if err != nil || xid != be.Uint32(b[4:]) {
		t.Fatalf("Decode: xid 0x%x, error %v", xid, err)
	}
	if diff := cmp.Diff(want, &p, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("Decode and Parse differ:\n%s", diff)
	}
	m, err := p.Match()
	if err != nil {
		return // structure is sound, a field's inside is not
	}
	port, ok := p.InPort()
	o, has := m.Get(ClassBasic, FieldInPort)
	if ok && !has || ok && !o.HasMask && uint64(port) != o.Uint() {
		t.Fatalf("InPort %v %v in %v", port, ok, m)
	}
	p.Metadata()
}

func checkNormalize(t *testing.T, m Match) {
	t.Helper()
	n := m.Normalize()
	if !m.Equal(n) || m.Key() != n.Key() {
		t.Fatalf("%v is not equal to %v", m, n)
	}
	if diff := cmp.Diff(n, n.Normalize(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("Normalize twice differs:\n%s", diff)
	}
	if _, err := AppendMatch(nil, n); err != nil {
		t.Fatalf("normalized match does not encode: %v", err)
	}
}

func FuzzPacketIn(f *testing.F) {
	for _, s := range samples() {
		if s.msg.MsgType() == TypePacketIn {
			b, _ := Append(nil, s.msg, sampleXID)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p PacketIn
		_, err := p.Decode(b)
		m, _, perr := Parse(b)
		if err != nil {
			checkParseError(t, err, len(b))
			if diff := cmp.Diff(PacketIn{}, p); diff != "" {
				t.Fatalf("Decode failed, but changed the struct:\n%s", diff)
			}
			if _, ok := m.(*PacketIn); ok {
				t.Fatalf("Decode fails with %v where Parse does not", err)
			}
			return
		}
		want, ok := m.(*PacketIn)
		if !ok {
			t.Fatalf("Decode accepts what Parse reads as %T, error %v", m, perr)
		}
		checkDecode(t, b, want)
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range samples() {
		if m, ok := s.msg.(*FlowMod); ok {
			b, _ := AppendMatch(nil, m.Match)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var pads []span
		m, err := parseMatch(b, &pads)
		if err != nil {
			checkParseError(t, err, len(b))
			return
		}
		got, err := AppendMatch(nil, m)
		if want := zeroPads(b, pads); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("error %v, came back as\n%x, want\n%x", err, got, want)
		}
		if err := m.Validate(); err != nil {
			checkParseError(t, err, len(b))
		}
		_ = m.String()
		checkNormalize(t, m)
	})
}

func FuzzActions(f *testing.F) {
	for _, s := range samples() {
		if m, ok := s.msg.(*FlowMod); ok {
			for _, i := range m.Instructions {
				if a, ok := i.(ApplyActions); ok {
					b, _ := AppendActions(nil, a.Actions)
					f.Add(b)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var pads []span
		list, err := parseActions(b, &pads)
		if err != nil {
			checkParseError(t, err, len(b))
			return
		}
		got, err := AppendActions(nil, list)
		if want := zeroPads(b, pads); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("error %v, came back as\n%x, want\n%x", err, got, want)
		}
		_ = actionsString(list)
	})
}

func FuzzInstructions(f *testing.F) {
	for _, s := range samples() {
		if m, ok := s.msg.(*FlowMod); ok {
			b, _ := AppendInstructions(nil, m.Instructions)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var pads []span
		list, err := parseInstructions(b, &pads)
		if err != nil {
			checkParseError(t, err, len(b))
			return
		}
		got, err := AppendInstructions(nil, list)
		if want := zeroPads(b, pads); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("error %v, came back as\n%x, want\n%x", err, got, want)
		}
		_ = instructionsString(list)
		if !EqualInstructions(list, NormalizeInstructions(list)) {
			t.Fatalf("%v is not equal to itself normalized", list)
		}
	})
}
