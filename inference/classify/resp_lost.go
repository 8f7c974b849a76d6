package classify

import (
	"bytes"
	"strings"

	"netsplit/model"
)

// respCand is how many bytes are looked at to decide whether a message starts.
const respCand = 128

// done ends the message being read, emits it and waits for the next.
func (r *resp) done(d *respDir) {
	if d.long {
		if d.n > respLong {
			r.emit(Unit{Dir: d.dir, Offset: d.start + respLong, Bytes: d.n - respLong, Type: d.typ + " end"})
		}
	} else {
		u := Unit{Dir: d.dir, Offset: d.start, Bytes: d.n}
		u.Type, u.Fields = r.name(d, true)
		r.emit(u)
	}
	if d.rdb {
		r.m.snapshot, r.m.repl = false, true
	}
	d.mode = respIdle
	if o := &r.d[1-d.dir]; d.dir == r.client && o.mode == respLost {
		o.turn = true
	}
}

// certain reports whether the type of an unfinished message can be told.
func (r *resp) certain(d *respDir) bool {
	switch {
	case d.mode == respIdle || d.mode == respLost:
		return false
	case d.rdb:
		return d.mode != respLine
	case d.cmd:
		return len(d.scalars) > 0
	}
	return d.mode != respLine || len(d.stack) > 0
}

func (r *resp) head(d *respDir) {
	if !r.certain(d) {
		r.fail(d, false)
		return
	}
	u := Unit{Dir: d.dir, Offset: d.start, Bytes: respLong}
	u.Type, u.Fields = r.name(d, true)
	d.long, d.typ = true, u.Type
	r.emit(u)
}

// truncated emits the unfinished message of a direction.
func (r *resp) truncated(d *respDir) {
	switch {
	case d.mode == respIdle:
		return
	case d.mode == respLost:
		r.skip(d, len(d.cand))
		d.cand = nil
		r.unknown(d)
	case d.long:
		if d.n > respLong {
			r.emit(Unit{Dir: d.dir, Offset: d.start + respLong, Bytes: d.n - respLong, Type: d.typ + " end",
				Fields: []model.Field{{Name: "incomplete", Value: "true"}}})
		}
	case r.certain(d) && d.n > 0:
		u := Unit{Dir: d.dir, Offset: d.start, Bytes: d.n}
		u.Type, u.Fields = r.name(d, false)
		u.Fields = append(u.Fields, model.Field{Name: "incomplete", Value: "true"})
		r.emit(u)
	case d.n > 0:
		r.emit(Unit{Dir: d.dir, Offset: d.start, Bytes: d.n, Type: model.TypeUnknown})
	}
	if d.rdb {
		r.m.snapshot, r.m.repl = false, true
	}
	d.mode = respIdle
}

// fail gives up on the message being read: its bytes are unknown. atLine says
// that the next byte stands at the start of a line.
func (r *resp) fail(d *respDir, atLine bool) {
	start, n := d.start, d.n
	if d.long {
		start, n = start+respLong, n-respLong
	}
	if d.rdb {
		r.m.repl = true
	}
	r.m.lose()
	d.lost(start, atLine)
	r.skip(d, n)
}

func (d *respDir) lost(start uint64, atLine bool) {
	d.mode, d.start, d.n, d.long, d.rdb = respLost, start, 0, false, false
	d.atLine, d.turn, d.cand = atLine, false, nil
}

// skip adds k bytes to the unknown ones and emits them in pieces of respLong.
func (r *resp) skip(d *respDir, k int) {
	for d.n += k; d.n >= respLong; d.n -= respLong {
		r.emit(Unit{Dir: d.dir, Offset: d.start, Bytes: respLong, Type: model.TypeUnknown})
		d.start += respLong
	}
}

func (r *resp) unknown(d *respDir) {
	if d.n > 0 {
		r.emit(Unit{Dir: d.dir, Offset: d.start, Bytes: d.n, Type: model.TypeUnknown})
	}
	d.start += uint64(d.n)
	d.n = 0
}

// search looks for the start of a message at the starts of lines, and, on the
// server side, at the first byte behind a request.
func (r *resp) search(d *respDir, off uint64, b []byte) int {
	if d.n == 0 && len(d.cand) == 0 {
		d.start = off
	}
	if len(d.cand) == 0 && !d.atLine && !d.turn {
		k := bytes.IndexByte(b, '\n') + 1
		if d.atLine = k > 0; !d.atLine {
			k = len(b)
		}
		r.skip(d, k)
		return k
	}
	k := min(len(b), respCand-len(d.cand))
	d.cand = append(d.cand, b[:k]...)
	r.try(d)
	return k
}

// try decides about the bytes looked at. What it decides depends on the bytes
// alone, not on how many of them came at once.
func (r *resp) try(d *respDir) {
	for len(d.cand) > 0 {
		ok, more := r.plausible(d)
		if more && len(d.cand) < respCand {
			return
		}
		if ok && !more {
			r.unknown(d)
			b, off := d.cand, d.start
			d.cand, d.mode = nil, respIdle
			r.feed(d, off, b)
			return
		}
		d.turn = false
		k := bytes.IndexByte(d.cand, '\n') + 1
		if d.atLine = k > 0; !d.atLine {
			k = len(d.cand)
		}
		r.skip(d, k)
		d.cand = d.cand[k:]
	}
}

// plausible reports whether a message starts with the bytes looked at, or
// whether more are needed to tell.
func (r *resp) plausible(d *respDir) (ok, more bool) {
	b := d.cand
	line, rest, ended := bytes.Cut(b, []byte("\r\n"))
	if d.dir == r.client || r.m.repl {
		if b[0] != '*' || bytes.ContainsAny(line, "\n") {
			return false, false
		}
		if !ended {
			return false, len(b) < 10
		}
		if !respCount(line[1:]) {
			return false, false
		}
		if len(rest) == 0 {
			return false, true
		}
		size, word, ended := bytes.Cut(rest, []byte("\r\n"))
		if rest[0] != '$' {
			return false, false
		}
		if !ended {
			return false, len(rest) < 6
		}
		n, isNum := respLength(string(size[1:]))
		if !isNum || len(size) > 3 || n < 1 || n > maxWord {
			return false, false
		}
		if int64(len(word)) < n {
			return false, true
		}
		return respCommands[strings.ToUpper(string(word[:n]))], false
	}
	switch b[0] {
	case '+':
		if len(b) > 1 && !isLetter(b[1]) {
			return false, false
		}
	case '-':
		if len(b) > 1 && (b[1] < 'A' || b[1] > 'Z') {
			return false, false
		}
	case '*', '>', '~', '%', '|':
		if !ended {
			return false, len(b) < 10 && !bytes.ContainsAny(b, "\n")
		}
		if !respCount(line[1:]) {
			return false, false
		}
		if len(rest) == 0 {
			return false, true
		}
		return isRESP(rest[0]), false
	case '$', ':', '_', '#', ',':
		if !d.turn {
			return false, false
		}
		if !ended {
			return false, len(b) < respHeader && !bytes.ContainsAny(b, "\n")
		}
		if len(line) > respHeader-2 {
			return false, false
		}
		if b[0] == '$' {
			_, isNum := respLength(string(line[1:]))
			return isNum, false
		}
		_, valid := respScalarText(b[0], string(line[1:]))
		return valid, false
	default:
		return false, false
	}
	if !ended {
		return false, printable(strings.TrimSuffix(string(b), "\r"))
	}
	return printable(string(line)) && !bytes.ContainsAny(line, "\n"), false
}

// respCount says whether b is a plausible number of elements: 1 or more, in at most 7 bytes.
func respCount(b []byte) bool {
	n, ok := respLength(string(b))
	return ok && n >= 1 && len(b) <= 7
}
