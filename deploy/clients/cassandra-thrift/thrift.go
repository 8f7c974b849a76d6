package main

import (
	"context"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"
)

// field is one field of a structure to send: its id in the interface
// definition (cassandra.thrift of the release; the ids are those of the jar's
// org.apache.cassandra.thrift.*$_Fields) and its value, which is a string,
// []byte, int32, int64, bool, structure, map[string]string or a list of
// structures or of []byte.
type field struct {
	id    int16
	value any
}

// structure is a Thrift structure to send.
type structure []field

func (s structure) Write(ctx context.Context, p thrift.TProtocol) error {
	if err := p.WriteStructBegin(ctx, ""); err != nil {
		return err
	}
	for _, f := range s {
		t := typeOf(f.value)
		if t == thrift.STOP {
			return fmt.Errorf("field %d has a value of type %T, which is not written here", f.id, f.value)
		}
		if err := p.WriteFieldBegin(ctx, "", t, f.id); err != nil {
			return err
		}
		if err := write(ctx, p, f.value); err != nil {
			return err
		}
	}
	return p.WriteFieldStop(ctx)
}

// Read implements thrift.TStruct; what is sent is never read.
func (structure) Read(context.Context, thrift.TProtocol) error {
	return fmt.Errorf("arguments are not read")
}

func typeOf(v any) thrift.TType {
	switch v.(type) {
	case string, []byte:
		return thrift.STRING
	case int32:
		return thrift.I32
	case int64:
		return thrift.I64
	case bool:
		return thrift.BOOL
	case structure:
		return thrift.STRUCT
	case []structure, [][]byte:
		return thrift.LIST
	case map[string]string:
		return thrift.MAP
	}
	return thrift.STOP
}

func write(ctx context.Context, p thrift.TProtocol, v any) error {
	switch v := v.(type) {
	case string:
		return p.WriteString(ctx, v)
	case []byte:
		return p.WriteBinary(ctx, v)
	case int32:
		return p.WriteI32(ctx, v)
	case int64:
		return p.WriteI64(ctx, v)
	case bool:
		return p.WriteBool(ctx, v)
	case structure:
		return v.Write(ctx, p)
	case []structure:
		if err := p.WriteListBegin(ctx, thrift.STRUCT, len(v)); err != nil {
			return err
		}
		for _, e := range v {
			if err := e.Write(ctx, p); err != nil {
				return err
			}
		}
		return p.WriteListEnd(ctx)
	case [][]byte:
		if err := p.WriteListBegin(ctx, thrift.STRING, len(v)); err != nil {
			return err
		}
		for _, e := range v {
			if err := p.WriteBinary(ctx, e); err != nil {
				return err
			}
		}
		return p.WriteListEnd(ctx)
	case map[string]string:
		if err := p.WriteMapBegin(ctx, thrift.STRING, thrift.STRING, len(v)); err != nil {
			return err
		}
		for k, e := range v {
			if err := p.WriteString(ctx, k); err != nil {
				return err
			}
			if err := p.WriteString(ctx, e); err != nil {
				return err
			}
		}
		return p.WriteMapEnd(ctx)
	}
	return fmt.Errorf("a value of type %T is not written here", v)
}

// object is a Thrift structure that was received: values by field id. A value
// is a string (also of binaries), int64 (of all integers), float64, bool,
// object, []any or map[string]any.
type object map[int16]any

// answer receives a result structure.
type answer struct{ fields object }

// Write implements thrift.TStruct; answers are never sent.
func (*answer) Write(context.Context, thrift.TProtocol) error {
	return fmt.Errorf("answers are not sent")
}

// Read implements thrift.TStruct.
func (a *answer) Read(ctx context.Context, p thrift.TProtocol) error {
	var err error
	a.fields, err = readObject(ctx, p)
	return err
}

func readObject(ctx context.Context, p thrift.TProtocol) (object, error) {
	out := object{}
	if _, err := p.ReadStructBegin(ctx); err != nil {
		return nil, err
	}
	for {
		_, t, id, err := p.ReadFieldBegin(ctx)
		if err != nil {
			return nil, err
		}
		if t == thrift.STOP {
			return out, p.ReadStructEnd(ctx)
		}
		if out[id], err = readValue(ctx, p, t); err != nil {
			return nil, err
		}
		if err := p.ReadFieldEnd(ctx); err != nil {
			return nil, err
		}
	}
}

func readValue(ctx context.Context, p thrift.TProtocol, t thrift.TType) (any, error) {
	switch t {
	case thrift.STRING:
		b, err := p.ReadBinary(ctx)
		return string(b), err
	case thrift.BOOL:
		return p.ReadBool(ctx)
	case thrift.BYTE:
		v, err := p.ReadByte(ctx)
		return int64(v), err
	case thrift.I16:
		v, err := p.ReadI16(ctx)
		return int64(v), err
	case thrift.I32:
		v, err := p.ReadI32(ctx)
		return int64(v), err
	case thrift.I64:
		return p.ReadI64(ctx)
	case thrift.DOUBLE:
		return p.ReadDouble(ctx)
	case thrift.STRUCT:
		return readObject(ctx, p)
	case thrift.LIST, thrift.SET: // the same on the wire
		e, n, err := p.ReadListBegin(ctx)
		var out []any
		for range n {
			if err != nil {
				break
			}
			var v any
			v, err = readValue(ctx, p, e)
			out = append(out, v)
		}
		return out, err
	case thrift.MAP:
		kt, vt, n, err := p.ReadMapBegin(ctx)
		out := map[string]any{}
		for range n {
			if err != nil {
				break
			}
			var k, v any
			if k, err = readValue(ctx, p, kt); err == nil {
				v, err = readValue(ctx, p, vt)
			}
			out[fmt.Sprint(k)] = v
		}
		return out, err
	}
	return nil, fmt.Errorf("unknown Thrift type %d", t)
}

func (o object) text(id int16) string {
	s, _ := o[id].(string)
	return s
}

func (o object) list(id int16) []any {
	l, _ := o[id].([]any)
	return l
}
