package classify

import "netsplit/model"

// Bounds of a framer.
const (
	frameKeep = 64 << 10 // kept of a message; a longer one is emitted in two units
	frameLook = 1 << 10  // looked at to decide whether a message starts here
	frameMax  = 1 << 40  // longest message believed
	frameOpen = frameMax // size of a message without a length: it ends at turn or at the end of the stream
)

// A framed protocol is one whose messages tell their length near their start.
// The framer calls it for one direction at a time; what it answers may depend
// on the bytes given and on the messages read before, on nothing else. All b
// are valid during the call only.
type framed interface {
	// size is the length of the message that starts with b, with its length
	// prefix; 0 if more bytes are needed to tell; -1 if no message starts so;
	// frameOpen if only the other direction or the end of the stream ends it.
	// More bytes may turn a 0 into something else, and nothing else.
	size(dir int, b []byte) int64
	// starts reports whether a message starts with b, which stands at an
	// arbitrary place: behind a gap or behind bytes that were no message. more
	// asks for more bytes (at most frameLook are given), and ok is final: it
	// has to be stricter than size, so that chance seldom passes.
	starts(dir int, b []byte) (ok, more bool)
	// read types a message. It returns the units it consists of, at least one,
	// of which only Bytes, Type and Fields are used: the Bytes of the last one
	// are set by the framer to what is left. It may change what size and
	// starts answer from the next message on.
	read(dir int, h frameHead) []Unit
}

// frameHead is what is known of a message when it is read.
type frameHead struct {
	b     []byte // its first bytes, at most keep of them
	total int64  // its length on the wire as size told it; 0 if it was cut off before size could tell
	whole bool   // b is all of it
}

// framer cuts the bytes of one direction into messages of a framed protocol,
// and keeps the rules of this package for it: units in order that cover every
// byte, whatever the segments; bounded memory; gaps. A message longer than
// keep is read as soon as its first keep bytes are there; the rest is a unit of
// its own at its end, with type "... end". Bytes lost inside a message
// whose length is known leave the frame as it is; bytes lost elsewhere, and
// bytes that are no message, make the framer look for the next message. What
// was cut off or has a hole has a last field incomplete=true.
type framer struct {
	p    framed
	dir  int
	keep int

	buf   []byte // from the start of the message (or of what is searched) on
	start uint64 // offset of buf[0]
	size  int64  // length of the message; 0 not known yet

	n    int64  // bytes of it seen or bridged, with those not kept
	hole bool   // bytes of it were lost: buf ends before them
	typ  string // long message: type of its first unit, which is emitted

	lost bool // looking for the start of a message
	skip int  // lost: unknown bytes before buf, not emitted yet
}

func newFramer(p framed, dir int) framer { return framer{p: p, dir: dir, keep: frameKeep} }

// framedPair is the Dissector of a framed protocol.
type framedPair struct{ d [2]framer }

func newFramedPair(p framed) *framedPair {
	return &framedPair{[2]framer{newFramer(p, 0), newFramer(p, 1)}}
}

func (c *framedPair) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	c.d[dir].data(off, b, emit)
}
func (c *framedPair) Gap(dir int, off, n uint64, emit func(Unit)) { c.d[dir].gap(off, n, emit) }
func (c *framedPair) Close(dir int, emit func(Unit))              { c.d[dir].cutOff(emit) }

// data takes the next bytes of the direction.
func (f *framer) data(off uint64, b []byte, emit func(Unit)) {
	if len(f.buf) == 0 && f.skip == 0 && f.size == 0 {
		f.start = off
	}
	for len(b) > 0 {
		if f.size > 0 && (f.hole || f.typ != "") { // nothing more of it is kept
			k := min(int64(len(b)), f.size-f.n)
			f.n += k
			b = b[k:]
			f.full(emit)
			f.ended(emit)
			continue
		}
		k := min(len(b), f.keep-len(f.buf))
		f.buf = append(f.buf, b[:k]...)
		f.n += int64(k)
		b = b[k:]
		f.drain(emit)
	}
}

// drain takes the messages out of buf that are complete.
func (f *framer) drain(emit func(Unit)) {
	buf := f.buf // keeps the array: buf moves along it
	for len(f.buf) > 0 {
		if f.lost {
			if !f.search(emit) {
				break
			}
			continue
		}
		if f.size == 0 {
			f.size = f.p.size(f.dir, f.buf)
			if f.size == 0 && len(f.buf) < f.keep {
				break
			}
			if f.size <= 0 || f.size > frameMax {
				f.lose(1)
				continue
			}
		}
		if int64(len(f.buf)) < f.size {
			if len(f.buf) == f.keep {
				f.head(emit)
			}
			break
		}
		rest := f.buf[f.size:]
		f.buf = f.buf[:f.size]
		f.n = f.size
		f.done(emit)
		f.buf = rest
		f.n = int64(len(rest))
	}
	f.buf = append(buf[:0], f.buf...)
}

// turn ends a message without a length: the other direction has spoken.
func (f *framer) turn(emit func(Unit)) {
	if f.size == frameOpen {
		f.size = f.n
		f.done(emit)
	}
}

// done emits a complete message and moves behind it.
func (f *framer) done(emit func(Unit)) {
	if f.typ != "" {
		if f.size == int64(f.keep) { // had no length, and ends here
			f.start += uint64(f.size)
			f.n, f.size, f.hole, f.typ = 0, 0, false, ""
			return
		}
		u := Unit{Dir: f.dir, Offset: f.start + uint64(f.keep), Bytes: int(f.size) - f.keep, Type: f.typ + " end"}
		if f.hole {
			u.Fields = []model.Field{incomplete}
		}
		emit(u)
	} else {
		f.units(frameHead{f.buf, f.size, !f.hole && int64(len(f.buf)) == f.size}, int(f.size), f.hole, emit)
	}
	f.start += uint64(f.size)
	f.buf, f.n, f.size, f.hole, f.typ = f.buf[:0], 0, 0, false, ""
}

// full emits the first keep bytes of a message with a hole in them, when they
// have passed.
func (f *framer) full(emit func(Unit)) {
	if f.typ == "" && f.size > int64(f.keep) && f.n >= int64(f.keep) {
		f.head(emit)
	}
}

func (f *framer) ended(emit func(Unit)) {
	if f.n == f.size {
		f.done(emit)
	}
}

// head emits the first keep bytes of a longer message.
func (f *framer) head(emit func(Unit)) {
	f.typ = f.units(frameHead{f.buf, f.size, false}, f.keep, f.hole, emit)
	f.buf, f.hole = f.buf[:0], false
}

var incomplete = model.Field{Name: "incomplete", Value: "true"}

// units has a message read and emits its units, n bytes together. It returns
// the type of the last.
func (f *framer) units(h frameHead, n int, cut bool, emit func(Unit)) string {
	us := f.p.read(f.dir, h)
	if len(us) == 0 {
		us = []Unit{{Type: model.TypeUnknown}}
	}
	off := f.start
	for i, u := range us {
		last := i == len(us)-1 || u.Bytes >= n
		if last {
			u.Bytes = n
			if cut {
				u.Fields = append(u.Fields, incomplete)
			}
		}
		u.Dir, u.Offset = f.dir, off
		if u.Bytes > 0 {
			emit(u)
		}
		off += uint64(u.Bytes)
		n -= u.Bytes
		if last {
			return u.Type
		}
	}
	return model.TypeUnknown
}

// lose begins the search for a message, behind the first k bytes of buf.
func (f *framer) lose(k int) {
	f.lost, f.size, f.hole, f.typ = true, 0, false, ""
	f.skip = k
	f.buf = f.buf[k:]
}

// search looks for the start of a message in buf and reports whether it found
// one. What it decides about a place depends on the frameLook bytes there.
func (f *framer) search(emit func(Unit)) bool {
	for len(f.buf) > 0 {
		ok, more := f.p.starts(f.dir, f.buf[:min(len(f.buf), frameLook)])
		if ok {
			f.unknown(emit)
			f.lost, f.n = false, int64(len(f.buf))
			return true
		}
		if more && len(f.buf) < frameLook {
			return false
		}
		f.buf = f.buf[1:]
		if f.skip++; f.skip == frameKeep {
			f.unknown(emit)
		}
	}
	return false
}

func (f *framer) unknown(emit func(Unit)) {
	if f.skip > 0 {
		emit(Unit{Dir: f.dir, Offset: f.start, Bytes: f.skip, Type: model.TypeUnknown})
		f.start += uint64(f.skip)
		f.skip = 0
	}
}

func (f *framer) gap(off, n uint64, emit func(Unit)) {
	if !f.lost && f.size > 0 && n <= uint64(f.size-f.n) {
		f.hole = true
		f.n += int64(n)
		f.full(emit)
		f.ended(emit)
		return
	}
	f.cutOff(emit)
	f.lost, f.start = true, off+n
}

func (f *framer) cutOff(emit func(Unit)) {
	f.turn(emit)
	switch {
	case f.lost:
		for f.skip += len(f.buf); f.skip > frameKeep; {
			rest := f.skip - frameKeep
			f.skip = frameKeep
			f.unknown(emit)
			f.skip = rest
		}
		f.unknown(emit)
	case f.typ != "":
		if over := int(f.n) - f.keep; over > 0 {
			emit(Unit{Dir: f.dir, Offset: f.start + uint64(f.keep), Bytes: over, Type: f.typ + " end", Fields: []model.Field{incomplete}})
		}
	case f.size > 0:
		f.units(frameHead{f.buf, f.size, false}, int(f.n), true, emit)
	case f.n > 0:
		emit(Unit{Dir: f.dir, Offset: f.start, Bytes: int(f.n), Type: model.TypeUnknown})
	}
	f.start += uint64(f.n)
	f.buf, f.n, f.size, f.hole, f.typ, f.lost, f.skip = f.buf[:0], 0, 0, false, "", false, 0
}
