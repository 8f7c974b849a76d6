package of13

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Match is what a rule looks for: match fields in the order of the wire
// (7.2.3). No fields match every packet.
type Match []OXM

// matchTypeOXM is OFPMT_OXM, the only match type in use (7.2.3.1).
const matchTypeOXM = 1

// Get returns the first field of that class and number.
func (m Match) Get(c Class, f Field) (OXM, bool) {
	for _, o := range m {
		if o.Class == c && o.Field == f {
			return o, true
		}
	}
	return OXM{}, false
}

// String lists the fields, comma separated; "any" if there are none.
func (m Match) String() string {
	if len(m) == 0 {
		return "any"
	}
	parts := make([]string, len(m))
	for i, o := range m {
		parts[i] = o.String()
	}
	return strings.Join(parts, ",")
}

// Normalize returns the match as Open vSwitch hands it back, up to order: a
// mask of all ones is dropped, a field with a mask of all zeros is dropped,
// value bits outside the mask are cleared. The order is one of our own: basic
// fields by number, which puts every prerequisite before what needs it, then
// the others by class, field and experimenter. m is left alone.
func (m Match) Normalize() Match {
	out := make(Match, 0, len(m))
	for _, o := range m {
		if o, ok := o.normalize(); ok {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b OXM) int {
		aOther, bOther := a.Class != ClassBasic, b.Class != ClassBasic
		switch {
		case aOther != bOther && bOther:
			return -1
		case aOther != bOther:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Experimenter, b.Experimenter))
	})
	return out
}

// Equal reports whether the two match the same packets, written the same way
// after Normalize.
func (m Match) Equal(n Match) bool {
	return slices.EqualFunc(m.Normalize(), n.Normalize(), sameOXM)
}

// Key is equal for two matches exactly if Equal says so; it is not for people.
func (m Match) Key() string {
	var b []byte
	for _, o := range m.Normalize() {
		b = fmt.Appendf(b, "%d.%d.%d:%x/%x;", o.Class, o.Field, o.Experimenter, o.Value, o.Mask)
	}
	return string(b)
}

// Validate reports what a switch would refuse (7.2.3.3 to 7.2.3.6): a field
// twice, a prerequisite that is missing or comes later, a mask where the
// specification has none, value bits outside the mask, a basic field that does
// not exist or has the wrong size. Fields of other classes pass. The error is a
// [*ParseError] with Open vSwitch's type and code, its Offset counted from the
// start of the match.
func (m Match) Validate() error {
	off := 4
	for i, o := range m {
		if err := o.validate(m[:i], off); err != nil {
			return err
		}
		off += o.wireLen()
	}
	return nil
}

// AppendOXMs appends the fields alone, without type, length and padding.
func AppendOXMs(dst []byte, m Match) ([]byte, error) {
	b := dst
	for _, o := range m {
		var err error
		if b, err = o.append(b); err != nil {
			return dst, err
		}
	}
	return b, nil
}

// AppendMatch appends the match with type, length and the padding to 8 bytes
// (7.2.3.1).
func AppendMatch(dst []byte, m Match) ([]byte, error) {
	start := len(dst)
	b := be.AppendUint16(dst, matchTypeOXM)
	b, err := AppendOXMs(append(b, 0, 0), m)
	if err == nil {
		err = putLen16(b[start+2:], len(b)-start)
	}
	if err != nil {
		return dst, err
	}
	return appendPad(b, pad8(len(b)-start)), nil
}

// ParseOXMs reads fields as AppendOXMs writes them. The match holds a copy.
func ParseOXMs(b []byte) (Match, error) {
	r := &reader{b: bytes.Clone(b), typ: ErrTypeBadMatch, code: BadMatchBadLen}
	m := readOXMs(r)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// readMatch reads type, length, fields and padding.
func readMatch(r *reader) Match {
	if len(r.b) < 8 {
		r.fail(ErrTypeBadMatch, BadMatchBadLen, "%d bytes left where a match has at least 8", len(r.b))
		return nil
	}
	if t := be.Uint16(r.b); t != matchTypeOXM {
		r.fail(ErrTypeBadMatch, BadMatchBadType, "match type %d: want %d", t, matchTypeOXM)
		return nil
	}
	n := int(be.Uint16(r.b[2:]))
	if n < 4 || n+pad8(n) > len(r.b) {
		r.fail(ErrTypeBadMatch, BadMatchBadLen, "match of %d bytes with %d left", n, len(r.b))
		return nil
	}
	r.take(4)
	s := r.sub(n-4, ErrTypeBadMatch, BadMatchBadLen)
	m := readOXMs(s)
	r.join(s)
	r.pad(pad8(n))
	return m
}

func readOXMs(r *reader) Match {
	var m Match
	for r.err == nil && len(r.b) > 0 {
		m = append(m, readOXM(r))
	}
	return m
}
