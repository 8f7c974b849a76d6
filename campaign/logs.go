package campaign

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"netsplit/campaign/record"
	"netsplit/explorer/check"
	"netsplit/model"
)

// logs reads the lines that a target's processes print or write to files, and
// keeps those that match a fatal pattern, each with the lines that continue
// it.
type logs struct {
	fatal, allow []*regexp.Regexp
	context      int
	keep         func(record.LogLine)

	mu   sync.Mutex
	open map[string]*record.LogLine // by stream: still being continued
}

// defaultContext is how many lines a match may be continued by.
const defaultContext = 60

func newLogs(p model.LogPatterns, keep func(record.LogLine)) (*logs, error) {
	l := &logs{context: p.Context, keep: keep, open: map[string]*record.LogLine{}}
	if l.context == 0 {
		l.context = defaultContext
	}
	for _, set := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{p.Fatal, &l.fatal}, {p.Allow, &l.allow}} {
		for _, pattern := range set.from {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			*set.to = append(*set.to, re)
		}
	}
	return l, nil
}

// line takes one line of a stream.
func (l *logs) line(like record.LogLine, text string) {
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
		l.keep(*o)
	}
	if matches(l.fatal, text) && !matches(l.allow, text) {
		like.Line = text
		l.open[stream] = &like
	}
}

// flush keeps what was still being continued.
func (l *logs) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.open {
		l.keep(*o)
	}
	clear(l.open)
}

func matches(res []*regexp.Regexp, line string) bool {
	return slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(line) })
}

// tailEvery is how often log files are looked at.
const tailEvery = 300 * time.Millisecond

// tail reads the log files of a host's directory, those there are and those
// that appear, until ctx ends, and then once more to their ends. The time of a
// line is when it was read. A copy of each file is kept in the record.
func (l *logs) tail(ctx context.Context, host model.NodeID, dir string, patterns []string, start time.Time, copyTo string) error {
	files := map[string]*tailed{}
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	var first error
	look := func() {
		for _, pattern := range patterns {
			found, _ := doublestar.Glob(os.DirFS(dir), pattern, doublestar.WithFilesOnly())
			for _, rel := range found {
				path := filepath.Join(dir, rel)
				if files[path] == nil {
					f, err := openTail(path, filepath.Join(copyTo, string(host)+"-"+strings.ReplaceAll(rel, string(filepath.Separator), "-")))
					if err != nil {
						if !errors.Is(err, fs.ErrNotExist) && first == nil {
							first = err
						}
						continue
					}
					f.rel = rel
					files[path] = f
				}
			}
		}
		for _, f := range files {
			f.read(func(text string) {
				l.line(record.LogLine{Host: host, Process: strings.SplitN(f.rel, string(filepath.Separator), 2)[0], At: time.Since(start), File: f.rel}, text)
			})
		}
	}
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
	rel  string
	f    *os.File
	r    *bufio.Reader
	copy *os.File
	part string // a line whose end has not come
}

func openTail(path, copyTo string) (*tailed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := os.Create(copyTo)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &tailed{f: f, r: bufio.NewReaderSize(f, 64<<10), copy: c}, nil
}

func (t *tailed) read(line func(string)) {
	for {
		s, err := t.r.ReadString('\n')
		_, _ = io.WriteString(t.copy, s)
		t.part += s
		if err != nil {
			return
		}
		line(strings.TrimRight(t.part, "\r\n"))
		t.part = ""
	}
}

func (t *tailed) close() {
	t.f.Close()
	t.copy.Close()
}
