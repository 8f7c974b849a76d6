package classify

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// pbTable holds message types and the methods of RPC protocols.
type pbTable struct {
	types   map[string]*pbType
	methods map[string][]pbMethod // by name
}

// pbMethod is one method of one protocol.
type pbMethod struct {
	protocol string // as it is on the wire
	in, out  *pbType
}

// parsePBTable reads a table of lines
//
//	P PROTOCOL;METHOD INPUT OUTPUT;...
//	M MESSAGE;NUMBER NAME TYPE;...     TYPE* is a list
//	E ENUM;NUMBER NAME;...
//
// and '#' comments. It panics on anything else: the table is part of the
// program.
func parsePBTable(text string) *pbTable {
	t := &pbTable{types: map[string]*pbType{}, methods: map[string][]pbMethod{}}
	get := func(name string) *pbType {
		p := t.types[name]
		if p == nil {
			p = &pbType{name: name}
			t.types[name] = p
		}
		return p
	}
	bad := func(line string) { panic(fmt.Sprintf("protobuf table: %.80q", line)) }
	number := func(s, line string) uint64 {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			bad(line)
		}
		return uint64(n)
	}
	defined := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		head, rest, _ := strings.Cut(line, ";")
		kind, name, ok := strings.Cut(head, " ")
		if !ok {
			bad(line)
		}
		p := (*pbType)(nil)
		switch kind {
		case "P":
		case "E":
			p = get(name)
			p.names = map[uint64]string{}
			defined[name] = true
		case "M":
			p = get(name)
			defined[name] = true
		default:
			bad(line)
		}
		for rest != "" {
			var item string
			item, rest, _ = strings.Cut(rest, ";")
			a, b, _ := strings.Cut(item, " ")
			switch kind {
			case "P":
				in, out, _ := strings.Cut(b, " ")
				t.methods[a] = append(t.methods[a], pbMethod{name, get(in), get(out)})
			case "E":
				p.names[number(a, line)] = b
			case "M":
				fname, ftype, _ := strings.Cut(b, " ")
				f := pbField{num: protowire.Number(number(a, line)), name: fname}
				ftype, f.repeated = strings.CutSuffix(ftype, "*")
				if strings.ContainsAny(ftype, ".") {
					f.typ = get(ftype)
				} else {
					f.kind = ftype
				}
				p.fields = append(p.fields, f)
			}
		}
	}
	for name := range t.types {
		if !defined[name] {
			bad(name + " is used and not defined")
		}
	}
	return t
}

// method finds a method by its name and the name of its protocol. A protocol
// the table does not know, such as one that extends another, has the methods
// of the same name elsewhere.
func (t *pbTable) method(protocol, name string) (pbMethod, bool) {
	ms := t.methods[name]
	for _, m := range ms {
		if m.protocol == protocol {
			return m, true
		}
	}
	if len(ms) == 0 {
		return pbMethod{}, false
	}
	return ms[0], true
}

// ambiguous reports whether protocols have methods of this name that take
// different things.
func (t *pbTable) ambiguous(name string) bool {
	ms := t.methods[name]
	for _, m := range ms {
		if m.in != ms[0].in {
			return true
		}
	}
	return false
}
