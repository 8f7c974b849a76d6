package classify

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	framesEnd   = 4 << 10 // places are before it
	framesLong  = 1 << 30 // longest message believed
	framesChain = 3       // messages in a row that show where messages start
	framesText  = 64      // longest field
)

// frames reads a protocol that the target file describes: the length of a
// message and the numbers that make its type are at fixed places. What the
// numbers mean is for the author of the file to know.
type frames struct {
	length    place
	types     [2][]place
	prefix    [2]string
	fields    []place
	ids       [2]*place          // of requests and answers; nil: answers do not tell
	requested asked[uint64]      // requests by id
	first     [2][]opener        // messages that come before the others
	begins    [2]bool            // none of the others was read yet
	least     int64              // no message is shorter
	seen      [2]map[string]bool // types there were, to find the next message after a loss
	name      []byte             // of a type, while it is looked up
}

// place is a model.Place that was checked.
type place struct {
	model.Place
	name string
	mask uint64
}

// end is the number of bytes that a message needs to have it.
func (p place) end() int { return p.At + p.Size }

// in says whether the message has it. A text may end with the message.
func (p place) in(b []byte) bool { return p.end() <= len(b) || p.As == "text" && p.At < len(b) }

func newPlace(name string, m model.Place) (place, error) {
	p := place{Place: m, name: name}
	p.Size, p.mask = max(p.Size, 1), ^uint64(0)
	if p.As == "" {
		p.As = "number"
	}
	most := 8
	if p.As != "number" {
		most = framesText
	}
	switch {
	case p.Order != "" && p.Order != "big" && p.Order != "little":
		return p, fmt.Errorf("%s: unknown order %q: use big or little", name, p.Order)
	case p.As != "number" && p.As != "hex" && p.As != "text":
		return p, fmt.Errorf("%s: unknown as %q: use number, hex or text", name, p.As)
	case p.Size > most:
		return p, fmt.Errorf("%s: a %s has %d bytes at most, not %d", name, p.As, most, p.Size)
	case p.end() > framesEnd:
		return p, fmt.Errorf("%s: want a place within the first %d bytes of a message", name, framesEnd)
	case p.Mask != "" && p.As != "number":
		return p, fmt.Errorf("%s: mask goes with a number", name)
	case p.Mask != "":
		var err error
		if p.mask, err = strconv.ParseUint(p.Mask, 0, 64); err != nil || p.mask == 0 {
			return p, fmt.Errorf("%s: mask %q: want the bits that count, such as 0x1c", name, p.Mask)
		}
	}
	return p, nil
}

// number reads the place; b is long enough.
func (p place) number(b []byte) uint64 {
	b = b[p.At:p.end()]
	var n uint64
	for i := range b {
		if p.Order == "little" {
			n |= uint64(b[i]) << (8 * i)
		} else {
			n = n<<8 | uint64(b[i])
		}
	}
	return n & p.mask >> bits.TrailingZeros64(p.mask)
}

func (p place) text(b []byte) string {
	switch p.As {
	case "hex":
		return hex.EncodeToString(b[p.At:p.end()])
	case "text": // size bytes at most
		return strings.TrimRight(strings.ToValidUTF8(string(b[p.At:min(p.end(), len(b))]), "?"), "\x00 ")
	}
	return strconv.FormatUint(p.number(b), 10)
}

// newFrames checks what a target file says of its frames.
func newFrames(p model.Protocol) (*frames, error) {
	m := p.Frames
	if m == nil {
		return nil, fmt.Errorf("dissector %s needs to know where a message has its length and its type: write frames: {length: {at: 0, size: 4, plus: 4}, type: [{at: 4}]}", NameFrames)
	}
	f := &frames{prefix: [2]string{"frame", "frame"}, seen: [2]map[string]bool{{}, {}}, begins: [2]bool{true, true}}
	var errs []error
	add := func(name string, m model.Place) place {
		q, err := newPlace("frames."+name, m)
		errs = append(errs, err)
		return q
	}
	list := func(name string, all []model.Place) (out []place) {
		for i, q := range all {
			if q.As != "" && q.As != "number" {
				errs = append(errs, fmt.Errorf("frames.%s: as goes with fields", name))
			}
			out = append(out, add(fmt.Sprintf("%s[%d]", name, i), q))
		}
		return out
	}
	switch {
	case p.Transport == "udp" && m.Length != nil:
		errs = append(errs, errors.New("frames.length: a datagram is one message: leave it out"))
	case p.Transport != "udp" && m.Length == nil:
		errs = append(errs, errors.New("frames.length is missing: give the place of a message's length, or use dissector fallback if messages have none"))
	case m.Length != nil:
		f.length = add("length", *m.Length)
		f.least = int64(f.length.end())
		if f.length.As != "number" {
			errs = append(errs, errors.New("frames.length: want a number"))
		}
	}
	f.types[0] = list("type", m.Type)
	f.types[1] = f.types[0]
	if m.Answer != nil || m.Correlation != nil {
		f.types[1], f.prefix[1] = nil, "frame answer"
	}
	if m.Answer != nil {
		f.types[1] = list("answer", *m.Answer)
	}
	if c := m.Correlation; c != nil {
		if p.Transport == "udp" {
			errs = append(errs, errors.New("frames.correlation: connections have it, datagrams not: leave it out"))
		}
		for dir, m := range []model.Place{c.Request, c.Answer} {
			name := []string{"correlation.request", "correlation.answer"}[dir]
			if m.As != "" && m.As != "number" {
				errs = append(errs, fmt.Errorf("frames.%s: as goes with fields", name))
			}
			q := add(name, m)
			f.ids[dir] = &q
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		q := add("fields."+name, m.Fields[name])
		q.name = name
		f.fields = append(f.fields, q)
	}
	for i, q := range m.First {
		one, err := newFirst(fmt.Sprintf("first[%d]", i), q, p.Transport)
		errs = append(errs, err)
		dir := 0
		if q.Answer {
			dir = 1
		}
		errs = append(errs, one.behind(i, f.first[dir]))
		f.first[dir] = append(f.first[dir], one)
	}
	return f, errors.Join(errs...)
}

func (f *frames) size(dir int, b []byte) int64 {
	if f.begins[dir] {
		if one, more := f.opening(dir, b); more {
			return 0
		} else if one != nil {
			return one.size(b)
		}
	}
	return f.usual(b)
}

// usual is the size of a message as length tells it.
func (f *frames) usual(b []byte) int64 {
	if len(b) < f.length.end() {
		return 0
	}
	n := f.length.number(b)
	if n > framesLong || int64(n)+int64(f.length.Plus) < f.least {
		return -1
	}
	return int64(n) + int64(f.length.Plus)
}

// starts believes several messages in a row whose types were there before, or
// one that such a one follows where no more fit into what is looked at: a length
// by itself is any number.
func (f *frames) starts(dir int, b []byte) (ok, more bool) {
	f.begins[dir] = false // what is looked for is not at the beginning
	at := 0
	for k := range framesChain {
		n := f.usual(b[at:])
		if n < 0 {
			return false, false
		}
		end := at + f.head(dir) // of what tells the type
		if n > 0 {
			end = at + int(min(n, int64(f.head(dir))))
		}
		if end > frameLook {
			return k > 0 && len(f.seen[dir]) > 0, false
		}
		if end > len(b) {
			return false, true
		}
		if n := len(f.seen[dir]); n > 0 && n < vocabularyMost {
			f.name = f.typed(f.name[:0], dir, b[at:end])
			if !f.seen[dir][string(f.name)] {
				return false, false
			}
		}
		if int64(at)+n > frameLook {
			return k > 0 && len(f.seen[dir]) > 0, false
		}
		if at += int(n); at > len(b) {
			return false, true
		}
	}
	return true, false
}

// head is how many bytes tell length and type of every message.
func (f *frames) head(dir int) int {
	n := f.length.end()
	for _, p := range f.types[dir] {
		n = max(n, p.end())
	}
	if id := f.ids[1]; id != nil && dir == 1 {
		n = max(n, id.end())
	}
	return n
}

func (f *frames) read(dir int, h frameHead) []Unit {
	if f.begins[dir] {
		if one, _ := f.opening(dir, h.b); one != nil {
			return []Unit{{Type: f.prefix[dir] + " " + one.name}}
		}
		f.begins[dir] = false
	}
	u := f.unit(dir, h.b)
	if id := f.ids[0]; id != nil && dir == 0 && id.in(h.b) {
		f.requested.put(id.number(h.b), u.Type[len(f.prefix[0]):])
	}
	if h.total > 0 && len(f.seen[dir]) < vocabularyMost {
		f.seen[dir][u.Type] = true
	}
	return []Unit{u}
}

// typed appends the type of a message; prefix is the part of it that no byte
// changes. A search does this at every byte: it makes no garbage.
func (f *frames) typed(to []byte, dir int, b []byte) []byte {
	to = append(to, f.prefix[dir]...)
	if id := f.ids[1]; id != nil && dir == 1 && id.in(b) {
		to = append(to, f.requested.get(id.number(b))...)
	}
	for _, p := range f.types[dir] {
		if p.end() > len(b) {
			break
		}
		to = strconv.AppendUint(append(to, " 0x"...), p.number(b), 16)
	}
	return to
}

func (f *frames) unit(dir int, b []byte) Unit {
	f.name = f.typed(f.name[:0], dir, b)
	u := Unit{Type: string(f.name), Broad: f.prefix[dir]}
	for _, p := range f.fields {
		if p.in(b) {
			u.Fields = append(u.Fields, model.Field{Name: p.name, Value: p.text(b)})
		}
	}
	return u
}

func (f *frames) datagram(dir int, b []byte) Unit {
	u := f.unit(dir, b)
	u.Bytes = len(b)
	return u
}
