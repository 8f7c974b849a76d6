package classify

import (
	"bytes"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	// TextKeep is how much of a line reader text reads.
	TextKeep = 4 << 10
	// textTokens bounds the token fields of a line.
	textTokens = 32
	// textValue is the longest token or value kept in a field.
	textValue = 256
)

// text frames lines that end in "\n"; a "\r" before it is not part of the
// line. A line longer than TextKeep is counted in full and read by its head.
// A line of which bytes were lost has a field incomplete=true, and no type where
// its start is lost.
type text struct{ d [2]textDir }

type textDir struct {
	start uint64
	n     int
	keep  []byte
	torn  bool // behind a gap: a line is being read whose start was lost
}

func newText() *text { return &text{} }

func (t *text) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	d := &t.d[dir]
	for len(b) > 0 {
		if d.n == 0 {
			d.start = off
		}
		k := bytes.IndexByte(b, '\n') + 1
		whole := k > 0
		if !whole {
			k = len(b)
		}
		if room := TextKeep - len(d.keep); room > 0 {
			d.keep = append(d.keep, b[:min(k, room)]...)
		}
		d.n += k
		off += uint64(k)
		b = b[k:]
		if whole {
			d.end(dir, false, emit)
		}
	}
}

func (t *text) Gap(dir int, _ uint64, _ uint64, emit func(Unit)) {
	t.d[dir].end(dir, true, emit)
	t.d[dir].torn = true
}

func (t *text) Close(dir int, emit func(Unit)) { t.d[dir].end(dir, false, emit) }

// end emits a line; cut says that its end was lost.
func (d *textDir) end(dir int, cut bool, emit func(Unit)) {
	if d.n == 0 {
		return
	}
	u := Unit{Dir: dir, Offset: d.start, Bytes: d.n, Type: model.TypeUnknown}
	if !d.torn {
		u.Type, u.Broad, u.Fields = textType(d.keep, cut || d.n > len(d.keep))
	}
	if cut || d.torn {
		u.Fields = append(u.Fields, incomplete)
	}
	d.n, d.keep, d.torn = 0, d.keep[:0], false
	emit(u)
}

func textDatagram(b []byte) Unit {
	u := Unit{Bytes: len(b)}
	u.Type, u.Broad, u.Fields = textType(b[:min(len(b), TextKeep)], len(b) > TextKeep)
	return u
}

// textType types a line by its first token where that is a word. Fields are
// text (the line), token0 and on, and key for each token key=value.
func textType(line []byte, more bool) (typ, broad string, fields []model.Field) {
	s := strings.TrimRight(string(line), "\r\n")
	if !printable(s) {
		return model.TypeUnknown, "", nil
	}
	tokens := strings.Fields(s)
	typ, broad = "text other", "text other"
	if len(tokens) > 0 && isWord(tokens[0]) && !(more && len(tokens) == 1) {
		typ = "text " + tokens[0]
	}
	if more {
		s += "…"
	}
	fields = []model.Field{{Name: "text", Value: s}}
	for i, tok := range tokens[:min(len(tokens), textTokens)] {
		fields = append(fields, model.Field{Name: "token" + strconv.Itoa(i), Value: cut(tok, textValue)})
	}
	for _, tok := range tokens[:min(len(tokens), textTokens)] {
		if k, v, ok := strings.Cut(tok, "="); ok && k != "" {
			fields = append(fields, model.Field{Name: k, Value: cut(v, textValue)})
		}
	}
	return typ, broad, fields
}

// printable reports whether s has no control characters but tabs and line
// ends (a datagram may hold several lines) and does not hold a NUL or DEL.
func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7f {
			return false
		}
	}
	return true
}
