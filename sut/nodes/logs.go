package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bmatcuk/doublestar/v4"

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

func (l *logs) line(like record.LogLine, text string) {
	text = plain(text)
	like.Num, like.Line = l.number(), text
	l.keep(rundir.LinesFile, like)
	stream := string(like.Host) + "\x00" + like.Process + "\x00" + like.File
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[stream]; o != nil {
		if check.Continues(append([]string{o.Line}, o.Context...), text) {
			if len(o.Context) < l.context {
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

// tailEvery is how often log files are looked at.
const tailEvery = 300 * time.Millisecond

// tail reads the log files of a host's directory, those there are and those
// that appear, until ctx ends, and then once more to their ends. A file that
// was cut short, or another one under the name of an old one, is read from its
// beginning. The time of a line is when it was read. A copy of each file is
// kept in the record. The error says what could not be read or kept; the rest
// is read all the same.
func (l *logs) tail(ctx context.Context, host model.NodeID, dir string, patterns []string, start time.Time, copyTo string) error {
	files := map[string]*tailed{}
	var first error
	note := func(err error) {
		if first == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
			first = err
		}
	}
	take := func(rel string) func(string) {
		like := record.LogLine{Host: host, Process: strings.SplitN(rel, string(filepath.Separator), 2)[0], File: rel}
		return func(text string) {
			like.At = time.Since(start)
			l.line(like, text)
		}
	}
	look := func() {
		for _, pattern := range patterns {
			found, err := doublestar.Glob(os.DirFS(dir), pattern, doublestar.WithFilesOnly())
			note(err)
			for _, rel := range found {
				f := files[rel]
				if f != nil && f.replaced(filepath.Join(dir, rel)) {
					note(f.read(take(rel)))
					f.close(take(rel))
					delete(files, rel)
					f = nil
				}
				if f == nil {
					f, err := openTail(dir, rel, filepath.Join(copyTo, rel))
					note(err)
					if f != nil {
						files[rel] = f
					}
				}
			}
		}
		for rel, f := range files {
			note(f.read(take(rel)))
		}
	}
	defer func() {
		for rel, f := range files {
			f.close(take(rel))
		}
	}()
	t := time.NewTicker(tailEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			look()
			return first
		case <-t.C:
			look()
		}
	}
}

// tailed is a log file that is read while it grows.
type tailed struct {
	f    *os.File
	r    *bufio.Reader
	size int64    // read so far
	copy *os.File // nil if it cannot be written
	part string   // a line whose end has not come
}

// openTail opens a log file, with an error also if no copy can be kept.
func openTail(dir, rel, copyTo string) (*tailed, error) {
	f, err := openBelow(dir, rel)
	if err != nil {
		return nil, err
	}
	t := &tailed{f: f, r: bufio.NewReaderSize(f, 64<<10)}
	if err = os.MkdirAll(filepath.Dir(copyTo), 0o700); err == nil {
		t.copy, err = os.OpenFile(copyTo, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err != nil {
		t.copy = nil
		return t, fmt.Errorf("keep a copy of log file %s: %w", f.Name(), err)
	}
	return t, nil
}

// openBelow opens a regular file below dir. Servers link their newest log; a link
// that leads out of dir is not followed, since we may read what the server may not.
func openBelow(dir, rel string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("log file %s in %s is no regular file", rel, dir), err, f.Close())
	}
	return f, nil
}

// replaced says whether the path leads to another file now, or to one that was
// cut short.
func (t *tailed) replaced(path string) bool {
	now, err := os.Stat(path)
	if err != nil {
		return false // gone; what was written before is read still
	}
	mine, err := t.f.Stat()
	return err == nil && (!os.SameFile(mine, now) || now.Size() < t.size)
}

func (t *tailed) read(line func(string)) error {
	var lost error
	for {
		s, err := t.r.ReadString('\n')
		t.size += int64(len(s))
		if t.copy != nil {
			if _, err := io.WriteString(t.copy, s); err != nil {
				lost = fmt.Errorf("keep a copy of a log file: %w", err)
				t.copy.Close()
				t.copy = nil
			}
		}
		t.part += s
		if errors.Is(err, io.EOF) {
			return lost
		}
		if err != nil {
			return fmt.Errorf("read a log file: %w", err)
		}
		line(strings.TrimRight(t.part, "\r\n"))
		t.part = ""
	}
}

// close hands over a last line without an end.
func (t *tailed) close(line func(string)) {
	if t.part != "" {
		line(t.part)
	}
	t.f.Close()
	if t.copy != nil {
		t.copy.Close()
	}
}
