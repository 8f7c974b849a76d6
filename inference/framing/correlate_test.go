package framing

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
)

// numbered is a message with its length, a number at byte 4, and the rest.
func numbered(n uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(rest)+4))
	return append(binary.BigEndian.AppendUint32(b, n), rest...)
}

// laid is the content of a message of a kind.
func laid(rng *rand.Rand, kind int) (b []byte) {
	for i := range 6 + 5*kind {
		b = append(b, byte(40*kind+3*i))
	}
	return append(b, byte(rng.IntN(256)), byte(rng.IntN(256)))
}

// TestTheIdThatAnswersRepeat is found where what was asked tells what is answered,
// also where several are under way and are answered in another order; and not where
// each side counts its own messages.
func TestTheIdThatAnswersRepeat(t *testing.T) {
	const found = "type: [{at: 8}], correlation: {request: {at: 4, size: 4}, answer: {at: 4, size: 4}}}"
	for _, c := range []struct {
		name  string
		wide  int  // requests at a time
		parts int  // of the request's content, by a byte behind its kind
		own   bool // answers have numbers of their own
		mute  bool // what is answered does not depend on what was asked
		named bool // an answer says its kind, which is the request's in nine of ten
		found bool
	}{
		{"one at a time", 1, 1, false, false, false, true},
		{"three at a time", 3, 1, false, false, false, true},
		{"the type is what the answer depends on", 1, 6, false, false, false, true},
		{"each side counts", 3, 1, true, false, false, false},
		{"all is answered alike", 3, 1, false, true, false, false},
		{"an answer's own kind tells more", 3, 1, false, false, true, false},
	} {
		rng := rand.New(rand.NewPCG(3, 5))
		type request struct {
			id   uint32
			kind int
		}
		open := map[int][]request{}
		next, said := uint32(70_000), uint32(70_000)
		k := &talk{rng: rng, conns: 6, turns: 120, say: func(dir, conn, _ int) (b []byte) {
			if dir == 0 {
				for range c.wide {
					r := request{next, rng.IntN(5)}
					next++
					open[conn] = append(open[conn], r)
					part := rng.IntN(c.parts)
					b = append(b, numbered(r.id, append([]byte{byte(r.kind), byte(part)}, laid(rng, 1+part)...)...)...)
				}
				return b
			}
			rs := open[conn]
			rng.Shuffle(len(rs), func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
			for _, r := range rs {
				id, kind := r.id, r.kind
				if c.own {
					id = said
					said++
				}
				if c.mute {
					kind = rng.IntN(5)
				}
				var name []byte
				if c.named {
					if rng.IntN(10) == 0 {
						kind = rng.IntN(5)
					}
					name = []byte{byte(kind)}
				}
				b = append(b, numbered(id, append(name, laid(rng, kind)...)...)...)
			}
			open[conn] = nil
			return b
		}}
		s := k.port().Suggest()
		if s.Framing == nil {
			t.Fatalf("%s: %s", c.name, s.Why)
		}
		if got := Line(s.Framing); c.found != strings.HasSuffix(got, found) || !c.found && s.Framing.Correlation != nil {
			t.Errorf("%s: %s", c.name, got)
		}
		if says := strings.Contains(s.Why, "repeat an id"); says != c.found {
			t.Errorf("%s: %s", c.name, s.Why)
		}
	}
}
