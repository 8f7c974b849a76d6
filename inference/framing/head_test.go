package framing

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
)

// tagged is a message with its type before its length, which counts itself.
func tagged(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

const taggedLength = "{length: {at: 1, size: 4, plus: 1}, type: [{at: 0}"

// TestABeginningThatWouldDoAsALength: a start-up message without a type is told
// apart, and is said, though a number stands where messages have their length.
func TestABeginningThatWouldDoAsALength(t *testing.T) {
	const start = "\x00\x00\x00\x0d\x00\x03\x00\x00user\x00" // 3,329 bytes, if it were one
	for _, turns := range []int{60, 400} {                   // that is more than there is, and less
		rng := rand.New(rand.NewPCG(7, 8))
		k := &talk{rng: rng, conns: 6, turns: turns, hello: []byte(start), say: func(_, conn, n int) []byte {
			kind := kindOf(rng)
			return tagged("QDCZSTX"[kind], body(rng, kind, conn, n))
		}}
		s := k.port().Suggest()
		if s.Framing == nil || !strings.HasPrefix(Line(s.Framing), taggedLength) {
			t.Fatalf("%d turns: %+v: %s", turns, s.Framing, s.Why)
		}
		const want = `; 12 streams begin otherwise (156 bytes): who connects with "00 00 00 0d 00 03 00 00" (6), who is connected to with "00 00 00 0d 00 03 00 00" (6); say so under first`
		if !strings.Contains(s.Why, want) {
			t.Errorf("%d turns: %s, want %s", turns, s.Why, want)
		}
	}
}

// TestMessagesLongerThanASample: what is looked at first ends within a message.
func TestMessagesLongerThanASample(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	k := &talk{rng: rng, conns: 4, turns: 60, say: func(dir, conn, n int) []byte {
		kind := kindOf(rng)
		b := tagged("QDCZSTX"[kind], body(rng, kind, conn, n))
		if dir == 1 && n%20 == 9 {
			b = append(b, tagged('d', bytes.Repeat([]byte{byte(n), 0, 1}, sampleBytes))...)
		}
		return b
	}}
	if s := k.port().Suggest(); s.Framing == nil || !strings.HasPrefix(Line(s.Framing), taggedLength) {
		t.Fatalf("%+v: %s", s.Framing, s.Why)
	}
}

// TestWhatStandsBeforeTheLengthIsTheType, though a letter of the content tells
// more of what follows.
func TestWhatStandsBeforeTheLengthIsTheType(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	k := &talk{rng: rng, conns: 6, turns: 300, say: func(_, conn, n int) []byte {
		kind := rng.IntN(4)
		word := kind*2 + rng.IntN(2)
		b := []byte{0, byte('a' + word)}
		for i := range 4 + 2*kind {
			b = append(b, byte('a'+(word*5+i*3)%26))
		}
		return tagged("QDCZ"[kind], b)
	}}
	if s := k.port().Suggest(); s.Framing == nil || !strings.HasPrefix(Line(s.Framing), taggedLength) {
		t.Fatalf("%s: %s", Line(s.Framing), s.Why)
	}
}
