package model

// Protocol says which reader reads a port. The port chooses the reader; message
// types come from the bytes.
//
// Readers know TLS by its first bytes and then report its records (`tls data 2^7`),
// from which nothing can be read. In one run a port has at most 128 types that
// contain words of the payload; further ones lose the word (`text other`).
//
// `netsplit target check --run` reports ports without traffic and bytes that the
// reader does not understand. For TCP ports that `fallback` or `text` reads, and for
// ports that the file does not name, it looks for message lengths, for lines that
// count bytes and for JSON, and prints what to paste. `netsplit judge RUN --examine`
// does the same for a recorded run.
type Protocol struct {
	// The port on which a node or a client listens.
	// Required. Example: 6379
	Port uint16 `yaml:"port"`
	// `tcp` or `udp`.
	// Required. Example: tcp
	Transport string `yaml:"transport"`
	// The reader of this port: see [readers](#readers).
	// Required. Example: resp
	Dissector string `yaml:"dissector"`
	// Where reader `frames` finds the length and type of a message.
	Frames *Framing `yaml:"frames,omitempty"`
	// Lines about which reader `text` must know more than their first word.
	Lines []Line `yaml:"lines,omitempty"`
	// The settings under which the port carries traffic: see [when](#when).
	// Example: {fs: [hdfs]}
	When When `yaml:"when,omitempty,flow"`
	// The port may be silent in a run; `target check --run` does not report it.
	// Default: false. Example: true
	Optional bool `yaml:"optional,omitempty"`
}

// Framing describes a binary protocol whose messages state their length. Find the two
// places that it needs, length and type, in the protocol's documentation, or let
// `netsplit target check --run` suggest them.
//
//	frames:
//	  length: {at: 0, size: 3, order: little, plus: 8} # bytes 0 to 2; the head of 8 is not counted
//	  type: [{at: 9}, {at: 28, mask: 0x1c}]            # "frame 0x8 0x3"; "frame 0x8" where the message ends before 28
//	  answer: [{at: 4}]                                # "frame answer 0x2"
//	  correlation: {request: {at: 16, size: 4}, answer: {at: 12, size: 4}} # "frame answer 0x8 0x3 0x2"
//	  fields:
//	    term: {at: 32, size: 8}
//
// Bytes that form no message have type `unknown`. After 128 types all messages have
// type `frame`: a place that holds an id or a length makes no type.
type Framing struct {
	// The number that, with its `plus`, is the length of a message from its first byte.
	// Required for tcp; a datagram is one message and has none.
	Length *Place `yaml:"length,omitempty"`
	// The numbers that make the type. A short message has those that it is long enough for.
	Type []Place `yaml:"type,omitempty"`
	// `type` for messages of the side that was connected to (udp: that come from `port`),
	// where they differ. `[]`: they have no type of their own.
	Answer *[]Place `yaml:"answer,omitempty"`
	// Where messages carry the id of a request.
	Correlation *Correlation `yaml:"correlation,omitempty"`
	// Fields for variables to read, by name. Each is read from every message that is long
	// enough: let the source select messages by `type` or `where`.
	Fields map[string]Place `yaml:"fields,omitempty"`
	// Messages of another layout that start a connection.
	First []First `yaml:"first,omitempty"`
}

// Correlation says where a message carries the id by which a client matches an answer
// to its request (Kafka, ZooKeeper, MongoDB). The answer then starts its type with that of its
// request. The last 4,096 requests of a connection are remembered. Not for udp.
type Correlation struct {
	// In messages of the side that connected.
	// Required.
	Request Place `yaml:"request"`
	// In messages of the other side.
	// Required.
	Answer Place `yaml:"answer"`
}

// First is a message that precedes those that `frames` describes, such as PostgreSQL's
// start-up message or the preface of HTTP/2. Each direction starts with as many of them
// as are present. Not for udp.
//
//	first:
//	  - {name: startup, begins: "00", length: {at: 0, size: 4}} # "frame startup"
//	  - {name: refused, answer: true, begins: "4e", size: 1}    # "frame answer refused"
type First struct {
	// A word that becomes the type.
	// Required. Example: startup
	Name string `yaml:"name"`
	// The side that was connected to sends it.
	// Default: false. Example: true
	Answer bool `yaml:"answer,omitempty"`
	// Its first bytes in hex, at most 64.
	// Required. Example: "50 52 49"
	Begins string `yaml:"begins"`
	// Where its length is. Exactly one of `length` and `size` is set.
	Length *Place `yaml:"length,omitempty"`
	// Its length in bytes.
	// Example: 24
	Size int `yaml:"size,omitempty"`
}

// Line describes lines of a text protocol that count the bytes behind them (NATS,
// memcached), or whose type has more than its first word. Without it, reader `text` takes
// the counted bytes for lines. A line that no `match` matches is a message by itself.
//
//	lines:
//	  - match: '^RMSG \S+ \$NRG\.(?P<type>AE)\..* (?P<length>\d+)$' # "text RMSG AE"
//	    plus: 2                                                    # the line end behind the counted bytes
//	    fields: {term: {at: 8, size: 8, order: little}}
//	  - {match: '^[HLR]?MSG .* (?P<length>\d+)$', plus: 2}
type Line struct {
	// A regular expression; the first that matches a line applies. Group `length` is the number
	// of bytes that follow the line, group `type` a second word of the type; one of them is
	// needed. Keep ids out of `type`.
	// Required. Example: '^PUT (?P<length>\d+)$'
	Match string `yaml:"match"`
	// Bytes that follow but are not counted by `length`.
	// Default: 0. Example: 2
	Plus int `yaml:"plus,omitempty"`
	// Fields for variables to read from the bytes that follow, by name.
	Fields map[string]Place `yaml:"fields,omitempty"`
}

// Place is a position in the first 4,096 bytes of a message.
type Place struct {
	// Bytes before it.
	// Default: 0. Example: 8
	At int `yaml:"at"`
	// Bytes: 1 to 8 for a number, 1 to 64 for `hex` and `text`.
	// Default: 1. Example: 4
	Size int `yaml:"size,omitempty"`
	// Byte order of a number: `big` or `little`.
	// Default: big. Example: little
	Order string `yaml:"order,omitempty"`
	// The bits of a number that count.
	// Default: all. Example: 0x1c
	Mask string `yaml:"mask,omitempty"`
	// Of `length` only: bytes of the message that the number does not count.
	// Default: 0. Example: 4
	Plus int `yaml:"plus,omitempty"`
	// Of `fields` only: `number`, `hex`, or `text`, which may end with the message.
	// Default: number. Example: hex
	As string `yaml:"as,omitempty"`
}
