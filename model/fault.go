package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is what a message fault does.
type FaultKind string

// Kinds of message faults. What each does to TCP, where the receiver's TCP
// hides most of it, is in docs/message-faults.md.
const (
	// FaultDelay holds the packet for a time. Datagrams overtake it; what follows
	// in its TCP stream waits behind it, in order.
	FaultDelay FaultKind = "delay"
	// FaultDuplicate lets the packet pass and sends copies of it.
	FaultDuplicate FaultKind = "duplicate"
	// FaultReorder holds the packet until others of its flow have passed it.
	FaultReorder FaultKind = "reorder"
	// FaultLose does not let the packet pass.
	FaultLose FaultKind = "lose"
)

// FaultKinds lists all kinds.
func FaultKinds() []FaultKind {
	return []FaultKind{FaultDelay, FaultDuplicate, FaultReorder, FaultLose}
}

// FaultReasons lists the reasons of what faults of a kind decide, for those who
// count them.
func FaultReasons(k FaultKind) []string {
	return append(map[FaultKind][]string{
		FaultDelay:     {ReasonDelay, ReasonBehind, ReasonDue},
		FaultDuplicate: {ReasonDuplicate},
		FaultReorder:   {ReasonReorder, ReasonOvertaken, ReasonLimit, ReasonCameAgain},
		FaultLose:      {ReasonLose, ReasonLostAgain, ReasonCameAgain, ReasonReset, ReasonAfterReset},
	}[k], ReasonStop, ReasonEnded, ReasonAcross)
}

// Loss is what is lost by FaultLose. It only matters on TCP.
type Loss string

// A lost datagram is lost for good either way.
const (
	// LosePacket loses the packet; TCP sends its bytes again, and those pass.
	LosePacket Loss = "packet"
	// LoseMessage loses the message for good: its connection is reset at both
	// ends, and the bytes behind it on that connection are lost with it.
	LoseMessage Loss = "message"
)

// Defaults of a message fault.
const (
	DefaultBehind = 1           // packets that overtake a reordered one
	DefaultLimit  = time.Second // that a reordered packet waits at most
)

// FaultSlack is how much later than decided a packet may go on before its fault
// is noted as late.
const FaultSlack = 20 * time.Millisecond

// MessageFault does something to single messages of a run. The packet that
// completes a message, or makes its type certain, is what is acted on. It acts
// from the start of the workload to its end, or for as long as a script says. What a cut refuses, it does not see;
// a packet that it kept and that a cut is across when it is to go on is dropped.
type MessageFault struct {
	Kind FaultKind `json:"kind"`
	// Answer says that Match selects requests, and the fault acts on their answers: all else
	// here counts answers.
	Answer bool `json:"answer,omitempty"`
	// Match selects messages; While, when set, counts only those that come while its
	// invariant does not hold.
	Match MessageMatch    `json:"match"`
	While *FaultCondition `json:"while,omitempty"`
	// After, when set, counts only those that come this long into the workload.
	After time.Duration `json:"after,omitempty"`
	// Nth is the first of those messages that is acted on, counted from 1 (0:
	// the first). With Every 0 it acts on this one, with Every k on each k-th
	// from there on. Times, when set, bounds on how many it acts; with Every 0
	// those are consecutive.
	Nth   int `json:"nth,omitempty"`
	Every int `json:"every,omitempty"`
	Times int `json:"times,omitempty"`

	// For is how long FaultDelay holds.
	For time.Duration `json:"for,omitempty"`
	// Copies are sent by FaultDuplicate (0: one), each Gap after the one before.
	Copies int           `json:"copies,omitempty"`
	Gap    time.Duration `json:"gap,omitempty"`
	// Behind packets with messages of the same flow overtake the packet under
	// FaultReorder (0: DefaultBehind), or as many as come within Limit (0:
	// DefaultLimit). A flow is a direction of a TCP connection, or all that is
	// not TCP from one host to another.
	Behind int           `json:"behind,omitempty"`
	Limit  time.Duration `json:"limit,omitempty"`
	// Lose says what FaultLose loses ("": LosePacket); Again how many
	// retransmissions of it are lost as well (LosePacket, TCP).
	Lose  Loss `json:"lose,omitempty"`
	Again int  `json:"again,omitempty"`
}

// MessageMatch selects messages.
type MessageMatch struct {
	// Type is a pattern over message types: "*" matches any text.
	Type string `json:"type"`
	// From and To are hosts; "" is any.
	From NodeID `json:"from,omitempty"`
	To   NodeID `json:"to,omitempty"`
	// FromRole and ToRole, when set, are roles in place of hosts: whoever has it as the
	// message is held.
	FromRole string `json:"fromRole,omitempty"`
	ToRole   string `json:"toRole,omitempty"`
}

// Roles lists the roles that it names.
func (m MessageMatch) Roles() []string {
	return slices.DeleteFunc([]string{m.FromRole, m.ToRole}, func(r string) bool { return r == "" })
}

// FaultCondition is a moment at which an invariant does not hold.
type FaultCondition struct {
	Invariant Invariant `json:"invariant"`
	// State, when set, is the only inconsistent state meant; Nth as in Scenario.
	State *State `json:"state,omitempty"`
	Nth   int    `json:"nth,omitempty"`
}

// Selects says whether a message is meant, given who has a role now.
func (m MessageMatch) Selects(typ string, from, to NodeID, has func(role string, h NodeID) bool) bool {
	return (m.From == "" || m.From == from) && (m.To == "" || m.To == to) && MatchType(m.Type, typ) &&
		(m.FromRole == "" || has(m.FromRole, from)) && (m.ToRole == "" || has(m.ToRole, to))
}

// MatchType says whether a message type, or the name of a thread, fits a pattern, in which
// "*" stands for any text.
func MatchType(pattern, typ string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == typ
	}
	rest, ok := strings.CutPrefix(typ, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1:last] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// Turn says whether the fault acts on its n-th message, given on how many it
// acted before.
func (f *MessageFault) Turn(n, acted int) bool {
	after := n - max(f.Nth, 1)
	switch {
	case after < 0, f.Times > 0 && acted >= f.Times:
		return false
	case f.Every > 0:
		return after%f.Every == 0
	}
	return after < max(f.Times, 1)
}

// Most is on how many messages it acts at most; 0: no bound.
func (f *MessageFault) Most() int {
	if f.Every == 0 {
		return max(f.Times, 1)
	}
	return f.Times
}

// Validate says what is wrong with the fault, given the hosts it may name.
func (f *MessageFault) Validate(hosts []NodeID) error {
	if !slices.Contains(FaultKinds(), f.Kind) {
		return fmt.Errorf("message fault: unknown kind %q: use %s", f.Kind, oneOf(FaultKinds()))
	}
	if err := f.Match.Validate(hosts); err != nil {
		return fmt.Errorf("message fault: %w", err)
	}
	if f.Nth < 0 || f.Every < 0 || f.Times < 0 || f.Copies < 0 || f.Behind < 0 || f.Again < 0 || f.For < 0 || f.Gap < 0 || f.Limit < 0 || f.After < 0 {
		return fmt.Errorf("message fault: %s: numbers and times must not be negative", f.Kind)
	}
	if f.While != nil && f.While.Invariant.A == f.While.Invariant.B {
		return fmt.Errorf("message fault: %s: while names no invariant: give two variables, as in status[n1]@n2 == status[n1]@n3", f.Kind)
	}
	if st := f.While; st != nil && st.State != nil && st.State.A == st.State.B {
		return fmt.Errorf("message fault: %s: the state %s is not inconsistent: give two values that differ", f.Kind, st.State)
	}
	if f.Kind == FaultDelay && f.For == 0 {
		return fmt.Errorf("message fault: delay needs for: a time, such as 500ms")
	}
	if !slices.Contains([]Loss{"", LosePacket, LoseMessage}, f.Lose) {
		return fmt.Errorf("message fault: unknown loss %q: use packet or message", f.Lose)
	}
	for _, o := range []struct {
		set  bool
		name string
		of   FaultKind
	}{{f.For > 0, "for", FaultDelay}, {f.Copies > 0, "copies", FaultDuplicate}, {f.Gap > 0, "gap", FaultDuplicate},
		{f.Behind > 0, "behind", FaultReorder}, {f.Limit > 0, "limit", FaultReorder}, {f.Lose != "", "lose", FaultLose}, {f.Again > 0, "again", FaultLose}} {
		if o.set && f.Kind != o.of {
			return fmt.Errorf("message fault: %s has no %s: that belongs to %s", f.Kind, o.name, o.of)
		}
	}
	if f.Again > 0 && f.Lose == LoseMessage {
		return fmt.Errorf("message fault: lose: message loses for good: leave out again")
	}
	return nil
}

// String is the fault as a person says it, on one line.
func (f *MessageFault) String() string {
	var b strings.Builder
	switch f.Kind {
	case FaultDelay:
		fmt.Fprintf(&b, "delay by %v", f.For)
	case FaultDuplicate:
		fmt.Fprintf(&b, "duplicate %d×", max(f.Copies, 1))
		if f.Gap > 0 {
			fmt.Fprintf(&b, " every %v", f.Gap)
		}
	case FaultReorder:
		fmt.Fprintf(&b, "reorder behind %d", max(f.Behind, DefaultBehind))
	case FaultLose:
		b.WriteString("lose ")
		if f.Lose == LoseMessage {
			b.WriteString("for good ")
		}
		if f.Again > 0 {
			fmt.Fprintf(&b, "%d× ", f.Again+1)
		}
	}
	s := strings.TrimSpace(b.String()) + ": "
	if f.Answer {
		s += "the answer to "
	}
	s += f.Match.String()
	switch nth := max(f.Nth, 1); {
	case f.Every == 1:
		s += fmt.Sprintf(", all from number %d on", nth)
	case f.Every > 1:
		s += fmt.Sprintf(", one in %d from number %d on", f.Every, nth)
	case f.Times > 1:
		s += fmt.Sprintf(", numbers %d to %d", nth, nth+f.Times-1)
	default:
		s += fmt.Sprintf(", number %d", nth)
	}
	if f.Every > 0 && f.Times > 0 {
		s += fmt.Sprintf(", at most %d", f.Times)
	}
	if f.While != nil {
		s += ", while " + f.While.String()
	}
	if f.After > 0 {
		s += fmt.Sprintf(", from %v into the workload on", f.After)
	}
	return s
}

// Validate says what is wrong with the match, given the hosts it may name.
func (m MessageMatch) Validate(hosts []NodeID) error {
	if m.Type == "" {
		return fmt.Errorf("no message type is named: give one, with * for any text, such as %q", "tcp syn *")
	}
	for _, h := range []NodeID{m.From, m.To} {
		if h != "" && !slices.Contains(hosts, h) {
			return fmt.Errorf("no host %q: there are %v", h, hosts)
		}
	}
	if m.From != "" && m.FromRole != "" || m.To != "" && m.ToRole != "" {
		return fmt.Errorf("from and to are each a host or a role, not both")
	}
	if m.From != "" && m.From == m.To {
		return fmt.Errorf("from and to are both %s: no packet of a host to itself crosses the switch", m.From)
	}
	return nil
}

// String is type from>to, * for any.
func (m MessageMatch) String() string {
	end := func(n NodeID, role string) string { return cmp.Or(string(n), role, "*") }
	return m.Type + " " + end(m.From, m.FromRole) + ">" + end(m.To, m.ToRole)
}

// String is the condition on one line.
func (c *FaultCondition) String() string {
	if c.State == nil {
		return c.Invariant.String() + " does not hold"
	}
	s := c.Invariant.String() + " is " + c.State.String()
	if c.Nth > 0 && c.State.Numbers() {
		s += fmt.Sprintf(" or number %d of its shape", c.Nth)
	}
	return s
}

// FaultProof says what a message fault of a run really did. Times are since the
// run started.
type FaultProof struct {
	Fault int `json:"fault"` // place in Scenario.Steps, from 1
	// Met counts the messages that it is about, Acted those packets it acted on.
	// Taken counts its turns that an earlier fault had, or a packet that had to
	// wait behind another.
	Met   int `json:"met"`
	Acted int `json:"acted"`
	Taken int `json:"taken,omitempty"`
	// Sums over all it acted on: packets lost, retransmissions of them included;
	// retransmissions that came; copies sent; connections reset; packets that
	// went on later than decided by more than FaultSlack, and earlier; packets
	// dropped by a cut when they were to go on; messages that nothing overtook.
	Lost     int `json:"lost,omitempty"`
	Returned int `json:"returned,omitempty"`
	Copies   int `json:"copies,omitempty"`
	Resets   int `json:"resets,omitempty"`
	Late     int `json:"late,omitempty"`
	Early    int `json:"early,omitempty"`
	Cut      int `json:"cut,omitempty"`
	InOrder  int `json:"inOrder,omitempty"`
	// ByPlace counts, of answers, those that nothing but their place told to be the answer:
	// the next message back on the connection. Nobody knows then that it is one.
	ByPlace int `json:"byPlace,omitempty"`
	// Hits are the first MaxHits it acted on.
	Hits []FaultHit `json:"hits,omitempty"`

	// Checked counts the hits that were looked for at the receiving host, Wrong
	// those that arrived more or less often than decided. Known is false if
	// nobody could look; Trouble says why not, or what was wrong first.
	Checked int    `json:"checked"`
	Wrong   int    `json:"wrong"`
	Known   bool   `json:"known"`
	Trouble string `json:"trouble,omitempty"`
}

// NoneChecked is the trouble of a fault that acted, and none of whose packets was
// looked for.
const NoneChecked = "each packet that it acted on went to several hosts, or had an equal one just before it, so no host could be asked"

// MaxHits bounds FaultProof.Hits.
const MaxHits = 200

// FaultHit is one packet that a fault acted on.
type FaultHit struct {
	Frame   uint64        `json:"frame"`
	Message uint64        `json:"message"` // whose turn it was
	Type    string        `json:"type"`
	From    NodeID        `json:"from"`
	To      NodeID        `json:"to"`
	Stream  string        `json:"stream,omitempty"` // TCP
	At      time.Duration `json:"at"`               // came to the gate
	With    []uint64      `json:"with,omitempty"`   // other messages in the packet
	// Request is the message that it answers, of a fault of answers.
	Request uint64 `json:"request,omitempty"`
	// Due is when it was to go on at the latest, 0 if at once or never; Passed
	// when it did, 0 if never; Why the reason of the decision that let it.
	Due    time.Duration `json:"due,omitempty"`
	Passed time.Duration `json:"passed,omitempty"`
	Why    string        `json:"why,omitempty"`
	// Behind counts the packets that waited behind it (delay on TCP), or that
	// overtook it (reorder).
	Behind int `json:"behind,omitempty"`
	// Copies are when copies were sent.
	Copies []time.Duration `json:"copies,omitempty"`
	// Returned counts the retransmissions of it that came, LostAgain those of
	// them that were lost too; Through is when one passed, 0 if none did.
	Returned  int           `json:"returned,omitempty"`
	LostAgain int           `json:"lostAgain,omitempty"`
	Through   time.Duration `json:"through,omitempty"`
	// Reset: its connection was reset at both ends; After counts the later
	// packets of the stream that were lost with it.
	Reset bool `json:"reset,omitempty"`
	After int  `json:"after,omitempty"`
	// Arrived are the arrivals of the packet, and of equal ones, at the
	// receiving host from At on, where Known.
	Arrived []time.Duration `json:"arrived,omitempty"`
	Known   bool            `json:"known"`
}
