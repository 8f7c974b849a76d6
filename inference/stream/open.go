package stream

import "netsplit/model"

// onSYN handles a request to connect.
func (t *Table) onSYN(k key, c *Conn, p *model.Packet) {
	if c != nil {
		d := c.dirOf(p.Src)
		h, peer := &c.half[d], &c.half[1-d]
		switch {
		case !c.Live():
			// The ports are used again, be it with the numbers of before.
			c = t.open(k, p, p.Src, c)
		case h.synSeen && h.isn == p.Seq:
			t.touch(c)
			t.emit(Event{Kind: SYN, Conn: c, Dir: d, Repeated: true})
			t.segment(c, p, p.Seq+1)
			return
		case c.hasPrev[d] && c.prevISN[d] == p.Seq:
			t.ignored(c, d, WhyStaleSYN)
			return
		case !c.SawOpen && h.known && h.base == p.Seq+1:
			// The start of a connection met in its middle, out of order.
		case !h.known && peer.synSeen:
			// Both ends open at once (RFC 9293 §3.5): one connection.
			h.start(p.Seq+1, false)
		default:
			c = t.open(k, p, p.Src, c)
		}
	} else {
		c = t.open(k, p, p.Src, nil)
	}
	d := c.dirOf(p.Src)
	h := &c.half[d]
	if !h.known {
		h.start(p.Seq+1, false)
	}
	h.isn, h.synSeen, h.derived, c.SawOpen = p.Seq, true, false, true
	t.emit(Event{Kind: SYN, Conn: c, Dir: d})
	t.segment(c, p, p.Seq+1)
}

// onSYNACK handles the answer to a SYN. It reveals who opened the connection
// and, if the SYN was missed, where direction 0 starts.
func (t *Table) onSYNACK(k key, c *Conn, p *model.Packet) {
	if c != nil {
		d := c.dirOf(p.Src)
		h, peer := &c.half[d], &c.half[1-d]
		answers := peer.synAcked(p.Ack) || c.SawOpen && !peer.synSeen && peer.known && p.Ack == peer.base
		switch {
		case h.synSeen && h.isn == p.Seq: // retransmitted
			t.segment(c, p, p.Seq+1)
			return
		case answers && (!h.known || h.derived && h.next == 0 && len(h.waiting) == 0):
			h.start(p.Seq+1, false)
			h.isn, h.synSeen = p.Seq, true
			t.segment(c, p, p.Seq+1)
			return
		case !c.SawOpen && h.known && h.base == p.Seq+1:
			h.isn, h.synSeen = p.Seq, true
			t.segment(c, p, p.Seq+1)
			return
		case answers && c.Live() && h.unseen():
			// Who has forgotten its first answer, or keeps none (SYN cookies),
			// answers a SYN that comes again with another number.
			other := h.isn
			h.start(p.Seq+1, false)
			h.isn, h.otherISN, h.hasOther = p.Seq, other, true
			t.segment(c, p, p.Seq+1)
			return
		case c.Live() && c.SawOpen:
			t.ignored(c, d, WhyStale)
			return
		}
	}
	c = t.open(k, p, p.Dst, c)
	c.SawOpen = true
	h := &c.half[1]
	h.start(p.Seq+1, false)
	h.isn, h.synSeen = p.Seq, true
	c.half[0].start(p.Ack, true)
	t.segment(c, p, p.Seq+1)
}

// onRST handles a reset. Every reset is an event; whether it ends the
// connection is decided as a receiver does (RFC 9293 §3.10.7.3, and .4 with
// RFC 5961 §3.2: only at exactly the next byte).
func (t *Table) onRST(k key, c *Conn, p *model.Packet) {
	if c == nil {
		c = t.open(k, p, t.opener(p), nil)
	}
	t.touch(c)
	d := c.dirOf(p.Src)
	h, peer := &c.half[d], &c.half[1-d]
	t.emit(Event{Kind: RST, Conn: c, Dir: d, Repeated: h.rstSeen})
	h.rstSeen = true
	if !h.known { // refused: it must acknowledge the SYN
		if peer.synSeen && (!p.Has(model.FlagACK) || !peer.synAcked(p.Ack)) {
			t.ignored(c, d, WhyRSTWindow)
			return
		}
	} else if _, ok := h.offset(p.Seq); !ok {
		t.ignored(c, d, WhyRSTWindow)
		return
	} else if p.Seq != h.nextSeq() && p.Seq != h.base+uint32(h.acked) {
		// The receiver's next byte is ours unless packets were lost behind the
		// tap; then it is the one it acknowledged last.
		t.ignored(c, d, WhyRSTInexact)
		return
	}
	c.reset, h.ended = true, true
	t.giveUp(c, d)
	t.close(c, d)
}
