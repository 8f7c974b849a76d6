package classify

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"netsplit/model"
)

// Kinds and sizes of AMQP frames (AMQP 0-9-1 §4.2.3).
const (
	amqpMethodFrame    = 1
	amqpHeaderFrame    = 2
	amqpBodyFrame      = 3
	amqpHeartbeatFrame = 8
	amqpEnd            = 0xCE

	amqpFrame    = 7        // kind, channel, size
	amqpHead     = 14       // of a content header: class, weight, body size, flags
	amqpMax      = 16 << 20 // longest frame believed; RabbitMQ's frame_max is 128 KiB
	amqpText     = 128      // longest body that is a field
	amqpChannels = 2047     // RabbitMQ's channel_max
)

// amqp reads AMQP 0-9-1 as RabbitMQ speaks it, frame by frame. Types:
//
//	amqp greeting             the protocol header
//	amqp CLASS.METHOD         amqp basic.publish, amqp queue.declare-ok
//	amqp header, amqp body    of the content behind basic.publish, deliver, return and get-ok
//	amqp heartbeat
//
// Fields: channel; the arguments of methods that amqpMethods lists; of a header
// body_size, delivery_mode, message_id and correlation_id; of a body its length,
// and text if it is short and printable. A publish to be confirmed has the delivery_tag by which it
// is: the server counts those of a channel from its confirm.select on (RabbitMQ, Consumer
// Acknowledgements and Publisher Confirms).
type amqp struct {
	published [2]map[uint16]uint64 // by direction and channel: publishes since confirm.select
}

func newAMQP() Dissector {
	return newFramedPair(&amqp{[2]map[uint16]uint64{{}, {}}})
}

func (*amqp) size(_ int, b []byte) int64 {
	switch {
	case b[0] == 'A':
		if len(b) < 8 {
			return 0
		}
		if string(b[:4]) != "AMQP" {
			return -1
		}
		return 8
	case !amqpKind(b[0]):
		return -1
	case len(b) < amqpFrame:
		return 0
	}
	n := int64(binary.BigEndian.Uint32(b[3:]))
	if n > amqpMax {
		return -1
	}
	return amqpFrame + n + 1
}

func amqpKind(k byte) bool {
	return k == amqpMethodFrame || k == amqpHeaderFrame || k == amqpBodyFrame || k == amqpHeartbeatFrame
}

// starts wants what a frame has beside its size: its end, where that is near, and of a
// method or a header its class. What was lost before may have been a publish.
func (c *amqp) starts(dir int, b []byte) (ok, more bool) {
	clear(c.published[dir])
	n := c.size(dir, b)
	switch {
	case n <= 0:
		return false, n == 0
	case b[0] == 'A': // a text may speak of AMQP; ids of protocols go up to 3 (AMQP 1.0 §5.3.2)
		return b[4] <= 3, false
	case binary.BigEndian.Uint16(b[1:]) > amqpChannels:
		return false, false
	case n <= frameLook && int64(len(b)) < n, n > frameLook && len(b) < amqpFrame+4:
		return false, true
	case n <= frameLook && b[n-1] != amqpEnd:
		return false, false
	}
	p := b[amqpFrame:min(int64(len(b)), n-1)]
	switch b[0] {
	case amqpMethodFrame:
		return len(p) >= 4 && amqpMethods[binary.BigEndian.Uint32(p)].name != "", false
	case amqpHeaderFrame:
		return n > amqpFrame+amqpHead && binary.BigEndian.Uint32(p) == amqpBasic<<16, false
	case amqpHeartbeatFrame:
		return n == amqpFrame+1, false
	}
	return n <= frameLook && n > amqpFrame+1, false
}

func (c *amqp) read(dir int, h frameHead) []Unit {
	if h.b[0] == 'A' {
		return []Unit{{Type: "amqp greeting"}}
	}
	if len(h.b) < amqpFrame {
		return []Unit{{Type: model.TypeUnknown}}
	}
	f := amqpReader{b: h.b[amqpFrame:]}
	if h.whole {
		if h.b[len(h.b)-1] != amqpEnd {
			clear(c.published[dir])
			return []Unit{{Type: model.TypeUnknown}}
		}
		f.b = f.b[:len(f.b)-1]
	}
	channel := binary.BigEndian.Uint16(h.b[1:])
	f.add("channel", strconv.Itoa(int(channel)))
	switch h.b[0] {
	case amqpMethodFrame:
		id := uint32(f.uint(4))
		m, known := amqpMethods[id]
		if !known {
			if f.bad {
				delete(c.published[dir], channel)
			}
			return []Unit{{Type: "amqp method", Fields: append(f.fields, model.Field{Name: "method", Value: strconv.Itoa(int(id>>16)) + "." + strconv.Itoa(int(id&0xffff))})}}
		}
		f.arguments(m.args)
		if tag, ok := c.count(dir, channel, m.name); ok {
			f.add("delivery_tag", strconv.FormatUint(tag, 10))
		}
		return []Unit{{Type: "amqp " + m.name, Fields: f.fields}}
	case amqpHeaderFrame:
		f.header()
		return []Unit{{Type: "amqp header", Fields: f.fields}}
	case amqpBodyFrame:
		f.add("length", strconv.FormatInt(h.total-amqpFrame-1, 10))
		if h.whole && len(f.b) <= amqpText && utf8.Valid(f.b) && printable(string(f.b)) {
			f.add("text", string(f.b))
		}
		return []Unit{{Type: "amqp body", Fields: f.fields}}
	}
	return []Unit{{Type: "amqp heartbeat", Fields: f.fields}}
}

// count is the tag of a publish.
func (c *amqp) count(dir int, channel uint16, method string) (tag uint64, ok bool) {
	tag, ok = c.published[dir][channel]
	switch method {
	case "confirm.select":
		c.published[dir][channel] = tag
	case "channel.open", "channel.close", "channel.close-ok":
		delete(c.published[0], channel)
		delete(c.published[1], channel)
	case "basic.publish":
		if ok {
			c.published[dir][channel] = tag + 1
			return tag + 1, true
		}
	}
	return 0, false
}

// amqpReader reads the payload of a frame (§4.2.5). A value that is cut off ends it.
type amqpReader struct {
	b      []byte
	bits   byte // that are left of an octet of bits
	left   int
	bad    bool
	fields []model.Field
}

func (f *amqpReader) add(name, value string) {
	f.fields = append(f.fields, model.Field{Name: name, Value: value})
}

func (f *amqpReader) take(n int) []byte {
	if f.bad || n < 0 || n > len(f.b) {
		f.bad = true
		return nil
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

func (f *amqpReader) uint(n int) (v uint64) {
	for _, c := range f.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (f *amqpReader) bit() bool {
	if f.left == 0 {
		f.bits, f.left = byte(f.uint(1)), 8
	}
	v := f.bits&1 != 0
	f.bits, f.left = f.bits>>1, f.left-1
	return v
}

func (f *amqpReader) short() string { return string(f.take(int(f.uint(1)))) }

// arguments reads those of a method, by its layout in amqpMethods.
func (f *amqpReader) arguments(args []amqpArg) {
	for _, a := range args {
		var v string
		if a.kind != 'b' {
			f.left = 0
		}
		switch a.kind {
		case 'b':
			v = strconv.FormatBool(f.bit())
		case 'o':
			v = strconv.FormatUint(f.uint(1), 10)
		case 'h':
			v = strconv.FormatUint(f.uint(2), 10)
		case 'l':
			v = strconv.FormatUint(f.uint(4), 10)
		case 'L':
			v = strconv.FormatUint(f.uint(8), 10)
		case 's':
			v = f.short()
		case 'S': // and tables
			f.take(int(min(f.uint(4), amqpMax)))
		}
		if f.bad {
			return
		}
		if a.name != "" {
			f.add(a.name, cut(strings.ToValidUTF8(v, "\uFFFD"), respText-8))
		}
	}
}

// header reads the properties of a content (§4.2.6.1, and those of class basic in §1.8).
func (f *amqpReader) header() {
	f.take(4) // class, weight
	if n := f.uint(8); !f.bad {
		f.add("body_size", strconv.FormatUint(n, 10))
	}
	flags := f.uint(2)
	for i, p := range amqpProperties {
		if flags&(1<<(15-i)) != 0 {
			f.arguments([]amqpArg{p})
		}
	}
}
