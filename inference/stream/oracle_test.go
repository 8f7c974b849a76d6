package stream

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"netsplit/model"
)

// dumb is the reassembler that cannot be wrong: one entry per byte.
type dumb struct {
	first   [size]byte
	seen    [size]bool
	gap     [size]bool
	next    int
	acked   int
	noted   int // bytes before were delivered before the last gap: not compared
	stream  []byte
	gapList []int
}

const size = 700

// place enters a segment and returns the bytes that had been seen before and
// those of them that differ.
func (o *dumb) place(off int, b []byte) (again, differ map[int]bool) {
	again, differ = map[int]bool{}, map[int]bool{}
	for i, v := range b {
		at := off + i
		switch {
		case o.seen[at] || o.gap[at]:
			again[at] = true
			differ[at] = o.seen[at] && o.first[at] != v
		default:
			o.seen[at], o.first[at] = true, v
		}
	}
	o.drain()
	o.resolve()
	return again, differ
}

func (o *dumb) drain() {
	for o.next < size && o.seen[o.next] {
		o.stream = append(o.stream, o.first[o.next])
		o.next++
	}
}

func (o *dumb) resolve() {
	for {
		ahead := o.next
		for ahead < size && !o.seen[ahead] {
			ahead++
		}
		if ahead == size || o.acked <= o.next {
			return
		}
		for o.next < min(ahead, o.acked) {
			o.gap[o.next] = true
			o.gapList = append(o.gapList, o.next)
			o.next++
			o.noted = o.next
		}
		o.drain()
	}
}

// play runs a script on the table and on the dumb reassembler. A script is an
// initial sequence number and then operations of 5 bytes: what, where, how
// long.
func play(t *testing.T, script []byte) {
	if len(script) < 4 {
		return
	}
	isn := binary.BigEndian.Uint32(script)
	script = script[4:]
	table, o := NewTable(nil), &dumb{}
	table.Step(&model.Packet{Proto: model.ProtoTCP, Src: a, Dst: b, Seq: isn, Flags: model.FlagSYN})
	table.Step(&model.Packet{Proto: model.ProtoTCP, Src: b, Dst: a, Seq: 5, Ack: isn + 1, Flags: model.FlagSYN | model.FlagACK})
	var stream []byte
	var gaps []int
	for op := 0; len(script) >= 5 && op < 500; op++ {
		what, at, n := script[0], int(binary.BigEndian.Uint16(script[1:]))%size, int(script[3])
		if script[4]&1 == 0 { // stay near the front, or most segments wait
			at = min(max(o.next-60+at%120, 0), size-1)
		}
		script = script[5:]
		acked, noted, next := o.acked, o.noted, o.next
		var again, differ map[int]bool
		p := &model.Packet{Proto: model.ProtoTCP, Src: a, Dst: b, Flags: model.FlagACK, Ack: 6, Seq: isn + 1 + uint32(at)}
		if what%8 == 7 {
			p.Src, p.Dst, p.Seq, p.Ack = b, a, 6, isn+1+uint32(at)
			o.acked = max(o.acked, at)
			o.resolve()
		} else {
			for i := range min(n, size-at) {
				v := byte((at+i)*7 + (at+i)>>8)
				if what%8 == 6 && i%3 == 0 {
					v ^= 0x55
				}
				p.Payload = append(p.Payload, v)
			}
			again, differ = o.place(at, p.Payload)
		}
		gotAgain, gotDiffer := map[int]bool{}, map[int]bool{}
		for _, e := range table.Step(p) {
			span := func(into map[int]bool) {
				for i := e.Off; i < e.Off+e.Len; i++ {
					if into[int(i)] {
						t.Fatalf("op %d: byte %d reported twice: %s", op, i, format(table.events))
					}
					into[int(i)] = true
				}
			}
			switch e.Kind {
			case Data:
				if int(e.Off) != len(stream)+len(gaps) {
					t.Fatalf("op %d: data at %d, want %d", op, e.Off, len(stream)+len(gaps))
				}
				stream = append(stream, e.Bytes...)
			case Gap:
				for i := e.Off; i < e.Off+e.Len; i++ {
					gaps = append(gaps, int(i))
				}
			case Again:
				span(gotAgain)
			case Differs:
				if !differ[int(e.Off)] || !differ[int(e.Off+e.Len-1)] {
					t.Fatalf("op %d: differs at %d+%d, but the ends do not", op, e.Off, e.Len)
				}
				span(gotDiffer)
			default:
				t.Fatalf("op %d: unexpected %s", op, format(table.events))
			}
		}
		if string(stream) != string(o.stream) || fmt.Sprint(gaps) != fmt.Sprint(o.gapList) {
			t.Fatalf("op %d: %d bytes, gaps %v\nwant %d bytes, gaps %v", op, len(stream), gaps, len(o.stream), o.gapList)
		}
		if len(gotAgain) != len(again) {
			t.Fatalf("op %d: again %v, want %v", op, gotAgain, again)
		}
		for i := range again {
			if !gotAgain[i] {
				t.Fatalf("op %d: byte %d came again and was not reported", op, i)
			}
			kept := i >= next || i >= acked && i >= noted
			if differ[i] && kept && !gotDiffer[i] {
				t.Fatalf("op %d: byte %d differs and was not reported", op, i)
			}
		}
	}
}

func TestAgainstTheDumbReassembler(t *testing.T) {
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 4+5*(1+rng.IntN(120)))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		if seed%2 == 0 { // wrap inside the stream
			binary.BigEndian.PutUint32(script, -uint32(rng.IntN(size)))
		}
		play(t, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzStream(f *testing.F) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 4+5*40)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(play)
}

// FuzzHostile steps arbitrary packets: nothing may panic, bytes of a direction
// never go back, and what waits stays within its bounds.
func FuzzHostile(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x10\x00\x00\x00\x00\x00\x12\x00\x00\x00\x99\x00\x00\x00\x11\x00\x10\x00\x00\x00\x11\x00\x00\x00\x9a\x04"))
	f.Fuzz(func(t *testing.T, b1 []byte) {
		table := NewTable(nil)
		table.max = limits{conns: 3, waiting: 64, segments: 8, past: 16}
		at := map[string]uint64{}
		for len(b1) >= 10 {
			p := &model.Packet{Proto: model.ProtoTCP, Src: a, Dst: b, Flags: model.TCPFlags(b1[0]),
				Seq: binary.BigEndian.Uint32(b1[1:]), Ack: binary.BigEndian.Uint32(b1[5:]), Payload: make([]byte, b1[9]&0x3f)}
			if b1[9]&0x80 != 0 {
				p.Src, p.Dst = p.Dst, p.Src
			}
			if b1[9]&0x40 != 0 {
				p.Seq = uint32(int32(int8(b1[1]))) // near the wrap, so that segments meet
				p.Ack = uint32(int32(int8(b1[5])))
			}
			b1 = b1[10:]
			for _, e := range table.Step(p) {
				name := ""
				if e.Conn != nil {
					name = e.Conn.Name(e.Dir)
				}
				switch e.Kind {
				case Data, Gap:
					if e.Off < at[name] || e.Kind == Data && int(e.Len) != len(e.Bytes) {
						t.Fatalf("%s: %s at %d after %d", name, e.Kind, e.Off, at[name])
					}
					at[name] = e.Off + e.Len
				case Again:
					if e.Len == 0 {
						t.Fatalf("%s: nothing came again", name)
					}
				}
			}
			table.Each(func(c *Conn) {
				for d := range 2 {
					h := &c.half[d]
					if h.waits > 64+63 || len(h.waiting) > 8+1 || len(h.kept()) > 16 || len(h.past) > 2*16 {
						t.Fatalf("too much kept: %d bytes, %d segments, %d past", h.waits, len(h.waiting), len(h.past))
					}
				}
			})
			if table.Len() > 3 {
				t.Fatal("too many connections")
			}
		}
	})
}
