package nodes

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

// logs reads the lines that a target's processes print or write to files, numbers and
// keeps them, and keeps once more those that match a fatal pattern, each with the lines
// that continue it, unless one of all these lines is allowed.
type logs struct {
	fatal, allow []*regexp.Regexp
	ours         *strings.Replacer // takes out folders of netsplit
	context      int
	number       func() uint64
	keep         func(file string, l record.LogLine)

	mu   sync.Mutex
	open map[string]*record.LogLine // by stream: still being continued
}

// defaultContext is how many lines a match may be continued by.
const defaultContext = 60

// newLogs reads lines by the target's patterns. Folders that netsplit chose, as their users named
// them, are no word of the system: a fatal pattern does not find them.
func newLogs(p model.LogPatterns, number func() uint64, keep func(string, record.LogLine), folders ...string) (*logs, error) {
	l := &logs{ours: without(folders), context: p.Context, number: number, keep: keep, open: map[string]*record.LogLine{}}
	if l.context == 0 {
		l.context = defaultContext
	}
	for _, set := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{p.Fatal, &l.fatal}, {p.Allow, &l.allow}} {
		for _, pattern := range set.from {
			re, err := check.LogPattern(pattern)
			if err != nil {
				return nil, err
			}
			*set.to = append(*set.to, re)
		}
	}
	return l, nil
}

// without takes folders out of a text, also as they are behind links.
func without(folders []string) *strings.Replacer {
	all := slices.Clone(folders)
	for _, f := range folders {
		if real, err := filepath.EvalSymlinks(f); err == nil {
			all = append(all, real)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range all {
		if len(f) > 1 {
			pairs = append(pairs, f, "")
		}
	}
	return strings.NewReplacer(pairs...)
}

// maxMatch bounds a match with what continues it, in bytes.
const maxMatch = 4 << 20

func sizeOf(o *record.LogLine) int {
	n := len(o.Line)
	for _, c := range o.Context {
		n += len(c)
	}
	return n
}

func (l *logs) line(like record.LogLine, text string) {
	text = plain(text)
	like.Num, like.Line = l.number(), text
	l.keep(rundir.LinesFile, like)
	stream := string(like.Host) + "\x00" + like.Process + "\x00" + like.File
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[stream]; o != nil {
		if check.Continues(append([]string{o.Line}, o.Context...), text) {
			if len(o.Context) < l.context && sizeOf(o) < maxMatch {
				o.Context = append(o.Context, text)
			}
			return
		}
		delete(l.open, stream)
		l.end(o)
	}
	// What follows a line that is allowed by itself is judged by itself.
	if matches(l.fatal, l.ours.Replace(text)) && !matches(l.allow, text) {
		l.open[stream] = &like
	}
}

// coloured is what programs write for a terminal between what they say: CSI and
// OSC sequences (ECMA-48), and the choice of a character set.
var coloured = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\\([0-9AB])")

// plain is a line without colours, which stand where patterns and stack traces
// have the beginning and the end of a line.
func plain(line string) string {
	if strings.IndexByte(line, '\x1b') < 0 {
		return line
	}
	return coloured.ReplaceAllString(line, "")
}

// end keeps a match that nothing continues any more, unless what continued it
// is allowed.
func (l *logs) end(o *record.LogLine) {
	if !matches(l.allow, strings.Join(append([]string{o.Line}, o.Context...), "\n")) {
		l.keep(rundir.LogLinesFile, *o)
	}
}

// flush keeps what was still being continued.
func (l *logs) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.open {
		l.end(o)
	}
	clear(l.open)
}

func matches(res []*regexp.Regexp, line string) bool {
	return slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(line) })
}
