package classify

import (
	"bytes"
	"strconv"
	"strings"

	"netsplit/model"
)

// Chunks of a body (RFC 9112 §7.1), and those that are messages of their own: of
// answers without an end.

// line reads the line before a chunk or the line end behind it, and reports
// whether a message ends with it.
func (h *http1) line(d *httpDir, b []byte) (k int, done bool) {
	i := bytes.IndexByte(b, '\n') + 1
	k = i
	if k == 0 {
		k = len(b)
	}
	d.buf = append(d.buf, b[:k]...)
	if len(d.buf) > httpLine {
		d.mode = httpLost
		return k, false
	}
	if i == 0 {
		return k, false
	}
	text := strings.TrimRight(string(d.buf), "\r\n")
	if d.mode == httpAfterChunk {
		if text != "" {
			d.mode = httpLost
			return k, false
		}
		d.mode, d.buf = httpInLine, d.buf[:0]
		return k, d.chunks != nil
	}
	n, ok := chunkSize(text)
	if !ok {
		d.mode = httpLost
		return k, false
	}
	d.chunk(n)
	return k, false
}

// chunkSize reads the line before a chunk, without its end.
func chunkSize(text string) (uint64, bool) {
	text, _, _ = strings.Cut(text, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 40)
	return n, err == nil
}

// chunk begins a chunk of n bytes.
func (d *httpDir) chunk(n uint64) {
	d.buf, d.mode, d.left = d.buf[:0], httpInChunk, int64(n)
	if n == 0 {
		d.mode = httpInTrailer
	}
	if q := d.chunks; q != nil {
		class := " " + lengthClass(int(n))
		d.typ, d.broad = "http chunk "+q.method+" "+q.place+class, "http chunk "+httpMethod(q.method)+" /..."+class
		d.fields = []model.Field{{Name: "length", Value: strconv.FormatUint(n, 10)}}
		if q.target != "" {
			d.fields = append(d.fields, model.Field{Name: "request", Value: q.method + " " + q.target})
		}
	}
}

// stream reports whether the header that was read is a message of its own, of
// which the chunks follow.
func (h *http1) stream(dir int, q httpRequest) bool {
	d := &h.d[dir]
	if !h.streams || d.mode != httpInLine {
		return false
	}
	h.requested[dir], d.chunks = q, &q
	return true
}

// httpAgain is the longest chunk to begin again with: a line that is none must not
// hide much.
const httpAgain = 16 << 20

// head takes a byte of what is no message and reports whether a line ends with it
// that may be the one before a chunk: its length with its end, and the chunk's.
func (d *httpDir) head(c byte) (length int, size uint64, ok bool) {
	if len(d.line) <= httpLine {
		d.line = append(d.line, c)
	}
	if c != '\n' {
		return 0, 0, false
	}
	text, ends := strings.CutSuffix(string(d.line), "\r\n")
	length = len(d.line)
	d.line = d.line[:0]
	size, is := chunkSize(text)
	return length, size, ends && is && size > 0 && size <= httpAgain
}

// again takes a byte of what is no message and reports whether a chunk begins with
// it. If it is none, the line that must follow it does not, and the direction is
// lost again. An answer without an end has no other place to begin again at.
func (h *http1) again(dir int, c byte, emit func(Unit)) bool {
	d := &h.d[dir]
	n, size, ok := d.head(c)
	if !ok {
		return false
	}
	d.n -= n
	d.buf = nil
	h.end(dir, emit)
	if d.mode == httpToClose { // a tunnel
		d.n = n
		return true
	}
	q := h.requested[dir]
	if q == (httpRequest{}) {
		q = httpRequest{"other", "", "/..."} // whose request was not seen
	}
	d.n, d.chunks = n, &q
	d.chunk(size)
	return true
}
