package classify

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"netsplit/model"
)

const (
	pbDepth  = 12      // nested messages read
	pbFields = 128     // fields shown of a message
	pbValue  = 256     // longest text or list of numbers shown
	pbLine   = 2 << 10 // longest line about one element of a list
	pbText   = 8 << 10 // longest list of lines
	pbList   = 64      // elements of a list inside a line
	pbBytes  = 16      // longest binary value shown
)

// pbType is a protobuf message or enumeration of a table.
type pbType struct {
	name   string
	fields []pbField          // message, ascending by number
	names  map[uint64]string  // enumeration
	short  pbShort            // message: how to show it in one word, or nil
	whole  bool               // short says all
	said   []protowire.Number // fields that short says
}

// pbField is a field of a message.
type pbField struct {
	num      protowire.Number
	name     string
	kind     string  // scalar type as in a .proto file; "" for a typ
	typ      *pbType // message or enumeration
	repeated bool
	hidden   bool                               // not shown
	show     func(os []pbOcc, more bool) string // of a list that says more than its numbers, or nil
}

// pbShort shows a message in one word; "" if it cannot.
type pbShort func(pbMessage) string

// pbMessage is a decoded message: what was on the wire, by field.
type pbMessage struct {
	t    *pbType
	occs []pbOcc // in wire order
	cut  bool    // bytes are missing at its end, or make no sense from there on
}

// pbOcc is one occurrence of a field; a packed list is one per element.
type pbOcc struct {
	f   *pbField
	num uint64 // varint, fixed
	b   []byte // length-delimited
	cut bool   // b is not all of it
}

func (t *pbType) field(num protowire.Number) *pbField {
	i, ok := slices.BinarySearchFunc(t.fields, num, func(f pbField, n protowire.Number) int { return cmp.Compare(f.num, n) })
	if !ok {
		return nil
	}
	return &t.fields[i]
}

func (f *pbField) isMessage() bool { return f.typ != nil && f.typ.names == nil }

// wire is the wire type a field's values have outside a packed list.
func (f *pbField) wire() protowire.Type {
	switch f.kind {
	case "fixed64", "sfixed64", "double":
		return protowire.Fixed64Type
	case "fixed32", "sfixed32", "float":
		return protowire.Fixed32Type
	case "string", "bytes":
		return protowire.BytesType
	}
	if f.isMessage() {
		return protowire.BytesType
	}
	return protowire.VarintType
}

// decode reads a message. Fields the table does not know, and those of another
// wire type than it says, are passed over. more says that b is only the start
// of the message.
func (t *pbType) decode(b []byte, more bool) pbMessage {
	m := pbMessage{t: t, cut: more}
	for len(b) > 0 {
		num, wt, n := protowire.ConsumeTag(b)
		if n < 0 {
			m.cut = true
			return m
		}
		b = b[n:]
		f := t.field(num)
		if wt == protowire.BytesType {
			size, n := protowire.ConsumeVarint(b)
			if n < 0 {
				m.cut = true
				return m
			}
			b = b[n:]
			cut := size > uint64(len(b))
			v := b[:min(size, uint64(len(b)))]
			b = b[len(v):]
			switch {
			case f == nil:
			case f.wire() == wt:
				m.occs = append(m.occs, pbOcc{f: f, b: v, cut: cut})
			default:
				m.packed(f, v)
			}
			if cut {
				m.cut = true
				return m
			}
			continue
		}
		o := pbOcc{f: f}
		switch wt {
		case protowire.VarintType:
			o.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			o.num, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			o.num = uint64(x)
		default:
			n = protowire.ConsumeFieldValue(num, wt, b)
		}
		if n < 0 {
			m.cut = true
			return m
		}
		b = b[n:]
		if f != nil && f.wire() == wt {
			m.occs = append(m.occs, o)
		}
	}
	return m
}

// packed reads a packed list of numbers.
func (m *pbMessage) packed(f *pbField, b []byte) {
	for len(b) > 0 {
		o, n := pbOcc{f: f}, 0
		switch f.wire() {
		case protowire.Fixed64Type:
			o.num, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			o.num = uint64(x)
		default:
			o.num, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return
		}
		b = b[n:]
		m.occs = append(m.occs, o)
	}
}

// last is the occurrence of a field that counts: the last one.
func (m pbMessage) last(num protowire.Number) (pbOcc, bool) {
	for i := len(m.occs) - 1; i >= 0; i-- {
		if m.occs[i].f.num == num {
			return m.occs[i], true
		}
	}
	return pbOcc{}, false
}

func (m pbMessage) num(num protowire.Number) uint64 { o, _ := m.last(num); return o.num }
func (m pbMessage) text(num protowire.Number) string {
	o, ok := m.last(num)
	if !ok {
		return ""
	}
	return o.f.scalar(o)
}

func (m pbMessage) sub(num protowire.Number) (pbMessage, bool) {
	o, ok := m.last(num)
	if !ok || !o.f.isMessage() {
		return pbMessage{}, false
	}
	return o.f.typ.decode(o.b, o.cut), true
}

// scalar shows a value that is no message.
func (f *pbField) scalar(o pbOcc) string {
	if f.typ != nil { // enumeration
		if name, ok := f.typ.names[o.num]; ok {
			return name
		}
		return strconv.FormatUint(o.num, 10)
	}
	switch f.kind {
	case "string":
		return pbString(o.b)
	case "bytes":
		if o.cut || len(o.b) > pbBytes && !plain(o.b) {
			return strconv.Itoa(len(o.b)) + " bytes"
		}
		if plain(o.b) {
			return pbString(o.b)
		}
		return hex.EncodeToString(o.b)
	case "bool":
		return strconv.FormatBool(o.num != 0)
	case "int32", "int64", "sfixed64":
		return strconv.FormatInt(int64(o.num), 10)
	case "sint32", "sint64":
		return strconv.FormatInt(protowire.DecodeZigZag(o.num), 10)
	case "sfixed32":
		return strconv.FormatInt(int64(int32(o.num)), 10)
	case "double":
		return strconv.FormatFloat(math.Float64frombits(o.num), 'g', -1, 64)
	case "float":
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(o.num))), 'g', -1, 32)
	}
	// Java has no unsigned numbers: what is declared so holds negative ones too.
	if f.kind == "uint32" && o.num>>31 == 1 || f.kind == "fixed32" {
		return strconv.FormatInt(int64(int32(o.num)), 10)
	}
	return strconv.FormatInt(int64(o.num), 10)
}

// pbString shows a text, cut and with what cannot be shown replaced.
func pbString(b []byte) string {
	s := cut(string(b[:min(len(b), pbValue+1)]), pbValue)
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plain reports whether b is a text without control characters.
func plain(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	return !slices.ContainsFunc([]rune(string(b)), unicode.IsControl)
}

// pbFieldsOf shows a message as fields, in the order of the field numbers:
//
//   - a number, text or enumeration under its path, such as
//     registration.datanodeID.hostName;
//   - a message that has a short form under its own path, and its parts
//     behind it, in a list only those the short form does not say;
//   - a list of numbers or texts with commas between;
//   - a list of messages as a text with one line per element: its identity (its
//     short form, or that of its first field) and then path=value each.
//
// A field that is not on the wire is left out, also if it has a default, and
// so are empty texts and hidden fields.
func pbFieldsOf(m pbMessage) []model.Field {
	var out []model.Field
	m.each("", 0, false, func(name string, f *pbField, os []pbOcc, cut bool) bool {
		v := ""
		switch {
		case f.repeated && f.isMessage():
			v = lines(f, os, cut)
		case f.repeated:
			v = list(f, os, cut)
		case f.isMessage():
			v = short(os[len(os)-1])
		default:
			v = f.scalar(os[len(os)-1])
		}
		if v != "" {
			out = append(out, model.Field{Name: name, Value: v})
		}
		return len(out) < pbFields
	})
	return out
}

// each calls do for every field with its occurrences, and for those of
// embedded messages behind it, until do returns false. cut says that more of
// the field may be missing. brief leaves out what short forms say.
func (m pbMessage) each(prefix string, depth int, brief bool, do func(path string, f *pbField, os []pbOcc, cut bool) bool) bool {
	byField, order := m.occs, func(a, b pbOcc) int { return cmp.Compare(a.f.num, b.f.num) }
	if !slices.IsSortedFunc(byField, order) {
		byField = slices.Clone(m.occs)
		slices.SortStableFunc(byField, order)
	}
	for i := 0; i < len(byField); {
		f, j := byField[i].f, i+1
		for j < len(byField) && byField[j].f == f {
			j++
		}
		os := byField[i:j]
		i = j
		cut := m.cut && f == m.occs[len(m.occs)-1].f
		if f.hidden || brief && slices.Contains(m.t.said, f.num) {
			continue
		}
		if !do(prefix+f.name, f, os, cut) {
			return false
		}
		if !f.isMessage() || f.repeated || depth == pbDepth {
			continue
		}
		sub := f.typ.decode(os[len(os)-1].b, os[len(os)-1].cut)
		if f.typ.whole {
			continue
		}
		if !sub.each(prefix+f.name+".", depth+1, brief, do) {
			return false
		}
	}
	return true
}

// short is the short form of an embedded message, "" if it has none.
func short(o pbOcc) string {
	if o.f.typ.short == nil {
		return ""
	}
	return o.f.typ.short(o.f.typ.decode(o.b, o.cut))
}

// list shows a repeated number, text or enumeration.
func list(f *pbField, os []pbOcc, more bool) string {
	if f.show != nil {
		return f.show(os, more)
	}
	var b strings.Builder
	for i, o := range os {
		v := f.scalar(o)
		if i > 0 && b.Len()+len(v) > pbValue || i == pbList {
			more = true
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(v)
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
}

// lines shows a repeated message, one line each.
func lines(f *pbField, os []pbOcc, more bool) string {
	var b strings.Builder
	for _, o := range os {
		line := element(f.typ.decode(o.b, o.cut), short(o), 0)
		if b.Len()+len(line)+1 > pbText {
			more = true
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
}

// element shows a message on one line that starts with its identity.
func element(m pbMessage, id string, depth int) string {
	var words []string
	if id != "" {
		words = append(words, id)
	}
	size := len(id)
	if id != "" && m.t.whole || depth > pbDepth {
		return id
	}
	m.each("", depth, true, func(name string, f *pbField, os []pbOcc, more bool) bool {
		v := ""
		switch {
		case f.repeated && f.isMessage():
			v = inner(os, more, depth)
		case f.repeated:
			if v = list(f, os, more); v == "" {
				return true
			}
			v = quoted(v)
		case f.isMessage():
			if v = short(os[len(os)-1]); v == "" || v == id {
				return true
			}
			if len(words) == 0 && f.num == 1 { // the first part is the identity
				words, size = append(words, v), size+len(v)
				return true
			}
		default:
			v = f.scalar(os[len(os)-1])
			if v == "" {
				return true
			}
			v = quoted(v)
		}
		words = append(words, name+"="+v)
		size += len(name) + len(v) + 2
		return size < pbLine
	})
	s := strings.Join(words, " ")
	if len(s) > pbLine {
		return strings.ToValidUTF8(s[:pbLine], "") + "…"
	}
	return s
}

// inner shows a list of messages inside a line: short forms with commas
// between, or {path=value ...}.
func inner(os []pbOcc, more bool, depth int) string {
	var b strings.Builder
	for i, o := range os {
		if b.Len() > pbLine || i == pbList {
			more = true
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if s := short(o); s != "" {
			b.WriteString(s)
			continue
		}
		b.WriteString("{" + element(o.f.typ.decode(o.b, o.cut), "", depth+1) + "}")
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
}

// quoted keeps a value one word of its line.
func quoted(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' }) {
		return strconv.Quote(s)
	}
	return s
}
