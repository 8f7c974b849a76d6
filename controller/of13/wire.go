package of13

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

var be = binary.BigEndian

// ParseError says why bytes are not an OpenFlow message, with the type and
// code of the OFPT_ERROR that answers them (7.4.4).
type ParseError struct {
	Type   ErrorType
	Code   ErrorCode
	Offset int   // bytes from the start of the message (or of the match, action list, … parsed alone)
	Err    error // what is wrong
}

// Error describes the failure with its place and the error code to send back.
func (e *ParseError) Error() string {
	return fmt.Sprintf("openflow: byte %d: %v (%s)", e.Offset, e.Err, errorName(e.Type, e.Code))
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }

// Reply is the message to send back, with the xid of the offending message,
// whose bytes go into its data: "at least 64 bytes of the failed request"
// (7.4.4), here as much as fits.
func (e *ParseError) Reply(offending []byte) *Error {
	const room = MaxLen - HeaderLen - 4
	return &Error{Type: e.Type, Code: e.Code, Data: bytes.Clone(offending[:min(len(offending), room)])}
}

func parseErrorf(t ErrorType, c ErrorCode, off int, format string, args ...any) *ParseError {
	return &ParseError{Type: t, Code: c, Offset: off, Err: fmt.Errorf(format, args...)}
}

// span is the byte range [from, to) of a message.
type span struct{ from, to int }

// reader reads big-endian fields from the front of b. The first failure
// stays; after it everything reads as zero.
type reader struct {
	b    []byte
	off  int // of b[0] in the whole message
	err  *ParseError
	typ  ErrorType // how to answer bytes that run out
	code ErrorCode
	pads *[]span // where padding was skipped, if not nil
}

func (r *reader) fail(t ErrorType, c ErrorCode, format string, args ...any) {
	if r.err == nil {
		r.err = parseErrorf(t, c, r.off, format, args...)
		r.b = nil
	}
}

// take returns the next n bytes, nil on failure.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.fail(r.typ, r.code, "%d bytes left where %d are needed", len(r.b), n)
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	r.off += n
	return p
}

func (r *reader) u8() uint8 {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return be.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return be.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return be.Uint64(p)
	}
	return 0
}

// pad skips n bytes of padding.
func (r *reader) pad(n int) {
	from := r.off
	r.take(n)
	if r.pads != nil && r.err == nil && n > 0 {
		*r.pads = append(*r.pads, span{from, from + n})
	}
}

// rest takes all bytes that are left; nil if there are none.
func (r *reader) rest() []byte {
	if len(r.b) == 0 {
		return nil
	}
	return r.take(len(r.b))
}

// text reads a NUL-terminated string in a field of n bytes. A field without
// NUL is taken whole.
func (r *reader) text(n int) string {
	from := r.off
	p := r.take(n)
	if p == nil {
		return ""
	}
	i := bytes.IndexByte(p, 0)
	if i < 0 {
		return string(p)
	}
	if r.pads != nil {
		*r.pads = append(*r.pads, span{from + i, from + n})
	}
	return string(p[:i])
}

// sub cuts off a reader for the next n bytes, which answers with t and c when
// they run out. The caller hands it to join.
func (r *reader) sub(n int, t ErrorType, c ErrorCode) *reader {
	off := r.off
	return &reader{b: r.take(n), off: off, err: r.err, typ: t, code: c, pads: r.pads}
}

// join takes over the failure of s, and fails if s was not read to its end.
func (r *reader) join(s *reader) {
	s.done()
	if r.err == nil && s.err != nil {
		r.err = s.err
		r.b = nil
	}
}

func (r *reader) done() {
	if r.err == nil && len(r.b) > 0 {
		r.fail(r.typ, r.code, "%d bytes left over", len(r.b))
	}
}

// putLen16 stores a length, the only place where one is narrowed.
func putLen16(b []byte, n int) error {
	if n < 0 || n > MaxLen {
		return fmt.Errorf("length of %d bytes does not fit the 16-bit length field", n)
	}
	be.PutUint16(b, uint16(n))
	return nil
}

// appendPad appends n zero bytes.
func appendPad(b []byte, n int) []byte {
	const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00"
	for n > len(zeros) {
		b = append(b, zeros...)
		n -= len(zeros)
	}
	return append(b, zeros[:n]...)
}

func appendText(b []byte, s string, n int) ([]byte, error) {
	if len(s) > n {
		return b, fmt.Errorf("text of %d bytes does not fit a field of %d", len(s), n)
	}
	for i := range len(s) {
		if s[i] == 0 {
			return b, fmt.Errorf("text %q holds a NUL byte", s)
		}
	}
	return appendPad(append(b, s...), n-len(s)), nil
}

// pad8 is the number of bytes that round n up to a multiple of 8.
func pad8(n int) int { return (8 - n%8) % 8 }
