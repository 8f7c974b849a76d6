package of13

import "fmt"

// PacketInReason says why a packet came to the controller (7.4.1).
type PacketInReason uint8

// Reasons.
const (
	ReasonNoMatch    PacketInReason = 0 // table-miss rule
	ReasonAction     PacketInReason = 1 // any other rule's output
	ReasonInvalidTTL PacketInReason = 2
)

// String names the reason.
func (r PacketInReason) String() string {
	return nameOf([]string{"NO_MATCH", "ACTION", "INVALID_TTL"}, r, "REASON")
}

// PacketIn carries a packet to the controller (7.4.1).
type PacketIn struct {
	BufferID uint32 // NoBuffer if the packet is all here
	TotalLen uint16 // bytes of the whole packet
	Reason   PacketInReason
	TableID  TableID
	Cookie   uint64 // of the rule that sent it; all ones if none did
	// OXMs is the encoded match without type, length and padding: the packet's
	// pipeline fields, in_port first of all. Read it with InPort and Match.
	OXMs []byte
	Data []byte // the packet from its destination MAC on
}

// packetInFixed is the size up to the match, header included.
const packetInFixed = 24

// Decode reads a whole packet-in message, header included, into p without
// allocating: OXMs and Data are views into b. Error: a [*ParseError]. p is
// unchanged if there is one.
func (p *PacketIn) Decode(b []byte) (xid uint32, err error) {
	if len(b) < HeaderLen || b[1] != byte(TypePacketIn) || b[0] != Version || int(be.Uint16(b[2:])) != len(b) {
		// Not one whole packet-in: the general parser says what is wrong.
		m, xid, err := parse(b, nil)
		if err == nil {
			err = parseErrorf(ErrTypeBadRequest, BadRequestBadType, 1, "%v where PACKET_IN is expected", m.MsgType())
		}
		return xid, err
	}
	xid = be.Uint32(b[4:])
	if _, perr := p.decode(b[HeaderLen:], HeaderLen); perr != nil {
		perr.Err = fmt.Errorf("%v: %w", TypePacketIn, perr.Err)
		return xid, perr
	}
	return xid, nil
}

// decode reads the body b, which begins off bytes into the message. It
// returns the length of the match's padding.
func (p *PacketIn) decode(b []byte, off int) (padding int, err *ParseError) {
	const matchAt = packetInFixed - HeaderLen
	if len(b) < matchAt+8+2 {
		return 0, parseErrorf(ErrTypeBadRequest, BadRequestBadLen, off,
			"%d bytes where at least %d are needed", len(b), matchAt+8+2)
	}
	if t := be.Uint16(b[matchAt:]); t != matchTypeOXM {
		return 0, parseErrorf(ErrTypeBadMatch, BadMatchBadType, off+matchAt, "match type %d: want %d", t, matchTypeOXM)
	}
	n := int(be.Uint16(b[matchAt+2:]))
	padding = pad8(n)
	if n < 4 || matchAt+n+padding+2 > len(b) {
		return 0, parseErrorf(ErrTypeBadMatch, BadMatchBadLen, off+matchAt+2,
			"match of %d bytes in a message with %d left", n, len(b)-matchAt)
	}
	oxms := b[matchAt+4 : matchAt+n : matchAt+n]
	for i := 0; i < len(oxms); {
		if len(oxms)-i < 4 || len(oxms)-i-4 < int(oxms[i+3]) {
			return 0, parseErrorf(ErrTypeBadMatch, BadMatchBadLen, off+matchAt+4+i, "match field is cut off")
		}
		i += 4 + int(oxms[i+3])
	}
	p.BufferID, p.TotalLen, p.Reason, p.TableID = be.Uint32(b), be.Uint16(b[4:]), PacketInReason(b[6]), TableID(b[7])
	p.Cookie = be.Uint64(b[8:])
	p.OXMs = oxms
	p.Data = b[matchAt+n+padding+2:]
	return padding, nil
}

// InPort is the port on which the packet came in, found without allocating.
func (p *PacketIn) InPort() (PortNo, bool) {
	v, ok := p.basic(FieldInPort, 4)
	if !ok {
		return 0, false
	}
	return PortNo(be.Uint32(v)), true
}

// basic finds the value of an unmasked field of the basic class.
func (p *PacketIn) basic(f Field, size int) ([]byte, bool) {
	for b := p.OXMs; len(b) >= 4; {
		n := 4 + int(b[3])
		if n > len(b) {
			break
		}
		if be.Uint16(b) == uint16(ClassBasic) && b[2] == byte(f)<<1 && n == 4+size {
			return b[4:n], true
		}
		b = b[n:]
	}
	return nil, false
}

// Match decodes OXMs; the result is a copy.
func (p *PacketIn) Match() (Match, error) { return ParseOXMs(p.OXMs) }

// SetMatch stores the encoded match in OXMs.
func (p *PacketIn) SetMatch(m Match) (err error) {
	p.OXMs, err = AppendOXMs(nil, m)
	return err
}

// String is a one-line summary without the packet's bytes.
func (p *PacketIn) String() string {
	m, _ := p.Match()
	return fmt.Sprintf("PACKET_IN reason %v table %d cookie 0x%x %v len %d of %d",
		p.Reason, p.TableID, p.Cookie, m, len(p.Data), p.TotalLen)
}

// MsgType is TypePacketIn.
func (p *PacketIn) MsgType() MsgType { return TypePacketIn }

func (p *PacketIn) marshal(b []byte) ([]byte, error) {
	b = be.AppendUint32(b, p.BufferID)
	b = be.AppendUint16(b, p.TotalLen)
	b = append(b, byte(p.Reason), byte(p.TableID))
	b = be.AppendUint64(b, p.Cookie)
	start := len(b)
	b = be.AppendUint16(b, matchTypeOXM)
	b = append(append(b, 0, 0), p.OXMs...)
	n := len(b) - start
	if err := putLen16(b[start+2:], n); err != nil {
		return b, err
	}
	b = appendPad(b, pad8(n)+2)
	return append(b, p.Data...), nil
}

func (p *PacketIn) unmarshal(r *reader) {
	body, off := r.b, r.off
	padding, err := p.decode(body, off)
	if err != nil {
		r.err, r.b = err, nil
		return
	}
	r.take(len(body) - len(p.Data) - padding - 2)
	r.pad(padding + 2)
	p.Data = r.rest()
	if len(p.OXMs) == 0 {
		p.OXMs = nil
	}
}
