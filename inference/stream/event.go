package stream

// Kind says what an Event reports.
type Kind uint8

// Kinds of events. Off and Len are stream offsets where they are named.
const (
	// Open: a connection appeared. Comes before its other events.
	Open Kind = iota + 1
	// SYN: a request to connect (SYN without ACK). Repeated: retransmitted.
	SYN
	// Data: Bytes are the next bytes of the direction, from Off on.
	Data
	// Gap: the Len bytes from Off on were never seen.
	Gap
	// Again: the Len bytes from Off on had been seen before.
	Again
	// Differs: among bytes that came again, the Len bytes from Off on are not
	// those of the first copy. Follows the Again that covers it.
	Differs
	// FIN: the direction ended, all its bytes are delivered. Repeated: the FIN
	// was retransmitted.
	FIN
	// RST: the sender reset the connection. Repeated: not its first reset.
	RST
	// Ignored: the segment, or part of it, was left out; Why says why.
	Ignored
	// Closed: the direction will bring nothing more (after its FIN or RST, or
	// because the connection was replaced or gave way).
	Closed
)

// String is the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"none", "open", "syn", "data", "gap", "again", "differs", "fin", "rst", "ignored", "closed"}
	if int(k) < len(names) {
		return names[k]
	}
	return "kind?"
}

// Event is one finding about one direction of a connection.
type Event struct {
	Kind     Kind
	Conn     *Conn
	Dir      int // 0: from the side that opened the connection
	Off      uint64
	Len      uint64
	Bytes    []byte // Data only; valid until the next Step
	Repeated bool   // SYN, FIN, RST
	Why      string // Ignored, a short constant
}

// Reasons of Ignored events.
const (
	WhyStaleSYN   = "stale syn: of an earlier connection on these ports"
	WhyStale      = "stale segment: acknowledges nothing of this connection"
	WhyWindow     = "sequence number far outside the window"
	WhyBefore     = "bytes before the first one seen"
	WhyAfterFIN   = "bytes behind the fin"
	WhyAfterRST   = "bytes behind the rst"
	WhySecondFIN  = "fin at another place than the first"
	WhyRSTWindow  = "rst outside the window: receivers ignore it"
	WhyRSTInexact = "rst not at the next byte: receivers challenge it"
)
