package classify

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Tags of terms (External Term Format).
const (
	etfSmallTuple = 104

	etfText  = 64  // kept of an atom
	etfKept  = 8   // elements kept of a tuple or list
	etfDepth = 64  // deepest term believed
	etfTerms = 512 // terms read of a message
)

// etfValue is what is kept of a term: an atom or a number as text, and of a tuple or a list
// its first elements.
type etfValue struct {
	kind  byte // a atom, i number, p process, r reference, t tuple, l list, b binary, m map, o other; 0: none
	text  string
	elems []etfValue
}

// etfAtom is an atom as text: of UTF-8, or of Latin-1 in old terms.
func etfAtom(b []byte) string { return cut(strings.ToValidUTF8(string(b), "\uFFFD"), etfText) }

// etf reads terms. What is cut off, or goes beyond the bounds, ends it.
type etf struct {
	b     []byte
	atoms []string // those of the header
	terms int
	bad   bool
}

func (e *etf) take(n int) []byte {
	if e.bad || n < 0 || n > len(e.b) {
		e.bad = true
		return nil
	}
	out := e.b[:n]
	e.b = e.b[n:]
	return out
}

func (e *etf) byte() byte {
	if b := e.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (e *etf) uint(n int) (v int) {
	for _, c := range e.take(n) {
		v = v<<8 | int(c)
	}
	return v
}

// version reads the byte before a term that has no header.
func (e *etf) version() {
	if e.byte() != erlVersion {
		e.bad = true
	}
}

// term reads one.
func (e *etf) term(depth int) (v etfValue) {
	if e.terms++; e.terms > etfTerms || depth > etfDepth {
		e.bad = true
	}
	if e.bad {
		return v
	}
	text := func(n int) string { return etfAtom(e.take(n)) }
	skip := func(kind byte, n int) etfValue { e.take(n); return etfValue{kind: kind} }
	switch tag := e.byte(); tag {
	case 82: // ATOM_CACHE_REF
		if i := e.uint(1); i < len(e.atoms) {
			return etfValue{kind: 'a', text: e.atoms[i]}
		}
		return etfValue{kind: 'a'}
	case 100, 118: // ATOM_EXT, ATOM_UTF8_EXT
		return etfValue{kind: 'a', text: text(e.uint(2))}
	case 115, 119: // SMALL_ATOM_EXT, SMALL_ATOM_UTF8_EXT
		return etfValue{kind: 'a', text: text(e.uint(1))}
	case 97: // SMALL_INTEGER_EXT
		return etfValue{kind: 'i', text: strconv.Itoa(e.uint(1))}
	case 98: // INTEGER_EXT
		return etfValue{kind: 'i', text: strconv.Itoa(int(int32(e.uint(4))))}
	case 110: // SMALL_BIG_EXT
		return e.big(e.uint(1))
	case 111: // LARGE_BIG_EXT
		return e.big(e.uint(4))
	case 70: // NEW_FLOAT_EXT
		return skip('i', 8)
	case 99: // FLOAT_EXT
		return skip('i', 31)
	case etfSmallTuple:
		return e.several('t', e.uint(1), depth)
	case 105: // LARGE_TUPLE_EXT
		return e.several('t', e.uint(4), depth)
	case 106: // NIL_EXT
		return etfValue{kind: 'l'}
	case 107: // STRING_EXT
		return skip('l', e.uint(2))
	case 108: // LIST_EXT, and its tail
		v = e.several('l', e.uint(4), depth)
		e.term(depth + 1)
		return v
	case 116: // MAP_EXT
		v = e.several('m', 2*e.uint(4), depth)
		return v
	case 109: // BINARY_EXT
		return skip('b', e.uint(4))
	case 77: // BIT_BINARY_EXT
		return skip('b', e.uint(4)+1)
	case 103: // PID_EXT
		e.term(depth + 1)
		return skip('p', 9)
	case 88: // NEW_PID_EXT
		e.term(depth + 1)
		return skip('p', 12)
	case 101: // REFERENCE_EXT
		e.term(depth + 1)
		return skip('r', 5)
	case 114, 90: // NEW_REFERENCE_EXT, NEWER_REFERENCE_EXT
		n := e.uint(2)
		e.term(depth + 1)
		if tag == 114 {
			return skip('r', 1+4*n)
		}
		return skip('r', 4+4*n)
	case 102, 89, 120: // PORT_EXT, NEW_PORT_EXT, V4_PORT_EXT
		e.term(depth + 1)
		return skip('o', map[byte]int{102: 5, 89: 8, 120: 12}[tag])
	case 112: // NEW_FUN_EXT, with its own size
		return skip('o', e.uint(4)-4)
	case 113: // EXPORT_EXT
		return e.several('o', 3, depth)
	}
	e.bad = true
	return v
}

// several reads n terms and keeps the first ones.
func (e *etf) several(kind byte, n, depth int) etfValue {
	v := etfValue{kind: kind}
	for i := 0; i < n && !e.bad; i++ {
		if t := e.term(depth + 1); i < etfKept && !e.bad {
			v.elems = append(v.elems, t)
		}
	}
	return v
}

// big reads an integer of n bytes, the lowest first, as far as 64 bits hold it.
func (e *etf) big(n int) etfValue {
	minus := e.byte() != 0
	b := e.take(n)
	if n > 8 {
		return etfValue{kind: 'i'}
	}
	var w [8]byte
	copy(w[:], b)
	s := strconv.FormatUint(binary.LittleEndian.Uint64(w[:]), 10)
	if minus {
		s = "-" + s
	}
	return etfValue{kind: 'i', text: s}
}
