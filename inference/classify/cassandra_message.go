package classify

import (
	"encoding/binary"
	"strconv"

	"netsplit/model"
)

// cassMessage is the head of a message before 4.0.
type cassMessage struct {
	id      string
	from    string
	verb    int
	version int
	failure bool
	body    int // length
}

// cassMessageSize frames a message of 1.2 to 3.11.
func cassMessageSize(b []byte, version int) int64 {
	r := cassReader{b: b}
	h, ok := cassMessageHead(&r, version)
	switch {
	case !ok:
		return -1
	case r.short:
		return 0
	}
	return int64(r.off + h.body)
}

// cassMessageHead reads the head of a message of 1.2 to 3.11
// (OutboundTcpConnection.writeInternal, MessageOut.serialize): magic, id (text
// in version 6), timestamp, and what header reads. ok is false if there is
// none; r.short is set if it is not all there.
func cassMessageHead(r *cassReader, version int) (h cassMessage, ok bool) {
	h.version = version
	if m := r.u32(); !r.short && m != cassMagic {
		return h, false
	}
	if version == 6 {
		n := r.u16()
		if !r.short && n > 20 {
			return h, false
		}
		h.id = string(r.bytes(int(n)))
	} else {
		h.id = strconv.Itoa(r.i32())
	}
	r.u32()
	return h, h.header(r)
}

// header reads sender, verb, parameters and the length of the body. It returns
// false if they are none.
func (h *cassMessage) header(r *cassReader) bool {
	if r.short {
		return true
	}
	if r.left() > 0 && r.b[r.off] != 4 && r.b[r.off] != 16 {
		return false
	}
	h.from = r.addr()
	h.verb = r.i32()
	if !r.short && (h.verb < 0 || h.verb >= cassMaxVerb) {
		return false
	}
	n := r.i32()
	if !r.short && (n < 0 || n > 16) {
		return false
	}
	for i := 0; i < n && !r.short; i++ {
		k := int(r.u16())
		if !r.short && k > 64 {
			return false
		}
		name := string(r.bytes(k))
		v := r.i32()
		if !r.short && (v < 0 || v > 1<<14) {
			return false
		}
		r.bytes(v)
		h.failure = h.failure || name == "FAIL"
	}
	h.body = r.i32()
	return r.short || h.body >= 0 && h.body <= 1<<30
}

// cassLegacySize frames a message of 0.7 to 1.1: magic, header word, length of
// the rest; with the stream bit, of a stream's header.
func cassLegacySize(b []byte) int64 {
	if len(b) < 12 {
		return 0
	}
	flags, n := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if binary.BigEndian.Uint32(b) != cassMagic || n < 4 || n > 1<<30 {
		return -1
	}
	switch cassConnectKind(flags) {
	case cassConnectStream:
		if n > 1<<20 {
			return -1
		}
		return 12 + int64(n)
	case cassHeaderLegacy:
		r := cassReader{b: b}
		_, ok := cassLegacyHead(&r)
		switch {
		case !ok:
			return -1
		case r.short:
			return 0
		}
		return 12 + int64(n)
	}
	return -1
}

// cassLegacyHead reads the head of a message of 0.7 to 1.1
// (MessagingService.packIt, OutboundTcpConnection.write, HeaderSerializer):
// magic, header word, length of the rest, id as text, and what header reads.
// 0.7 sends its buffer as it is, with zeros behind the body.
func cassLegacyHead(r *cassReader) (h cassMessage, ok bool) {
	r.u32()
	h.version = int(r.u32() >> 8 & 0xff)
	total := r.i32()
	at := r.off
	n := r.u16()
	if !r.short && n > 64 {
		return h, false
	}
	h.id = string(r.bytes(int(n)))
	ok = h.header(r)
	if ok && !r.short && r.off-at+h.body > total {
		return h, false
	}
	return h, ok
}

// message reads a message before 4.0.
func (c *cassandra) message(d *cassDir, h frameHead) Unit {
	r := cassReader{b: h.b}
	m, ok := cassMessageHead(&r, d.version)
	if d.mode == cassLegacy || d.mode == cassFirst && (!ok || r.short) {
		r = cassReader{b: h.b}
		if m, ok = cassLegacyHead(&r); ok {
			d.mode, d.version = cassLegacy, m.version
		}
	} else if ok {
		d.mode = cassMessages
	}
	if !ok || r.short {
		return Unit{Type: model.TypeUnknown}
	}
	verb := cassVerbName(m.verb, m.version, d.mode == cassLegacy)
	u := Unit{Type: "cassandra " + verb, Fields: cassFields("verb", verb, "id", cut(m.id, 64), "from", m.from)}
	switch {
	case m.verb != 4 && m.verb != 23:
	case m.failure:
		u.Type += " failure"
	case m.body == 0:
		u.Type += " empty"
	}
	version := m.version
	if d.mode == cassLegacy {
		version = max(version, cassVersion07)
	}
	u.Fields = append(u.Fields, cassBody(verb, h.b[r.off:min(len(h.b), r.off+m.body)], version)...)
	return u
}

// cassMessage40Head reads the head of a message of 4.0 and later
// (Message.Serializer.serializeHeaderPost40): id, timestamp, expiry, verb,
// flags, parameters, length of the body.
func cassMessage40Head(r *cassReader) (id uint64, verb int, body int64) {
	id = r.vint()
	r.u32()
	r.vint()
	v := r.vint()
	r.vint()
	n := r.vint()
	if n > 64 {
		r.short = true
	}
	for ; n > 0 && !r.short; n-- {
		r.vint()
		r.bytes(r.vintLen())
	}
	p := r.vint()
	if v > 1<<14 || p > 1<<30 {
		r.short = true
	}
	return id, int(v), int64(p)
}

// message40 reads a message of 4.0 and later; b is it or the first bytes of
// it. n is its length, 0 if it cannot be read.
func (c *cassandra) message40(d *cassDir, b []byte) (u Unit, n int64) {
	r := cassReader{b: b}
	id, v, body := cassMessage40Head(&r)
	if r.short {
		return Unit{Type: model.TypeUnknown}, 0
	}
	verb := cassVerb(cassVerbs40, v)
	u = Unit{Type: "cassandra " + verb, Fields: cassFields("verb", verb, "id", strconv.FormatUint(id, 10), "from", d.from)}
	end := min(int64(len(b)), int64(r.off)+body)
	u.Fields = append(u.Fields, cassBody(verb, b[r.off:end], d.version)...)
	return u, int64(r.off) + body
}

// frame reads a frame of 4.0 and later and the messages in it.
func (c *cassandra) frame(d *cassDir, h frameHead) ([]Unit, bool) {
	f, total, ok := cassFrameHead(d.framing, h.b)
	if !ok || total != h.total {
		return nil, false
	}
	d.mode = cassFrames
	b := f.content(h.b)
	length := int64(f.payload)
	if f.plain > 0 {
		length = int64(f.plain)
	}
	if !f.self {
		return []Unit{c.piece(d, b, length)}, true
	}
	d.left = -1
	var us []Unit
	extra := f.head
	for len(b) > 0 {
		u, n := c.message40(d, b)
		us = append(us, u)
		if n == 0 {
			break
		}
		u.Bytes = int(n) + extra
		us[len(us)-1] = u
		extra = 0
		b = b[min(n, int64(len(b))):]
	}
	if len(us) == 0 {
		us = []Unit{{Type: "cassandra compressed"}}
	}
	return cassShare(us, f), true
}

// cassShare gives the units of a compressed frame, whose messages have no
// bytes of their own on the wire, a byte each, and the last the rest.
func cassShare(us []Unit, f cassFrame) []Unit {
	if f.plain == 0 {
		return us
	}
	for i := range us {
		us[i].Bytes = 1
	}
	return us
}

// piece reads a frame of a message that has several.
func (c *cassandra) piece(d *cassDir, b []byte, length int64) Unit {
	if d.left > 0 {
		if d.left -= length; d.left > 0 {
			return Unit{Type: d.typ + " more"}
		}
		d.left = -1
		return Unit{Type: d.typ + " end"}
	}
	u, n := c.message40(d, b)
	if n <= length {
		return Unit{Type: "cassandra part"}
	}
	d.left, d.typ = n-length, u.Type
	return u
}
