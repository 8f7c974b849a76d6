package resegment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/inference/packet"
	"netsplit/model"
)

// Options say how streams are split.
type Options struct {
	// MaxSegment is the longest segment in bytes (default 1460); lengths are
	// drawn so that short ones are common.
	MaxSegment int
	// Window is how many places a segment may come too early or late; 0 keeps
	// them in order.
	Window int
	// Again is the share of segments (0 to 1) that are followed, some time
	// later, by bytes that were sent before, in other segments.
	Again float64
	// ISN, if set, moves the sequence numbers of every direction so that its
	// first byte has this one, so that they wrap inside a message, for example.
	ISN *uint32
}

// turn is what one direction sent before the other one spoke.
type turn struct {
	dir   int
	at    time.Duration
	start uint64 // offset of the first byte
	data  []byte
	fin   bool
	rst   bool
	syn   bool
}

type conn struct {
	eth   [2][6]byte
	addr  [2]netip.AddrPort
	base  [2]uint32 // sequence number of the first byte, as recorded
	known [2]bool
	sent  [2]uint64
	fin   [2]bool
	turns []turn
}

// Frames returns the frames of the capture with its TCP connections in other segments,
// numbered from 1. Other frames stay as they are. The result is a function of
// the arguments. An error says which frame is not as Frames needs it.
func Frames(frames []model.Frame, rng *rand.Rand, o Options) ([]model.Frame, error) {
	if o.MaxSegment <= 0 {
		o.MaxSegment = 1460
	}
	d := packet.NewDecoder(nil)
	open := map[[2]netip.AddrPort]*conn{}
	var conns []*conn
	var out []model.Frame
	for _, f := range frames {
		p := d.Decode(f)
		if p.Proto != model.ProtoTCP {
			out = append(out, f)
			continue
		}
		c := open[[2]netip.AddrPort{p.Src, p.Dst}]
		if c == nil || p.Has(model.FlagSYN) && !p.Has(model.FlagACK) && uint32(p.Seq+1) != c.base[c.dir(&p)] {
			c = &conn{eth: [2][6]byte{p.EthSrc, p.EthDst}, addr: [2]netip.AddrPort{p.Src, p.Dst}}
			open[[2]netip.AddrPort{p.Src, p.Dst}], open[[2]netip.AddrPort{p.Dst, p.Src}] = c, c
			conns = append(conns, c)
		}
		if err := c.add(&p); err != nil {
			return nil, err
		}
	}
	for _, c := range conns {
		fs, err := c.split(rng, o)
		if err != nil {
			return nil, err
		}
		out = append(out, fs...)
	}
	slices.SortStableFunc(out, func(a, b model.Frame) int { return cmp.Compare(a.At, b.At) })
	for i := range out {
		out[i].Num = uint64(i + 1)
	}
	return out, nil
}

func (c *conn) dir(p *model.Packet) int {
	if p.Src == c.addr[0] {
		return 0
	}
	return 1
}

func (c *conn) add(p *model.Packet) error {
	d := c.dir(p)
	seq := p.Seq
	t := turn{dir: d, at: p.At, fin: p.Has(model.FlagFIN), rst: p.Has(model.FlagRST), syn: p.Has(model.FlagSYN)}
	if t.syn {
		seq++
	}
	if !c.known[d] {
		c.known[d], c.base[d] = true, seq
		if !c.known[1-d] && p.Has(model.FlagACK) {
			c.base[1-d] = p.Ack
		}
	}
	if t.rst {
		c.turns = append(c.turns, t)
		return nil
	}
	if len(p.Payload) == 0 && !t.fin && !t.syn {
		return nil // a bare acknowledgement: split makes its own
	}
	t.start = c.sent[d]
	off := int32(seq - c.base[d] - uint32(c.sent[d]))
	n := int32(len(p.Payload))
	switch {
	case off == 0:
		t.data = slices.Clone(p.Payload)
	case off < 0 && off+n <= 0: // keep-alive, retransmission
		t.fin = t.fin && !c.fin[d]
	default:
		return fmt.Errorf("resegment: frame %d: %s: %d bytes away from the next one: the capture must be complete and in order", p.Frame, p, off)
	}
	c.sent[d] += uint64(len(t.data))
	c.fin[d] = c.fin[d] || t.fin
	if len(t.data) == 0 && !t.fin && !t.syn {
		return nil
	}
	if k := len(c.turns) - 1; k >= 0 && len(t.data) > 0 && !t.syn {
		if last := &c.turns[k]; last.dir == d && !last.syn && !last.rst && !last.fin {
			last.data = append(last.data, t.data...)
			last.fin = t.fin
			return nil
		}
	}
	c.turns = append(c.turns, t)
	return nil
}

type piece struct {
	off  uint64
	data []byte
	fin  bool
	key  int // place in the order of sending
}

func (c *conn) split(rng *rand.Rand, o Options) ([]model.Frame, error) {
	var out []model.Frame
	base := c.base
	if o.ISN != nil {
		base = [2]uint32{*o.ISN, *o.ISN}
	}
	var stream [2][]byte // sent so far
	var finished [2]bool
	for _, t := range c.turns {
		send := func(off uint64, data []byte, fin bool, flags model.TCPFlags) error {
			ack := base[1-t.dir] + uint32(len(stream[1-t.dir]))
			if finished[1-t.dir] {
				ack++
			}
			seq := base[t.dir] + uint32(off)
			if flags&model.FlagSYN != 0 {
				seq--
			} else {
				flags |= model.FlagACK
			}
			if flags&model.FlagSYN != 0 && t.dir == 1 {
				flags |= model.FlagACK
			}
			if fin {
				flags |= model.FlagFIN
			}
			b, err := c.frame(t.dir, seq, ack, flags, data)
			if err != nil {
				return err
			}
			out = append(out, model.Frame{At: t.at, Data: b})
			return nil
		}
		if t.syn || t.rst {
			flags := model.TCPFlags(0)
			off := uint64(len(stream[t.dir]))
			if t.syn {
				flags = model.FlagSYN
				off = 0
			}
			if t.rst {
				flags |= model.FlagRST
				if finished[t.dir] {
					off++
				}
			}
			if err := send(off, nil, false, flags); err != nil {
				return nil, err
			}
			if t.syn && len(t.data) == 0 {
				continue
			}
			if t.rst {
				continue
			}
		}
		for _, p := range c.pieces(rng, o, t) {
			if err := send(p.off, p.data, p.fin, 0); err != nil {
				return nil, err
			}
			if rng.Float64() < o.Again {
				all := append(slices.Clone(stream[t.dir]), t.data...)
				from := max(0, int(p.off)-rng.IntN(200))
				end := min(len(all), int(p.off)+len(p.data), from+1+rng.IntN(o.MaxSegment))
				if from < end {
					if err := send(uint64(from), all[from:end], false, 0); err != nil {
						return nil, err
					}
				}
			}
		}
		stream[t.dir] = append(stream[t.dir], t.data...)
		finished[t.dir] = finished[t.dir] || t.fin
	}
	return out, nil
}

func (c *conn) pieces(rng *rand.Rand, o Options, t turn) []piece {
	var ps []piece
	for off := 0; off < len(t.data) || t.fin && len(ps) == 0; {
		n := 1 + rng.IntN(o.MaxSegment)
		if rng.IntN(3) > 0 {
			n = 1 + rng.IntN(min(24, o.MaxSegment))
		}
		n = min(n, len(t.data)-off)
		ps = append(ps, piece{off: t.start + uint64(off), data: t.data[off : off+n], key: len(ps)})
		off += n
	}
	if t.fin {
		ps[len(ps)-1].fin = true
	}
	if o.Window > 0 {
		for i := range ps {
			ps[i].key += rng.IntN(o.Window + 1)
		}
		slices.SortStableFunc(ps, func(a, b piece) int { return cmp.Compare(a.key, b.key) })
	}
	return ps
}

func (c *conn) frame(dir int, seq, ack uint32, flags model.TCPFlags, data []byte) ([]byte, error) {
	src, dst := c.addr[dir], c.addr[1-dir]
	tcp := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), Seq: seq, Ack: ack, Window: 500,
		FIN: flags&model.FlagFIN != 0, SYN: flags&model.FlagSYN != 0, RST: flags&model.FlagRST != 0, ACK: flags&model.FlagACK != 0}
	if !tcp.ACK {
		tcp.Ack = 0
	}
	b, err := packet.MakeIP(c.eth[dir][:], c.eth[1-dir][:], nil, src.Addr(), dst.Addr(), layers.IPProtocolTCP, tcp, data)
	if err != nil {
		return nil, fmt.Errorf("resegment: %w", err)
	}
	return b, nil
}
