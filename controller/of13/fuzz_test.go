package of13

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
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

// FuzzMultipart gives every type of multipart message the same body, asked and
// told: FuzzMessage spends its time on the types that it finds first.
func FuzzMultipart(f *testing.F) {
	for _, s := range samples() {
		switch m := s.msg.(type) {
		case *MultipartRequest:
			b, _ := Append(nil, m, sampleXID)
			f.Add(uint16(m.Type), false, b[16:])
		case *MultipartReply:
			b, _ := Append(nil, m, sampleXID)
			f.Add(uint16(m.Type), true, b[16:])
		}
	}
	f.Fuzz(func(t *testing.T, typ uint16, reply bool, body []byte) {
		if len(body) > MaxLen-16 {
			return
		}
		var m Message = &MultipartRequest{Type: MultipartType(typ), Body: RawBody(body)}
		if reply {
			m = &MultipartReply{Type: MultipartType(typ), Body: RawBody(body)}
		}
		b, err := Append(nil, m, sampleXID)
		if err != nil {
			t.Fatal(err)
		}
		_ = fmt.Sprint(roundTrip(t, b)) // must not panic
	})
}

func FuzzMeterMod(f *testing.F) {
	for _, s := range samples() {
		if s.msg.MsgType() == TypeMeterMod {
			b, _ := Append(nil, s.msg, sampleXID)
			f.Add(b[HeaderLen:])
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := Append(nil, &Raw{Type: TypeMeterMod, Body: body}, sampleXID)
		if err != nil {
			return // longer than a message
		}
		_ = fmt.Sprint(roundTrip(t, b)) // must not panic
	})
}

// FuzzHello: whatever greets us is answered, with a version that both have or
// with an error that can be sent.
func FuzzHello(f *testing.F) {
	for _, s := range samples() {
		if h, ok := s.msg.(*Hello); ok {
			b, _ := Append(nil, s.msg, sampleXID)
			f.Add(h.Version, b[HeaderLen:])
		}
	}
	ours := NewHello(Version)
	f.Fuzz(func(t *testing.T, version uint8, body []byte) {
		b, err := Append(nil, &Raw{Type: TypeHello, Body: body}, sampleXID)
		if err != nil {
			return // longer than a message
		}
		b[0] = version
		h, ok := roundTrip(t, b).(*Hello)
		if !ok {
			if version != 0 {
				t.Fatalf("no hello: %x", b)
			}
			return
		}
		v, err := Negotiate(ours, h)
		if err != nil {
			if pe, ok := err.(*ParseError); !ok || pe.Type != ErrTypeHelloFailed {
				t.Fatalf("no error to send: %v", err)
			}
			return
		}
		if listed, has := h.Versions(); v != Version || has && !slices.Contains(listed, v) || !has && version < v {
			t.Fatalf("version %d agreed with a switch of %v, header %d", v, listed, version)
		}
	})
}

// FuzzReadFrame: a stream is cut into messages as its headers say, whatever the
// pieces in which it arrives.
func FuzzReadFrame(f *testing.F) {
	var all []byte
	for _, s := range samples() {
		all, _ = Append(all, s.msg, sampleXID)
	}
	f.Add(all, uint8(7))
	f.Add([]byte{4, 0, 0, 7, 0, 0, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		r := &pieces{b: stream, n: int(piece)%16 + 1}
		at := 0
		var buf []byte
		for {
			b, err := ReadFrame(r, buf)
			if err != nil {
				var pe *ParseError
				switch {
				case err == io.EOF && at == len(stream):
				case err == io.ErrUnexpectedEOF && at < len(stream):
				case errors.As(err, &pe) && be.Uint16(stream[at+2:]) < HeaderLen:
				default:
					t.Fatalf("at byte %d of %d: %v", at, len(stream), err)
				}
				return
			}
			if !bytes.Equal(b, stream[at:at+len(b)]) || len(b) != int(be.Uint16(b[2:])) {
				t.Fatalf("at byte %d: %x", at, b)
			}
			at, buf = at+len(b), b
		}
	})
}

// pieces is a stream that arrives n bytes at a time.
type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// parseActions reads a list as AppendActions writes it. The actions hold a copy.
func parseActions(b []byte, pads *[]span) ([]Action, error) {
	r := &reader{b: bytes.Clone(b), typ: ErrTypeBadAction, code: BadActionBadLen, pads: pads}
	list := readActions(r)
	if r.err != nil {
		return nil, r.err
	}
	return list, nil
}

// parseInstructions reads a list as AppendInstructions writes it. The
// instructions hold a copy.
func parseInstructions(b []byte, pads *[]span) ([]Instruction, error) {
	r := &reader{b: bytes.Clone(b), typ: ErrTypeBadInstruction, code: BadInstructionBadLen, pads: pads}
	list := readInstructions(r)
	if r.err != nil {
		return nil, r.err
	}
	return list, nil
}

// parseMatch reads a match as AppendMatch writes it, padding included. The
// match holds a copy.
func parseMatch(b []byte, pads *[]span) (Match, error) {
	r := &reader{b: bytes.Clone(b), typ: ErrTypeBadMatch, code: BadMatchBadLen, pads: pads}
	m := readMatch(r)
	r.done()
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}
