package classify

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	httpHeader  = 32 << 10 // longest header believed
	httpKeep    = 64 << 10 // a longer message is emitted in two units
	httpStart   = 16       // first bytes that tell whether a message starts
	httpFound   = 12       // of these, what is enough to believe it among bytes that are none: "HTTP/1.1 200"
	httpLine    = 64       // longest line with the size of a chunk
	httpQuery   = 16       // parameters shown
	httpValue   = 256      // longest value shown
	httpPending = 256      // requests without an answer kept
)

var httpMethods = []string{"GET", "PUT", "POST", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"}

// httpFirst are the bytes that a message can start with.
const httpFirst = "HGPDOTC"

// httpMode is where in a message a direction stands.
type httpMode int

const (
	httpInHeader httpMode = iota
	httpInBody            // left bytes of it
	httpInLine            // before a chunk: its size
	httpInChunk           // left bytes of it
	httpAfterChunk
	httpInTrailer
	httpToClose
	httpLost // looking for the start of a message
)

// http1 reads HTTP/1. A message is its header with its body; a body is skipped
// by Content-Length, by chunks, or until the connection ends. Types:
//
//	http METHOD /FIRST    FIRST is the first element of the path where it is a word, with the
//	                      next one behind a version ("v3/kv"), else "..."
//	http reply CODE
//	http tunnel           what follows a CONNECT or an upgrade
//	http chunk METHOD /FIRST 2^K
//
// The last is of the reader for answers without an end (streams): there the
// header of a message with a chunked body is a message, and so is each chunk of
// its body, with its length class and the request that it belongs to. Where bytes
// are lost, or the start was not seen, it begins again at the next chunk.
//
// Fields: method, path, query.NAME, host; code, length, type, request
// ("GET /jmx"); of a chunk length and request. A message longer than 64 KiB is emitted in two units, the second
// with the type "... end".
type http1 struct {
	streams   bool // chunks are messages
	d         [2]httpDir
	requested [2]httpRequest // whose chunks are messages of a direction
	pending   []httpRequest  // without an answer, oldest first
	server    int            // direction of the answers
	tunnel    bool
}

type httpRequest struct{ method, target, place string }

type httpDir struct {
	mode   httpMode
	start  uint64 // offset of the unit
	n      int    // bytes of it
	buf    []byte // header, line or, when lost, what may be a start
	line   []byte // when lost, and chunks are messages: the line so far
	left   int64
	typ    string
	broad  string // Unit.Broad
	fields []model.Field
	split  bool // the first unit of the message is emitted
	hole   bool
	chunks *httpRequest // between and in chunks that are messages: what was asked
}

func newHTTP() Dissector { return &http1{server: 1} }

func newHTTPStream() Dissector { return &http1{server: 1, streams: true} }

func (h *http1) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	d := &h.d[dir]
	for len(b) > 0 {
		if d.n == 0 {
			d.start = off
		}
		k := h.take(dir, b[:min(len(b), httpKeep-d.n%httpKeep)], emit)
		off += uint64(k)
		b = b[k:]
	}
}

// take reads some of b, which does not reach over a multiple of httpKeep bytes
// of the unit, and returns how much.
func (h *http1) take(dir int, b []byte, emit func(Unit)) int {
	d := &h.d[dir]
	k, done := len(b), false
	switch d.mode {
	case httpLost:
		return h.search(dir, b, emit)
	case httpInHeader, httpInTrailer:
		k, done = h.header(dir, b)
	case httpInBody, httpInChunk:
		k = int(min(int64(k), d.left))
		d.left -= int64(k)
		if d.left == 0 {
			done = d.mode == httpInBody
			if !done {
				d.mode = httpAfterChunk
			}
		}
	case httpInLine, httpAfterChunk:
		k, done = h.line(d, b)
	}
	d.n += k
	switch {
	case done:
		h.end(dir, emit)
	case d.mode == httpLost: // no message: what was read last is looked through
		d.chunks = nil
		again := d.buf
		if len(again) > httpStart {
			again = nil
		}
		d.n, d.buf = d.n-len(again), nil
		if d.typ != "" || d.split { // its header was good
			h.end(dir, emit)
			d.mode = httpLost
		}
		h.lose(dir, again, emit)
	case d.typ != "" && !d.split && d.n >= httpKeep:
		emit(Unit{Dir: dir, Offset: d.start, Bytes: d.n, Type: d.typ, Broad: d.broad, Fields: d.marked()})
		d.start += uint64(d.n)
		d.n, d.split, d.hole = 0, true, false
	}
	return k
}

// header collects a header, or the trailer of a chunked body, to its empty line.
func (h *http1) header(dir int, b []byte) (k int, done bool) {
	d := &h.d[dir]
	for i, c := range b {
		d.buf = append(d.buf, c)
		if c == '\n' && (bytes.HasSuffix(d.buf, []byte("\n\r\n")) || bytes.HasSuffix(d.buf, []byte("\n\n")) ||
			d.mode == httpInTrailer && (len(d.buf) == 1 || string(d.buf) == "\r\n")) {
			if d.mode == httpInTrailer {
				d.chunks = nil
				return i + 1, true
			}
			head := d.buf
			d.buf = nil
			return i + 1, h.begin(dir, head)
		}
		if len(d.buf) > httpHeader || d.mode == httpInHeader && !httpPlausible(d.buf) {
			d.mode = httpLost
			return i + 1, false
		}
	}
	return len(b), false
}

// httpPlausible reports whether a message can start with b, where one is due.
func httpPlausible(b []byte) bool {
	return len(b) > httpStart || httpStarts(b) || httpOther(b) // the first: decided before
}

// httpStarts reports whether b is the start of an answer or of a request of a
// known method, as far as it goes.
func httpStarts(b []byte) bool {
	if httpPrefix(b, "HTTP/1.") {
		// "HTTP/1.1\r" is the end of a request.
		for i, c := range b[min(len(b), 7):min(len(b), httpFound)] {
			if i == 1 && c != ' ' || i != 1 && (c < '0' || c > '9') {
				return false
			}
		}
		return true
	}
	for _, m := range httpMethods {
		if httpPrefix(b, m) && (len(b) <= len(m) || b[len(m)] == ' ') {
			return true
		}
	}
	return false
}

// httpOther is the same for requests of methods that are not listed: capitals
// and the start of a path.
func httpOther(b []byte) bool {
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z' || i > 0 && (c == '-' || c == '_'):
		case c == ' ' && i >= 2 && i < httpStart-1:
			return len(b) == i+1 || b[i+1] == '/'
		default:
			return false
		}
	}
	return len(b) < httpStart
}

// httpPrefix reports whether b starts with s, as far as it goes.
func httpPrefix(b []byte, s string) bool {
	n := min(len(b), len(s))
	return string(b[:n]) == s[:n]
}

// begin reads a header and reports whether the message ends with it.
func (h *http1) begin(dir int, head []byte) bool {
	d := &h.d[dir]
	first, rest, _ := strings.Cut(string(head), "\n")
	words := strings.Fields(first)
	length, chunked, has := int64(0), false, false
	kind := ""
	host := ""
	for line := range strings.Lines(rest) {
		name, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch strings.ToLower(name) {
		case "content-length":
			if n, err := strconv.ParseUint(v, 10, 48); err == nil {
				length, has = int64(n), true
			}
		case "transfer-encoding":
			chunked = strings.Contains(strings.ToLower(v), "chunked")
		case "content-type":
			kind = httpText(v)
		case "host":
			host = httpText(v)
		}
	}
	switch {
	case chunked:
		d.mode = httpInLine
	case length > 0:
		d.mode, d.left = httpInBody, length
	}
	if strings.HasPrefix(first, "HTTP/1.") {
		h.server = dir
		q, ends := h.reply(d, words, has, chunked, length, kind)
		return ends || h.stream(dir, q)
	}
	h.server = 1 - dir
	q := h.request(d, words, host)
	return d.mode == httpInHeader || h.stream(dir, q)
}

func httpText(s string) string { return strings.ToValidUTF8(cut(s, httpValue), "\uFFFD") }

// httpMethod is what of a method can be part of Unit.Broad.
func httpMethod(m string) string {
	if slices.Contains(httpMethods, m) {
		return m
	}
	return "other"
}

func (h *http1) request(d *httpDir, words []string, host string) httpRequest {
	target := "/"
	if len(words) > 1 {
		target = words[1]
	}
	path, query, _ := strings.Cut(target, "?")
	place := httpPlace(path)
	d.typ, d.broad = "http "+words[0]+" "+place, "http "+httpMethod(words[0])+" /..."
	d.fields = []model.Field{{Name: "method", Value: words[0]}, {Name: "path", Value: httpText(path)}}
	if host != "" {
		d.fields = append(d.fields, model.Field{Name: "host", Value: host})
	}
	for i, p := range strings.Split(query, "&") {
		name, v, ok := strings.Cut(p, "=")
		if !ok || i == httpQuery || !isWord(name) {
			continue
		}
		d.fields = append(d.fields, model.Field{Name: "query." + name, Value: httpText(v)})
	}
	if len(h.pending) == httpPending {
		h.pending = h.pending[1:]
	}
	q := httpRequest{words[0], httpText(path), place}
	h.pending = append(h.pending, q)
	return q
}

// httpVersion is what APIs begin their paths with: v1, v3alpha, v1beta2.
var httpVersion = regexp.MustCompile(`^v[0-9]{1,2}((alpha|beta)[0-9]{0,2})?$`)

func httpPlace(path string) string {
	if path == "/" {
		return path
	}
	rest, ok := strings.CutPrefix(path, "/")
	first, rest, _ := strings.Cut(rest, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case ok && isWord(first):
		return "/" + first
	case ok && httpVersion.MatchString(first) && isWord(second):
		return "/" + first + "/" + second
	}
	return "/..."
}

func (h *http1) reply(d *httpDir, words []string, has, chunked bool, length int64, kind string) (q httpRequest, ends bool) {
	code := 0
	if len(words) > 1 {
		code, _ = strconv.Atoi(words[1])
	}
	d.typ = "http reply other"
	if code >= 100 && code < 600 {
		d.typ = "http reply " + strconv.Itoa(code)
		d.fields = []model.Field{{Name: "code", Value: strconv.Itoa(code)}}
	}
	if has {
		d.fields = append(d.fields, model.Field{Name: "length", Value: strconv.FormatInt(length, 10)})
	}
	if kind != "" {
		d.fields = append(d.fields, model.Field{Name: "type", Value: kind})
	}
	interim := code >= 100 && code < 200 && code != 101
	q = httpRequest{"other", "", "/..."} // whose request was not seen
	if len(h.pending) > 0 {
		q = h.pending[0]
		if !interim {
			h.pending = h.pending[1:]
		}
		d.fields = append(d.fields, model.Field{Name: "request", Value: q.method + " " + q.target})
	}
	switch {
	case code == 101 || q.method == "CONNECT" && code/100 == 2:
		h.tunnel = true
		return q, true
	case interim || code == 204 || code == 304 || q.method == "HEAD":
		return q, true
	case !has && !chunked:
		d.mode = httpToClose
		return q, false
	}
	return q, d.mode == httpInHeader
}

func (d *httpDir) marked() []model.Field {
	if d.hole {
		return append(d.fields[:len(d.fields):len(d.fields)], incomplete)
	}
	return d.fields
}

// end emits the message as it stands and waits for the next.
func (h *http1) end(dir int, emit func(Unit)) {
	d := &h.d[dir]
	if d.n > 0 {
		u := Unit{Dir: dir, Offset: d.start, Bytes: d.n, Type: d.typ, Broad: d.broad, Fields: d.marked()}
		if d.split {
			u.Type, u.Fields = d.typ+" end", nil
			if d.broad != "" {
				u.Broad = d.broad + " end"
			}
			if d.hole {
				u.Fields = []model.Field{incomplete}
			}
		}
		if u.Type == "" {
			u.Type, u.Fields = model.TypeUnknown, nil
		}
		emit(u)
		d.start += uint64(d.n)
	}
	*d = httpDir{start: d.start, chunks: d.chunks}
	if d.chunks != nil {
		d.mode = httpInLine
	}
	if h.tunnel {
		for i := range h.d {
			if h.d[i].n == 0 {
				h.d[i].mode, h.d[i].typ, h.d[i].chunks = httpToClose, "http tunnel", nil
			}
		}
	}
}

// lose looks through bytes that turned out to be no message: the first of them
// starts none.
func (h *http1) lose(dir int, b []byte, emit func(Unit)) {
	d := &h.d[dir]
	if len(b) == 0 {
		return
	}
	d.n++
	if h.streams {
		d.head(b[0])
	}
	for b = b[1:]; len(b) > 0; {
		b = b[h.take(dir, b, emit):]
	}
}

// search looks for the start of a message.
func (h *http1) search(dir int, b []byte, emit func(Unit)) int {
	d := &h.d[dir]
	for i := range b {
		d.n++
		if h.streams && h.again(dir, b[i], emit) {
			return i + 1
		}
		if len(d.buf) > 0 || strings.IndexByte(httpFirst, b[i]) >= 0 {
			d.buf = append(d.buf, b[i])
			for len(d.buf) > 0 && !httpStarts(d.buf) {
				d.buf = d.buf[1:]
			}
		}
		if n := len(d.buf); n >= httpFound {
			found := d.buf
			d.n -= n
			d.buf = nil
			h.end(dir, emit)
			if d.mode == httpToClose { // a tunnel
				d.n = n
				return i + 1
			}
			d.n, d.buf = n, found
			return i + 1
		}
		if k := d.n - max(len(d.buf), len(d.line)); k >= httpKeep { // what may begin a message is kept
			emit(Unit{Dir: dir, Offset: d.start, Bytes: k, Type: model.TypeUnknown})
			d.start += uint64(k)
			d.n -= k
		}
	}
	return len(b)
}

func (h *http1) Gap(dir int, off, n uint64, emit func(Unit)) {
	d := &h.d[dir]
	inside := d.mode == httpInBody && n <= uint64(d.left) || d.mode == httpInChunk && n < uint64(d.left) || d.mode == httpToClose
	if inside && d.n > 0 {
		d.hole = true
		d.left -= int64(n)
		h.bridge(dir, int(min(n, 1<<40)), emit)
		return
	}
	h.Close(dir, emit)
	d.mode, d.start = httpLost, off+n
}

// bridge counts n lost bytes as part of the body.
func (h *http1) bridge(dir, n int, emit func(Unit)) {
	d := &h.d[dir]
	d.n += n
	switch {
	case d.mode == httpInBody && d.left == 0:
		h.end(dir, emit)
	case !d.split && d.n >= httpKeep:
		emit(Unit{Dir: dir, Offset: d.start, Bytes: d.n, Type: d.typ, Broad: d.broad, Fields: d.marked()})
		d.start += uint64(d.n)
		d.n, d.split, d.hole = 0, true, false
	}
}

func (h *http1) Close(dir int, emit func(Unit)) {
	d := &h.d[dir]
	d.chunks = nil
	if d.mode != httpToClose {
		d.hole = true
	}
	h.end(dir, emit)
}
