package stream

import (
	"fmt"
	"net/netip"
)

// Conn is one connection: one generation of a pair of ports.
type Conn struct {
	// Addr holds both ends; Addr[0] opened the connection.
	Addr [2]netip.AddrPort
	// Gen counts the connections on this pair of ports from 1. After
	// connections have given way for want of room, counting goes on above the
	// highest number ever given, so that a name is never used twice.
	Gen int
	// SawOpen: a SYN was seen, so direction 0 is certain. Without it, the side
	// with the declared, else the lower port is taken for the one that was
	// connected to.
	SawOpen bool
	// Owner belongs to the caller.
	Owner any

	half    [2]half
	before  [2]uint32 // NextSeq as it was before the last packet
	reset   bool      // an effective RST was seen
	prevISN [2]uint32
	hasPrev [2]bool

	older, newer *Conn // in order of last packet
}

// Name is the name of a direction, e.g.
// "tcp 10.0.0.1:40312>10.0.0.2:6379#2".
func (c *Conn) Name(dir int) string {
	return fmt.Sprintf("tcp %s>%s#%d", c.Addr[dir], c.Addr[1-dir], c.Gen)
}

// Live reports whether the connection can still carry data: not reset, and
// not ended by FINs both ways.
func (c *Conn) Live() bool {
	return !c.reset && !(c.half[0].finDone && c.half[1].finDone)
}

// Established reports whether both ends have spoken.
func (c *Conn) Established() bool { return c.half[0].known && c.half[1].known }

// NextSeq is the sequence number of the next byte expected from the direction
// (RCV.NXT of its receiver once that has received what passed the tap); ok is
// false while the direction is unknown.
func (c *Conn) NextSeq(dir int) (seq uint32, ok bool) {
	h := &c.half[dir]
	return h.nextSeq(), h.known
}

// SeqBefore is NextSeq as it was before the last packet of the connection: the
// next byte expected if that packet is not let through.
func (c *Conn) SeqBefore(dir int) uint32 { return c.before[dir] }

// AckedSeq is the highest sequence number of the direction that its receiver
// has acknowledged; ok is false while none was.
func (c *Conn) AckedSeq(dir int) (seq uint32, ok bool) {
	h := &c.half[dir]
	return h.base + uint32(h.acked), h.known && h.ackSeen
}

// Acked is the number of stream bytes that the receiver has acknowledged.
func (c *Conn) Acked(dir int) uint64 { return c.half[dir].acked }

func (c *Conn) dirOf(src netip.AddrPort) int {
	if src == c.Addr[0] {
		return 0
	}
	return 1
}
