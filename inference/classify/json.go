package classify

import (
	"bytes"
	"strings"

	"netsplit/model"
)

const (
	jsonKeep    = 64 << 10 // a longer message is emitted in two units
	jsonLiteral = 1 << 10  // longest number believed
	jsonRecord  = 0x1e     // stands before each value of a text sequence (RFC 7464)
	jsonBlank   = "json (blank)"
)

// jsonStream reads JSON values (RFC 8259) that follow one another with nothing
// between them, with blanks, with ends of line, or with record separators (RFC
// 7464). A value is a message, of a type that jsonTyped gives it. Where values
// end their lines the end of line belongs to it; what else stands between two
// values belongs to the second. A number or a text by itself ends with a blank.
//
// A message longer than jsonKeep is emitted in two units, the second with the
// type "... end", and is read by its first bytes. Behind bytes that were lost,
// or that are no JSON, it goes on where a value begins: behind a record
// separator; where another value ended without a comma, which there would be
// within a value; or where a line begins. What is found so has to be whole JSON;
// what may as well be part of a value whose start was lost has to have a
// type that there was before.
type jsonStream struct {
	d         [2]jsonDir
	requested [2]asked[string] // requests of a direction without an answer
}

// jsonMode is where a direction stands.
type jsonMode int

const (
	jsonBetween jsonMode = iota // two values: blanks and record separators
	jsonInside                  // an object, an array or a text
	jsonBare                    // a number, true, false, null, or behind a text
	jsonAfter                   // a value, before the end of its line
	jsonLost                    // looking for the start of a value
)

// jsonDoubt is how sure it is that a value begins where it was taken to begin.
type jsonDoubt int

const (
	jsonSure jsonDoubt = iota
	jsonLikely
	jsonMaybe
)

type jsonDir struct {
	mode  jsonMode
	doubt jsonDoubt
	start uint64 // offset of the unit
	n     int    // bytes of it
	keep  []byte // its first bytes, unless it is lost or the rest of a long message

	depth           int // objects and arrays that are open
	quoted, escaped bool
	long            string // type of the message, whose first unit is emitted
	broad           string

	read  bool            // there was a value
	lines bool            // values end their lines
	seen  map[string]bool // types there were

	// While lost:
	last  byte // that is no blank
	fresh bool // the next byte is the first behind a gap
	line  bool // the next byte is the first of a line
}

// JSONMessage reports whether messages of a type are objects or arrays, as reader
// json tells them.
func JSONMessage(typ string) bool {
	return strings.HasPrefix(typ, "json ") && !strings.HasPrefix(typ, "json (")
}

// NewJSON returns reader json for one connection.
func NewJSON() Dissector {
	return &jsonStream{d: [2]jsonDir{{seen: map[string]bool{}}, {seen: map[string]bool{}}}}
}

func (j *jsonStream) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	d := &j.d[dir]
	for len(b) > 0 {
		if d.n == 0 {
			d.start = off
		}
		k := j.take(dir, b[:min(len(b), jsonKeep-d.n%jsonKeep)], emit)
		off += uint64(k)
		b = b[k:]
	}
}

// take reads some of b, which does not reach over a multiple of jsonKeep bytes of
// the unit, and returns how much. It may be nothing, once: what a value does not
// go on with is looked at again, as the first byte behind it.
func (j *jsonStream) take(dir int, b []byte, emit func(Unit)) int {
	d := &j.d[dir]
	k, what := d.scan(b)
	if d.long == "" && d.mode != jsonLost {
		d.keep = append(d.keep, b[:k]...)
	}
	d.n += k
	switch {
	case what == jsonStarts:
		d.emit(Unit{Dir: dir, Type: model.TypeUnknown}, emit)
		d.clear(jsonBetween)
	case what == jsonEnds:
		j.end(dir, jsonWhole, emit)
	case what == jsonNone:
		if d.long != "" {
			j.end(dir, jsonTorn, emit)
		}
		n := d.n
		d.clear(jsonLost)
		d.n = n
	case d.n >= jsonKeep && d.mode != jsonLost && d.long == "":
		j.end(dir, jsonHead, emit)
	}
	if d.mode == jsonLost && d.n >= jsonKeep {
		d.emit(Unit{Dir: dir, Type: model.TypeUnknown}, emit)
	}
	return k
}

// jsonFound is what ended a scan.
type jsonFound int

const (
	jsonOn     jsonFound = iota // all was read
	jsonStarts                  // lost: a value starts at the next byte
	jsonEnds                    // the message ends with what was read
	jsonNone                    // the next byte does not go on with it
)

// scan reads b up to where something happens, and says what.
func (d *jsonDir) scan(b []byte) (int, jsonFound) {
	for i, c := range b {
		switch d.mode {
		case jsonBetween:
			switch {
			case isSpace(c):
				d.lines = d.lines || c == '\n' && d.read
			case c == jsonRecord:
				d.doubt = jsonSure
			case !d.opens(c):
				return i, jsonNone
			}
		case jsonInside:
			switch good := d.inside(c); {
			case !good:
				return i, jsonNone
			case d.depth > 0 || d.quoted:
			case c == '"':
				d.mode = jsonBare
			case d.lines:
				d.mode = jsonAfter
			default:
				return i + 1, jsonEnds
			}
		case jsonBare:
			switch {
			case c == jsonRecord || isSpace(c) && !d.lines:
				return i, jsonEnds
			case c == '\n':
				return i + 1, jsonEnds
			case isSpace(c):
				d.mode = jsonAfter
			case !jsonPlain(c) || d.n+i > jsonLiteral:
				return i, jsonNone
			}
		case jsonAfter:
			switch {
			case c == '\n':
				return i + 1, jsonEnds
			case !isSpace(c):
				return i, jsonEnds
			}
		case jsonLost:
			if d.found(c) {
				return i, jsonStarts
			}
		}
	}
	return len(b), jsonOn
}

// jsonPlain says whether c can be part of a number, true, false or null.
func jsonPlain(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.'
}

// opens begins a value with c, if one can.
func (d *jsonDir) opens(c byte) bool {
	switch {
	case c == '{' || c == '[':
		d.mode, d.depth = jsonInside, 1
	case c == '"':
		d.mode, d.quoted = jsonInside, true
	case c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		d.mode = jsonBare
	default:
		return false
	}
	return true
}

// inside reads a byte of an object, an array or a text, and says whether it can
// stand there.
func (d *jsonDir) inside(c byte) bool {
	switch {
	case d.quoted:
		switch {
		case d.escaped:
			d.escaped = false
		case c == '\\':
			d.escaped = true
		case c == '"':
			d.quoted = false
		}
		return c >= ' '
	case c == '"':
		d.quoted = true
	case c == '{' || c == '[':
		d.depth++
	case c == '}' || c == ']':
		d.depth--
	default:
		return isSpace(c) || c == ',' || c == ':' || jsonPlain(c)
	}
	return true
}

// found says whether a value starts with c, the next byte of what is lost.
func (d *jsonDir) found(c byte) bool {
	fresh, line, last := d.fresh, d.line, d.last
	d.fresh, d.line = false, c == '\n'
	if !isSpace(c) {
		d.last = c
	}
	switch {
	case c == jsonRecord:
		d.doubt = jsonSure
	case c != '{' && c != '[':
		return false
	case last == '}' || last == ']' || line && d.lines:
		d.doubt = jsonLikely
	case fresh || line:
		d.doubt = jsonMaybe
	default:
		return false
	}
	return true
}

// clear forgets the message, and what is left of it.
func (d *jsonDir) clear(mode jsonMode) {
	d.mode, d.n, d.keep = mode, 0, d.keep[:0]
	d.depth, d.quoted, d.escaped, d.long, d.broad = 0, false, false, "", ""
	d.last, d.fresh, d.line = 0, false, false
}

func (d *jsonDir) emit(u Unit, emit func(Unit)) {
	if d.n == 0 {
		return
	}
	u.Offset, u.Bytes = d.start, d.n
	d.start += uint64(d.n)
	d.n = 0
	emit(u)
}

// jsonPart is what of a message there is.
type jsonPart int

const (
	jsonWhole jsonPart = iota
	jsonHead           // its first jsonKeep bytes; more come
	jsonTorn           // its end was lost, or never came
)

// end emits what there is of a message, and waits for the rest of it or for the
// next one.
func (j *jsonStream) end(dir int, part jsonPart, emit func(Unit)) {
	d := &j.d[dir]
	u, good := Unit{Dir: dir, Type: jsonBlank}, true
	switch {
	case d.long != "":
		u.Type = d.long + " end"
		if d.broad != "" {
			u.Broad = d.broad + " end"
		}
	case d.mode != jsonBetween:
		m := jsonRead(d.keep)
		if part == jsonHead && m.whole { // all but the end of its line
			part = jsonWhole
		}
		u.Type, good = model.TypeUnknown, !m.wrong && (m.whole || part != jsonWhole)
		if good {
			u.Type, u.Broad, u.Fields = m.typed(j.request(dir, m))
			good = d.believed(u.Type)
		}
		if !good {
			u = Unit{Dir: dir, Type: model.TypeUnknown}
		}
	}
	if part == jsonTorn && u.Type != jsonBlank {
		u.Fields = append(u.Fields, incomplete)
	}
	d.emit(u, emit)
	if good && part == jsonHead && u.Type != jsonBlank {
		d.keep, d.long, d.broad = d.keep[:0], u.Type, u.Broad
		return
	}
	before := bytes.TrimRight(d.keep, " \t\r\n")
	line := len(before) < len(d.keep)
	d.clear(jsonBetween)
	if !good {
		d.mode, d.line = jsonLost, line
		if len(before) > 0 {
			d.last = before[len(before)-1]
		}
	}
}

// believed says whether a message of this type began where one was taken to
// begin, and takes note of it.
func (d *jsonDir) believed(typ string) bool {
	if d.doubt == jsonMaybe && len(d.seen) > 0 && !d.seen[typ] {
		return false
	}
	d.doubt, d.read = jsonSure, true
	if len(d.seen) < vocabularyMost {
		d.seen[typ] = true
	}
	return true
}

func (j *jsonStream) request(dir int, m *jsonMessage) string {
	switch {
	case m.id == "":
	case m.method != "":
		j.requested[dir].put(m.id, m.method)
	case m.answers():
		return j.requested[1-dir].take(m.id)
	}
	return ""
}

func (j *jsonStream) Gap(dir int, off, n uint64, emit func(Unit)) {
	j.close(dir, emit)
	d := &j.d[dir]
	d.mode, d.start, d.fresh = jsonLost, off+n, true
}

func (j *jsonStream) Close(dir int, emit func(Unit)) { j.close(dir, emit) }

// close emits what has begun as it stands.
func (j *jsonStream) close(dir int, emit func(Unit)) {
	d := &j.d[dir]
	switch {
	case d.mode == jsonLost:
		d.emit(Unit{Dir: dir, Type: model.TypeUnknown}, emit)
		d.clear(jsonBetween)
	case d.n == 0:
	case d.mode == jsonAfter || d.mode == jsonBare:
		j.end(dir, jsonWhole, emit)
	default:
		j.end(dir, jsonTorn, emit)
	}
}

func jsonDatagram(b []byte) Unit {
	u := Unit{Bytes: len(b), Type: model.TypeUnknown}
	if m := jsonRead(b[:min(len(b), jsonKeep)]); !m.wrong && (m.whole || len(b) > jsonKeep) {
		u.Type, u.Broad, u.Fields = m.typed("")
	}
	return u
}
