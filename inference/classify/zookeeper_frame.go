package classify

import (
	"netsplit/model"
)

// Bounds of the ZooKeeper dissectors. Nothing they keep grows beyond them.
const (
	zkLong    = respLong // a longer message is emitted in two units
	zkKeep    = 8 << 10  // head of a message that is kept to be read
	zkMax     = 64 << 20 // longest message taken for one
	zkPending = 1 << 16  // requests without a reply yet
	zkList    = 64       // elements of a list shown in a field
	zkText    = 256      // longest value of a field
)

// zkFraming says how the messages of one direction are laid out and what they
// are. zkStream calls it; it keeps its place in zkDir.phase.
type zkFraming interface {
	// next is called at the start of a message (phase 0, no item) and after
	// each item or skip it asked for.
	next(d *zkDir) zkNext
	// read types a message whose head is d.head; whole says that nothing is
	// missing behind the head but what was skipped.
	read(d *zkDir, whole bool) (string, []model.Field)
	// plausible says whether a message seems to start with these bytes, window
	// of them; it is asked when the framing was lost.
	plausible(dir int, b []byte) bool
	window(dir int) int
}

// zkNext is what a framing wants of the bytes that come next.
type zkNext struct {
	item int   // read so many bytes into zkDir.item
	skip int64 // read over so many bytes; the head keeps the first ones
	what zkWhat
}

type zkWhat uint8

const (
	zkMore zkWhat = iota // item or skip
	zkDone               // the message is whole
	zkBad                // these bytes are no message
	zkLine               // up to the end of the line, or the next bytes of the other side
	zkRest               // all there is, up to the end of the direction
	zkSnap               // a snapshot: up to its signature
)

// zkSignature ends the snapshot that a leader sends (LearnerHandler.run,
// oa.writeString("BenWasHere", "signature")).
const zkSignature = "\x00\x00\x00\x0aBenWasHere"

// zkDir reads one direction.
type zkDir struct {
	dir   int
	phase int
	what  zkWhat
	begun bool   // the first message of the direction is behind
	start uint64 // offset of the message, or of the unknown bytes
	n     int    // its bytes so far, without those emitted as the first part
	pos   int64  // its bytes so far
	head  []byte // first zkKeep bytes of it
	hole  bool   // bytes of the head were never seen
	item  []byte
	want  int   // bytes of the item to come
	skip  int64 // bytes to read over
	on    bool  // inside a message
	long  bool  // its first zkLong bytes are emitted
	typ   string
	tail  []byte // last bytes of a snapshot
	auth  bool   // zkZAB: the packet is one of SASL
	ids   int    // zkZAB: strings of the ids to come
	lost  bool
	win   []byte // bytes that may start a message
}

// zkStream frames both directions of a connection. It is not built on framer:
// the length of a packet between servers shows only behind its data, and a
// snapshot, a four letter word and its answer tell no length at all.
type zkStream struct {
	d [2]zkDir
	f zkFraming
}

func newZKStream(f zkFraming) *zkStream {
	s := &zkStream{f: f}
	s.d[1].dir = 1
	return s
}

func (s *zkStream) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if o := &s.d[1-dir]; len(b) > 0 && o.on && o.what == zkLine {
		s.end(o, true, emit) // the answer comes: the line was whole
	}
	s.feed(&s.d[dir], off, b, emit)
}

func (s *zkStream) feed(d *zkDir, off uint64, b []byte, emit func(Unit)) {
	for len(b) > 0 {
		if d.lost {
			k := s.search(d, off, b, emit)
			off += uint64(k)
			b = b[k:]
			continue
		}
		if !d.on {
			d.begin(off)
			if !s.ask(d, emit) {
				continue
			}
		}
		k := s.take(d, b, emit)
		off += uint64(k)
		b = b[k:]
	}
}

func (d *zkDir) begin(off uint64) {
	d.on, d.phase, d.what, d.start, d.n, d.pos = true, 0, zkMore, off, 0, 0
	d.head, d.item, d.want, d.skip = d.head[:0], d.item[:0], 0, 0
	d.hole, d.long, d.typ, d.tail = false, false, "", d.tail[:0]
}

// take reads bytes of the current message and returns how many.
func (s *zkStream) take(d *zkDir, b []byte, emit func(Unit)) int {
	k := min(len(b), zkMax)
	ended := false
	switch d.what {
	case zkMore:
		if d.want > 0 {
			k = min(k, d.want)
		} else {
			k = int(min(int64(k), d.skip))
		}
	case zkLine:
		for i := range k {
			if b[i] == '\n' {
				k, ended = i+1, true
				break
			}
		}
	}
	if !d.long {
		k = min(k, zkLong-d.n) // ended holds again when the rest is read
		ended = ended && b[k-1] == '\n'
	}
	if d.what == zkSnap {
		k, ended = d.snapshot(b[:k])
	}
	d.advance(b[:k], k)
	if d.what == zkMore {
		if d.want > 0 {
			d.item = append(d.item, b[:k]...)
			d.want -= k
		} else {
			d.skip -= int64(k)
		}
		if d.want == 0 && d.skip == 0 {
			s.ask(d, emit)
		}
	}
	if ended {
		s.end(d, true, emit)
	}
	if d.on && !d.long && d.n == zkLong {
		d.firstPart(s, emit)
	}
	return k
}

// advance counts k bytes; b is what was seen of them.
func (d *zkDir) advance(b []byte, k int) {
	if room := zkKeep - len(d.head); room > 0 && !d.hole {
		d.head = append(d.head, b[:min(room, len(b))]...)
		d.hole = len(b) < k && len(d.head) < zkKeep
	}
	d.n += k
	d.pos += int64(k)
}

// snapshot returns how many bytes of b belong to a snapshot and whether its
// signature ends there.
func (d *zkDir) snapshot(b []byte) (int, bool) {
	for i, c := range b {
		if len(d.tail) == len(zkSignature) {
			copy(d.tail, d.tail[1:])
			d.tail = d.tail[:len(d.tail)-1]
		}
		d.tail = append(d.tail, c)
		if c == 'e' && string(d.tail) == zkSignature {
			return i + 1, true
		}
	}
	return len(b), false
}

// ask lets the framing decide what comes next; false if nothing of the
// message was begun (it is then ended or lost).
func (s *zkStream) ask(d *zkDir, emit func(Unit)) bool {
	for {
		n := s.f.next(d)
		d.phase++
		switch n.what {
		case zkDone:
			s.end(d, true, emit)
			return false
		case zkBad:
			s.fail(d, emit)
			return false
		case zkMore:
			d.item, d.want, d.skip = d.item[:0], n.item, n.skip
			if n.item == 0 && n.skip <= 0 {
				continue
			}
		}
		d.what = n.what
		return true
	}
}

func (d *zkDir) firstPart(s *zkStream, emit func(Unit)) {
	typ, fields := s.f.read(d, false)
	d.typ, d.long = typ, true
	emit(Unit{Dir: d.dir, Offset: d.start, Bytes: d.n, Type: typ, Fields: fields})
	d.start, d.n = d.start+uint64(d.n), 0
}

func (s *zkStream) end(d *zkDir, whole bool, emit func(Unit)) {
	d.on = false
	defer func() { d.begun = true }()
	if d.long && d.n == 0 {
		return
	}
	u := Unit{Dir: d.dir, Offset: d.start, Bytes: d.n}
	if d.long {
		u.Type = d.typ
		if u.Type != model.TypeUnknown {
			u.Type += " end"
		}
	} else {
		u.Type, u.Fields = s.f.read(d, whole && !d.hole)
	}
	if !whole || d.hole {
		u.Fields = append(u.Fields, incomplete)
	}
	emit(u)
}

// fail gives up the message: its bytes are unknown, but a message may start
// within them.
func (s *zkStream) fail(d *zkDir, emit func(Unit)) {
	d.on, d.lost, d.begun = false, true, true
	if d.long || d.pos > int64(len(d.head)) || d.hole || d.pos == 0 {
		if d.n > 0 {
			emit(Unit{Dir: d.dir, Offset: d.start, Bytes: d.n, Type: model.TypeUnknown})
		}
		d.n, d.win = 0, d.win[:0]
		return
	}
	again := append([]byte(nil), d.head[1:]...)
	off := d.start + 1
	d.n, d.win = 1, d.win[:0]
	s.feed(d, off, again, emit)
}

// search looks for the start of a message and returns how many bytes of b it
// has used. d.n counts the unknown bytes before d.win.
func (s *zkStream) search(d *zkDir, off uint64, b []byte, emit func(Unit)) int {
	size := s.f.window(d.dir)
	for i, c := range b {
		if d.n == 0 && len(d.win) == 0 {
			d.start = off + uint64(i)
		}
		d.win = append(d.win, c)
		if len(d.win) < size {
			continue
		}
		if s.f.plausible(d.dir, d.win) {
			s.unknown(d, emit)
			d.lost = false
			head := append([]byte(nil), d.win...)
			at := d.start
			d.win = d.win[:0]
			s.feed(d, at, head, emit)
			return i + 1
		}
		copy(d.win, d.win[1:])
		d.win = d.win[:size-1]
		if d.n++; d.n == zkLong {
			s.unknown(d, emit)
		}
	}
	return len(b)
}

func (s *zkStream) unknown(d *zkDir, emit func(Unit)) {
	if d.n > 0 {
		emit(Unit{Dir: d.dir, Offset: d.start, Bytes: d.n, Type: model.TypeUnknown})
		d.start += uint64(d.n)
		d.n = 0
	}
}

func (s *zkStream) Gap(dir int, off uint64, n uint64, emit func(Unit)) {
	d := &s.d[dir]
	if d.on && d.what == zkMore && d.want == 0 && n < uint64(d.skip) && (d.long || uint64(d.n)+n < zkLong) {
		d.skip -= int64(n) // inside a body of known length: the framing holds
		d.advance(nil, int(n))
		return
	}
	s.Close(dir, emit)
	d.lost, d.begun, d.n = true, true, 0
}

func (s *zkStream) Close(dir int, emit func(Unit)) {
	d := &s.d[dir]
	switch {
	case d.lost:
		d.n += len(d.win)
		d.win = d.win[:0]
		s.unknown(d, emit)
	case d.on && d.pos > 0:
		s.end(d, d.what == zkLine || d.what == zkRest, emit)
	}
	d.on = false
}
