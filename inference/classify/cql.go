package classify

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/golang/snappy"

	"netsplit/model"
)

// cql reads the CQL native protocol, versions 1 to 6, in both directions
// (native_protocol_v1.spec to native_protocol_v5.spec in Cassandra's doc
// folder). Types:
//
//	cql OPCODE                   a request: OPTIONS, STARTUP, REGISTER, ..
//	cql QUERY KIND               with the statement's kind; PREPARE, EXECUTE
//	                             and BATCH too, EXECUTE where it was prepared on
//	                             this connection
//	cql OPCODE REQUEST           a response and what it answers: "cql RESULT
//	                             QUERY SELECT", "cql READY STARTUP"; "unmatched"
//	                             where the request was not seen
//	cql ERROR CODE REQUEST       "cql ERROR UNAVAILABLE QUERY INSERT"
//	cql EVENT KIND CHANGE        "cql EVENT STATUS_CHANGE DOWN"
//	cql OPCODE .. more, end      further frames of a message of version 5 that
//	                             is longer than one
//
// Kinds are those of cqlKind, codes those of cqlErrors, so types do not grow
// with data.
//
// Fields: version, stream; query, keyspace, table, consistency,
// serial_consistency of requests; request and result of responses (result is
// void, rows, set_keyspace, prepared or schema_change), rows (their number);
// error, required, alive, received, write_type of errors; change, address,
// target, keyspace, name of events and schema changes.
type cql struct {
	*framedPair
	d        [2]cqlDir
	pending  map[uint16]string // by stream: label of the request
	prepares map[uint16]string // by stream: kind that is being prepared
	prepared map[string]string // by id: kind
	compress string            // algorithm of STARTUP
}

// Bounds of the cql dissector.
const (
	cqlPrepared = 4096    // statements remembered
	cqlLongest  = 1 << 28 // longest message the server takes (256 MiB)
	cqlQuery    = 1 << 10 // kept of a statement
)

type cqlMode uint8

const (
	cqlPlain  cqlMode = iota // envelopes, as far as bytes say so
	cqlExpect                // frames should come (version 5), bytes decide
	cqlFramed                // frames
)

type cqlDir struct {
	mode    cqlMode
	framing cassFraming
	left    int64  // bytes to come of an envelope in several frames; -1 not known
	typ     string // its type
}

func newCQL() Dissector {
	c := &cql{pending: map[uint16]string{}, prepares: map[uint16]string{}, prepared: map[string]string{}}
	c.framedPair = newFramedPair(c)
	for i := range c.framedPair.d {
		c.framedPair.d[i].keep = cassFrameMax
		c.d[i].left = -1
	}
	return c
}

// cqlHead is the header of an envelope.
type cqlHead struct {
	version  int
	response bool
	flags    byte
	stream   uint16
	opcode   byte
	size     int // of the header
	body     int
}

// cqlHeader reads an envelope's header; ok is false if there is none, size is
// 0 if more bytes are needed.
func cqlHeader(b []byte) (h cqlHead, ok bool) {
	if len(b) == 0 {
		return h, true
	}
	h.version, h.response = int(b[0]&0x7f), b[0]&0x80 != 0
	if h.version < 1 || h.version > 6 {
		return h, false
	}
	at := 4 // of the opcode
	if h.version < 3 {
		at = 3
	}
	if len(b) > 1 && b[1]&0xe0 != 0 {
		return h, false
	}
	if len(b) <= at {
		return h, true
	}
	h.opcode = b[at]
	op, known := cqlOpcodes[h.opcode]
	if !known || op.response != h.response {
		return h, false
	}
	if len(b) < at+5 {
		return h, true
	}
	h.flags, h.stream = b[1], uint16(b[2])
	if at == 4 {
		h.stream = binary.BigEndian.Uint16(b[2:])
	}
	n := binary.BigEndian.Uint32(b[at+1:])
	if n > cqlLongest {
		return h, false
	}
	h.size, h.body = at+5, int(n)
	return h, true
}

func (c *cql) size(dir int, b []byte) int64 {
	d := &c.d[dir]
	if d.mode != cqlPlain {
		if n := d.frameSize(b); n >= 0 || d.mode == cqlFramed {
			return n
		}
	}
	h, ok := cqlHeader(b)
	switch {
	case ok && h.size == 0:
		return 0
	case ok:
		return int64(h.size + h.body)
	case d.mode == cqlPlain:
		return d.frameSize(b)
	}
	return -1
}

// frameSize frames by a frame's header, of either kind as long as no frame was
// seen.
func (d *cqlDir) frameSize(b []byte) int64 {
	if d.mode == cqlFramed {
		_, n, ok := cassFrameHead(d.framing, b)
		if !ok {
			return -1
		}
		return n
	}
	_, n, ok := cassFrameHead(cassCRC, b)
	if ok {
		return n
	}
	_, n, ok = cassFrameHead(cassLZ4, b)
	if ok {
		return n
	}
	return -1
}

func (c *cql) starts(dir int, b []byte) (ok, more bool) {
	if n := c.d[dir].frameSize(b); n > 0 {
		return true, false
	} else if n == 0 {
		return false, true
	}
	if c.d[dir].mode == cqlFramed {
		return false, false
	}
	h, ok := cqlHeader(b)
	if !ok || h.body > 1<<24 || h.opcode == 0x05 && h.body > 0 || h.opcode == 0x02 && h.body > 64 {
		return false, false
	}
	return h.size > 0, h.size == 0
}

func (c *cql) read(dir int, h frameHead) []Unit {
	d := &c.d[dir]
	if d.mode != cqlPlain || !validCQL(h.b) {
		if us, ok := c.frame(d, h); ok {
			return us
		}
	}
	e, ok := cqlHeader(h.b)
	if !ok || e.size == 0 {
		return []Unit{{Type: model.TypeUnknown}}
	}
	return []Unit{c.envelope(d, e, h.b[e.size:])}
}

func validCQL(b []byte) bool {
	h, ok := cqlHeader(b)
	return ok && h.size > 0
}

func (c *cql) frame(d *cqlDir, h frameHead) ([]Unit, bool) {
	framing := d.framing
	if d.mode != cqlFramed {
		framing = cassCRC
		if _, _, ok := cassFrameHead(framing, h.b); !ok {
			framing = cassLZ4
		}
	}
	f, total, ok := cassFrameHead(framing, h.b)
	if !ok || total != h.total {
		return nil, false
	}
	d.mode, d.framing = cqlFramed, framing
	b := f.content(h.b)
	if !f.self {
		return []Unit{c.piece(d, b, cmp.Or(f.plain, f.payload))}, true
	}
	d.left = -1
	var us []Unit
	extra := f.head
	for len(b) > 0 {
		e, ok := cqlHeader(b)
		if !ok || e.size == 0 {
			us = append(us, Unit{Type: model.TypeUnknown})
			break
		}
		n := e.size + e.body
		u := c.envelope(d, e, b[e.size:min(n, len(b))])
		u.Bytes = n + extra
		extra = 0
		us = append(us, u)
		b = b[min(n, len(b)):]
	}
	if len(us) == 0 {
		us = []Unit{{Type: "cql compressed"}}
	}
	if f.plain > 0 { // units share the compressed bytes: one each, the last the rest
		for i := range us {
			us[i].Bytes = 1
		}
	}
	return us, true
}

// piece reads a frame of an envelope that has several.
func (c *cql) piece(d *cqlDir, b []byte, length int) Unit {
	if d.left > 0 {
		d.left -= int64(length)
		if d.left > 0 {
			return Unit{Type: d.typ + " more"}
		}
		d.left = -1
		return Unit{Type: d.typ + " end"}
	}
	e, ok := cqlHeader(b)
	if !ok || e.size == 0 || e.size+e.body <= length {
		return Unit{Type: "cql part"}
	}
	u := c.envelope(d, e, b[e.size:])
	d.left, d.typ = int64(e.size+e.body-length), u.Type
	return u
}

// envelope reads a message; b is its body or the first bytes of it.
func (c *cql) envelope(d *cqlDir, h cqlHead, b []byte) Unit {
	op := cqlOpcodes[h.opcode].name
	fields := []model.Field{{Name: "version", Value: strconv.Itoa(h.version)}, {Name: "stream", Value: strconv.Itoa(int(int16(h.stream)))}}
	compressed := h.flags&1 != 0 && h.version < 5
	if compressed {
		b = c.plain(b, h.body)
	}
	r := &cassReader{b: b}
	if !h.response {
		return c.request(d, h, op, r, fields)
	}
	return c.response(d, h, op, r, fields)
}

// plain uncompresses a body of version 1 to 4: snappy, or lz4 behind the
// length in 4 bytes. A body that is not all there is given up.
func (c *cql) plain(b []byte, body int) []byte {
	if len(b) < body {
		return nil
	}
	if c.compress != "snappy" && len(b) > 4 {
		if p := lz4Block(b[4:], int(binary.BigEndian.Uint32(b))); p != nil {
			return p
		}
	}
	if n, err := snappy.DecodedLen(b); err == nil && n <= 1<<27 && n <= 64*len(b)+64 {
		if p, err := snappy.Decode(nil, b); err == nil {
			return p
		}
	}
	return nil
}
