package of13

import (
	"fmt"
	"slices"
)

// helloVersionBitmap is the element type of the version bitmap (7.5.1).
const helloVersionBitmap = 1

// Hello opens a connection and agrees on a version (7.5.1, 6.3.1).
type Hello struct {
	// Version is the header's version byte: the highest the sender speaks.
	// 0 is written as 1.3's.
	Version  uint8
	Elements []HelloElement
	// Trailer is what follows the last well-formed element; a receiver
	// ignores it.
	Trailer []byte
}

// HelloElement is one element of a hello, padded to 8 bytes on the wire.
type HelloElement struct {
	Type uint16
	Data []byte // after type and length
}

// NewHello says that exactly the given versions are spoken (version bytes,
// 0x04 for 1.3), as header version and as bitmap.
func NewHello(versions ...uint8) *Hello {
	h := &Hello{}
	var bitmap []byte
	for _, v := range versions {
		h.Version = max(h.Version, v)
		for len(bitmap) < 4*(int(v)/32+1) {
			bitmap = append(bitmap, 0, 0, 0, 0)
		}
		word := bitmap[4*(v/32):]
		be.PutUint32(word, be.Uint32(word)|1<<(v%32))
	}
	h.Elements = []HelloElement{{helloVersionBitmap, bitmap}}
	return h
}

// Versions lists the version bytes in the bitmap, ascending; ok is false if
// the hello has no (usable) bitmap.
func (m *Hello) Versions() (versions []uint8, ok bool) {
	for _, e := range m.Elements {
		if e.Type != helloVersionBitmap || len(e.Data) < 4 {
			continue
		}
		for i := 0; i+4 <= len(e.Data) && i < 32; i += 4 {
			word := be.Uint32(e.Data[i:])
			for bit := range 32 {
				if word&(1<<bit) != 0 {
					versions = append(versions, uint8(i*8+bit))
				}
			}
		}
		return versions, true
	}
	return nil, false
}

// Negotiate returns the version byte to speak after the two hellos: the
// highest in both bitmaps if both have one, else the smaller header version
// (6.3.1). If there is none the error is a [*ParseError] whose Reply tells the
// peer so.
func Negotiate(ours, theirs *Hello) (uint8, error) {
	a, aok := ours.Versions()
	b, bok := theirs.Versions()
	if aok && bok {
		for _, v := range slices.Backward(a) {
			if slices.Contains(b, v) {
				return v, nil
			}
		}
		return 0, parseErrorf(ErrTypeHelloFailed, HelloFailedIncompatible, 0,
			"no common version: we speak %v, peer speaks %v", versionNames(a), versionNames(b))
	}
	v := min(orVersion(ours.Version), orVersion(theirs.Version))
	if aok && !slices.Contains(a, v) || bok && !slices.Contains(b, v) {
		return 0, parseErrorf(ErrTypeHelloFailed, HelloFailedIncompatible, 0,
			"no common version: we speak up to %s, peer up to %s",
			VersionName(orVersion(ours.Version)), VersionName(orVersion(theirs.Version)))
	}
	return v, nil
}

// VersionName is the specification's number for a version byte, "1.3" for 4.
func VersionName(v uint8) string {
	if v >= 1 && v <= 6 {
		return fmt.Sprintf("1.%d", v-1)
	}
	return fmt.Sprintf("0x%02x", v)
}

func versionNames(vs []uint8) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = VersionName(v)
	}
	return out
}

// MsgType is TypeHello.
func (m *Hello) MsgType() MsgType { return TypeHello }

func (m *Hello) marshal(b []byte) ([]byte, error) {
	for _, e := range m.Elements {
		start := len(b)
		b = be.AppendUint16(b, e.Type)
		b = append(b, 0, 0)
		b = append(b, e.Data...)
		if err := putLen16(b[start+2:], 4+len(e.Data)); err != nil {
			return b, err
		}
		b = appendPad(b, pad8(4+len(e.Data)))
	}
	return append(b, m.Trailer...), nil
}

func (m *Hello) unmarshal(r *reader) {
	for len(r.b) >= 4 {
		n := int(be.Uint16(r.b[2:]))
		if n < 4 || n+pad8(n) > len(r.b) {
			break // not an element: "must be ignored" (7.5.1)
		}
		t := r.u16()
		r.take(2)
		var data []byte
		if n > 4 {
			data = r.take(n - 4)
		}
		r.pad(pad8(n))
		m.Elements = append(m.Elements, HelloElement{t, data})
	}
	m.Trailer = r.rest()
}
