package classify

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"

	"netsplit/model"
)

// endLine handles a complete line. Lines longer than respLineKeep are only
// known by their head, which is enough for every kind that may be so long.
func (r *resp) endLine(d *respDir) {
	line := d.line
	whole := d.lineLen == len(line)
	if whole {
		line = bytes.TrimSuffix(line, []byte("\n"))
		crlf := bytes.HasSuffix(line, []byte("\r"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 && len(d.stack) == 0 && !d.chunks {
			r.done(d) // an empty line between messages
			return
		}
		if !crlf && !d.inline {
			r.fail(d, true)
			return
		}
	}
	if len(line) == 0 {
		r.fail(d, true)
		return
	}
	if d.inline {
		r.inlineCommand(d, line, !whole)
		return
	}
	if d.rdb {
		r.snapshotHeader(d, string(line))
		return
	}
	c, rest := line[0], string(line[1:])
	if d.cmd && !(c == '*' && len(d.stack) == 0 || c == '$' && len(d.stack) == 1) {
		r.fail(d, true)
		return
	}
	if d.chunks {
		n, ok := respLength(rest)
		switch {
		case c != ';' || !ok || n < 0:
			r.fail(d, true)
		case n == 0:
			d.chunks = false
			r.scalar(d, '$', string(d.buf), d.bufLen > int64(len(d.buf)))
		default:
			d.left, d.mode = n, respBody
		}
		return
	}
	switch c {
	case '+', '-':
		r.scalar(d, c, rest, !whole)
	case ':', '_', ',', '#', '(':
		v, ok := respScalarText(c, rest)
		if !ok {
			r.fail(d, true)
			return
		}
		r.scalar(d, c, v, !whole)
	case '$', '!', '=':
		r.bulk(d, c, rest)
	case '*', '~', '%', '>', '|':
		r.aggregate(d, c, rest)
	case '.':
		if len(d.stack) == 0 || d.stack[len(d.stack)-1].left != -1 || rest != "" {
			r.fail(d, true)
			return
		}
		d.stack = d.stack[:len(d.stack)-1]
		r.valueDone(d)
	default:
		r.fail(d, true)
	}
}

// respLength reads the length of a header; Redis writes no sign but -1.
func respLength(s string) (int64, bool) {
	if s == "-1" {
		return -1, true
	}
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < 1<<48
}

// respScalarText checks a value of one line and returns it as fields show it.
func respScalarText(c byte, s string) (string, bool) {
	switch c {
	case ':':
		_, err := strconv.ParseInt(s, 10, 64)
		return s, err == nil
	case '_':
		return "(nil)", s == ""
	case '#':
		if s == "t" {
			return "true", true
		}
		return "false", s == "f"
	case ',':
		_, err := strconv.ParseFloat(s, 64)
		return s, err == nil
	}
	if len(s) > respLineKeep-2 { // only the head of the number is known
		return s, strings.Trim(s, "+-0123456789") == ""
	}
	_, ok := new(big.Int).SetString(s, 10)
	return s, ok
}

func (r *resp) bulk(d *respDir, c byte, rest string) {
	d.kind, d.buf, d.bufLen = c, d.buf[:0], 0
	if c == '$' && rest == "?" && !d.cmd {
		d.chunks = true
		d.toLine()
		return
	}
	n, ok := respLength(rest)
	switch {
	case !ok, n < 0 && (c != '$' || d.cmd):
		r.fail(d, true)
	case n < 0:
		r.scalar(d, '_', "(nil)", false)
	default:
		d.left, d.mode = n, respBody
		r.afterBody(d)
	}
}

func (r *resp) aggregate(d *respDir, c byte, rest string) {
	n, ok := respLength(rest)
	if rest == "?" && !d.cmd && c != '|' {
		n, ok = -1, true
	} else if ok && n < 0 {
		if c != '*' {
			ok = false
		} else if d.cmd {
			n = 0 // Redis ignores a command of length -1
		} else {
			r.scalar(d, '_', "(nil)", false)
			return
		}
	}
	if !ok || len(d.stack) == respDepth {
		r.fail(d, true)
		return
	}
	if n > 0 && (c == '%' || c == '|') {
		n *= 2
	}
	if len(d.stack) == 0 {
		d.elems = int(max(n, 0))
	}
	d.stack = append(d.stack, respFrame{kind: c, left: n})
	if n == 0 {
		d.stack = d.stack[:len(d.stack)-1]
		if c == '|' {
			d.toLine()
			return
		}
		r.valueDone(d)
		return
	}
	d.toLine()
}

// scalar adds a value of the message and moves on behind it.
func (r *resp) scalar(d *respDir, kind byte, v string, cut bool) {
	hidden := false
	for _, f := range d.stack {
		hidden = hidden || f.kind == '|' // attributes are not part of the reply
	}
	switch {
	case hidden:
	case len(d.scalars) == respScalars:
		d.more = true
	default:
		d.scalars = append(d.scalars, respScalar{kind: kind, path: d.path(), val: v, cut: cut})
	}
	r.valueDone(d)
}

func (d *respDir) path() string {
	var b []byte
	for i, f := range d.stack {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, int64(f.idx), 10)
	}
	return string(b)
}

// valueDone closes the aggregates that the value just read completes.
func (r *resp) valueDone(d *respDir) {
	for len(d.stack) > 0 {
		f := &d.stack[len(d.stack)-1]
		f.idx++
		if f.left > 0 {
			f.left--
		}
		if f.left != 0 {
			d.toLine()
			return
		}
		attr := f.kind == '|'
		d.stack = d.stack[:len(d.stack)-1]
		if attr { // the value it describes follows
			d.toLine()
			return
		}
	}
	r.done(d)
}

// inlineCommand reads a command of one line (protocol specification, "Inline
// commands"). Only known commands are taken for one.
func (r *resp) inlineCommand(d *respDir, line []byte, cut bool) {
	words := strings.Fields(string(line))
	if len(words) == 0 { // only blanks: Redis ignores it
		r.done(d)
		return
	}
	if !respCommands[strings.ToUpper(words[0])] || !printable(string(line)) {
		r.fail(d, true)
		return
	}
	d.elems = len(words)
	for i, w := range words {
		if i == respScalars {
			break
		}
		d.scalars = append(d.scalars, respScalar{kind: '$', path: strconv.Itoa(i), val: w, cut: cut && i == len(words)-1})
	}
	r.done(d)
}

// snapshotHeader reads "$<length>", or "$EOF:" and the 40 bytes that will end
// a snapshot sent without a file (replication.c: rdbSaveRioWithEOFMark).
func (r *resp) snapshotHeader(d *respDir, line string) {
	if mark, ok := strings.CutPrefix(line, "$EOF:"); ok && len(mark) == 40 {
		d.mark, d.tail, d.mode = []byte(mark), d.tail[:0], respRDBMark
		return
	}
	n, ok := respLength(line[1:])
	if !ok || n < 0 {
		r.fail(d, true)
		return
	}
	d.left, d.mode = n, respRDB
	r.afterBody(d)
}

// respFields renders the kept values as fields of a reply or command.
func respFields(name string, ss []respScalar, limit int) []model.Field {
	var out []model.Field
	for i, s := range ss {
		if i == limit {
			break
		}
		key := name + s.path
		if strings.Contains(s.path, ".") {
			key = name + "." + s.path
		}
		out = append(out, model.Field{Name: key, Value: s.text(respArg)})
	}
	return out
}

// text is the value as valid UTF-8 of at most n bytes, plus "…" where it was
// longer.
func (s respScalar) text(n int) string {
	v := s.val
	cut := s.cut
	if len(v) > n {
		v, cut = v[:n], true
	}
	v = strings.ToValidUTF8(v, "\uFFFD")
	if cut {
		v += "…"
	}
	return v
}
