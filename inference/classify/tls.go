package classify

import (
	"encoding/binary"
	"strings"

	"netsplit/model"
)

const (
	tlsHeader = 5
	tlsMax    = 1<<14 + 2048 // longest record (RFC 5246 §6.2.3)

	sshName = "ssh" // begins the types of SSH, whose packets do not even show their length
)

// Content types of records (RFC 8446 §5.1, RFC 6520 §3).
const (
	tlsChange    = 20
	tlsAlert     = 21
	tlsHandshake = 22
	tlsData      = 23
	tlsHeartbeat = 24
)

// tlsHandshakes are the messages that are sent before anything is encrypted (RFC
// 5246 §7.4 and later).
var tlsHandshakes = map[byte]string{
	0: "hello-request", 1: "client-hello", 2: "server-hello", 4: "new-session-ticket", 11: "certificate",
	12: "server-key-exchange", 13: "certificate-request", 14: "server-hello-done", 15: "certificate-verify",
	16: "client-key-exchange", 22: "certificate-status",
}

// tls reads the records of TLS. What they hold is encrypted: each is a message of
// which nothing but the length is known, and the field encrypted says so. Types:
//
//	tls client-hello, tls server-hello, ...   a handshake, by its first message in the record
//	tls handshake                             of a handshake, not readable
//	tls change-cipher-spec, tls alert, tls heartbeat
//	tls data 2^K                              with its length class
//
// From version 1.3 on most of a handshake is "tls data" as well.
type tls struct{ hidden [2]bool }

// Opaque reports whether messages of a type are encrypted, so that nobody but
// their ends can read them.
func Opaque(typ string) bool {
	return strings.HasPrefix(typ, "tls ") || strings.HasPrefix(typ, sshName+" ")
}

func newTLS() Dissector { return newFramedPair(&tls{}) }

// tlsHello tells the first message of a client: a record with a ClientHello.
func tlsHello(dir int, b []byte) verdict {
	if dir != 0 || len(b) > 0 && b[0] != tlsHandshake || !tlsRecord(b) || len(b) > tlsHeader && b[tlsHeader] != 1 {
		return no
	}
	if len(b) <= tlsHeader {
		return maybe
	}
	return yes
}

// tlsMiddle tells the records of a connection whose start was not seen.
func tlsMiddle(_ int, b []byte) verdict {
	for i := range min(len(b), 3) {
		if b[i] != "\x17\x03\x03"[i] {
			return no
		}
	}
	switch {
	case !tlsRecord(b):
		return no
	case len(b) < tlsHeader:
		return maybe
	}
	return yes
}

// tlsRecord reports whether b can be the start of a record.
func tlsRecord(b []byte) bool {
	switch {
	case len(b) > 0 && (b[0] < tlsChange || b[0] > tlsHeartbeat):
		return false
	case len(b) > 1 && b[1] != 3, len(b) > 2 && b[2] > 4:
		return false
	case len(b) >= tlsHeader && binary.BigEndian.Uint16(b[3:]) > tlsMax:
		return false
	}
	return true
}

func (*tls) size(_ int, b []byte) int64 {
	switch {
	case !tlsRecord(b):
		return -1
	case len(b) < tlsHeader:
		return 0
	}
	return tlsHeader + int64(binary.BigEndian.Uint16(b[3:]))
}

// starts believes no version but those that are in use, and no record without
// contents.
func (*tls) starts(_ int, b []byte) (ok, more bool) {
	switch {
	case !tlsRecord(b) || len(b) > 2 && (b[2] == 0 || b[2] > 3):
		return false, false
	case len(b) < tlsHeader:
		return false, true
	}
	return binary.BigEndian.Uint16(b[3:]) > 0, false
}

func (t *tls) read(dir int, h frameHead) []Unit {
	u := Unit{Type: model.TypeUnknown}
	if len(h.b) < tlsHeader {
		return []Unit{u}
	}
	hidden := t.hidden[dir]
	switch h.b[0] {
	case tlsChange:
		u.Type, t.hidden[dir], hidden = "tls change-cipher-spec", true, false
	case tlsAlert:
		u.Type = "tls alert"
	case tlsHandshake:
		u.Type = "tls handshake"
		if len(h.b) > tlsHeader && !hidden && tlsHandshakes[h.b[tlsHeader]] != "" {
			u.Type = "tls " + tlsHandshakes[h.b[tlsHeader]]
		}
	case tlsData:
		u.Type, hidden = "tls data "+lengthClass(int(h.total)-tlsHeader), true
	case tlsHeartbeat:
		u.Type = "tls heartbeat"
	}
	if hidden {
		u.Fields = []model.Field{{Name: "encrypted", Value: "true"}}
	}
	return []Unit{u}
}
