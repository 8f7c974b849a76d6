package classify

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"netsplit/model"
)

func (c *cql) response(d *cqlDir, h cqlHead, op string, r *cassReader, f []model.Field) Unit {
	if h.flags&2 != 0 {
		r.bytes(16) // tracing id
	}
	if h.flags&8 != 0 && h.version >= 4 {
		for n := int(r.u16()); n > 0 && !r.short; n-- {
			r.utf()
		}
	}
	if h.flags&4 != 0 && h.version >= 4 {
		r.bytesMap()
	}
	if op == "EVENT" {
		return cqlEvent(r, f)
	}
	request, matched := c.pending[h.stream]
	delete(c.pending, h.stream)
	if !matched {
		request = "unmatched"
	} else {
		f = append(f, model.Field{Name: "request", Value: request})
	}
	label := op
	switch op {
	case "READY", "AUTHENTICATE":
		if h.version >= 5 && d.mode == cqlPlain {
			d.mode = cqlExpect
		}
	case "ERROR":
		code, fs := cqlError(r)
		label, f = op+" "+code, append(f, fs...)
	case "RESULT":
		f = append(f, c.result(h, r)...)
	}
	delete(c.prepares, h.stream)
	return Unit{Type: "cql " + label + " " + request, Fields: f}
}

func (c *cql) result(h cqlHead, r *cassReader) []model.Field {
	kind := r.i32()
	if r.short || kind < 1 || kind > 5 {
		return nil
	}
	f := []model.Field{{Name: "result", Value: []string{"void", "rows", "set_keyspace", "prepared", "schema_change"}[kind-1]}}
	switch kind {
	case 3:
		if s := r.utf(); !r.short {
			f = append(f, model.Field{Name: "keyspace", Value: cut(s, 64)})
		}
	case 4:
		id := string(r.bytes(int(r.u16())))
		if k := c.prepares[h.stream]; k != "" && !r.short {
			if len(c.prepared) >= cqlPrepared {
				clear(c.prepared)
			}
			c.prepared[id] = k
		}
	case 5:
		_, fs := cqlSchemaChange(r, h.version)
		f = append(f, fs...)
	}
	return f
}

// cqlError reads the body of an ERROR (native_protocol_v5.spec §8): code,
// message, and what it says about replicas.
func cqlError(r *cassReader) (code string, f []model.Field) {
	n := r.i32()
	msg := r.utf()
	if r.short {
		return "?", nil
	}
	code = cqlErrors[n]
	if code == "" {
		code = "other"
	}
	f = []model.Field{{Name: "code", Value: "0x" + strconv.FormatUint(uint64(uint32(n)), 16)}, {Name: "error", Value: cut(strings.ToValidUTF8(msg, "\uFFFD"), 512)}}
	num := func(name string) {
		if v := r.i32(); !r.short {
			f = append(f, model.Field{Name: name, Value: strconv.Itoa(v)})
		}
	}
	level := func() {
		if cl := r.u16(); !r.short {
			f = append(f, model.Field{Name: "consistency", Value: cqlConsistency(cl)})
		}
	}
	switch code {
	case "UNAVAILABLE":
		level()
		num("required")
		num("alive")
	case "WRITE_TIMEOUT", "READ_TIMEOUT":
		level()
		num("received")
		num("required")
		if code == "WRITE_TIMEOUT" {
			if s := r.utf(); !r.short {
				f = append(f, model.Field{Name: "write_type", Value: cut(s, 64)})
			}
		}
	case "READ_FAILURE", "WRITE_FAILURE":
		level()
		num("received")
		num("required")
	}
	return code, f
}

func cqlEvent(r *cassReader, f []model.Field) Unit {
	kind := r.utf()
	if r.short || !cqlWord(cqlEvents, kind) {
		return Unit{Type: "cql EVENT other", Fields: f}
	}
	typ := "cql EVENT " + kind
	if kind == "SCHEMA_CHANGE" {
		t, fs := cqlSchemaChange(r, 0)
		return Unit{Type: typ + t, Fields: append(f, fs...)}
	}
	change := r.utf()
	if r.short || !cqlWord(cqlChanges, change) {
		return Unit{Type: typ + " other", Fields: f}
	}
	f = append(f, model.Field{Name: "change", Value: change})
	if a := r.inet(); a != "" {
		f = append(f, model.Field{Name: "address", Value: a})
	}
	return Unit{Type: typ + " " + change, Fields: f}
}

// inet is an [inet]: an address without its port, "" if there is none.
func (r *cassReader) inet() string {
	a, ok := netip.AddrFromSlice(r.bytes(int(r.u8())))
	r.u32()
	if !ok || r.short {
		return ""
	}
	return a.String()
}

// cqlSchemaChange reads a schema change: of an event, or of a result. Before
// version 3 there is no target: change, keyspace, table or "".
func cqlSchemaChange(r *cassReader, version int) (typ string, f []model.Field) {
	change := r.utf()
	if r.short || !cqlWord(cqlChanges, change) {
		return " other", nil
	}
	second, third := r.utf(), r.utf()
	f = append(f, model.Field{Name: "change", Value: change})
	if r.short && second == "" {
		return " " + change, f
	}
	if !cqlWord(cqlTargets, second) || version > 0 && version < 3 {
		f = append(f, model.Field{Name: "keyspace", Value: cut(second, 64)})
		if third == "" {
			return " " + change + " KEYSPACE", append(f, model.Field{Name: "target", Value: "KEYSPACE"})
		}
		return " " + change + " TABLE", append(f, model.Field{Name: "target", Value: "TABLE"}, model.Field{Name: "name", Value: cut(third, 64)})
	}
	f = append(f, model.Field{Name: "target", Value: second}, model.Field{Name: "keyspace", Value: cut(third, 64)})
	if second != "KEYSPACE" {
		r.short = false
		if name := r.utf(); !r.short {
			f = append(f, model.Field{Name: "name", Value: cut(name, 64)})
		}
	}
	return " " + change + " " + second, f
}

func cqlWord(list map[string]bool, s string) bool { return list[s] }

func cqlConsistency(n uint16) string {
	if int(n) < len(cqlConsistencies) {
		return cqlConsistencies[n]
	}
	return "0x" + strconv.FormatUint(uint64(binary.BigEndian.Uint16([]byte{byte(n >> 8), byte(n)})), 16)
}
