package framing

import (
	"sort"

	"netsplit/inference/stream"
)

// Bounds of what is kept of a port.
const (
	keepFlow  = 1 << 20  // bytes of a direction
	keepPort  = 16 << 20 // bytes of all
	keepFlows = 4096     // directions
	keepMarks = 1 << 18  // ends of packets of all
)

// Port keeps the beginnings of the connections to a port.
type Port struct {
	flows []*flow
	open  map[*stream.Conn][2]*flow
	conns int
	bytes int // kept
	marks int // kept
}

// flow is one direction of a connection.
type flow struct {
	conn, dir int
	whole     bool // its first byte is the first of the connection
	cut       bool // it went on behind what is kept
	fin       bool // it was brought to its end
	runs      []run
	marks     []mark
	bytes     int // in runs
}

// run are bytes without a hole.
type run struct {
	off uint64
	b   []byte
}

func (r *run) end() uint64 { return r.off + uint64(len(r.b)) }

// mark is where a packet ended; turn: and the other side spoke next, or nobody.
type mark struct {
	off  uint64
	turn bool
	seq  int // of all packets to the port and from it
}

// Add takes an event of a connection to the port.
func (p *Port) Add(e *stream.Event) {
	switch e.Kind {
	case stream.Data:
		p.data(e)
	case stream.Gap:
		if f := p.open[e.Conn][e.Dir]; f != nil {
			f.turn()
		}
	case stream.FIN:
		if f := p.open[e.Conn][e.Dir]; f != nil {
			f.fin = true
		}
	case stream.Closed:
		f := p.open[e.Conn]
		if f[e.Dir] != nil {
			f[e.Dir].turn()
		}
		if !e.Conn.Live() {
			delete(p.open, e.Conn)
		}
	}
}

func (p *Port) data(e *stream.Event) {
	if p.open == nil {
		p.open = map[*stream.Conn][2]*flow{}
	}
	fs := p.open[e.Conn]
	if fs[1-e.Dir] != nil {
		fs[1-e.Dir].turn()
	}
	f := fs[e.Dir]
	if f == nil {
		if len(p.flows) >= keepFlows {
			return
		}
		if fs[1-e.Dir] == nil {
			p.conns++
			f = &flow{conn: p.conns, dir: e.Dir}
		} else {
			f = &flow{conn: fs[1-e.Dir].conn, dir: e.Dir}
		}
		f.whole = e.Conn.SawOpen && e.Off == 0
		p.flows = append(p.flows, f)
		fs[e.Dir] = f
		p.open[e.Conn] = fs
	}
	room := min(keepFlow-f.bytes, keepPort-p.bytes, len(e.Bytes))
	if f.cut || room < len(e.Bytes) || p.marks >= keepMarks {
		f.cut = true
		return
	}
	last := len(f.runs) - 1
	if last < 0 || f.runs[last].end() != e.Off {
		f.runs = append(f.runs, run{off: e.Off})
		last++
	}
	r := &f.runs[last]
	r.b = append(r.b, e.Bytes...)
	f.bytes += len(e.Bytes)
	p.bytes += len(e.Bytes)
	f.marks = append(f.marks, mark{off: r.end(), seq: p.marks})
	p.marks++
}

// turn says that what was sent last is all for now.
func (f *flow) turn() {
	if n := len(f.marks); n > 0 && !f.cut {
		f.marks[n-1].turn = true
	}
}

// packet is the number of the packet in which the byte before off came.
func (f *flow) packet(off uint64) int {
	i := sort.Search(len(f.marks), func(i int) bool { return f.marks[i].off >= off })
	return f.marks[min(i, len(f.marks)-1)].seq
}
