package classify

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// cassReader reads the primitives of Cassandra's wire formats out of a
// message's head. A read past its end sets short and returns zero values.
type cassReader struct {
	b     []byte
	off   int
	short bool
}

func (r *cassReader) left() int { return len(r.b) - r.off }

// bytes returns the next n bytes, or nil.
func (r *cassReader) bytes(n int) []byte {
	if n < 0 || r.short || n > r.left() {
		r.short = true
		return nil
	}
	b := r.b[r.off : r.off+n]
	r.off += n
	return b
}

func (r *cassReader) u8() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *cassReader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *cassReader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *cassReader) i32() int { return int(int32(r.u32())) }

// utf is DataOutput.writeUTF: an unsigned 16-bit length and that many bytes of
// modified UTF-8, taken as they are.
func (r *cassReader) utf() string { return string(r.bytes(int(r.u16()))) }

// vint is an unsigned variable-length integer of VIntCoding: the leading ones
// of the first byte count the bytes that follow it, big end first.
func (r *cassReader) vint() uint64 {
	first := r.u8()
	extra := bits.LeadingZeros8(^first)
	v := uint64(first) & (0xff >> extra)
	for _, b := range r.bytes(extra) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *cassReader) vintLen() int {
	v := r.vint()
	if v > uint64(r.left()) {
		r.short = true
		return 0
	}
	return int(v)
}

// addr is CompactEndpointSerializationHelper's address: a length byte of 4 or
// 16 and the address; from 4.0 (InetAddressAndPort.Serializer) also 6 or 18,
// with the port behind it, which is told unless it is the usual 7000.
func (r *cassReader) addr() string {
	n := int(r.u8())
	port := ""
	switch n {
	case 4, 16:
	case 6, 18:
		n -= 2
		port = "+"
	default:
		r.short = true
		return ""
	}
	a, ok := netip.AddrFromSlice(r.bytes(n))
	if !ok {
		return ""
	}
	if port != "" {
		if port = ":" + strconv.Itoa(int(r.u16())); port == ":7000" {
			port = ""
		}
	}
	if a.Is6() && port != "" {
		return "[" + a.String() + "]" + port
	}
	return a.String() + port
}

func (r *cassReader) uuid() string {
	b := r.bytes(16)
	if b == nil {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// cassAddrLen tells the bytes of an address by its length byte, 0 if it is none.
func cassAddrLen(n byte) int {
	switch n {
	case 4, 16, 6, 18:
		return 1 + int(n)
	}
	return 0
}

// cassDigest is a short name for a value that is long or no text.
func cassDigest(s string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s)))
}

// cassText makes a value fit to stand behind "NAME=" in a line.
func cassText(s string) string {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '"' || c == '\uFFFD' }) {
		return cut(strconv.Quote(s), 256)
	}
	return cut(s, 256)
}
