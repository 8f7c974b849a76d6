package inference

import (
	"cmp"
	"net/netip"
	"slices"

	"netsplit/inference/classify"
	"netsplit/inference/stream"
	"netsplit/model"
)

// conn is what the pipeline knows of a TCP connection beside its streams.
type conn struct {
	*stream.Conn
	host      [2]model.NodeID
	name      [2]string
	dissector classify.Dissector // from the first byte on
	words     *classify.Vocabulary
	recent    [2]recent
	syn       [2]uint64 // numbers of the transport events, 0 if not seen
	fin       [2]uint64
	rst       [2]uint64
	tags      []byte // VLAN tags of its packets
}

// tagged notes the VLAN tags that a connection's packets have.
func (p *Pipeline) tagged(pk *model.Packet) {
	if len(pk.Tags) == 0 {
		return
	}
	if c, _ := p.table.Find(pk.Src, pk.Dst); c != nil {
		o := c.Owner.(*conn)
		o.tags = append(o.tags[:0], pk.Tags...)
	}
}

func (p *Pipeline) events(events []stream.Event) {
	for i := range events {
		p.event(&events[i])
	}
	p.current = nil
}

func (p *Pipeline) event(e *stream.Event) {
	if e.Kind == stream.Open {
		c := &conn{Conn: e.Conn}
		for d := range 2 {
			c.host[d] = p.hosts[e.Conn.Addr[d].Addr()]
			c.name[d] = e.Conn.Name(d)
		}
		e.Conn.Owner = c
		return
	}
	c := e.Conn.Owner.(*conn)
	p.current = c
	switch e.Kind {
	case stream.SYN:
		p.transport(c, e, c.syn[:], p.synType(c.Addr[1-e.Dir].Port()))
	case stream.FIN:
		p.transport(c, e, c.fin[:], "tcp fin")
	case stream.RST:
		p.transport(c, e, c.rst[:], "tcp rst")
	case stream.Data:
		p.dissect(c).Data(e.Dir, e.Off, e.Bytes, p.emit)
	case stream.Gap:
		p.note("%s: gap: %d bytes from offset %d were never seen", c.name[e.Dir], e.Len, e.Off)
		p.dissect(c).Gap(e.Dir, e.Off, e.Len, p.emit)
	case stream.Closed:
		if c.dissector != nil {
			c.dissector.Close(e.Dir, p.emit)
		}
	case stream.Again:
		p.step.Again = c.recent[e.Dir].overlapping(p.step.Again, e.Off, e.Off+e.Len)
	case stream.Differs:
		p.note("%s: %d bytes from offset %d came again with other content; the first copy stands", c.name[e.Dir], e.Len, e.Off)
	case stream.Ignored:
		p.note("%s: frame %d: %s", c.name[e.Dir], p.frame, e.Why)
	}
}

// transport reports a SYN, FIN or RST, or its retransmission.
func (p *Pipeline) transport(c *conn, e *stream.Event, nums []uint64, typ string) {
	if e.Repeated && nums[e.Dir] != 0 {
		p.step.Again = append(p.step.Again, nums[e.Dir])
		return
	}
	m := p.from(c, e.Dir)
	m.Type = typ
	nums[e.Dir] = p.message(m)
}

// dissect returns the connection's dissector: that of the port that was
// connected to. Where the start was not seen, either port may be declared.
func (p *Pipeline) dissect(c *conn) classify.Dissector {
	if c.dissector != nil {
		return c.dissector
	}
	pr, ok := p.tcp[c.Addr[1].Port()]
	if !ok && !c.SawOpen {
		pr, ok = p.tcp[c.Addr[0].Port()]
	}
	if !ok {
		pr = model.Protocol{Port: c.Addr[1].Port(), Transport: "tcp", Dissector: classify.NameFallback}
	}
	d, err := classify.New(pr)
	if err != nil { // New has tried every declared protocol
		p.note("%s: %v", c.name[0], err)
		d, _ = classify.New(model.Protocol{Dissector: classify.NameFallback})
	}
	c.dissector, c.words = d, p.vocabulary("tcp", pr.Port, ok)
	return d
}

// unit turns what the current connection's dissector found into a message.
func (p *Pipeline) unit(u classify.Unit) {
	c := p.current
	m := p.from(c, u.Dir)
	m.Offset, m.Bytes, m.Type, m.Fields = u.Offset, u.Bytes, c.words.Type(&u), u.Fields
	num := p.message(m)
	c.recent[u.Dir].add(span{u.Offset, u.Offset + uint64(max(u.Bytes, 0)), num}, c.Acked(u.Dir))
}

func (p *Pipeline) from(c *conn, d int) model.Message {
	return model.Message{
		From: c.host[d], To: c.host[1-d],
		FromPort: c.Addr[d].Port(), ToPort: c.Addr[1-d].Port(),
		Stream: c.name[d],
	}
}

// span is the place of a message in its stream.
type span struct{ off, end, num uint64 }

// recent holds the messages of a direction that may come again, in stream
// order: those not acknowledged, and the last few that are (an acknowledgement
// can be lost behind the tap).
type recent struct{ spans []span }

const (
	keepAcked  = 64
	keepRecent = 4096
)

func (r *recent) add(s span, acked uint64) {
	r.spans = append(r.spans, s)
	drop := 0
	for n := len(r.spans); n-drop > keepRecent || n-drop > keepAcked && r.spans[drop].end <= acked; {
		drop++
	}
	// Move only when it pays.
	if drop > len(r.spans)/2 || len(r.spans) > 2*keepRecent {
		r.spans = append(r.spans[:0], r.spans[drop:]...)
	}
}

// overlapping appends the numbers of the messages with bytes in [off, end).
func (r *recent) overlapping(nums []uint64, off, end uint64) []uint64 {
	i, _ := slices.BinarySearchFunc(r.spans, off, func(s span, o uint64) int {
		if s.end <= o {
			return -1
		}
		return 1
	})
	for ; i < len(r.spans) && r.spans[i].off < end; i++ {
		nums = append(nums, r.spans[i].num)
	}
	return nums
}

// Connection is a TCP connection that can still carry data. A opened it (see
// stream.Conn for connections whose start was not seen).
type Connection struct {
	A, B         netip.AddrPort
	HostA, HostB model.NodeID // "" where unknown
	Generation   int          // the #n of Message.Stream
	// Tags are the VLAN tags of its packets, as in model.Packet. A host takes no
	// packet on a tagged interface that has others.
	Tags []byte
	// Established: both ends have spoken. Otherwise only A has, with a SYN.
	Established bool
	// NextSeqA is the sequence number of the next byte expected from A: RCV.NXT
	// of B when all that was stepped has reached B. A RST to B in A's name is
	// valid with exactly this number (RFC 5961 §3.2).
	NextSeqA, NextSeqB uint32
	// BeforeA is NextSeqA as it was before the connection's last packet: the
	// number to use when that packet is held and will not be let through. 0 if
	// that packet was the first.
	BeforeA, BeforeB uint32
	// AckedA is what B has acknowledged: the number to use when packets behind
	// it were dropped; the number of the first byte if B
	// acknowledged nothing yet.
	AckedA, AckedB uint32
}

// StreamOf names the direction of a TCP connection that a packet belongs to, as
// in Message.Stream; "" if it is not TCP, or of a connection nothing is known of.
func (p *Pipeline) StreamOf(pk *model.Packet) string {
	if pk.Proto != model.ProtoTCP {
		return ""
	}
	c, dir := p.table.Find(pk.Src, pk.Dst)
	if c == nil {
		return ""
	}
	return c.Owner.(*conn).name[dir]
}

// Connections lists the connections that can still carry data, sorted by A, B
// and generation.
func (p *Pipeline) Connections() []Connection {
	var out []Connection
	p.table.Each(func(c *stream.Conn) {
		if !c.Live() {
			return
		}
		o := c.Owner.(*conn)
		v := Connection{
			A: c.Addr[0], B: c.Addr[1], HostA: o.host[0], HostB: o.host[1],
			Tags: slices.Clone(o.tags), Generation: c.Gen, Established: c.Established(),
			BeforeA: c.SeqBefore(0), BeforeB: c.SeqBefore(1),
		}
		v.NextSeqA, _ = c.NextSeq(0)
		v.NextSeqB, _ = c.NextSeq(1)
		v.AckedA, _ = c.AckedSeq(0)
		v.AckedB, _ = c.AckedSeq(1)
		out = append(out, v)
	})
	slices.SortFunc(out, func(a, b Connection) int {
		return cmp.Or(a.A.Compare(b.A), a.B.Compare(b.B), cmp.Compare(a.Generation, b.Generation))
	})
	return out
}
