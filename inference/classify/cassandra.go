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
// versions from 0.7 to 5.0, told by bytes. Types:
//
//	cassandra connect      what the opener says first, from 1.2 on: version, kind
//	cassandra version      the acceptor's answer
//	cassandra identify     the opener's second word before 4.0: version, address
//	cassandra VERB         a message; see cassVerbs, cassVerbs40
//	cassandra VERB more    further frames of a message that is longer than one,
//	cassandra VERB end     from 4.0 on, and the last one
//	cassandra stream KIND  connections that carry files; see cassStreams
//	cassandra compressed   a frame that cannot be read
//
// REQUEST_RESPONSE and INTERNAL_RESPONSE (before 4.0) end in "empty" (an
// acknowledgement) or "failure" where they are so. Responses travel on another
// connection than their requests: they are typed by what they answer only as
// far as the verb says it (from 4.0 on).
//
// Fields of a message: verb, id, from, and by verb those of cassGossipSyn and
// its siblings, cassSchema and cassTable. Fields of connect, version and
// identify: version, from.
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
	cassLegacy                   // messages of 0.7 to 1.1, each with a header of its own
	cassExpect                   // frames should come (4.0), bytes decide
	cassFrames                   // frames of 4.0
	cassStream                   // messages and contents of files
)

type cassDir struct {
	mode    cassMode
	version int  // messaging version, 0 where the start was not seen
	stream  bool // the connect said so
	framing cassFraming
	from    string

	left int64  // bytes to come of a message in several frames; -1 not known
	typ  string // its type
}

func newCassandra() Dissector {
	c := &cassandra{}
	c.framedPair = newFramedPair(c)
	for i := range c.d {
		c.framedPair.d[i].keep = cassFrameMax
		c.d[i].left = -1
	}
	return c
}

// Data ends the other direction's file when this one speaks.
func (c *cassandra) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if len(b) > 0 {
		c.framedPair.d[1-dir].turn(emit)
	}
	c.framedPair.Data(dir, off, b, emit)
}

func (c *cassandra) size(dir int, b []byte) int64 {
	d := &c.d[dir]
	switch d.mode {
	case cassFirst:
		return c.sizeFirst(dir, b)
	case cassIdentify:
		return cassIdentifySize(b, d.version)
	case cassMessages:
		return cassMessageSize(b, d.version)
	case cassLegacy:
		return cassLegacySize(b)
	case cassExpect:
		if _, n, ok := cassFrameHead(d.framing, b); ok {
			return n
		}
		return cassIdentifySize(b, 0) // the peer is older
	case cassFrames:
		if _, n, ok := cassFrameHead(d.framing, b); ok {
			return n
		}
		return -1
	}
	return cassStreamSize(b, d.version)
}

// cassIdentifySize frames the opener's second word, or the first message.
func cassIdentifySize(b []byte, version int) int64 {
	if len(b) < 5 {
		return 0
	}
	if binary.BigEndian.Uint32(b) == cassMagic {
		return cassMessageSize(b, version)
	}
	if n := cassAddrLen(b[4]); n > 0 && binary.BigEndian.Uint32(b) < 64 {
		return int64(4 + n)
	}
	return -1
}

// sizeFirst frames the first bytes of a direction: a connect, the acceptor's
// version, or a message where the start was not seen.
func (c *cassandra) sizeFirst(dir int, b []byte) int64 {
	if o := &c.d[1-dir]; o.stream && o.version < cassVersion40 && b[0] != 0xCA {
		return cassStreamSize(b, o.version)
	}
	if len(b) < 4 {
		return 0
	}
	if binary.BigEndian.Uint32(b) != cassMagic {
		return c.sizeAnswer(dir, b)
	}
	if len(b) < 8 {
		return 0
	}
	switch flags := binary.BigEndian.Uint32(b[4:]); cassConnectKind(flags) {
	case cassConnect40:
		if len(b) < 9 {
			return 0
		}
		if n := cassAddrLen(b[8]); n > 0 {
			return int64(8 + n + 4)
		}
	case cassConnect12:
		return 8
	case cassConnectStream, cassHeaderLegacy:
		if len(b) < 13 {
			return 0
		}
		if flags&8 != 0 && (b[8] == 4 || b[8] == 16) {
			return cassStreamInitSize(b, int(flags>>8&0xff))
		}
		if n := cassLegacySize(b); n >= 0 {
			return n
		}
	}
	return cassMessageSize(b, 0)
}

// cassKind is what the word behind the magic can be.
type cassKind uint8

const (
	cassNoConnect     cassKind = iota // the id of a message
	cassConnect40                     // HandshakeProtocol.Initiate
	cassConnect12                     // OutboundTcpConnection.writeHeader: version 6 to 11
	cassConnectStream                 // the same with the stream bit; a version of its own
	cassHeaderLegacy                  // header of a message of 0.7 to 1.1
)

// cassConnectKind tells them by their bits: 0 and 1 kind of connection or
// serializer, 2 and 4 framing or compression, 3 stream, 8 to 15 version, from
// 4.0 on 16 to 23 and 24 to 31 the oldest and newest version accepted.
func cassConnectKind(flags uint32) cassKind {
	v, oldest, newest := flags>>8&0xff, flags>>16&0xff, flags>>24
	switch {
	case newest >= cassVersion40 && newest < 64 && oldest <= newest && v <= newest && flags&0xe0 == 0:
		return cassConnect40
	case flags>>16 != 0 || flags&0xf0 != 0 || v > 11:
		return cassNoConnect
	case flags&8 != 0 && v > 0:
		return cassConnectStream
	case v >= 6:
		return cassConnect12
	}
	return cassHeaderLegacy
}

// sizeAnswer frames what an acceptor says first.
func (c *cassandra) sizeAnswer(dir int, b []byte) int64 {
	v := binary.BigEndian.Uint32(b)
	o := &c.d[1-dir]
	switch {
	case o.version >= cassVersion40 && v >= cassVersion40 && v < 64:
		if len(b) < 12 {
			return 0
		}
		if cassAccept(b) {
			return 12
		}
		return 4
	case v > 0 && v < 64:
		return 4
	}
	return c.sniff(dir, b)
}

// cassAccept tells HandshakeProtocol.Accept by its CRC: newest version, version
// to use.
func cassAccept(b []byte) bool {
	return len(b) >= 12 && cassCRC32(b[:8]) == binary.BigEndian.Uint32(b[8:])
}

func (c *cassandra) sniff(dir int, b []byte) int64 {
	_, n, ok := cassFrameHead(cassCRC, b)
	if ok {
		return n
	}
	if _, n, ok = cassFrameHead(cassLZ4, b); ok {
		return n
	}
	return -1
}

func (c *cassandra) starts(dir int, b []byte) (ok, more bool) {
	d := &c.d[dir]
	var n int64
	switch d.mode {
	case cassExpect, cassFrames:
		_, m, ok := cassFrameHead(d.framing, b)
		return ok && m > 0, ok && m == 0
	case cassStream:
		return true, false // from here on its contents
	case cassFirst:
		if m := c.sniff(dir, b); m >= 0 {
			return m > 0, m == 0
		}
	}
	for i := range min(4, len(b)) {
		if b[i] != "\xCA\x55\x2D\xFA"[i] {
			return false, false
		}
	}
	if n = cassMessageSize(b, d.version); n < 0 {
		n = cassLegacySize(b)
	}
	return n > 0, n == 0
}

func (c *cassandra) read(dir int, h frameHead) []Unit {
	d := &c.d[dir]
	if o := &c.d[1-dir]; d.mode == cassFirst && o.stream && o.version < cassVersion40 && len(h.b) > 0 && h.b[0] != 0xCA {
		d.mode, d.version = cassStream, o.version
	}
	if len(h.b) < 4 {
		if d.mode == cassStream {
			return []Unit{c.streamed(d, h)}
		}
		return nil
	}
	first := binary.BigEndian.Uint32(h.b)
	if d.mode == cassFirst {
		if u, ok := c.readFirst(dir, first, h); ok {
			return []Unit{u}
		}
	}
	switch d.mode {
	case cassIdentify, cassExpect:
		if first == cassMagic {
			break
		}
		if us, ok := c.frame(d, h); ok {
			return us
		}
		r := cassReader{b: h.b}
		v := int(r.u32())
		d.mode, d.from = cassMessages, r.addr()
		if d.version >= cassVersion40 {
			d.version = v
		}
		return []Unit{{Type: "cassandra identify", Fields: cassFields("version", strconv.Itoa(v), "from", d.from)}}
	case cassFrames:
		if us, ok := c.frame(d, h); ok {
			return us
		}
		return nil
	case cassStream:
		return []Unit{c.streamed(d, h)}
	case cassFirst:
		if first != cassMagic {
			d.framing = cassCRC
			if _, _, ok := cassFrameHead(cassCRC, h.b); !ok {
				d.framing = cassLZ4
			}
			d.version = cassVersion40
			us, _ := c.frame(d, h)
			return us
		}
	}
	return []Unit{c.message(d, h)}
}

func (c *cassandra) readFirst(dir int, first uint32, h frameHead) (Unit, bool) {
	d, o := &c.d[dir], &c.d[1-dir]
	if first != cassMagic {
		switch {
		case h.total == 4 && first < 64, h.total == 12 && cassAccept(h.b):
			d.mode, d.version = cassMessages, int(first)
			if h.total == 12 {
				d.version, d.mode = int(binary.BigEndian.Uint32(h.b[4:])), cassFrames
			}
			if o.stream {
				d.mode = cassStream
			}
			return Unit{Type: "cassandra version", Fields: cassFields("version", strconv.Itoa(d.version))}, true
		}
		return Unit{}, false
	}
	if len(h.b) < 8 {
		return Unit{}, false
	}
	flags := binary.BigEndian.Uint32(h.b[4:])
	kind := cassConnectKind(flags)
	r := cassReader{b: h.b[8:]}
	switch {
	case kind == cassConnect40 && len(h.b) > 8 && h.total == int64(8+cassAddrLen(h.b[8])+4):
		d.version, d.from = cassVersion40, r.addr()
		d.framing = cassFraming(flags>>2&1 | flags>>3&2)
		d.mode = cassExpect
		newest := strconv.Itoa(int(flags >> 24))
		if d.stream = flags&8 != 0; d.stream {
			d.mode = cassStream
			return Unit{Type: "cassandra connect stream", Fields: cassFields("version", newest, "from", d.from)}, true
		}
		name := "cassandra connect"
		if k := []string{"", "urgent", "small", "large"}[flags&3]; k != "" {
			name += " " + k
		}
		return Unit{Type: name, Fields: cassFields("version", newest, "from", d.from)}, true
	case kind == cassConnect12 && h.total == 8:
		d.mode, d.version = cassIdentify, int(flags>>8&0xff)
		return Unit{Type: "cassandra connect", Fields: cassFields("version", strconv.Itoa(d.version))}, true
	case kind == cassConnectStream && len(h.b) > 8 && (h.b[8] == 4 || h.b[8] == 16) && h.total == cassStreamInitSize(h.b, int(flags>>8&0xff)):
		d.mode, d.stream, d.version = cassStream, true, int(flags>>8&0xff)
		f := cassFields("version", strconv.Itoa(d.version), "from", r.addr())
		r.u32()
		f = append(f, cassFields("plan", r.uuid(), "operation", cut(r.utf(), 64))...)
		return Unit{Type: "cassandra connect stream", Fields: f}, true
	case flags&8 != 0 && kind == cassConnectStream:
		d.mode, d.stream, d.version = cassStream, true, int(flags>>8&0xff)
		return Unit{Type: "cassandra connect stream", Fields: cassFields("version", strconv.Itoa(d.version))}, true
	}
	return Unit{}, false
}

// cassFields makes fields of names and values; empty values are left out.
func cassFields(pairs ...string) []model.Field {
	var f []model.Field
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			f = append(f, model.Field{Name: pairs[i], Value: pairs[i+1]})
		}
	}
	return f
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
		return cassEndpoints(r, version)
	case "DEFINITIONS_ANNOUNCE": // until 1.0: the version as text
		if s := string(r.bytes(36)); !r.short && version > 0 && version < 6 {
			return cassFields("schema", cassText(s))
		}
	case "SCHEMA_VERSION_RSP":
		return cassFields("schema", r.uuid())
	case "DEFINITIONS_UPDATE", "INTERNAL_RESPONSE", "SCHEMA_PUSH_REQ", "SCHEMA_PULL_RSP":
		if version == 0 || version >= 10 {
			return cassSchema(b)
		}
		return cassMigrations(b)
	case "DEFINITIONS_UPDATE_RESPONSE":
		return cassMigrations(b)
	default:
		return cassData(verb, b, version)
	}
	return nil
}
