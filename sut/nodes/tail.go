package nodes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"netsplit/model"
	"netsplit/record"
)

// tailEvery is how often log files are looked at.
const tailEvery = 300 * time.Millisecond

// Bounds of what is read of the log files of a host.
const (
	// maxLogLine is the longest line in bytes; a longer one is passed on in parts, like one
	// that a process prints (testbed/proc).
	maxLogLine = 64 << 10
	// maxLogBytes is how much is read of a file.
	maxLogBytes = 256 << 20
	// maxLogFiles is how many files are read.
	maxLogFiles = 1000
)

// tail reads the log files of a host's directory, those there are and those
// that appear, until ctx ends, and then once more to their ends. A file that
// was cut short is read from its beginning; one that has another name now is
// read on, and not again; links to folders are not followed. The time of a line
// is when it was read. A copy of each file is kept in the record. The error says what
// could not be read or kept; the rest is read all the same.
func (l *logs) tail(ctx context.Context, host model.NodeID, dir string, patterns []string, start time.Time, copyTo string) error {
	t := tailing{dir: dir, patterns: patterns, copyTo: copyTo, line: func(f *tailed, text string) {
		process, _, _ := strings.Cut(f.rel, string(filepath.Separator))
		l.line(record.LogLine{Host: host, Process: process, File: f.rel, At: time.Since(start)}, text)
	}}
	defer t.close()
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.look()
			return t.first
		case <-tick.C:
			t.look()
		}
	}
}

// tailing are the log files of a host.
type tailing struct {
	dir      string
	patterns []string
	copyTo   string
	line     func(f *tailed, text string)
	files    []*tailed // each stays open, so that no other file gets its number
	first    error
}

func (t *tailing) note(err error) {
	if t.first == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.first = err
	}
}

func (t *tailing) look() {
	for _, pattern := range t.patterns {
		found, err := doublestar.Glob(os.DirFS(t.dir), pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		t.note(err)
		for _, rel := range found {
			t.find(rel)
		}
	}
	for _, f := range t.files {
		t.note(t.read(f))
	}
}

// find opens the file at a path, unless it is open. One that was cut short is read anew.
func (t *tailing) find(rel string) {
	st, err := os.Stat(filepath.Join(t.dir, rel))
	if err != nil || st.IsDir() { // gone, or a link to a folder
		return
	}
	if i := slices.IndexFunc(t.files, func(f *tailed) bool { return os.SameFile(f.st, st) }); i >= 0 {
		if f := t.files[i]; st.Size() < f.size {
			t.note(t.read(f)) // what was read before has its end there
			t.end(f)
			_, err := f.f.Seek(0, io.SeekStart)
			t.note(err)
			f.r.Reset(f.f)
			f.size = 0
		}
		return
	}
	if len(t.files) == maxLogFiles {
		t.note(fmt.Errorf("host folder %s has more than %d log files: %s and others are not read", t.dir, maxLogFiles, rel))
		return
	}
	f, err := openTail(t.dir, rel, filepath.Join(t.copyTo, rel))
	t.note(err)
	if f != nil {
		t.files = append(t.files, f)
	}
}

// tailed is a log file that is read while it grows.
type tailed struct {
	rel  string // its first name
	f    *os.File
	st   fs.FileInfo
	r    *bufio.Reader
	size int64    // read so far
	copy *os.File // nil if it cannot be written
	part []byte   // a line whose end has not come
}

// openTail opens a log file, with an error also if no copy can be kept.
func openTail(dir, rel, copyTo string) (*tailed, error) {
	f, st, err := openBelow(dir, rel)
	if err != nil {
		return nil, err
	}
	t := &tailed{rel: rel, f: f, st: st, r: bufio.NewReaderSize(f, maxLogLine)}
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
func openBelow(dir, rel string) (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, nil, errors.Join(fmt.Errorf("log file %s in %s is no regular file", rel, dir), err, f.Close())
	}
	return f, st, nil
}

// read reads what has come since.
func (t *tailing) read(f *tailed) error {
	var lost error
	for f.size < maxLogBytes {
		s, err := f.r.ReadSlice('\n')
		f.size += int64(len(s))
		if f.copy != nil {
			if _, err := f.copy.Write(s); err != nil {
				lost = fmt.Errorf("keep a copy of a log file: %w", err)
				f.copy.Close()
				f.copy = nil
			}
		}
		f.part = append(f.part, s...)
		switch {
		case errors.Is(err, io.EOF) && len(f.part) < maxLogLine:
			return lost
		case err == nil || errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF):
			t.end(f)
		default:
			return fmt.Errorf("read a log file: %w", err)
		}
	}
	return fmt.Errorf("log file %s is longer than %d MiB: the rest is not read", f.f.Name(), maxLogBytes>>20)
}

// end hands over what was read of a line.
func (t *tailing) end(f *tailed) {
	if len(f.part) > 0 {
		t.line(f, string(bytes.TrimRight(f.part, "\r\n")))
	}
	f.part = nil
}

// close hands over last lines without an end.
func (t *tailing) close() {
	for _, f := range t.files {
		t.end(f)
		f.f.Close()
		if f.copy != nil {
			f.copy.Close()
		}
	}
}
