package of13

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Version is the version byte of OpenFlow 1.3 (7.1.1).
const Version = 0x04

// HeaderLen is the size of the header in bytes: version 1, type 1, length 2,
// xid 4 (7.1.1).
const HeaderLen = 8

// MaxLen is the largest length a message can have, header included, in bytes.
const MaxLen = 0xffff

// Message is one OpenFlow message without its header; the header's xid is
// handed around beside it. All implementations are pointers of this package.
type Message interface {
	// MsgType is the type byte of the header.
	MsgType() MsgType
	// marshal appends the body, without header.
	marshal(b []byte) ([]byte, error)
	// unmarshal reads the body, all of it.
	unmarshal(r *reader)
}

// Parse reads one whole message, header included, and returns it with its xid.
// The message holds a private copy: b may be reused. An error is a
// [*ParseError]; the xid is then still right if b holds a whole header.
//
// Every version byte is accepted in hello and error, which come before a
// version is agreed (6.3.1); elsewhere it must be 1.3's.
func Parse(b []byte) (Message, uint32, error) {
	return parse(bytes.Clone(b), nil)
}

// parse is Parse without the copy. If pads is not nil, the padding that was
// skipped is added to it.
func parse(b []byte, pads *[]span) (Message, uint32, error) {
	if len(b) < HeaderLen {
		return nil, 0, parseErrorf(ErrTypeBadRequest, BadRequestBadLen, 0,
			"message of %d bytes: a header has %d", len(b), HeaderLen)
	}
	xid := binary.BigEndian.Uint32(b[4:])
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n != len(b) {
		return nil, xid, parseErrorf(ErrTypeBadRequest, BadRequestBadLen, 2,
			"header says %d bytes, message has %d", n, len(b))
	}
	typ := MsgType(b[1])
	m := newMessage(typ)
	switch m := m.(type) {
	case *Hello:
		m.Version = b[0]
	case *Error:
		m.Version = b[0]
	default:
		if b[0] != Version {
			return nil, xid, parseErrorf(ErrTypeBadRequest, BadRequestBadVersion, 0,
				"%v has version byte 0x%02x: this codec reads 0x%02x", typ, b[0], Version)
		}
	}
	if b[0] == 0 {
		return nil, xid, parseErrorf(ErrTypeBadRequest, BadRequestBadVersion, 0, "version byte is 0")
	}
	r := &reader{b: b[HeaderLen:], off: HeaderLen,
		typ: ErrTypeBadRequest, code: BadRequestBadLen, pads: pads}
	m.unmarshal(r)
	r.done()
	if r.err != nil {
		r.err.Err = fmt.Errorf("%v: %w", typ, r.err.Err)
		return nil, xid, r.err
	}
	return m, xid, nil
}

func newMessage(t MsgType) Message {
	switch t {
	case TypeHello:
		return new(Hello)
	case TypeError:
		return new(Error)
	case TypeEchoRequest:
		return new(EchoRequest)
	case TypeEchoReply:
		return new(EchoReply)
	case TypeExperimenter:
		return new(Experimenter)
	case TypeFeaturesRequest:
		return new(FeaturesRequest)
	case TypeFeaturesReply:
		return new(FeaturesReply)
	case TypeGetConfigRequest:
		return new(GetConfigRequest)
	case TypeGetConfigReply:
		return new(GetConfigReply)
	case TypeSetConfig:
		return new(SetConfig)
	case TypePacketIn:
		return new(PacketIn)
	case TypeFlowRemoved:
		return new(FlowRemoved)
	case TypePortStatus:
		return new(PortStatus)
	case TypePacketOut:
		return new(PacketOut)
	case TypeFlowMod:
		return new(FlowMod)
	case TypeMultipartRequest:
		return new(MultipartRequest)
	case TypeMultipartReply:
		return new(MultipartReply)
	case TypeBarrierRequest:
		return new(BarrierRequest)
	case TypeBarrierReply:
		return new(BarrierReply)
	case TypeRoleRequest:
		return new(RoleRequest)
	case TypeRoleReply:
		return new(RoleReply)
	case TypeGetAsyncRequest:
		return new(GetAsyncRequest)
	case TypeGetAsyncReply:
		return new(GetAsyncReply)
	case TypeSetAsync:
		return new(SetAsync)
	case TypeMeterMod:
		return new(MeterMod)
	}
	return &Raw{Type: t}
}

// Append appends the message with the given xid to dst. On error dst comes
// back as it was.
func Append(dst []byte, m Message, xid uint32) ([]byte, error) {
	version := uint8(Version)
	switch m := m.(type) {
	case *Hello:
		version = orVersion(m.Version)
	case *Error:
		version = orVersion(m.Version)
	}
	start := len(dst)
	b := append(dst, version, byte(m.MsgType()), 0, 0)
	b = binary.BigEndian.AppendUint32(b, xid)
	b, err := m.marshal(b)
	if err == nil {
		err = putLen16(b[start+2:], len(b)-start)
	}
	if err != nil {
		return dst, fmt.Errorf("encode %v: %w", m.MsgType(), err)
	}
	return b, nil
}

// orVersion is v, or 1.3's version byte if v is 0.
func orVersion(v uint8) uint8 {
	if v == 0 {
		return Version
	}
	return v
}

// PeekLength returns the length in bytes, header included, that the header at
// the start of hdr states. It needs [HeaderLen] bytes. An error is a
// [*ParseError]: after it the byte stream cannot be framed any more and the
// connection has to be closed.
func PeekLength(hdr []byte) (int, error) {
	if len(hdr) < HeaderLen {
		return 0, parseErrorf(ErrTypeBadRequest, BadRequestBadLen, 0,
			"%d bytes: a header has %d", len(hdr), HeaderLen)
	}
	n := int(binary.BigEndian.Uint16(hdr[2:]))
	if n < HeaderLen {
		return 0, parseErrorf(ErrTypeBadRequest, BadRequestBadLen, 2,
			"header says %d bytes: a header alone has %d", n, HeaderLen)
	}
	return n, nil
}

// ReadFrame reads one whole message from r into buf, which it grows if it is
// too small, and returns the message's bytes; they are valid until buf is used
// again. The error is io.EOF if r ends before the first byte,
// io.ErrUnexpectedEOF if it ends within a message.
func ReadFrame(r io.Reader, buf []byte) ([]byte, error) {
	if cap(buf) < HeaderLen {
		buf = make([]byte, 2048)
	}
	buf = buf[:cap(buf)]
	if _, err := io.ReadFull(r, buf[:HeaderLen]); err != nil {
		return nil, err
	}
	n, err := PeekLength(buf)
	if err != nil {
		return nil, err
	}
	if n > len(buf) {
		big := make([]byte, n)
		copy(big, buf[:HeaderLen])
		buf = big
	}
	if _, err := io.ReadFull(r, buf[HeaderLen:n]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf[:n], nil
}

// Raw is a message of a type that has no struct here, kept byte for byte
// (7.1.1): group-mod, port-mod, table-mod, the two queue messages, and types
// that 1.3 does not have. Append also writes a Raw of a type that has one.
type Raw struct {
	Type MsgType
	Body []byte // everything after the header
}

// MsgType returns m.Type.
func (m *Raw) MsgType() MsgType { return m.Type }

// String is the type and the number of bytes.
func (m *Raw) String() string { return fmt.Sprintf("%v body of %d bytes", m.Type, len(m.Body)) }

func (m *Raw) marshal(b []byte) ([]byte, error) { return append(b, m.Body...), nil }
func (m *Raw) unmarshal(r *reader)              { m.Body = r.rest() }
