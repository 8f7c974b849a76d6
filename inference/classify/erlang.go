package classify

import (
	"encoding/binary"
	"strconv"
	"strings"

	"netsplit/model"
)

// Sizes and numbers of Erlang's distribution (ERTS user's guide, Distribution Protocol, and
// External Term Format, Distribution Header).
const (
	erlMax       = 64 << 20 // longest message believed; longer ones come in fragments of 64 KiB
	erlHandshake = 4 << 10  // longest message of a handshake believed
	erlTags      = "nNscra" // first bytes of a handshake's messages

	erlVersion  = 131 // of a term
	erlHeader   = 68  // behind erlVersion: a distribution header
	erlFragment = 69  // and the first of several fragments
	erlMore     = 70  // any later one
	erlPass     = 112 // a message without a header
	erlAtoms    = 2048
)

// erlang reads what Erlang nodes say to one another. Types:
//
//	erlang handshake name, status, challenge, complement, reply, ack
//	erlang tick
//	erlang OP [NAME] [HEAD]        a control message; NAME is the registered process that it
//	                               is for, HEAD what the message in it begins with
//	erlang fragment                a later part of a long message
//
// HEAD is the atom of a message or the first one of a tuple; call, cast and reply of
// gen_server and its kin stand before that of the request. Fields: op, to (the registered
// name), head, and of Ra's messages (RabbitMQ's quorum queues) those that erlRecords lists;
// of a handshake node, status and creation.
type erlang struct {
	up    [2]bool // the handshake of the direction is over
	atoms [2]*[erlAtoms]string
}

func newErlang() Dissector { return newFramedPair(&erlang{}) }

func (c *erlang) size(dir int, b []byte) int64 {
	if !c.up[dir] {
		if len(b) < 3 {
			return 0
		}
		if n := int64(binary.BigEndian.Uint16(b)); n > 0 && n <= erlHandshake && erlTag(b[2]) {
			return 2 + n
		}
	}
	if len(b) < 4 {
		return 0
	}
	switch n := int64(binary.BigEndian.Uint32(b)); {
	case n == 0:
		return 4
	case n < 3 || n > erlMax:
		return -1
	case len(b) < 5:
		return 0
	case b[4] != erlVersion && b[4] != erlPass:
		return -1
	default:
		return 4 + n
	}
}

func erlTag(t byte) bool {
	for i := range len(erlTags) {
		if t == erlTags[i] {
			return true
		}
	}
	return false
}

// starts takes no tick and no handshake for a start: four zeros, and two small numbers and a
// letter, are anywhere.
func (c *erlang) starts(_ int, b []byte) (ok, more bool) {
	if len(b) < 7 {
		return false, true
	}
	n := binary.BigEndian.Uint32(b)
	switch {
	case n < 8 || n > erlMax:
		return false, false
	case b[4] == erlVersion:
		return b[5] == erlHeader || b[5] == erlFragment || b[5] == erlMore, false
	}
	return b[4] == erlPass && b[5] == erlVersion && b[6] == etfSmallTuple, false
}

func (c *erlang) read(dir int, h frameHead) []Unit {
	if !c.up[dir] && len(h.b) > 2 && int64(binary.BigEndian.Uint16(h.b))+2 == h.total && erlTag(h.b[2]) {
		return []Unit{c.handshake(dir, h.b[2:])}
	}
	c.up[dir] = true
	if h.total == 4 {
		return []Unit{{Type: "erlang tick"}}
	}
	if len(h.b) < 7 {
		return []Unit{{Type: model.TypeUnknown}}
	}
	e := etf{b: h.b[4:]}
	switch e.byte() {
	case erlPass:
		e.version()
		control := e.term(0)
		e.version()
		return []Unit{c.control(&e, control)}
	case erlVersion:
		switch e.byte() {
		case erlMore:
			return []Unit{{Type: "erlang fragment"}}
		case erlFragment:
			e.take(16) // sequence, and how many are to come
			fallthrough
		case erlHeader:
			c.header(dir, &e)
			return []Unit{c.control(&e, e.term(0))}
		}
	}
	return []Unit{{Type: model.TypeUnknown}}
}

// handshake reads a message behind its length. The one who connects sends its name, and a
// reply to the challenge as its last; the other one ends with its acknowledgement.
func (c *erlang) handshake(dir int, b []byte) Unit {
	var u Unit
	add := func(name, value string) {
		u.Fields = append(u.Fields, model.Field{Name: name, Value: cut(strings.ToValidUTF8(value, "\uFFFD"), respText-8)})
	}
	from := func(n int) string { // the text from there on
		if n > len(b) {
			return ""
		}
		return string(b[n:])
	}
	switch b[0] {
	case 's':
		u.Type = "erlang handshake status"
		add("status", from(1))
	case 'c':
		u.Type = "erlang handshake complement"
	case 'r':
		u.Type, c.up[dir] = "erlang handshake reply", true
	case 'a':
		u.Type, c.up[dir] = "erlang handshake ack", true
	case 'N': // flags 8, [challenge 4,] creation 4, length 2, name
		if u.Type = "erlang handshake name"; dir == 1 {
			u.Type = "erlang handshake challenge"
		}
		at := 9 + 4*dir
		if len(b) >= at+6 {
			add("creation", strconv.FormatUint(uint64(binary.BigEndian.Uint32(b[at:])), 10))
			n := int(binary.BigEndian.Uint16(b[at+4:]))
			if name := from(at + 6); len(name) >= n {
				add("node", name[:n])
			}
		}
	case 'n': // version 2, flags 4, [challenge 4,] name
		if u.Type = "erlang handshake name"; dir == 1 {
			u.Type = "erlang handshake challenge"
		}
		add("node", from(7+4*dir))
	}
	return u
}

// header reads a distribution header: which atoms the terms behind it name by number.
func (c *erlang) header(dir int, e *etf) {
	n := int(e.byte())
	if n == 0 {
		return
	}
	if c.atoms[dir] == nil {
		c.atoms[dir] = new([erlAtoms]string)
	}
	flags := e.take(n/2 + 1)
	if e.bad {
		return
	}
	nibble := func(i int) byte { return flags[i/2] >> (4 * (i % 2)) & 0xf }
	long := nibble(n)&1 != 0
	for i := range n {
		at := int(nibble(i)&7)<<8 | int(e.byte())
		if nibble(i)&8 != 0 {
			size := int(e.byte())
			if long {
				size = size<<8 | int(e.byte())
			}
			if text := e.take(size); !e.bad {
				c.atoms[dir][at] = etfAtom(text)
			}
		}
		if e.bad {
			return
		}
		e.atoms = append(e.atoms, c.atoms[dir][at])
	}
}
