package framing

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference/classify"
	"netsplit/inference/stream"
	"netsplit/model"
)

// talk is a conversation that a test makes up.
type talk struct {
	rng     *rand.Rand
	conns   int
	turns   int                           // of each connection
	say     func(dir, conn, n int) []byte // what is said in a turn
	middle  bool                          // the connections began before the recording
	lose    float64                       // share of segments that were lost
	segment int                           // longest segment; 0: as said
	hello   []byte                        // before the first message of each direction
	one     bool                          // only who opens a connection speaks
	sent    [][2][]byte                   // all of it, of each connection
}

// port is what a port sees of it.
func (k *talk) port() *Port {
	p := &Port{}
	for conn := range k.conns {
		c := &stream.Conn{SawOpen: !k.middle}
		var off [2]uint64
		var all [2][]byte
		for n := range k.turns {
			dir := n % 2
			if k.one {
				dir = 0
			}
			b := k.say(dir, conn, n)
			if n < 2 {
				b = append(append([]byte(nil), k.hello...), b...)
			}
			if k.middle && n < 2 {
				b = b[min(7, len(b)/2):]
			}
			all[dir] = append(all[dir], b...)
			for len(b) > 0 {
				size := len(b)
				if k.segment > 0 {
					size = min(size, 1+k.rng.IntN(k.segment))
				}
				e := &stream.Event{Kind: stream.Data, Conn: c, Dir: dir, Off: off[dir], Len: uint64(size), Bytes: b[:size]}
				if n > 1 && k.rng.Float64() < k.lose {
					e.Kind, e.Bytes = stream.Gap, nil
				}
				p.Add(e)
				off[dir] += uint64(size)
				b = b[size:]
			}
		}
		for dir := range 2 {
			p.Add(&stream.Event{Kind: stream.FIN, Conn: c, Dir: dir})
			p.Add(&stream.Event{Kind: stream.Closed, Conn: c, Dir: dir})
		}
		k.sent = append(k.sent, all)
	}
	return p
}

// body is the content of a message of a kind: a few bytes that are as the kind
// has them, a node's number, a counter, and some that nobody knows.
func body(rng *rand.Rand, kind, conn, n int) []byte {
	b := []byte{byte(conn), 0, byte(n >> 8), byte(n)}
	for i := range 2 + 3*kind {
		b = append(b, byte(17*kind+i))
	}
	for range kind % 3 * rng.IntN(9) {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

// kinds are drawn unevenly, as those of real protocols are.
func kindOf(rng *rand.Rand) int { return min(rng.IntN(7), rng.IntN(7)) }

func several(rng *rand.Rand, one func() []byte) []byte {
	var b []byte
	for range 1 + rng.IntN(3) {
		b = append(b, one()...)
	}
	return b
}

// protocols are generated ones with what is to be found of them.
var protocols = []struct {
	name string
	say  func(rng *rand.Rand, dir, conn, n int) []byte
	want string
}{
	{"big endian, without itself", func(rng *rand.Rand, _, conn, n int) []byte {
		return several(rng, func() []byte {
			kind := kindOf(rng)
			m := append([]byte{byte(kind + 1)}, body(rng, kind, conn, n)...)
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
		})
	}, "{length: {at: 0, size: 4, plus: 4}, type: [{at: 4}]}"},
	{"little endian, with itself, a version first", func(rng *rand.Rand, _, conn, n int) []byte {
		return several(rng, func() []byte {
			kind := kindOf(rng)
			m := append([]byte{9, byte(kind)}, body(rng, kind, conn, n)...)
			return append(binary.LittleEndian.AppendUint32(nil, uint32(len(m)+4)), m...)
		})
	}, "{length: {at: 0, size: 4, order: little}, type: [{at: 5}]}"},
	{"type before the length", func(rng *rand.Rand, _, conn, n int) []byte {
		return several(rng, func() []byte {
			kind := kindOf(rng)
			m := body(rng, kind, conn, n)
			return append(binary.BigEndian.AppendUint16([]byte{byte(0x20 + kind), byte(rng.Uint32())}, uint16(len(m))), m...)
		})
	}, "{length: {at: 2, size: 2, plus: 4}, type: [{at: 0}]}"},
	{"bits of a byte", func(rng *rand.Rand, _, conn, n int) []byte {
		return several(rng, func() []byte {
			kind := kindOf(rng)
			m := append([]byte{byte(kind<<2 | rng.IntN(4) | rng.IntN(8)<<5)}, body(rng, kind, conn, n)...)
			return append(binary.LittleEndian.AppendUint16([]byte{0xca, 0xfe}, uint16(len(m))), m...)
		})
	}, "{length: {at: 2, size: 2, order: little, plus: 4}, type: [{at: 4, mask: 0x1c}]}"},
	{"answers without a type", func(rng *rand.Rand, dir, conn, n int) []byte {
		id := binary.BigEndian.AppendUint32(nil, uint32(n/2))
		m := append(id, byte(0), byte(1+kindOf(rng)))
		if dir == 0 {
			m = append(m, body(rng, int(m[5]-1), conn, n)...)
		} else {
			m = id
			for range 3 + rng.IntN(60) {
				m = append(m, byte(rng.Uint32()))
			}
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
	}, "{length: {at: 0, size: 4, plus: 4}, type: [{at: 9}], answer: []}"},
	{"words behind a length", func(rng *rand.Rand, _, conn, n int) []byte {
		m := fmt.Sprintf(`{"id":%d,"op":%q,"text":%q}`, n, []string{"get", "put", "delete"}[rng.IntN(3)], strings.Repeat("x", rng.IntN(400)))
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
	}, "{length: {at: 0, size: 4, plus: 4}"},
}

// TestGeneratedProtocols: length and type are found wherever they stand, and
// reader frames reads all with what is suggested.
func TestGeneratedProtocols(t *testing.T) {
	for i, c := range protocols {
		for _, how := range []struct {
			name string
			set  func(k *talk)
		}{
			{"as said", func(*talk) {}},
			{"other segments", func(k *talk) { k.segment = 40 }},
			{"met in the middle", func(k *talk) { k.middle = true }},
			{"with losses", func(k *talk) { k.lose = 0.01 }},
			{"one long connection", func(k *talk) { k.conns, k.turns = 1, 900 }},
		} {
			if (i%2 == 1 || testing.Short()) && how.name != "as said" {
				continue // time
			}
			t.Run(c.name+", "+how.name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 2))
				k := &talk{rng: rng, conns: 6, turns: 160, say: func(dir, conn, n int) []byte { return c.say(rng, dir, conn, n) }}
				how.set(k)
				s := k.port().Suggest()
				if s.Framing == nil {
					t.Fatal(s.Why)
				}
				if got := Line(s.Framing); got != c.want && !strings.HasPrefix(got, c.want+",") && got != c.want+"}" {
					t.Fatalf("%s, want %s: %s", got, c.want, s.Why)
				}
				if how.name == "as said" {
					readBack(t, k, s)
				}
			})
		}
	}
}

// readBack has reader frames read the conversation as suggested.
func readBack(t *testing.T, k *talk, s Suggestion) {
	t.Helper()
	messages, types := 0, map[string]bool{}
	for _, c := range k.sent {
		d, err := classify.New(model.Protocol{Port: 7, Transport: "tcp", Dissector: classify.NameFrames, Frames: s.Framing})
		if err != nil {
			t.Fatal(err)
		}
		for dir := range 2 {
			emit := func(u classify.Unit) {
				messages++
				types[u.Type] = true
				if len(u.Fields) > 0 || u.Type == model.TypeUnknown {
					t.Fatalf("%+v", u)
				}
			}
			d.Data(dir, 0, c[dir], emit)
			d.Close(dir, emit)
		}
	}
	if messages != s.Messages || len(types) != s.Types {
		t.Errorf("the reader has %d messages of %d types, the suggestion %d of %d", messages, len(types), s.Messages, s.Types)
	}
}

// TestWhatHasNoFraming is not given one, and told why.
func TestWhatHasNoFraming(t *testing.T) {
	verbs := []string{"GET", "SET", "INCR", "EXPIRE"}
	for _, c := range []struct {
		name string
		say  func(rng *rand.Rand, dir, n int) []byte
		want string
	}{
		{"random bytes", func(rng *rand.Rand, _, _ int) []byte {
			b := make([]byte, 1+rng.IntN(200))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			return b
		}, WhyNone},
		{"random bytes between zeros", func(rng *rand.Rand, _, _ int) []byte {
			b := make([]byte, 1+rng.IntN(200))
			for i := range b {
				b[i] = byte(rng.Uint32() * (rng.Uint32() % 5 / 4))
			}
			return b
		}, WhyNone},
		{"lines", func(rng *rand.Rand, dir, n int) []byte {
			if dir == 1 {
				return []byte("+OK\r\n")
			}
			return fmt.Appendf(nil, "%s key%d %s\r\n", verbs[rng.IntN(4)], n, strings.Repeat("v", rng.IntN(30)))
		}, WhyText},
		{"one line", func(*rand.Rand, int, int) []byte { return []byte("PING\r\n") }, WhyText},
		{"TLS", func(rng *rand.Rand, _, n int) []byte {
			b := make([]byte, 1+rng.IntN(200))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			kind := byte(23)
			if n < 4 {
				kind = 22
			}
			return append([]byte{kind, 3, 3, 0, byte(len(b))}, b...)
		}, WhyTLS},
		{"messages of one size", func(rng *rand.Rand, _, n int) []byte {
			b := make([]byte, 64)
			copy(b, []byte{0, 0, 0, 64, byte(rng.IntN(3)), 7, byte(n)})
			return b
		}, WhyOneSize},
		{"a length of requests alone", func(rng *rand.Rand, dir, _ int) []byte {
			b := make([]byte, 1+rng.IntN(200))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if dir == 1 {
				return b
			}
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		}, "what who opens a connection says has its length at {at: 0, size: 4, plus: 4}, and the other side's messages have not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			k := &talk{rng: rng, conns: 6, turns: 200, say: func(dir, _, n int) []byte { return c.say(rng, dir, n) }}
			if s := k.port().Suggest(); s.Framing != nil || s.Why != c.want {
				t.Errorf("%+v %s, want %s", s.Framing, s.Why, c.want)
			}
		})
	}
	if s := (&Port{}).Suggest(); s.Why != WhyFew {
		t.Errorf("nothing said: %+v", s)
	}
}

// TestOthersOnThePortAreToldApart: a greeting that is no message, and connections
// that speak something else.
func TestOthersOnThePortAreToldApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	k := &talk{rng: rng, conns: 8, turns: 200, hello: []byte("\xff\xff\xff\xffhello"), say: func(dir, conn, n int) []byte {
		if conn == 3 {
			return []byte("\xff\xfe\xfdok\n")[:3+dir]
		}
		return protocols[0].say(rng, dir, conn, n)
	}}
	s := k.port().Suggest()
	if s.Framing == nil || Line(s.Framing) != protocols[0].want {
		t.Fatalf("%+v: %s", s.Framing, s.Why)
	}
	for _, want := range []string{"messages of 7 connections chain: they cover 100.0 % of ", "; 14 streams begin otherwise (126 bytes)", "; 1 more connection (", "; 7 types"} {
		if !strings.Contains(s.Why, want) {
			t.Errorf("%q: no %q", s.Why, want)
		}
	}
}

// TestASecondPlaceWhereItPays: a verb, and a subject that decides as much.
func TestASecondPlaceWhereItPays(t *testing.T) {
	for _, c := range []struct {
		subjects int
		want     string
	}{{1, "[{at: 4}]"}, {5, "[{at: 4}, {at: 5}]"}} {
		rng := rand.New(rand.NewPCG(7, 8))
		k := &talk{rng: rng, conns: 6, turns: 400, say: func(_, conn, n int) []byte {
			verb, subject := rng.IntN(4), rng.IntN(c.subjects)
			m := append([]byte{byte(verb), byte(subject)}, body(rng, verb, conn, n)...)
			m = append(m, body(rng, subject+5, conn, n)...)
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
		}}
		s := k.port().Suggest()
		if s.Framing == nil {
			t.Fatal(s.Why)
		}
		if got := Line(s.Framing); got != "{length: {at: 0, size: 4, plus: 4}, type: "+c.want+"}" {
			t.Errorf("%d subjects: %s", c.subjects, got)
		}
	}
}

// TestALengthThatMayBeWider: no message was long enough to tell whether the byte
// beside the length belongs to it.
func TestALengthThatMayBeWider(t *testing.T) {
	for _, third := range []byte{0, 1} {
		rng := rand.New(rand.NewPCG(15, 16))
		k := &talk{rng: rng, conns: 4, turns: 100, say: func(_, conn, n int) []byte {
			kind := kindOf(rng)
			m := append([]byte{byte(kind)}, body(rng, kind, conn, n)...)
			return append([]byte{byte(len(m)), byte(len(m) >> 8), third * byte(n), 7}, m...)
		}}
		s := k.port().Suggest()
		if s.Framing == nil || !strings.HasPrefix(Line(s.Framing), "{length: {at: 0, size: 2, order: little, plus: 4}") {
			t.Fatalf("%+v: %s", s.Framing, s.Why)
		}
		if want := "; byte 2 was always 0 and may belong to the length"; strings.Contains(s.Why, want) != (third == 0) {
			t.Errorf("byte 2 is %d times a counter: %s", third, s.Why)
		}
	}
}

// TestNoTypeIsAnIDOrTheTime: messages of one kind have none, whatever is in them.
func TestNoTypeIsAnIDOrTheTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	at := uint64(1 << 40)
	k := &talk{rng: rng, conns: 6, turns: 600, say: func(_, conn, n int) []byte {
		at += uint64(rng.IntN(5000))
		m := binary.BigEndian.AppendUint64(nil, at)
		m = binary.BigEndian.AppendUint32(m, uint32(n))
		m = append(m, byte(conn), byte(conn), byte(conn), byte(n/300), byte(n/300))
		m = binary.LittleEndian.AppendUint64(m, at)
		for range rng.IntN(90) {
			m = append(m, byte(rng.Uint32()))
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
	}}
	s := k.port().Suggest()
	if s.Framing == nil {
		t.Fatal(s.Why)
	}
	if got := Line(s.Framing); got != "{length: {at: 0, size: 4, plus: 4}}" || !strings.HasSuffix(s.Why, "no place was found that holds a type") {
		t.Errorf("%s: %s", got, s.Why)
	}
}

// TestMemoryIsBounded: of a long stream its beginning is kept.
func TestMemoryIsBounded(t *testing.T) {
	p, c := &Port{}, &stream.Conn{SawOpen: true}
	b := make([]byte, 1<<16)
	for i := range 64 {
		p.Add(&stream.Event{Kind: stream.Data, Conn: c, Off: uint64(i * len(b)), Len: uint64(len(b)), Bytes: b})
	}
	if p.bytes > keepFlow || len(p.flows) != 1 || !p.flows[0].cut {
		t.Errorf("%d bytes of %d flows", p.bytes, len(p.flows))
	}
}

// large is a port on which about n messages were said.
func large(n int) *Port {
	rng := rand.New(rand.NewPCG(11, 12))
	k := &talk{rng: rng, conns: 40, turns: n / 80, say: func(dir, conn, n int) []byte {
		return append(protocols[3].say(rng, dir, conn, n), protocols[3].say(rng, dir, conn, n)...)
	}}
	return k.port()
}

func BenchmarkSuggest100kMessages(b *testing.B) {
	p := large(50_000)
	for b.Loop() {
		b.ReportMetric(float64(p.Suggest().Messages), "messages")
	}
}

func TestTheSameEventsTheSameSuggestion(t *testing.T) {
	a, b := large(2000).Suggest(), large(2000).Suggest()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

func FuzzSuggest(f *testing.F) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, c := range protocols {
		var b []byte
		for n := range 60 {
			b = append(b, c.say(rng, n%2, 0, n)...)
		}
		f.Add(b, uint64(len(b)), uint8(40))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, segment uint8) {
		build := func() *Port {
			rng := rand.New(rand.NewPCG(seed, 1))
			p := &Port{}
			conns := []*stream.Conn{{SawOpen: seed%2 == 0}, {SawOpen: seed%3 == 0}}
			off := map[[2]int]uint64{}
			for rest := b; len(rest) > 0; {
				n := min(len(rest), 1+rng.IntN(int(segment)+1))
				i, dir := rng.IntN(2), rng.IntN(2)
				e := &stream.Event{Kind: stream.Data, Conn: conns[i], Dir: dir, Off: off[[2]int{i, dir}], Len: uint64(n), Bytes: rest[:n]}
				switch rng.IntN(20) {
				case 0:
					e.Kind = stream.Gap
				case 1:
					e.Kind = stream.FIN
				case 2:
					e.Kind = stream.Closed
				}
				p.Add(e)
				off[[2]int{i, dir}] += uint64(n)
				rest = rest[n:]
			}
			return p
		}
		s := build().Suggest()
		if again := build().Suggest(); !reflect.DeepEqual(s, again) {
			t.Fatalf("%+v, then %+v", s, again)
		}
		if s.Why == "" {
			t.Fatal("nothing is said")
		}
		if s.Framing == nil {
			return
		}
		if s.Types > 2*typeValues+2 || s.Messages < wantMessages {
			t.Errorf("%d types, %d messages", s.Types, s.Messages)
		}
		if _, err := classify.New(model.Protocol{Port: 7, Transport: "tcp", Dissector: classify.NameFrames, Frames: s.Framing}); err != nil {
			t.Error(err)
		}
	})
}
