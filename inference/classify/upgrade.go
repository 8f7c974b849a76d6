package classify

import "encoding/binary"

// upgrading reads a framed protocol that may go on in TLS between two messages,
// when one side has asked for it (PostgreSQL's SSLRequest, MySQL's, STARTTLS).
type upgrading struct {
	framed
	tls tls
	on  [2]bool
}

// helloLook is how many bytes tell a hello: the header of a record, and of it the
// message, its length and its version.
const helloLook = tlsHeader + 6

// tlsRequested tells the first record of a side: a ClientHello, or a ServerHello (RFC
// 8446 §4.1.2, §4.1.3, §5.1). It is stricter than tlsHello, since messages of
// another protocol are expected in its place.
func tlsRequested(dir int, b []byte) verdict {
	is := func(i int, c byte) bool { return len(b) <= i || b[i] == c }
	switch {
	case !is(0, tlsHandshake) || !tlsRecord(b) || !is(tlsHeader, byte(1+dir)) || !is(tlsHeader+1, 0):
		return no
	case len(b) < helloLook:
		return maybe
	}
	record, message := binary.BigEndian.Uint16(b[3:]), binary.BigEndian.Uint16(b[7:])
	if b[9] != 3 || b[10] > 4 || int(message)+4 > int(record) {
		return no
	}
	return yes
}

func (u *upgrading) size(dir int, b []byte) int64 {
	if !u.on[dir] {
		switch tlsRequested(dir, b) {
		case maybe:
			return 0
		case yes:
			u.on[dir] = true
		}
	}
	if u.on[dir] {
		return u.tls.size(dir, b)
	}
	return u.framed.size(dir, b)
}

func (u *upgrading) starts(dir int, b []byte) (ok, more bool) {
	if u.on[dir] {
		return u.tls.starts(dir, b)
	}
	return u.framed.starts(dir, b)
}

func (u *upgrading) read(dir int, h frameHead) []Unit {
	if u.on[dir] {
		return u.tls.read(dir, h)
	}
	return u.framed.read(dir, h)
}
