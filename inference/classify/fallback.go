package classify

import (
	"cmp"
	"math/bits"
	"strconv"

	"netsplit/model"
)

const (
	// fallbackMax bounds a turn: a longer one is cut every fallbackMax bytes,
	// counted from its start.
	fallbackMax = 64 << 10
	// fallbackHead is how much of a turn is kept to read its first token.
	fallbackHead = 64
)

// fallback frames by turns: the consecutive bytes of one direction up to the
// moment the other direction speaks are one message. A turn that grows past
// fallbackMax is cut there.
//
// Limits: the end of a turn is only known when the other side answers, so a
// unit is emitted then, not when its bytes arrive; and where both sides speak
// at once, the turns depend on the order in which the tap saw the directions.
type fallback struct {
	name  string // what the types begin with; "" is tcp
	dir   int    // whose turn it is
	start uint64
	n     int
	head  []byte
	torn  bool // what is being read does not start with the turn: the rest of a long one, or behind a gap
}

func newFallback() *fallback { return &fallback{} }

func (f *fallback) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if len(b) == 0 {
		return
	}
	if f.n > 0 && (f.dir != dir || f.start+uint64(f.n) != off) {
		f.end(emit)
	}
	f.torn = f.torn && f.dir == dir
	for len(b) > 0 {
		if f.n == 0 {
			f.dir, f.start = dir, off
		}
		k := min(len(b), fallbackMax-f.n)
		if room := fallbackHead - len(f.head); room > 0 {
			f.head = append(f.head, b[:min(k, room)]...)
		}
		f.n += k
		off += uint64(k)
		b = b[k:]
		if f.n == fallbackMax {
			f.end(emit)
			f.torn = true
		}
	}
}

func (f *fallback) Gap(dir int, _ uint64, _ uint64, emit func(Unit)) {
	f.end(emit)
	f.dir, f.torn = dir, true
}

func (f *fallback) Close(dir int, emit func(Unit)) {
	if f.dir == dir {
		f.end(emit)
	}
}

func (f *fallback) end(emit func(Unit)) {
	if f.n == 0 {
		return
	}
	arrow := ">"
	if f.dir == 1 {
		arrow = "<"
	}
	u := Unit{Dir: f.dir, Offset: f.start, Bytes: f.n}
	if f.torn {
		f.head = nil // its first bytes are in the middle of something
	}
	if f.name == "" && tlsHello(f.dir, f.head) == yes { // asked for by what was said before
		f.name = "tls"
	}
	u.Type, u.Broad, u.Fields = fallbackType(cmp.Or(f.name, "tcp")+" data "+arrow, f.n, f.head)
	f.n, f.head, f.torn = 0, f.head[:0], false
	emit(u)
}

func fallbackDatagram(b []byte) Unit {
	u := Unit{Bytes: len(b)}
	u.Type, u.Broad, u.Fields = fallbackType("udp data", len(b), b[:min(len(b), fallbackHead)])
	return u
}

// lengthClass is "2^k" for 2^k to 2^(k+1)-1 bytes, "0" for none.
func lengthClass(n int) string {
	if n <= 0 {
		return "0"
	}
	return "2^" + strconv.Itoa(bits.Len(uint(n))-1)
}

func fallbackType(prefix string, n int, head []byte) (typ, broad string, fields []model.Field) {
	typ = prefix + " " + lengthClass(n)
	i := 0
	for i < len(head) && !isSpace(head[i]) {
		i++
	}
	ended := i < len(head) || n == len(head) // not cut off by fallbackHead
	if w := string(head[:i]); ended && len(w) > 1 && isWord(w) {
		return typ + " " + strconv.Quote(w), typ, []model.Field{{Name: "token0", Value: w}}
	}
	return typ, typ, nil
}
