package classify

import (
	"strconv"
	"strings"

	"netsplit/model"
)

// request reads a request and remembers what its response will answer.
func (c *cql) request(d *cqlDir, h cqlHead, op string, r *cassReader, f []model.Field) Unit {
	if h.flags&4 != 0 && h.version >= 4 {
		r.bytesMap()
	}
	label := op
	add := func(name, value string) {
		if value != "" && !r.short {
			f = append(f, model.Field{Name: name, Value: value})
		}
	}
	delete(c.prepares, h.stream)
	switch op {
	case "STARTUP":
		for n := int(r.u16()); n > 0 && !r.short; n-- {
			k, v := r.utf(), r.utf()
			switch k {
			case "COMPRESSION":
				c.compress = strings.ToLower(v)
				add("compression", cut(v, 64))
			case "CQL_VERSION":
				add("cql_version", cut(v, 64))
			}
		}
		if h.version >= 5 {
			d.mode = cqlExpect
		}
	case "QUERY":
		kind, fs := cqlText(r)
		label, f = op+" "+kind, append(f, fs...)
		c.parameters(h, r, &f)
	case "PREPARE":
		kind, fs := cqlText(r)
		label, f = op+" "+kind, append(f, fs...)
		c.prepares[h.stream] = kind
	case "EXECUTE":
		if kind := c.prepared[string(r.bytes(int(r.u16())))]; kind != "" && !r.short {
			label += " " + kind
		}
		if h.version >= 5 {
			r.bytes(int(r.u16())) // id of the result's metadata
		}
		if h.version > 1 {
			c.parameters(h, r, &f)
		}
	case "BATCH":
		label = c.batch(h, r, &f)
	case "REGISTER":
		var kinds []string
		for n := int(r.u16()); n > 0 && !r.short && len(kinds) < 8; n-- {
			kinds = append(kinds, cut(r.utf(), 64))
		}
		add("events", strings.Join(kinds, " "))
	}
	c.pending[h.stream] = label
	return Unit{Type: "cql " + label, Fields: f}
}

func (r *cassReader) bytesMap() {
	for n := int(r.u16()); n > 0 && !r.short; n-- {
		r.utf()
		r.value()
	}
}

// value skips a [bytes] or [value]: negative lengths have none.
func (r *cassReader) value() {
	if n := r.i32(); n > 0 {
		r.bytes(n)
	}
}

func (r *cassReader) longUTF() (s string, whole bool) {
	n := r.i32()
	if r.short || n < 0 {
		return "", false
	}
	if n > r.left() {
		s = string(r.b[r.off:])
		r.off = len(r.b)
		r.short = true
		return s, false
	}
	return string(r.bytes(n)), true
}

// cqlText reads a statement: its kind and fields.
func cqlText(r *cassReader) (kind string, f []model.Field) {
	s, _ := r.longUTF()
	st := cqlStatement(s)
	f = append(f, model.Field{Name: "query", Value: cut(strings.ToValidUTF8(s[:min(len(s), cqlQuery+1)], "\uFFFD"), cqlQuery)})
	if st.keyspace != "" {
		f = append(f, model.Field{Name: "keyspace", Value: cut(st.keyspace, 64)})
	}
	if st.table != "" {
		f = append(f, model.Field{Name: "table", Value: cut(st.table, 64)})
	}
	return st.kind, f
}

// parameters reads consistency and, from version 2 on, the flags and what
// comes before the serial consistency.
func (c *cql) parameters(h cqlHead, r *cassReader, f *[]model.Field) {
	cl := r.u16()
	if r.short {
		return
	}
	*f = append(*f, model.Field{Name: "consistency", Value: cqlConsistency(cl)})
	if h.version < 2 {
		return
	}
	var flags uint32
	if h.version >= 5 {
		flags = r.u32()
	} else {
		flags = uint32(r.u8())
	}
	if flags&0x01 != 0 {
		for n := int(r.u16()); n > 0 && !r.short; n-- {
			if flags&0x40 != 0 {
				r.utf()
			}
			r.value()
		}
	}
	if flags&0x04 != 0 {
		r.u32() // page size
	}
	if flags&0x08 != 0 {
		r.value() // paging state
	}
	c.serial(flags, r, f)
}

func (c *cql) serial(flags uint32, r *cassReader, f *[]model.Field) {
	if flags&0x10 == 0 {
		return
	}
	if cl := r.u16(); !r.short {
		*f = append(*f, model.Field{Name: "serial_consistency", Value: cqlConsistency(cl)})
	}
}

// batch reads a BATCH; its type has the kind of its statements if it is the
// same for all.
func (c *cql) batch(h cqlHead, r *cassReader, f *[]model.Field) string {
	r.u8() // logged, unlogged or counter
	n := int(r.u16())
	kind := ""
	for i := 0; i < n && !r.short; i++ {
		k := ""
		if r.u8() == 0 {
			s, _ := r.longUTF()
			k = cqlStatement(s).kind
		} else {
			k = c.prepared[string(r.bytes(int(r.u16())))]
		}
		switch {
		case i == 0:
			kind = k
		case kind != k:
			kind = "mixed"
		}
		for v := int(r.u16()); v > 0 && !r.short; v-- {
			r.value()
		}
	}
	*f = append(*f, model.Field{Name: "statements", Value: strconv.Itoa(n)})
	if cl := r.u16(); !r.short {
		*f = append(*f, model.Field{Name: "consistency", Value: cqlConsistency(cl)})
	}
	if h.version >= 3 {
		flags := uint32(0)
		if h.version >= 5 {
			flags = r.u32()
		} else {
			flags = uint32(r.u8())
		}
		c.serial(flags, r, f)
	}
	if kind == "" {
		return "BATCH"
	}
	return "BATCH " + kind
}
