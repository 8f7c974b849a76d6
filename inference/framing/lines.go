package framing

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

const (
	lineMost    = 4 << 10 // longest line looked at
	lineWord    = 32      // longest first word
	lineTokens  = 8       // words of a line that may be a length
	lineDigits  = 9
	lineLearn   = 4    // lines of a word, at least, to tell by
	lineHits    = 0.95 // of them are followed by as many bytes as they say
	lineShare   = 0.97 // of all bytes are in lines, or behind lines that count them
	lineRounds  = 4    // what follows the messages that were found shows more of them
	lastToken   = -1
	lineEndings = 2 // most bytes of the end of a line
)

// counts is how lines that begin with one word say how many bytes follow them:
// in which of their words, and how long the end of line behind these bytes is.
type counts struct{ token, plus int }

// votes are lines of a first word that are followed by as many bytes as they
// say, and that are not.
type votes struct {
	hit, miss int
	values    map[int]bool
}

func (v *votes) count(hit bool, value int) {
	if !hit {
		v.miss++
		return
	}
	v.hit++
	v.values[value] = true
}

func (v *votes) believed() bool {
	return v.hit >= lineLearn && float64(v.hit) >= lineHits*float64(v.hit+v.miss)
}

// lineSearch finds out which lines of a text protocol count bytes behind them.
type lineSearch struct {
	flows []*flow
	ends  []map[uint64]bool // of each flow: where packets end
	words map[string]int    // with which packets begin
	rules map[string]counts
}

func newLineSearch(flows []*flow) *lineSearch {
	x := &lineSearch{flows: flows, words: map[string]int{}, rules: map[string]counts{}}
	for _, f := range flows {
		ends := map[uint64]bool{}
		for _, m := range f.marks {
			ends[m.off] = true
		}
		x.ends = append(x.ends, ends)
	}
	for i := range flows {
		x.packets(i, func(r *run, at int) {
			if tokens, _ := tokensOf(r.b[at:]); tokens != nil {
				x.words[tokens[0]]++
			}
		})
	}
	return x
}

func (x *lineSearch) packets(i int, visit func(r *run, at int)) {
	f := x.flows[i]
	for k := range f.runs {
		r := &f.runs[k]
		visit(r, 0)
		for _, m := range f.marks {
			if m.off > r.off && m.off < r.end() {
				visit(r, int(m.off-r.off))
			}
		}
	}
}

// tokensOf are the words of the line that b begins with, and its length with its
// end; none if b begins with no line.
func tokensOf(b []byte) ([]string, int) {
	n := bytes.IndexByte(b[:min(len(b), lineMost)], '\n') + 1
	if n == 0 {
		return nil, 0
	}
	for _, c := range b[:n] {
		if c < 0x80 && !printable(c) {
			return nil, 0
		}
	}
	tokens := strings.Fields(string(b[:n]))
	if len(tokens) == 0 || len(tokens[0]) > lineWord {
		return nil, 0
	}
	return tokens, n
}

// info is the number in a word of a line; -1: none.
func info(tokens []string, token int) int {
	if token == lastToken {
		token = len(tokens) - 1
	}
	if token < 1 || token >= len(tokens) || len(tokens[token]) > lineDigits {
		return -1
	}
	for _, c := range []byte(tokens[token]) {
		if c < '0' || c > '9' {
			return -1
		}
	}
	n, _ := strconv.Atoi(tokens[token])
	return n
}

func ended(b []byte, at, plus int) bool {
	return strings.HasSuffix(string(b[max(0, at-plus):at]), "\r\n"[lineEndings-plus:])
}

// lands says whether a message may end at r.b[at], behind an end of line of so
// many bytes: a packet does, or another line begins, which without that end has
// to begin as packets do.
func (x *lineSearch) lands(i int, r *run, at, plus int) bool {
	if !ended(r.b, at, plus) || x.ends[i][r.off+uint64(at)] {
		return ended(r.b, at, plus)
	}
	tokens, _ := tokensOf(r.b[at:])
	return tokens != nil && (plus > 0 || x.words[tokens[0]] >= lineLearn)
}

// learn has the lines that can be found vote on what follows them, and reports
// whether more rules came out.
func (x *lineSearch) learn() bool {
	all := map[string]map[counts]*votes{}
	alone := counts{} // of a line that counts nothing
	vote := func(word string, c counts, hit bool, value int) {
		if all[word] == nil {
			all[word] = map[counts]*votes{}
		}
		v := all[word][c]
		if v == nil {
			v = &votes{values: map[int]bool{}}
			all[word][c] = v
		}
		v.count(hit, value)
	}
	for i := range x.flows {
		seen := map[uint64]bool{}
		x.packets(i, func(r *run, at int) {
			for at < len(r.b) && !seen[r.off+uint64(at)] {
				seen[r.off+uint64(at)] = true
				tokens, n := tokensOf(r.b[at:])
				if tokens == nil {
					return
				}
				end := at + n
				vote(tokens[0], alone, x.lands(i, r, end, 0), 0)
				numbers := false
				for token := lastToken; token < min(len(tokens), lineTokens); token++ {
					value := info(tokens, token)
					numbers = numbers || value >= 0
					for plus := 0; value >= 0 && plus <= lineEndings; plus++ {
						if to := end + value + plus; to <= len(r.b) {
							vote(tokens[0], counts{token, plus}, x.lands(i, r, to, plus), value)
						}
					}
				}
				// What is behind a line that may count is no line for sure.
				if _, ok := x.rules[tokens[0]]; numbers && !ok {
					return
				}
				if at = x.behind(r.b, tokens, end); at < 0 {
					return
				}
			}
		})
	}
	before := len(x.rules)
	for word, by := range all {
		if c, ok := howCounted(by, alone); ok {
			x.rules[word] = c
		}
	}
	return len(x.rules) > before
}

// howCounted is how lines of a word count, if they do: by what most of them agree
// on, by their last word if that explains it as well.
func howCounted(by map[counts]*votes, alone counts) (best counts, ok bool) {
	for _, c := range slices.SortedFunc(maps.Keys(by), func(a, b counts) int { return cmp.Or(a.token-b.token, b.plus-a.plus) }) {
		v := by[c]
		if c == alone || !v.believed() || c.plus == 0 && len(v.values) < 2 {
			continue
		}
		if a := by[alone]; a.believed() && a.hit >= v.hit {
			continue
		}
		if !ok || v.hit > by[best].hit {
			best, ok = c, true
		}
	}
	return best, ok
}

// behind is where what belongs to a line ends, of which end is the end; -1 if
// that is not as the rules have it, or beyond b.
func (x *lineSearch) behind(b []byte, tokens []string, end int) int {
	c, ok := x.rules[tokens[0]]
	if !ok {
		return end
	}
	n := info(tokens, c.token)
	if n < 0 {
		return end
	}
	if to := end + n + c.plus; to <= len(b) && ended(b, to, c.plus) {
		return to
	}
	return -1
}

// reading is what the rules make of the flows.
type reading struct {
	messages, counting, covered, lost, turns, turnHits int
}

// read reads all flows as reader text would, from one message to the next; where
// none begins it goes on with the next packet.
func (x *lineSearch) read() (out reading) {
	for i, f := range x.flows {
		at, turns := map[uint64]bool{}, map[uint64]bool{}
		for _, m := range f.marks {
			if m.turn {
				turns[m.off] = true
			}
		}
		for k := range f.runs {
			r := &f.runs[k]
			for pos := 0; pos < len(r.b); {
				tokens, n := tokensOf(r.b[pos:])
				to := -1
				if tokens != nil {
					to = x.behind(r.b, tokens, pos+n)
				}
				if to < 0 {
					to = pos + 1
					for to < len(r.b) && !x.ends[i][r.off+uint64(to)] {
						to++
					}
					if to < len(r.b) { // else what is kept ends there
						out.lost += to - pos
					}
					pos = to
					continue
				}
				out.messages++
				if to > pos+n {
					out.counting++
				}
				out.covered += to - pos
				at[r.off+uint64(to)] = true
				pos = to
			}
		}
		out.turns += len(turns)
		for off := range turns {
			if at[off] {
				out.turnHits++
			}
		}
	}
	return out
}

// countedLines suggests lines of reader text, where some count the bytes behind
// them, and says what speaks for it.
func countedLines(flows []*flow, conns int) ([]model.Line, int, string) {
	x := newLineSearch(flows)
	for round := 0; round < lineRounds && x.learn(); round++ {
		continue
	}
	if len(x.rules) == 0 {
		return nil, 0, ""
	}
	c := x.read()
	if c.counting < wantMessages || float64(c.covered) < lineShare*float64(c.covered+c.lost) || float64(c.turnHits) < wantTurns*float64(c.turns) {
		return nil, 0, ""
	}
	words := map[counts][]string{}
	for _, w := range slices.Sorted(maps.Keys(x.rules)) {
		words[x.rules[w]] = append(words[x.rules[w]], regexp.QuoteMeta(w))
	}
	var out []model.Line
	for _, c := range slices.SortedFunc(maps.Keys(words), func(a, b counts) int { return cmp.Or(a.token-b.token, b.plus-a.plus) }) {
		out = append(out, model.Line{Match: pattern(words[c], c.token), Plus: c.plus})
	}
	return out, c.messages, fmt.Sprintf("%s messages of %s are lines, %s of them with as many bytes behind them as they say: they cover %s of %s bytes, and %s of %s turns end where one does",
		thousands(c.messages), plural(conns, "connection"), thousands(c.counting), percent(c.covered, c.covered+c.lost), thousands(c.covered+c.lost), thousands(c.turnHits), thousands(c.turns))
}

// pattern matches the lines that begin with one of the words.
func pattern(words []string, token int) string {
	first := words[0]
	if len(words) > 1 {
		first = "(?:" + strings.Join(words, "|") + ")"
	}
	switch {
	case token == lastToken:
		return `^` + first + `\s(?:.*\s)?(?P<length>\d+)$`
	case token == 1:
		return `^` + first + `\s+(?P<length>\d+)(?:\s|$)`
	}
	return `^` + first + `(?:\s+\S+){` + strconv.Itoa(token-1) + `}\s+(?P<length>\d+)(?:\s|$)`
}

// Lines are lines as a target file has them, an entry of its list each.
func Lines(ls []model.Line) (out []string) {
	for _, l := range ls {
		s := "{match: '" + strings.ReplaceAll(l.Match, "'", "''") + "'"
		if l.Plus > 0 {
			s += ", plus: " + strconv.Itoa(l.Plus)
		}
		out = append(out, s+"}")
	}
	return out
}
