package classify

import (
	"bytes"

	"netsplit/model"
)

// Bounds of the resp dissector. Nothing it keeps grows beyond them.
const (
	respLong     = 64 << 10 // a longer message is emitted in two units, see resp
	respLineKeep = 1 << 10  // kept of a header, simple string or inline command
	respArg      = 256      // longest value in a field
	respPayload  = 1 << 10  // longest payload of a published message
	respText     = 8 << 10  // longest text of a reply that has several lines
	respScalars  = 64       // values kept of one message
	respArgs     = 16       // argument fields of one command
	respDepth    = 32       // nesting
	respPending  = 1 << 16  // requests without a reply yet
	respHeader   = 32       // longest header with a number
)

// resp reads RESP2 and RESP3 (the Redis serialisation protocol specification,
// redis.io/docs/reference/protocol-spec) in both directions of a connection,
// and the replication stream that a connection becomes after PSYNC or SYNC
// (replication.c of Redis 7.0). Types:
//
//	resp NAME [SUBCOMMAND]          a command of the client side
//	resp reply NAME [SUBCOMMAND]    its reply; "resp reply unmatched" where the
//	                                request was not seen
//	resp queued NAME                +QUEUED inside MULTI
//	resp error CODE NAME            an error reply to NAME
//	resp push KIND [CHANNEL]        pub/sub message, invalidation, monitor line
//	resp repl NAME [SUBCOMMAND]     a command in the replication stream
//	resp rdb                        the snapshot of a full resynchronisation
//	resp newline                    empty line: keep-alive of replication
//
// Names are those of respCommands, or words; channels only those of Sentinel
// ("__sentinel__:hello", "+switch-master"); so types do not grow with data.
//
// Fields: arg0 (the command's name) to arg15 for commands, with channel and
// payload for PUBLISH; reply for a reply of one value, reply0 and on for the
// values of a list or map, reply.0.1 and on for nested ones; error for errors;
// text for a reply of several lines; channel, pattern and payload for pushes;
// request for what a reply or error answers; incomplete=true for what ended
// or was lost before its end.
//
// A message longer than respLong is emitted twice: its first respLong bytes
// as soon as they are read, with the type and fields known by then, and the
// rest at its end, with type "... end" and no fields.
//
// Which side is the client is taken from the opener of the connection, and
// turned round when the bytes say otherwise (a tap that starts in the middle
// of a connection may not know the opener).
type resp struct {
	d      [2]respDir
	emit   func(Unit)
	client int  // direction of the client's bytes
	sure   bool // client was confirmed by bytes
	m      respMatch
}

type respMode uint8

const (
	respIdle    respMode = iota // at the start of a message
	respLine                    // in a header, simple string or inline command
	respBody                    // in the bytes of a bulk string
	respBodyEnd                 // in the CRLF behind them
	respRDB                     // in a snapshot of known length
	respRDBMark                 // in a snapshot that ends with its mark
	respLost                    // looking for the start of a message
)

// respDir reads one direction.
type respDir struct {
	dir   int
	mode  respMode
	start uint64 // offset of the message, or of the unknown bytes
	n     int    // bytes of it read so far
	long  bool   // its first respLong bytes are emitted
	typ   string // its type, once long

	cmd    bool // only arrays of bulk strings (commands) are valid
	inline bool // client: the line is an inline command
	rdb    bool // server: a snapshot header or snapshot

	line    []byte
	lineLen int
	left    int64 // bytes of body to come, or of its CRLF
	buf     []byte
	bufLen  int64 // length of the string, also of what is not kept
	chunks  bool  // in a streamed string
	kind    byte  // type byte of the string being read
	mark    []byte
	tail    []byte // last bytes of a snapshot, to find its mark

	top     byte // type byte of the message's first value
	elems   int  // elements of a message that is a list
	stack   []respFrame
	scalars []respScalar
	more    bool // more scalars than were kept

	// respLost
	atLine bool
	turn   bool // the other side has just ended a message
	cand   []byte
}

type respFrame struct {
	kind byte
	left int64 // values to come; -1 streamed: up to "."
	idx  int
}

type respScalar struct {
	kind byte
	path string // "" top level, "0" element, "0.1" nested
	val  string
	cut  bool
}

func newRESP() Dissector {
	r := &resp{}
	r.d[1].dir = 1
	return r
}

func respDatagram(b []byte) Unit {
	r := newRESP()
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	r.Data(0, 0, b, add)
	r.Close(0, add)
	if len(us) == 1 {
		return us[0]
	}
	return Unit{Bytes: len(b), Type: model.TypeUnknown}
}

func (r *resp) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	r.emit = emit
	r.feed(&r.d[dir], off, b)
	r.emit = nil
}

// Gap keeps the frame where the lost bytes lie inside a bulk string or
// snapshot, past what is kept of it; elsewhere the message ends there and the
// requests without a reply are forgotten.
func (r *resp) Gap(dir int, off, n uint64, emit func(Unit)) {
	r.emit = emit
	defer func() { r.emit = nil }()
	d := &r.d[dir]
	if d.bridges(n) {
		if !d.long && d.n+int(n) >= respLong {
			r.head(d)
		}
		d.n += int(n)
		d.left -= int64(n)
		d.bufLen += int64(n)
		r.afterBody(d)
		return
	}
	r.truncated(d)
	r.m.lose()
	d.lost(off+n, true) // segments often start with a message
}

// bridges reports whether n lost bytes lie in a string whose kept part is full.
func (d *respDir) bridges(n uint64) bool {
	if n > 1<<40 || int64(n) > d.left {
		return false
	}
	return d.mode == respRDB || d.mode == respBody && !d.chunks && len(d.buf) >= d.keep()
}

func (r *resp) Close(dir int, emit func(Unit)) {
	r.emit = emit
	r.truncated(&r.d[dir])
	r.emit = nil
}

// feed consumes b step by step. A step consumes at least a byte or changes
// the mode, and never passes the respLong border of a message.
func (r *resp) feed(d *respDir, off uint64, b []byte) {
	for len(b) > 0 {
		in := b
		if d.mode != respIdle && !d.long {
			in = b[:min(len(b), respLong-d.n)]
		}
		k := r.step(d, off, in)
		off += uint64(k)
		b = b[k:]
		if !d.long && d.n == respLong && d.mode != respIdle {
			r.head(d)
		}
	}
}

func (r *resp) step(d *respDir, off uint64, b []byte) int {
	switch d.mode {
	case respIdle:
		r.begin(d, off, b[0])
		return 0
	case respLine:
		return r.readLine(d, b)
	case respBody:
		k := int(min(int64(len(b)), d.left))
		if room := d.keep() - len(d.buf); room > 0 {
			d.buf = append(d.buf, b[:min(k, room)]...)
		}
		d.n += k
		d.left -= int64(k)
		d.bufLen += int64(k)
		r.afterBody(d)
		return k
	case respBodyEnd:
		if want := "\n\r"[d.left-1]; b[0] != want {
			r.fail(d, false)
			return 0
		}
		d.n++
		if d.left--; d.left == 0 {
			if d.chunks {
				d.toLine()
			} else {
				r.scalar(d, d.kind, string(d.buf), d.bufLen > int64(len(d.buf)))
			}
		}
		return 1
	case respRDB:
		k := int(min(int64(len(b)), d.left))
		d.n += k
		d.left -= int64(k)
		r.afterBody(d)
		return k
	case respRDBMark:
		return r.readMark(d, b)
	}
	return r.search(d, off, b)
}

// afterBody moves on when a string or snapshot of known length is complete.
func (r *resp) afterBody(d *respDir) {
	if d.left > 0 {
		return
	}
	if d.mode == respRDB {
		r.done(d)
		return
	}
	d.mode, d.left = respBodyEnd, 2
}

// begin starts a message at its first byte, or decides that none starts here.
func (r *resp) begin(d *respDir, off uint64, c byte) {
	*d = respDir{dir: d.dir, start: off, line: d.line[:0], buf: d.buf[:0], stack: d.stack[:0], scalars: d.scalars[:0], mark: d.mark, tail: d.tail}
	r.turnRound(d, c)
	switch {
	case c == '\n' || c == '\r':
	case d.dir == r.client:
		d.cmd = true
		d.inline = c != '*'
	case r.m.snapshot && (c == '$' || c == '-'):
		d.rdb = c == '$'
	case r.m.snapshot:
		r.fail(d, false)
		return
	case r.m.repl:
		if d.cmd = true; c != '*' {
			r.fail(d, false)
			return
		}
	case !isRESP(c):
		r.fail(d, false)
		return
	}
	d.top = c
	d.toLine()
}

// turnRound exchanges client and server when an unconfirmed client says what
// only a server can say.
func (r *resp) turnRound(d *respDir, c byte) {
	if r.sure {
		return
	}
	if c == '+' || c == '-' {
		r.client, r.sure = 1-d.dir, true
	}
}

func isRESP(c byte) bool { return bytes.IndexByte([]byte("+-:$*_,#(!=%~>|"), c) >= 0 }

func (d *respDir) toLine() { d.mode, d.line, d.lineLen = respLine, d.line[:0], 0 }

// keep is how many bytes of the string being read are kept.
func (d *respDir) keep() int {
	if !d.cmd && len(d.stack) == 0 {
		return respText
	}
	return respPayload
}

// lineLimit is the longest line that can still become a valid one.
func (d *respDir) lineLimit() int {
	switch {
	case d.inline:
		return respLong
	case d.rdb:
		return respHeader + 40 // "$EOF:" and a mark
	}
	switch d.line[0] {
	case '+', '-', '(':
		return respLong
	}
	return respHeader
}

func (r *resp) readLine(d *respDir, b []byte) int {
	if d.lineLen == 0 {
		d.line = append(d.line, b[0])
		d.lineLen, d.n = 1, d.n+1
		if b[0] == '\n' {
			r.endLine(d)
		}
		return 1
	}
	limit := d.lineLimit() - d.lineLen
	if limit <= 0 {
		r.fail(d, false)
		return 0
	}
	in := b[:min(len(b), limit)]
	k, ended := bytes.IndexByte(in, '\n')+1, true
	if k == 0 {
		k, ended = len(in), false
	}
	if room := respLineKeep - len(d.line); room > 0 {
		d.line = append(d.line, in[:min(k, room)]...)
	}
	d.lineLen += k
	d.n += k
	if ended {
		r.endLine(d)
	}
	return k
}

// readMark looks for the mark that ends a snapshot of unknown length.
func (r *resp) readMark(d *respDir, b []byte) int {
	joined := append(d.tail, b...)
	if i := bytes.Index(joined, d.mark); i >= 0 {
		k := i + len(d.mark) - len(d.tail)
		d.n += k
		d.tail = d.tail[:0]
		r.done(d)
		return k
	}
	d.n += len(b)
	rest := joined[max(0, len(joined)-len(d.mark)+1):]
	d.tail = append(d.tail[:0], rest...)
	return len(b)
}
