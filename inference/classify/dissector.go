package classify

import (
	"fmt"

	"netsplit/model"
)

// Dissector frames and types the messages of one connection. Create one per
// connection; it is not safe for concurrent use.
type Dissector interface {
	// Data hands over the next in-order payload bytes of a direction: dir 0 is
	// the side that opened the connection, 1 the other. off is the stream
	// offset of b[0]. b is only valid during the call. emit is called for each
	// message whose type became certain, in stream order within a direction.
	Data(dir int, off uint64, b []byte, emit func(Unit))
	// Gap says that bytes [off, off+n) of the direction were never seen. What
	// was incomplete is emitted as it stands and the dissector looks for the
	// next message behind the gap.
	Gap(dir int, off uint64, n uint64, emit func(Unit))
	// Close ends a direction: what is incomplete is emitted as it stands.
	Close(dir int, emit func(Unit))
}

// Unit is one message of one direction.
type Unit struct {
	Dir    int    // 0 or 1, as in Dissector.Data
	Offset uint64 // stream offset of the first byte; 0 for a datagram
	Bytes  int    // length on the wire
	Type   string
	Fields []model.Field
}

// Names of the dissectors, as a target file writes them.
const (
	NameRESP     = "resp"
	NameText     = "text"
	NameFallback = "fallback"
)

// New returns the dissector a protocol names, for one connection.
func New(p model.Protocol) (Dissector, error) {
	switch p.Dissector {
	case NameRESP:
		return newRESP(), nil
	case NameText:
		return newText(), nil
	case NameFallback, "":
		return newFallback(), nil
	}
	return nil, fmt.Errorf("protocol on port %d: unknown dissector %q: use %s, %s or %s",
		p.Port, p.Dissector, NameRESP, NameText, NameFallback)
}

// Datagram types one UDP datagram: one datagram is one message. A protocol
// with an unknown dissector is read by the fallback; New reports that error.
func Datagram(p model.Protocol, payload []byte) Unit {
	switch p.Dissector {
	case NameText:
		return textDatagram(payload)
	case NameRESP:
		return respDatagram(payload)
	}
	return fallbackDatagram(payload)
}
