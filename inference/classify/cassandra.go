package classify

import (
	"encoding/binary"
	"strconv"

	"netsplit/model"
)

// cassMagic begins connections of all versions, and messages before 4.0
// (MessagingService.PROTOCOL_MAGIC).
const cassMagic = 0xCA552DFA

// cassandra reads the internode protocol of Cassandra (port 7000) in all its
// versions, told by bytes. Types:
//
//	cassandra connect      what the opener says first: version and kind
//	cassandra version      the acceptor's answer: its version
//	cassandra identify     the opener's second word before 4.0: version, address
//	cassandra VERB         a message; see cassVerbs
//	cassandra VERB ...     REQUEST_RESPONSE and INTERNAL_RESPONSE end in "empty"
//	                       (an acknowledgement) or "failure" where they are so
//	cassandra stream ...   connections that carry files
//
// Responses travel on another connection than their requests, so they are not
// typed by what they answer, except by the verb itself from 4.0 on.
//
// Fields of a message: verb, id, from (not from 4.0 on: the connection's),
// and by verb those of cassGossip and cassSchema.
type cassandra struct {
	*framedPair
	d [2]cassDir
}

// cassMode says what a direction carries.
type cassMode uint8

const (
	cassFirst    cassMode = iota // nothing read yet
	cassIdentify                 // the opener before 4.0, behind its connect
	cassMessages                 // messages of 1.2 to 3.11
)

type cassDir struct {
	mode    cassMode
	version int // messaging version, 0 where the start was not seen
}

func newCassandra() Dissector {
	c := &cassandra{}
	c.framedPair = newFramedPair(c)
	return c
}

func (c *cassandra) size(dir int, b []byte) int64 {
	d := &c.d[dir]
	switch d.mode {
	case cassFirst:
		return c.sizeFirst(b)
	case cassIdentify:
		if len(b) < 5 {
			return 0
		}
		if binary.BigEndian.Uint32(b) == cassMagic {
			return cassMessageSize(b, d.version)
		}
		if n := cassAddrLen(b[4]); n > 0 {
			return int64(4 + n)
		}
		return -1
	}
	return cassMessageSize(b, d.version)
}

// sizeFirst frames the first bytes of a direction: a connect, the acceptor's
// version, or a message where the start was not seen.
func (c *cassandra) sizeFirst(b []byte) int64 {
	if len(b) < 4 {
		return 0
	}
	if v := binary.BigEndian.Uint32(b); v != cassMagic {
		if v > 0 && v < 64 {
			return 4
		}
		return -1
	}
	if len(b) < 8 {
		return 0
	}
	if cassConnect(binary.BigEndian.Uint32(b[4:])) {
		return 8
	}
	return cassMessageSize(b, 0)
}

// cassConnect tells the header of a connect of 1.2 to 3.11 (version 6 to 11;
// bit 2 compressed, bit 3 stream) from the number of a message.
func cassConnect(h uint32) bool {
	v := h >> 8 & 0xff
	return h>>16 == 0 && h&0xf0 == 0 && v >= 6 && v <= 11
}

// cassMessageSize frames a message of 1.2 to 3.11 (MessageOut.serialize):
// magic, id (text before version 7), timestamp, sender, verb, parameters,
// length and body.
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

// cassMessage is the head of a message.
type cassMessage struct {
	id      string
	from    string
	verb    int
	params  []string // names
	failure bool
	body    int // length
}

// cassMessageHead reads the head of a message; ok is false if there is none,
// and r.short is set if it is not all there.
func cassMessageHead(r *cassReader, version int) (h cassMessage, ok bool) {
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
	if r.short {
		return h, true
	}
	if r.left() > 0 && r.b[r.off] != 4 && r.b[r.off] != 16 {
		return h, false
	}
	h.from = r.addr()
	h.verb = r.i32()
	if !r.short && (h.verb < 0 || h.verb >= cassMaxVerb) {
		return h, false
	}
	n := r.i32()
	if !r.short && (n < 0 || n > 16) {
		return h, false
	}
	for i := 0; i < n && !r.short; i++ {
		k := int(r.u16())
		if !r.short && k > 64 {
			return h, false
		}
		name := string(r.bytes(k))
		v := r.i32()
		if !r.short && (v < 0 || v > 1<<14) {
			return h, false
		}
		r.bytes(v)
		h.params = append(h.params, name)
		h.failure = h.failure || name == "FAIL"
	}
	h.body = r.i32()
	if !r.short && (h.body < 0 || h.body > 1<<30) {
		return h, false
	}
	return h, true
}

func (c *cassandra) starts(dir int, b []byte) (ok, more bool) {
	for i := range min(4, len(b)) {
		if b[i] != "\xCA\x55\x2D\xFA"[i] {
			return false, false
		}
	}
	if len(b) < 8 {
		return false, true
	}
	n := cassMessageSize(b, c.d[dir].version)
	return n > 0, n == 0
}

func (c *cassandra) read(dir int, h frameHead) []Unit {
	d := &c.d[dir]
	first := binary.BigEndian.Uint32(h.b)
	switch {
	case d.mode == cassFirst && first != cassMagic:
		return []Unit{{Type: "cassandra version", Fields: []model.Field{{Name: "version", Value: strconv.Itoa(int(first))}}}}
	case d.mode == cassFirst && h.total == 8:
		flags := binary.BigEndian.Uint32(h.b[4:])
		d.mode, d.version = cassIdentify, int(flags>>8&0xff)
		return []Unit{{Type: "cassandra connect", Fields: []model.Field{{Name: "version", Value: strconv.Itoa(d.version)}}}}
	case d.mode == cassIdentify && first != cassMagic:
		r := cassReader{b: h.b}
		v := r.u32()
		d.mode = cassMessages
		return []Unit{{Type: "cassandra identify", Fields: []model.Field{{Name: "version", Value: strconv.Itoa(int(v))}, {Name: "from", Value: r.addr()}}}}
	}
	d.mode = cassMessages
	r := cassReader{b: h.b}
	m, ok := cassMessageHead(&r, d.version)
	if !ok || r.short {
		return []Unit{{Type: model.TypeUnknown}}
	}
	verb := cassVerb(cassVerbs, m.verb)
	u := Unit{Type: "cassandra " + verb, Fields: []model.Field{{Name: "verb", Value: verb}, {Name: "id", Value: m.id}, {Name: "from", Value: m.from}}}
	switch {
	case m.verb != 4 && m.verb != 23:
	case m.failure:
		u.Type += " failure"
	case m.body == 0:
		u.Type += " empty"
	}
	u.Fields = append(u.Fields, cassBody(verb, h.b[r.off:], d.version)...)
	return []Unit{u}
}

// cassBody reads what carries node metadata. A body that was cut off gives what
// is whole of it.
func cassBody(verb string, b []byte, version int) []model.Field {
	r := &cassReader{b: b}
	switch verb {
	case "GOSSIP_DIGEST_SYN":
		return cassGossipSyn(r, version)
	case "GOSSIP_DIGEST_ACK":
		return cassGossipAck(r, version)
	case "GOSSIP_DIGEST_ACK2":
		return cassGossipAck2(r, version)
	}
	return nil
}
