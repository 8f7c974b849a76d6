package stream

import "netsplit/model"

// segment handles acknowledgement, payload and FIN of a segment. seq is the
// sequence number of its first payload byte.
func (t *Table) segment(c *Conn, p *model.Packet, seq uint32) {
	t.touch(c)
	d := c.dirOf(p.Src)
	h, peer := &c.half[d], &c.half[1-d]
	ack := p.Has(model.FlagACK)
	if !h.known {
		// The other side's SYN was seen, this side's answer was not: believe
		// only what acknowledges that connection.
		if peer.known && ack {
			if off, ok := peer.offset(p.Ack); !ok || off < 0 || uint64(off) > peer.high+1 {
				t.ignored(c, d, WhyStale)
				return
			}
		}
		h.start(seq, false)
	}
	if ack {
		t.onACK(c, d, p.Ack)
	}
	if len(p.Payload) > 0 || p.Has(model.FlagFIN) {
		t.payload(c, d, seq, p.Payload, p.Has(model.FlagFIN))
	}
	t.resolve(c, d)
	if ack {
		t.resolve(c, 1-d)
	}
}

// onACK notes what direction d acknowledges of the other one.
func (t *Table) onACK(c *Conn, d int, ack uint32) {
	h := &c.half[1-d]
	if !h.known {
		h.start(ack, true)
	}
	h.earlier(ack)
	off, ok := h.offset(ack)
	if !ok || off < 0 {
		return
	}
	h.ackSeen = true
	if uint64(off) > h.acked {
		h.acked = uint64(off)
		h.forget()
	}
}

// payload takes the bytes of a segment: what came before is reported, what is
// next delivered, what is ahead kept.
func (t *Table) payload(c *Conn, d int, seq uint32, b []byte, fin bool) {
	h := &c.half[d]
	if !c.SawOpen && h.derived && h.next == 0 && h.high == 0 {
		h.start(seq, false) // met in the middle: begin at the first byte seen
	}
	h.derived = false
	h.earlier(seq)
	first, ok := h.offset(seq)
	if !ok {
		if !h.stray(seq, uint32(len(b))) {
			t.ignored(c, d, WhyWindow)
			return
		}
		// Segment after segment goes on over there: that is where the stream is,
		// and the tap missed what lies between.
		t.giveUp(c, d)
		if to := h.next + uint64(seq-h.base-uint32(h.next)); to > h.next {
			t.gap(c, d, to)
			h.high = max(h.high, h.next)
		}
		first = int64(h.next)
	}
	h.strays = 0
	end := first + int64(len(b))
	if first < 0 {
		if len(b) > 0 {
			t.ignored(c, d, WhyBefore)
		}
		if end < 0 {
			return
		}
		b, first = b[-first:], 0
	}
	off := uint64(first)
	if h.ended && len(b) > 0 && off+uint64(len(b)) > h.next {
		t.ignored(c, d, WhyAfterRST)
		b = b[:max(off, h.next)-off]
	}
	if h.fin && len(b) > 0 && off+uint64(len(b)) > h.finOff {
		t.ignored(c, d, WhyAfterFIN)
		if off >= h.finOff {
			b = nil
		} else {
			b = b[:h.finOff-off]
		}
	}
	if len(b) > 0 {
		t.place(c, d, off, b)
	}
	if fin && !h.ended {
		t.onFIN(c, d, uint64(end))
	}
}

func (t *Table) onFIN(c *Conn, d int, off uint64) {
	h := &c.half[d]
	switch {
	case h.fin && h.finOff == off:
		if h.finDone {
			t.emit(Event{Kind: FIN, Conn: c, Dir: d, Off: off, Repeated: true})
		}
	case h.fin || off < h.high:
		t.ignored(c, d, WhySecondFIN)
	default:
		h.fin, h.finOff = true, off
	}
}

// place reports what of [off, off+len(b)) was seen before and delivers or
// keeps the rest.
func (t *Table) place(c *Conn, d int, off uint64, b []byte) {
	h := &c.half[d]
	h.high = max(h.high, off+uint64(len(b)))
	for i := 0; len(b) > 0; {
		if off < h.next { // delivered before, or drained in the last round
			n := min(uint64(len(b)), h.next-off)
			t.again(c, d, off, b[:n])
			off, b = off+n, b[n:]
			continue
		}
		for i < len(h.waiting) && h.waiting[i].end() <= off {
			i++
		}
		n := uint64(len(b))
		if i < len(h.waiting) {
			w := h.waiting[i]
			if w.off <= off { // seen, waiting
				n = min(n, w.end()-off)
				t.emit(Event{Kind: Again, Conn: c, Dir: d, Off: off, Len: n})
				t.compare(c, d, off, b[:n], w.b[off-w.off:][:n])
				off, b = off+n, b[n:]
				continue
			}
			n = min(n, w.off-off)
		}
		if off == h.next {
			t.deliver(c, d, b[:n])
			t.drain(c, d)
			i = 0
		} else {
			h.insert(off, b[:n])
		}
		off, b = off+n, b[n:]
	}
}

// again reports delivered bytes that came once more.
func (t *Table) again(c *Conn, d int, off uint64, b []byte) {
	h := &c.half[d]
	t.emit(Event{Kind: Again, Conn: c, Dir: d, Off: off, Len: uint64(len(b))})
	from, end := max(off, h.keptFrom()), off+uint64(len(b))
	if from >= end {
		return
	}
	t.compare(c, d, from, b[from-off:], h.kept()[from-h.keptFrom():][:end-from])
}

func (t *Table) compare(c *Conn, d int, off uint64, b, first []byte) {
	if from, n := differing(first, b); n > 0 {
		t.emit(Event{Kind: Differs, Conn: c, Dir: d, Off: off + uint64(from), Len: uint64(n)})
	}
}

func (t *Table) deliver(c *Conn, d int, b []byte) {
	h := &c.half[d]
	t.emit(Event{Kind: Data, Conn: c, Dir: d, Off: h.next, Len: uint64(len(b)), Bytes: b})
	h.remember(b, t.max.past)
	h.next += uint64(len(b))
	h.forget()
}

func (t *Table) drain(c *Conn, d int) {
	h := &c.half[d]
	n := 0
	for n < len(h.waiting) && h.waiting[n].off == h.next {
		h.waits -= len(h.waiting[n].b)
		t.deliver(c, d, h.waiting[n].b)
		n++
	}
	if n > 0 {
		h.waiting = append(h.waiting[:0], h.waiting[n:]...)
		clear(h.waiting[len(h.waiting):cap(h.waiting)])
	}
}

// resolve turns holes into gaps where the receiver has the bytes or too much
// waits, and ends the direction when its FIN is reached.
func (t *Table) resolve(c *Conn, d int) {
	h := &c.half[d]
	for len(h.waiting) > 0 {
		first := h.waiting[0].off
		switch {
		case h.acked > h.next:
			t.gap(c, d, min(h.acked, first))
		case h.waits > t.max.waiting || len(h.waiting) > t.max.segments:
			t.gap(c, d, first)
		default:
			return
		}
	}
	if h.fin && !h.finDone {
		if h.next < h.finOff && h.acked > h.next {
			t.gap(c, d, min(h.acked, h.finOff))
		}
		if h.next == h.finOff {
			h.finDone = true
			t.emit(Event{Kind: FIN, Conn: c, Dir: d, Off: h.finOff})
			t.close(c, d)
		}
	}
}

// gap reports [next, to) as never seen and delivers what waited behind it.
func (t *Table) gap(c *Conn, d int, to uint64) {
	h := &c.half[d]
	t.emit(Event{Kind: Gap, Conn: c, Dir: d, Off: h.next, Len: to - h.next})
	h.letGo(len(h.kept()))
	h.next = to
	t.drain(c, d)
}

// giveUp delivers all that waits, with the holes before it as gaps.
func (t *Table) giveUp(c *Conn, d int) {
	h := &c.half[d]
	for len(h.waiting) > 0 {
		t.gap(c, d, h.waiting[0].off)
	}
}
