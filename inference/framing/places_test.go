package framing

import (
	"math/rand/v2"
	"testing"
)

// TestPlacesThatAreNoType: each check knows what it is there for, and lets a type
// pass.
func TestPlacesThatAreNoType(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var msgs []msg
	for flow := range 8 {
		for n := range 100 {
			kind, parts := kindOf(rng), rng.IntN(6)
			b := []byte{byte(kind), byte(flow), byte(flow%3 + n/50), byte(n / 20), byte(parts)}
			b = append(b, make([]byte, 20+kind*kind)...)
			msgs = append(msgs, msg{flow: flow, size: len(b) + 12*parts, b: b})
		}
	}
	// The sizes of a kind of message tell the parts, all together do not.
	tb := newTable(msgs, length{at: 40, size: 1})
	kind := offset{0, 0xff}
	for _, c := range []struct {
		name                        string
		at                          int
		bound, passes, proportional bool
	}{
		{"type", 0, false, false, false},
		{"sender", 1, true, false, false},
		{"epoch", 2, false, true, false},
		{"counter", 3, false, true, false},
		{"parts", 4, false, false, true},
	} {
		s := offset{c.at, 0xff}
		offsets := []offset{kind, s}
		if c.at == 0 {
			offsets = offsets[:1]
		}
		if b, p, l := tb.bound(s), tb.passes(s), tb.proportional(offsets, s, false); b != c.bound || p != c.passes || l != c.proportional {
			t.Errorf("%s: names the stream %v, passes %v, is a length %v", c.name, b, p, l)
		}
		if got := tb.saved(tb.base, offsets, s); c.at > 0 && got > 0 {
			t.Errorf("%s saves %.0f bits", c.name, got)
		} else if c.at == 0 && got <= 0 {
			t.Errorf("%s saves %.0f bits", c.name, got)
		}
	}
	if tb.passes(offset{3, 0x01}) != true {
		t.Error("a bit of a counter passes for a type")
	}
}

// TestThreeCountsAreNoType: a number of equal parts is one, too, where few
// numbers were seen, if it tells the size of every message and little else.
func TestThreeCountsAreNoType(t *testing.T) {
	for _, c := range []struct {
		name    string
		odd     int  // bytes more in some messages
		content bool // what follows goes by it
		typ     bool
	}{{"parts", 0, false, false}, {"sizes", 5, false, true}, {"kinds", 0, true, true}} {
		rng := rand.New(rand.NewPCG(3, 4))
		var msgs []msg
		for i := range 400 {
			parts := 1 + rng.IntN(3)
			size := 60 + 104*parts
			if parts == 2 {
				size += c.odd
			}
			b := append([]byte{byte(parts)}, make([]byte, typeAt)...)
			for j := 8; c.content && j < typeAt; j++ {
				b[j] = byte('a' + parts)
			}
			msgs = append(msgs, msg{flow: i % 8, size: size, b: b})
		}
		tb, s := newTable(msgs, length{at: 1, size: 4}), []offset{{0, 0xff}}
		if got := tb.saved(tb.base, s, s[0]) > 0; got != c.typ {
			t.Errorf("%s: a type %v, want %v", c.name, got, c.typ)
		}
	}
}
