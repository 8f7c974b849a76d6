package framing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

// Suggestion is what a target file could say of a port.
type Suggestion struct {
	Framing  *model.Framing // nil if none was found
	Lines    []model.Line   // of a text protocol: those that count bytes behind them
	Messages int            // with it
	Types    int
	// Why is the evidence, in words; without a framing, what stands against one.
	Why string
}

// Why there is no framing. Each goes on a sentence that begins with the port.
const (
	WhyFew     = "too few bytes to see how messages are separated"
	WhyText    = "the bytes are text: reader text or http may do"
	WhyTLS     = "it is encrypted (TLS): no reader sees messages in it"
	WhyOneSize = "messages seem to be of one size, so that any number that does not change would do as their length: the protocol's documentation has to tell"
	WhyNone    = "no fixed place was found that holds the length of every message"
)

const (
	textShare = 0.97 // of the bytes: text
	textLeast = 256  // bytes by which to tell
)

// Suggest looks for a framing of what was added.
func (p *Port) Suggest() Suggestion {
	flows := make([]*flow, 0, len(p.flows))
	for _, f := range p.flows {
		if f.bytes > 0 {
			f.marks[len(f.marks)-1].turn = f.marks[len(f.marks)-1].turn || !f.cut
			flows = append(flows, f)
		}
	}
	if p.bytes < textLeast {
		return Suggestion{Why: WhyFew}
	}
	if ls, n, why := countedLines(flows, p.conns); ls != nil {
		return Suggestion{Lines: ls, Messages: n, Why: why}
	}
	l, c := search(flows)
	words := text(flows) // which may have numbers before them
	switch {
	case c.messages >= wantMessages && !c.ofOneSize() && c.believed(l):
	case words:
		return Suggestion{Why: WhyText}
	case c.messages > 0 && c.messages < wantMessages:
		return Suggestion{Why: WhyFew}
	case c.messages > 0 && c.ofOneSize():
		return Suggestion{Why: WhyOneSize}
	default:
		return Suggestion{Why: cmp.Or(oneWay(flows), WhyNone)}
	}
	msgs, conns := messages(flows, l)
	if words && letters(msgs, l) {
		return Suggestion{Why: WhyText}
	}
	if tls(msgs, l) {
		return Suggestion{Why: WhyTLS}
	}
	fr, types := describe(msgs, l)
	return Suggestion{Framing: fr, Messages: c.messages, Types: types, Why: evidence(&c, conns, types, fr) + wider(msgs, l)}
}

// believed says whether messages end where packets do far more often than by
// chance, and nearly wherever the other side speaks next.
func (c *chained) believed(l length) bool {
	want := wantTurns
	if l.size == 1 {
		want = wantNarrow
	}
	return c.bits() >= wantBits && float64(c.turnHits) >= want*float64(c.turns)
}

// oneWay says what is found in one direction alone, which reader frames cannot
// be told.
func oneWay(flows []*flow) string {
	for dir, who := range []string{"who opens a connection", "who is connected to"} {
		var of []*flow
		for _, f := range flows {
			if f.dir == dir {
				of = append(of, f)
			}
		}
		if len(of) == 0 || len(of) == len(flows) {
			continue
		}
		if l, c := search(of); c.messages >= wantMessages && !c.ofOneSize() && c.believed(l) {
			return fmt.Sprintf("what %s says has its length at %s, and the other side's messages have not", who, line(*l.place()))
		}
	}
	return ""
}

func messages(flows []*flow, l length) (msgs []msg, conns int) {
	seen := map[int]bool{}
	number := map[*flow]int{}
	c := chained{common: map[int]int{}, tries: allTries}
	l.all(flows, keepFlow, &c, func(f *flow, b []byte, off uint64, n int) {
		if _, ok := number[f]; !ok {
			number[f] = len(number)
		}
		seen[f.conn] = true
		msgs = append(msgs, msg{flow: number[f], dir: f.dir, size: n, b: b[:min(len(b), typeAt)], conn: f.conn, seq: f.packet(off + uint64(n))})
	})
	return msgs, len(seen)
}

// text says whether nearly all is printable, ends of lines included.
func text(flows []*flow) bool {
	all, words := 0, 0
	for _, f := range flows {
		for _, r := range f.runs {
			for _, c := range r.b {
				if printable(c) {
					words++
				}
			}
			all += len(r.b)
		}
	}
	return float64(words) >= textShare*float64(all)
}

// letters says whether most lengths are made of printable bytes alone.
func letters(msgs []msg, l length) bool {
	n := 0
	for _, m := range msgs {
		all := true
		for _, c := range m.b[l.at:l.end()] {
			all = all && printable(c)
		}
		if all {
			n++
		}
	}
	return 2*n > len(msgs)
}

func printable(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }

// tls says whether messages are records of TLS (RFC 8446 §5.1).
func tls(msgs []msg, l length) bool {
	if l.end() != 5 || l.plus != 5 {
		return false
	}
	n := 0
	for _, m := range msgs {
		if len(m.b) >= 5 && m.b[0] >= 20 && m.b[0] <= 24 && m.b[1] == 3 && m.b[2] <= 4 {
			n++
		}
	}
	return float64(n) >= 0.95*float64(len(msgs))
}

// describe chooses the types: the same for both directions, unless it pays to
// tell them apart.
func describe(msgs []msg, l length) (*model.Framing, int) {
	fr := &model.Framing{Length: l.place()}
	offsets, apart := both(msgs, l)
	if c, asks := correlate(msgs, l, offsets[1]); c != nil {
		fr.Correlation, apart, offsets = c, true, [2][]offset{asks, nil}
	}
	fr.Type = places(offsets[0])
	if apart && fr.Correlation == nil {
		answer := places(offsets[1])
		if answer == nil {
			answer = []model.Place{}
		}
		fr.Answer = &answer
	}
	types := map[[3]int]bool{}
	for i := range msgs {
		m, dir := &msgs[i], 0
		if apart {
			dir = m.dir
		}
		key := keyOf(offsets[dir], m)
		if fr.Correlation != nil && m.asks > 0 {
			key = keyOf(offsets[0], &msgs[m.asks-1])
		}
		types[[3]int{dir, key[0], key[1]}] = true
	}
	return fr, len(types)
}

func places(offsets []offset) (out []model.Place) {
	for _, s := range offsets {
		out = append(out, s.place())
	}
	return out
}

func evidence(c *chained, conns, types int, fr *model.Framing) string {
	s := fmt.Sprintf("%s messages of %s chain: they cover %s of %s bytes, and %s of %s packets end where a message does",
		thousands(c.messages), plural(conns, "connection"), percent(c.covered, c.covered+c.lost), thousands(c.covered+c.lost), thousands(c.hits), thousands(c.marks))
	if c.headed > 0 {
		s += fmt.Sprintf("; %s begin otherwise (%s bytes): %s; say so under first, or it may be taken for a message that hides others", plural(c.headed, "stream"), thousands(c.heads), c.begun())
	}
	if c.foreign > 0 {
		s += fmt.Sprintf("; %s (%s bytes) have no such message", plural(c.foreign, "more connection"), thousands(c.strange))
	}
	if fr.Correlation != nil {
		s += "; answers repeat an id of what they answer"
	}
	if len(fr.Type) == 0 && (fr.Answer == nil || len(*fr.Answer) == 0) {
		return s + "; no place was found that holds a type"
	}
	return s + "; " + plural(types, "type")
}

// begun is what streams begin with that is no message, of each direction the
// commonest, in hex as first wants it.
func (c *chained) begun() string {
	var out []string
	for dir, who := range []string{"who connects with ", "who is connected to with "} {
		seen := slices.Collect(maps.Keys(c.openings[dir]))
		slices.SortFunc(seen, func(a, b string) int {
			return cmp.Or(c.openings[dir][b]-c.openings[dir][a], strings.Compare(a, b))
		})
		for i, b := range seen[:min(len(seen), 3)] {
			seen[i] = fmt.Sprintf("\"% x\" (%d)", b, c.openings[dir][b])
		}
		if len(seen) > 0 {
			out = append(out, who+strings.Join(seen[:min(len(seen), 3)], ", "))
		}
	}
	return strings.Join(out, ", ")
}

// wider says which byte may belong to the length, too, if longer messages than
// were seen have something in it.
func wider(msgs []msg, l length) string {
	at := l.at - 1
	if l.little {
		at = l.end()
	}
	if at < 0 || l.size >= 4 {
		return ""
	}
	for i := range msgs {
		if at < len(msgs[i].b) && msgs[i].b[at] != 0 {
			return ""
		}
	}
	return fmt.Sprintf("; byte %d was always 0 and may belong to the length: the documentation has to tell", at)
}

// Line is the framing as a target file has it, after the name of its key.
func Line(f *model.Framing) string {
	list := func(ps []model.Place) string {
		var out []string
		for _, p := range ps {
			out = append(out, line(p))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	var parts []string
	if f.Length != nil {
		parts = append(parts, "length: "+line(*f.Length))
	}
	if len(f.Type) > 0 {
		parts = append(parts, "type: "+list(f.Type))
	}
	if f.Answer != nil {
		parts = append(parts, "answer: "+list(*f.Answer))
	}
	if c := f.Correlation; c != nil {
		parts = append(parts, "correlation: {request: "+line(c.Request)+", answer: "+line(c.Answer)+"}")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func line(p model.Place) string {
	s := fmt.Sprintf("{at: %d", p.At)
	if p.Size > 1 {
		s += fmt.Sprintf(", size: %d", p.Size)
	}
	if p.Order != "" {
		s += ", order: " + p.Order
	}
	if p.Mask != "" {
		s += ", mask: " + p.Mask
	}
	if p.Plus != 0 {
		s += fmt.Sprintf(", plus: %d", p.Plus)
	}
	return s + "}"
}

func percent(n, of int) string {
	return strconv.FormatFloat(100*float64(n)/float64(max(of, 1)), 'f', 1, 64) + " %"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
