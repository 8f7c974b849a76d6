package stream

import "slices"

// half is one direction of a connection. Positions are stream offsets.
type half struct {
	known   bool   // base is valid
	derived bool   // base comes from the peer's acknowledgements only
	synSeen bool   // isn is valid
	isn     uint32 // initial sequence number
	// otherISN is that of the SYN-ACK before, valid if hasOther: which of the two
	// stands is told by the first acknowledgement or, if that was not seen, byte.
	otherISN uint32
	hasOther bool
	base     uint32 // sequence number of offset 0
	next     uint64 // all before it was delivered or reported as a gap
	high     uint64 // highest end seen
	acked    uint64 // highest offset acknowledged; can be beyond high
	ackSeen  bool

	fin     bool // finOff is valid
	finOff  uint64
	finDone bool // reached and reported
	rstSeen bool
	ended   bool // an effective RST was seen

	strays    int    // segments outside the window, in a row
	strayNext uint32 // where the last of them ended
	closed    bool   // Closed was reported

	waiting []segment // sorted, disjoint, all beyond next
	waits   int       // bytes in waiting

	// past holds delivered bytes that may come again: those up to next that
	// are not acknowledged yet, as far as room allows. Its first gone bytes are
	// let go of already and are moved away when they are many.
	past []byte
	gone int
}

type segment struct {
	off uint64
	b   []byte
}

func (s segment) end() uint64 { return s.off + uint64(len(s.b)) }

const (
	// farBack and farAhead bound what can belong to a connection: behind its
	// next byte, a retransmission as late as a window allows (2^30, RFC 7323
	// §2.3); ahead of it, no more than buffers hold. Segments of an earlier
	// connection on the same ports fall outside with probability 3/4 and up.
	farBack  = 1 << 30
	farAhead = 64 << 20
	// strayLimit is the number of segments in a row, each beginning where the
	// last ended, that are believed although they are outside.
	strayLimit = 8
)

// offset unfolds a sequence number to the offset nearest to next; it is
// negative for what lies before the stream's start. ok is false if it cannot
// belong to the connection.
func (h *half) offset(seq uint32) (off int64, ok bool) {
	d := int64(int32(seq - (h.base + uint32(h.next))))
	return int64(h.next) + d, d <= farAhead && d >= -farBack
}

// synAcked reports whether an answer to the SYN acknowledges it, and with it at
// most the bytes it carried (RFC 7413 §4.2).
func (h *half) synAcked(ack uint32) bool {
	return h.synSeen && uint64(ack-(h.isn+1)) <= h.high
}

// unseen reports whether the direction has sent an answer to a SYN, and nothing
// else, that was not acknowledged yet.
func (h *half) unseen() bool {
	return h.synSeen && !h.ackSeen && !h.fin && h.high == 0
}

// earlier goes back to the earlier one of two answers to a SYN if the first
// sequence number that is acknowledged or sent behind them is of that one.
func (h *half) earlier(seq uint32) {
	if h.hasOther && seq == h.otherISN+1 && h.unseen() {
		h.start(seq, false)
		h.isn, h.hasOther = h.otherISN, false
	}
}

// stray counts segments outside the window that continue one another and
// reports whether they are enough to be believed.
func (h *half) stray(seq, n uint32) bool {
	if h.strays == 0 || seq != h.strayNext {
		h.strays = 0
	}
	if n == 0 {
		return false
	}
	h.strays++
	h.strayNext = seq + n
	return h.strays > strayLimit
}

func (h *half) nextSeq() uint32 {
	seq := h.base + uint32(h.next)
	if h.finDone {
		seq++
	}
	return seq
}

func (h *half) start(base uint32, derived bool) {
	h.known, h.base, h.derived = true, base, derived
	h.next, h.high, h.acked, h.ackSeen = 0, 0, 0, false
}

// kept are the bytes up to next that may come again.
func (h *half) kept() []byte { return h.past[h.gone:] }

// keptFrom is the offset of the first of them.
func (h *half) keptFrom() uint64 { return h.next - uint64(len(h.kept())) }

// letGo lets go of the first n bytes that are kept.
func (h *half) letGo(n int) {
	h.gone += n
	if 2*h.gone >= len(h.past) {
		h.past = append(h.past[:0], h.kept()...)
		h.gone = 0
	}
}

// remember keeps delivered bytes for comparing; it is called before next moves
// past them.
func (h *half) remember(b []byte, limit int) {
	if len(b) >= limit {
		h.letGo(len(h.kept()))
		b = b[len(b)-limit:]
	} else if n := len(h.kept()) + len(b) - limit; n > 0 {
		h.letGo(n)
	}
	h.past = append(h.past, b...)
}

// forget drops what the receiver has acknowledged from past.
func (h *half) forget() {
	if from := h.keptFrom(); h.acked > from {
		h.letGo(int(min(h.acked, h.next) - from))
	}
}

// insert puts a copy of b among the waiting segments. It does not overlap any.
func (h *half) insert(off uint64, b []byte) {
	i, _ := slices.BinarySearchFunc(h.waiting, off, func(s segment, o uint64) int {
		if s.off < o {
			return -1
		}
		return 1
	})
	h.waiting = slices.Insert(h.waiting, i, segment{off, slices.Clone(b)})
	h.waits += len(b)
}

// differing compares two equally long copies and returns the span from
// the first to the last byte that differ.
func differing(a, b []byte) (from, n int) {
	from, to := -1, 0
	for i := range a {
		if a[i] != b[i] {
			if from < 0 {
				from = i
			}
			to = i + 1
		}
	}
	if from < 0 {
		return 0, 0
	}
	return from, to - from
}
