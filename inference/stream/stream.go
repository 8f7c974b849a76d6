package stream

import (
	"net/netip"

	"netsplit/model"
)

// limits bound what a Table keeps.
type limits struct {
	conns int
	// waiting bounds the bytes, segments the segments that wait out of order in one
	// direction.
	waiting, segments int
	// past bounds the delivered, unacknowledged bytes kept per direction to compare
	// retransmissions with.
	past int
}

// Table holds the connections. It is not safe for concurrent use.
type Table struct {
	max            limits
	server         func(port uint16) bool
	conns          map[key]*Conn
	oldest, newest *Conn
	floor          int // highest generation that gave way for want of room
	events         []Event
}

type key struct{ low, high netip.AddrPort }

func keyOf(a, b netip.AddrPort) key {
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return key{a, b}
}

// NewTable returns an empty table. server reports whether a port is one that servers of
// the target listen on. It decides who opened a connection whose start was not seen; nil: none is.
func NewTable(server func(port uint16) bool) *Table {
	if server == nil {
		server = func(uint16) bool { return false }
	}
	return &Table{max: limits{conns: 16384, waiting: 1 << 20, segments: 1024, past: 256 << 10}, server: server, conns: map[key]*Conn{}}
}

// Step takes one TCP packet and returns what it brought, in order. The events
// are valid until the next call. Fragments and packets of other protocols
// bring nothing; of a first fragment the bytes it carries count.
func (t *Table) Step(p *model.Packet) []Event {
	t.events = t.events[:0]
	if p.Proto != model.ProtoTCP {
		return nil
	}
	k := keyOf(p.Src, p.Dst)
	c := t.conns[k]
	if c != nil {
		c.before = [2]uint32{c.half[0].nextSeq(), c.half[1].nextSeq()}
	}
	switch {
	case p.Has(model.FlagRST):
		t.onRST(k, c, p)
	case p.Has(model.FlagSYN | model.FlagACK):
		t.onSYNACK(k, c, p)
	case p.Has(model.FlagSYN):
		t.onSYN(k, c, p)
	default:
		if c == nil {
			c = t.open(k, p, t.opener(p), nil)
		}
		t.segment(c, p, p.Seq)
	}
	return t.events
}

// Flush ends all connections, longest idle first, and empties the table: the
// end of a run or of a capture.
func (t *Table) Flush() []Event {
	t.events = t.events[:0]
	for t.oldest != nil {
		t.remove(t.oldest)
	}
	return t.events
}

// Len is the number of connections in the table.
func (t *Table) Len() int { return len(t.conns) }

// Find returns the connection between two ends, and the direction from src; nil
// if there is none.
func (t *Table) Find(src, dst netip.AddrPort) (*Conn, int) {
	c := t.conns[keyOf(src, dst)]
	if c == nil {
		return nil, 0
	}
	return c, c.dirOf(src)
}

// Each calls f for each connection, longest idle first.
func (t *Table) Each(f func(*Conn)) {
	for c := t.oldest; c != nil; c = c.newer {
		f(c)
	}
}

// opener guesses who opened a connection whose SYN was not seen.
func (t *Table) opener(p *model.Packet) netip.AddrPort {
	s, d := t.server(p.Src.Port()), t.server(p.Dst.Port())
	if s == d {
		s, d = p.Src.Port() < p.Dst.Port(), p.Dst.Port() < p.Src.Port()
	}
	if s && !d {
		return p.Dst
	}
	return p.Src
}

// open makes a connection, in place of old if there is one.
func (t *Table) open(k key, p *model.Packet, opener netip.AddrPort, old *Conn) *Conn {
	if old == nil && len(t.conns) >= t.max.conns {
		t.remove(t.oldest)
	}
	c := &Conn{Addr: [2]netip.AddrPort{p.Src, p.Dst}, Gen: t.floor + 1}
	if opener != p.Src {
		c.Addr[0], c.Addr[1] = p.Dst, p.Src
	}
	if old != nil {
		c.Gen = old.Gen + 1
		for d := range 2 {
			o := old.dirOf(c.Addr[d])
			c.prevISN[d], c.hasPrev[d] = old.half[o].isn, old.half[o].synSeen
		}
		t.drop(old)
	}
	t.conns[k] = c
	t.append(c)
	t.emit(Event{Kind: Open, Conn: c})
	return c
}

// remove lets a connection give way.
func (t *Table) remove(c *Conn) {
	t.floor = max(t.floor, c.Gen)
	delete(t.conns, keyOf(c.Addr[0], c.Addr[1]))
	t.drop(c)
}

// drop delivers what still waits and closes both directions.
func (t *Table) drop(c *Conn) {
	t.unlink(c)
	for d := range 2 {
		t.giveUp(c, d)
		t.close(c, d)
	}
}

func (t *Table) close(c *Conn, d int) {
	if h := &c.half[d]; !h.closed {
		h.closed = true
		t.emit(Event{Kind: Closed, Conn: c, Dir: d, Off: h.next})
	}
}

func (t *Table) emit(e Event) { t.events = append(t.events, e) }

func (t *Table) ignored(c *Conn, d int, why string) {
	t.emit(Event{Kind: Ignored, Conn: c, Dir: d, Why: why})
}

func (t *Table) append(c *Conn) {
	c.older, c.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = c
	} else {
		t.oldest = c
	}
	t.newest = c
}

func (t *Table) unlink(c *Conn) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		t.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		t.newest = c.older
	}
	c.older, c.newer = nil, nil
}

func (t *Table) touch(c *Conn) {
	if t.newest != c {
		t.unlink(c)
		t.append(c)
	}
}
