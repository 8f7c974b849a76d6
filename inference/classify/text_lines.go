package classify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"netsplit/model"
)

const (
	groupLength = "length"
	groupType   = "type"
)

// textLines reads a text protocol some of whose lines are followed by as many bytes
// as they say, as the target file describes. A line and what belongs to it are
// one message; any other line is one as it is to reader text.
type textLines struct {
	rules []lineRule
	seen  [2]map[string]bool // types there were, to find the next message after a loss
}

type lineRule struct {
	match        *regexp.Regexp
	length, word []int // groups of match, by alternatives
	plus         int
	fields       []place
}

// ownField are the fields of the line itself.
var ownField = regexp.MustCompile(`^(text|token[0-9]+)$`)

// newTextLines checks what a target file says of its lines.
func newTextLines(p model.Protocol) (*textLines, error) {
	l := &textLines{seen: [2]map[string]bool{{}, {}}}
	var errs []error
	for i, m := range p.Lines {
		at := fmt.Sprintf("lines[%d]", i)
		re, err := regexp.Compile(m.Match)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.match: %w", at, err))
			continue
		}
		r := lineRule{match: re, plus: m.Plus}
		for n, name := range re.SubexpNames() {
			switch name {
			case "":
			case groupLength:
				r.length = append(r.length, n)
			case groupType:
				r.word = append(r.word, n)
			default:
				errs = append(errs, fmt.Errorf("%s.match: unknown group %q: groups here are named %s, %s", at, name, groupLength, groupType))
			}
		}
		switch {
		case r.length == nil && r.word == nil:
			errs = append(errs, fmt.Errorf("%s.match: want a group named %s, the number of bytes that follow the line, or %s, a word of the type, or both: '^PUT (?P<%s>\\d+)$'", at, groupLength, groupType, groupLength))
		case r.length == nil && p.Transport != "udp" && (m.Plus != 0 || len(m.Fields) > 0):
			errs = append(errs, fmt.Errorf("%s: plus and fields are of what follows the line: match needs a group named %s", at, groupLength))
		case m.Plus < 0:
			errs = append(errs, fmt.Errorf("%s.plus: want the bytes that %s does not count, not %d", at, groupLength, m.Plus))
		}
		for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
			q, err := newPlace(at+".fields."+name, m.Fields[name])
			if ownField.MatchString(name) {
				err = fmt.Errorf("%s.fields.%s: every line has a field of that name: take another", at, name)
			}
			errs = append(errs, err)
			q.name = name
			r.fields = append(r.fields, q)
		}
		l.rules = append(l.rules, r)
	}
	return l, errors.Join(errs...)
}

// rule is the first whose pattern a line matches, and where its groups are.
func (l *textLines) rule(line []byte) (*lineRule, []int) {
	for i := range l.rules {
		if at := l.rules[i].match.FindSubmatchIndex(line); at != nil {
			return &l.rules[i], at
		}
	}
	return nil, nil
}

// group is what the first of some groups that took part in a match holds; nil if
// none did.
func group(line []byte, at []int, groups []int) []byte {
	for _, n := range groups {
		if at[2*n] >= 0 {
			return line[at[2*n]:at[2*n+1]]
		}
	}
	return nil
}

// first cuts b behind its first line, which is given without its end; rest is
// nil if the line has no end.
func first(b []byte) (line, rest []byte) {
	k := bytes.IndexByte(b, '\n')
	if k < 0 {
		return b, nil
	}
	return bytes.TrimRight(b[:k], "\r"), b[k+1:]
}

func (l *textLines) size(_ int, b []byte) int64 {
	line, rest := first(b)
	if !printable(string(line)) {
		return -1
	}
	if rest == nil {
		return 0
	}
	n := int64(len(b) - len(rest))
	r, at := l.rule(line)
	if r == nil {
		return n
	}
	if reported := group(line, at, r.length); reported != nil {
		k, err := strconv.ParseUint(string(reported), 10, 64)
		if err != nil || k > framesLong {
			return -1
		}
		n += int64(k) + int64(r.plus)
	}
	return n
}

// starts believes lines of which a rule knows, or whose types were there
// before: several in a row, or as many as fit into what is looked at.
func (l *textLines) starts(dir int, b []byte) (ok, more bool) {
	at := 0
	for k := range framesChain {
		if bytes.IndexByte(b[at:], '\n') < 0 && len(b) >= frameLook {
			return k > 0, false
		}
		n := l.size(dir, b[at:])
		if n < 0 {
			return false, false
		}
		if n == 0 {
			return false, true
		}
		line, _ := first(b[at:])
		if r, _ := l.rule(line); r == nil {
			word := line
			if k := bytes.IndexAny(line, " \t"); k >= 0 {
				word = line[:k]
			}
			if !l.seen[dir]["text "+string(word)] {
				return false, false
			}
		}
		if int64(at)+n > frameLook {
			return true, false
		}
		if at += int(n); at > len(b) {
			return false, true
		}
	}
	return true, false
}

func (l *textLines) read(dir int, h frameHead) []Unit {
	u, word := l.unit(h.b)
	if h.total > 0 && word != "" && len(l.seen[dir]) < vocabularyMost {
		l.seen[dir][word] = true
	}
	return []Unit{u}
}

// unit types a message; word is the type by its first word, if that is one.
func (l *textLines) unit(b []byte) (u Unit, word string) {
	line, rest := first(b)
	u.Type, u.Broad, u.Fields = textType(line[:min(len(line), TextKeep)], len(line) > TextKeep)
	if u.Type == model.TypeUnknown {
		return u, ""
	}
	if u.Type != u.Broad {
		word = u.Type
	}
	r, at := l.rule(line)
	if r == nil {
		return u, word
	}
	if w := cut(string(group(line, at, r.word)), maxWord); w != "" {
		u.Broad = cmp.Or(word, u.Broad)
		u.Type = cmp.Or(word, "text") + " " + w
	}
	for _, p := range r.fields {
		if p.in(rest) {
			u.Fields = append(u.Fields, model.Field{Name: p.name, Value: p.text(rest)})
		}
	}
	return u, word
}

func (l *textLines) datagram(_ int, b []byte) Unit {
	u, _ := l.unit(b)
	u.Bytes = len(b)
	return u
}
