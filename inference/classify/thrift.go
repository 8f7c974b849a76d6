package classify

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"netsplit/model"
)

// thrift reads Thrift's binary protocol, framed and not, strict and not, of
// any service, and names arguments and exceptions of Cassandra's
// (thrift-binary-protocol.md and thrift-rpc.md of Apache Thrift; Cassandra's
// port 9160). Types:
//
//	thrift METHOD call
//	thrift METHOD oneway
//	thrift METHOD reply
//	thrift METHOD error NAME    a declared exception, by name for Cassandra's
//	                            methods, else by number
//	thrift METHOD exception     the server could not run the method
//	thrift fragment ..          see below
//
// A method that is neither Cassandra's nor a word is called "other". Without
// frames, a message has no length: it ends where its struct ends; one longer
// than thriftKeep ends where the other side speaks.
//
// Fields: method, seqid; of a call its arguments, by name for Cassandra's
// methods and arg1, arg2, .. for others; consistency levels are spelled out.
// reply has the value of a reply, error the text of an exception. Values are
// written as text: lists as [a b], maps as {k: v}, structs as {1: v}.
type thrift struct {
	*framedPair
}

// Bounds of the thrift dissector.
const (
	thriftKeep  = 32 << 10 // longest message without a frame that is sized by its struct
	thriftValue = 256      // longest argument
	thriftReply = 2 << 10  // longest value of a reply
	thriftDepth = 24       // nesting
	thriftNames = 64       // longest method name
)

func newThrift() Dissector {
	t := &thrift{}
	t.framedPair = newFramedPair(t)
	return t
}

// Data ends the other direction's long message when this one speaks.
func (t *thrift) Data(dir int, off uint64, b []byte, emit func(Unit)) {
	if len(b) > 0 {
		t.d[1-dir].turn(emit)
	}
	t.framedPair.Data(dir, off, b, emit)
}

// thriftHead is the head of a message.
type thriftHead struct {
	framed bool
	name   string
	kind   byte // 1 call, 2 reply, 3 exception, 4 oneway
	seq    int
}

// thriftHeader reads the head of a message, with its frame; ok is false if
// there is none, r.short is set if it is not all there.
func thriftHeader(r *cassReader) (h thriftHead, ok bool) {
	first := r.u32()
	if r.short {
		return h, len(r.b) == 0 || r.b[0] == 0x80 || r.b[0] < 4
	}
	if first>>16 != 0x8001 {
		// A frame, or the length of a name, behind which there is a letter.
		if r.left() == 0 {
			r.short = true
			return h, first > 0 && first < 1<<26
		}
		if c := r.b[r.off]; c == 0x80 || c == 0 {
			h.framed = true
			if first < 9 || first > 1<<26 {
				return h, false
			}
			if first = r.u32(); r.short {
				return h, true
			}
		}
	}
	n := int(first)
	strict := first>>16 == 0x8001
	if strict {
		h.kind = byte(first)
		if n = r.i32(); r.short {
			return h, true
		}
	}
	if n < 1 || n > thriftNames {
		return h, false
	}
	have := r.b[r.off:min(len(r.b), r.off+n)]
	for _, c := range have {
		if !cqlWordByte(c) && c != ':' && c != '.' && c != '-' {
			return h, false
		}
	}
	h.name = string(r.bytes(n))
	if !strict {
		h.kind = r.u8()
	}
	h.seq = r.i32()
	return h, r.short || h.kind >= 1 && h.kind <= 4
}

func (t *thrift) size(_ int, b []byte) int64 {
	r := &cassReader{b: b}
	h, ok := thriftHeader(r)
	switch {
	case !ok:
		return -1
	case r.short:
		return 0
	case h.framed:
		return 4 + int64(binary.BigEndian.Uint32(b))
	}
	r = &cassReader{b: b[:min(len(b), thriftKeep)], off: r.off}
	p := thriftPrinter{r: r}
	p.structure(0)
	switch {
	case p.bad:
		return -1
	case !r.short:
		return int64(r.off)
	case len(b) >= thriftKeep:
		return frameOpen
	}
	return 0
}

func (t *thrift) starts(_ int, b []byte) (ok, more bool) {
	r := &cassReader{b: b}
	h, ok := thriftHeader(r)
	if !ok || r.short {
		return false, ok
	}
	_, known := thriftMethods[h.name]
	return known || isWord(h.name), false
}

func (t *thrift) read(_ int, f frameHead) []Unit {
	r := &cassReader{b: f.b}
	h, ok := thriftHeader(r)
	if !ok || r.short {
		return nil
	}
	m, known := thriftMethods[h.name]
	name := h.name
	if !known && !isWord(name) {
		name = "other"
	}
	u := Unit{Type: "thrift " + name + " " + []string{"call", "reply", "exception", "oneway"}[h.kind-1],
		Fields: []model.Field{{Name: "method", Value: h.name}, {Name: "seqid", Value: strconv.Itoa(h.seq)}}}
	p := thriftPrinter{r: r}
	p.fields(func(id int, value func(limit int) string) {
		switch {
		case h.kind == 1 || h.kind == 4:
			arg := "arg" + strconv.Itoa(id)
			if id >= 1 && id <= len(m.args) {
				arg = m.args[id-1]
			}
			v := value(thriftValue)
			if strings.Contains(arg, "consistency") {
				v = thriftConsistency(v)
			}
			if id >= 0 && id < 16 {
				u.Fields = append(u.Fields, model.Field{Name: arg, Value: v})
			}
		case h.kind == 3:
			if v := value(thriftReply); id == 1 {
				u.Fields = append(u.Fields, model.Field{Name: "error", Value: v})
			}
		case id == 0:
			u.Fields = append(u.Fields, model.Field{Name: "reply", Value: value(thriftReply)})
		default:
			code := "other"
			if id >= 1 && id <= len(m.errors) {
				code = m.errors[id-1]
			} else if id >= 1 && id < 16 {
				code = strconv.Itoa(id)
			}
			u.Type = "thrift " + name + " error " + code
			u.Fields = append(u.Fields, model.Field{Name: "error", Value: value(thriftReply)})
		}
	})
	return []Unit{u}
}

// thriftConsistency names a consistency level (cassandra.thrift,
// ConsistencyLevel).
func thriftConsistency(v string) string {
	names := []string{"", "ONE", "QUORUM", "LOCAL_QUORUM", "EACH_QUORUM", "ALL", "ANY", "TWO", "THREE", "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE"}
	if n, err := strconv.Atoi(v); err == nil && n > 0 && n < len(names) {
		return names[n]
	}
	return v
}

// thriftPrinter reads values. It writes those that are asked for as text.
type thriftPrinter struct {
	r   *cassReader
	bad bool // no struct of the protocol
	out *strings.Builder
	max int
}

func (p *thriftPrinter) ok() bool { return !p.bad && !p.r.short }

// fields calls f for each field of a struct; f may take the value as text of
// at most so many bytes.
func (p *thriftPrinter) fields(f func(id int, value func(limit int) string)) {
	for p.ok() {
		typ := p.r.u8()
		if typ == 0 || p.r.short {
			return
		}
		id := int(int16(p.r.u16()))
		if p.r.short {
			return
		}
		taken := false
		f(id, func(limit int) string {
			taken = true
			p.out, p.max = &strings.Builder{}, limit
			p.value(typ, 0)
			s := p.out.String()
			p.out = nil
			return cut(s, limit)
		})
		if !taken {
			p.value(typ, 0)
		}
	}
}

func (p *thriftPrinter) write(s string) {
	if p.out != nil && p.out.Len() <= p.max {
		p.out.WriteString(s)
	}
}

func (p *thriftPrinter) structure(depth int) {
	p.write("{")
	for i := 0; p.ok(); i++ {
		typ := p.r.u8()
		if typ == 0 || p.r.short {
			break
		}
		id := int(int16(p.r.u16()))
		if i > 0 {
			p.write(" ")
		}
		p.write(strconv.Itoa(id) + ": ")
		p.value(typ, depth+1)
	}
	p.write("}")
}

// value reads a value of a type (thrift-binary-protocol.md, "Struct
// encoding").
func (p *thriftPrinter) value(typ byte, depth int) {
	if depth > thriftDepth {
		p.bad = true
		return
	}
	switch typ {
	case 2:
		p.write(strconv.FormatBool(p.r.u8() != 0))
	case 3:
		p.write(strconv.Itoa(int(int8(p.r.u8()))))
	case 4:
		p.write("(double)")
		p.r.bytes(8)
	case 6:
		p.write(strconv.Itoa(int(int16(p.r.u16()))))
	case 8:
		p.write(strconv.Itoa(p.r.i32()))
	case 10:
		if b := p.r.bytes(8); b != nil {
			p.write(strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10))
		}
	case 11:
		p.text()
	case 12:
		p.structure(depth)
	case 13:
		k, v := p.r.u8(), p.r.u8()
		n := p.count()
		p.write("{")
		for i := 0; i < n && p.ok(); i++ {
			if i > 0 {
				p.write(" ")
			}
			p.value(k, depth+1)
			p.write(": ")
			p.value(v, depth+1)
		}
		p.write("}")
	case 14, 15:
		e := p.r.u8()
		n := p.count()
		p.write("[")
		for i := 0; i < n && p.ok(); i++ {
			if i > 0 {
				p.write(" ")
			}
			p.value(e, depth+1)
		}
		p.write("]")
	default:
		p.bad = true
	}
}

// count reads the number of elements; each takes at least a byte.
func (p *thriftPrinter) count() int {
	n := p.r.i32()
	if n < 0 {
		p.bad = true
		return 0
	}
	return n
}

// text reads a string or binary: as it is if it is text, else by its length.
func (p *thriftPrinter) text() {
	n := p.r.i32()
	if n < 0 {
		p.bad = true
		return
	}
	if b := p.r.bytes(n); b != nil && p.out != nil {
		if s := string(b[:min(n, p.max)]); utf8.ValidString(s) && printable(s) {
			p.write(cassText(s))
		} else {
			p.write("(" + strconv.Itoa(n) + " bytes)")
		}
	}
}
