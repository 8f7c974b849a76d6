package model

import (
	"cmp"
	"strings"
	"time"
)

// TypeUnknown is the type of a message no dissector could name.
const TypeUnknown = "unknown"

// Field is one named value a dissector read out of a message.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Message is one application message, or one transport event (a TCP SYN, FIN
// or RST, an ARP request), framed out of the packets that crossed the switch.
type Message struct {
	// Num numbers the messages of a run from 1 in order of recognition.
	Num uint64 `json:"num"`
	// Frame is the frame whose arrival completed the message, or made its type
	// certain if that came first.
	Frame    uint64        `json:"frame"`
	At       time.Duration `json:"at"`
	From     NodeID        `json:"from"`
	To       NodeID        `json:"to"`
	FromPort uint16        `json:"fromPort,omitempty"`
	ToPort   uint16        `json:"toPort,omitempty"`
	// Stream names the direction of the connection it travelled on, e.g.
	// "tcp 10.0.0.1:40312>10.0.0.2:6379#2"; #n counts reuses of the ports.
	Stream string `json:"stream"`
	// Offset is the position of the first byte in the stream, 0 for datagrams
	// and transport events.
	Offset uint64 `json:"offset"`
	// Bytes is the length on the wire, headers excluded.
	Bytes int `json:"bytes"`
	// Type is derived from payload bytes only, e.g.
	// "resp PUBLISH __sentinel__:hello". Transport events: "tcp syn :6379".
	Type string `json:"type"`
	// Fields in the dissector's order. Long values are cut and end in "…".
	Fields []Field `json:"fields,omitempty"`
}

// Field returns the value of the named field.
func (m *Message) Field(name string) (string, bool) {
	for _, f := range m.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Transport says whether it is an event of a transport, which no program sends: a segment
// that opens or ends a TCP connection, or ARP.
func (m *Message) Transport() bool {
	return m.Type == "tcp fin" || m.Type == "tcp rst" || strings.HasPrefix(m.Type, "tcp syn") || strings.HasPrefix(m.Type, "arp ")
}

// Class is CoFI's message class (CoFI §3.5.2) with the payload type in place
// of the sender's call stack: messages of one class are expected to drive the
// same code on the receiver.
type Class struct {
	// Message type as runs show it. Required.
	Type string `json:"type"`
	// Host that sends it. Required.
	From NodeID `json:"from"`
	// Host that it goes to. Required.
	To NodeID `json:"to"`
	// Values of the two variables at that moment. Required.
	State State `json:"state"`
}

// Compare orders classes by type, sender, receiver, state.
func (c Class) Compare(d Class) int {
	return cmp.Or(cmp.Compare(c.Type, d.Type), cmp.Compare(c.From, d.From),
		cmp.Compare(c.To, d.To), c.State.Compare(d.State))
}

// String is the class on one line: type from>to at {a, b}.
func (c Class) String() string {
	return c.Type + " " + string(c.From) + ">" + string(c.To) + " at " + c.State.String()
}
