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

// Bounds of what is read of a log file, in bytes.
const (
	// maxLogLine is the longest line; a longer one is passed on in parts.
	maxLogLine = 1 << 20
	// maxLogBytes is how much is read.
	maxLogBytes = 4 << 30
)

// tail reads the log files of a host's directory, those there are and those
// that appear, until ctx ends, and then once more to their ends. A file that
// was cut short is read from its beginning; one that has another name now is
// read on, and not again. A folder is looked at once, however many links lead to it,
// and only below the directory. The time of a line
// is when it was read. A copy of each file is kept in the record. The error says what
// could not be read or kept; the rest is read all the same.
func (l *logs) tail(ctx context.Context, host model.NodeID, dir string, patterns []string, start time.Time, copyTo string) error {
	t := tailing{dir: dir, patterns: patterns, copyTo: copyTo, most: maxLogBytes, line: func(f *tailed, text string) {
		process, _, _ := strings.Cut(f.rel, string(filepath.Separator))
		l.line(record.LogLine{Host: host, Process: process, File: f.rel, At: time.Since(start)}, text)
	}}
	defer t.closeAll()
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
	most     int64 // bytes of a file
	line     func(f *tailed, text string)
	files    []*tailed // each is open until it is gone: no other file gets its number
	first    error
}

func (t *tailing) note(err error) {
	if t.first == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.first = err
	}
}

func (t *tailing) look() {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		t.note(err)
		return
	}
	defer root.Close()
	for _, pattern := range t.patterns {
		found, err := doublestar.Glob(onceFS{root.FS(), map[inode]string{}}, pattern, doublestar.WithFilesOnly())
		t.note(err)
		for _, rel := range found {
			t.find(rel)
		}
	}
	t.files = slices.DeleteFunc(t.files, func(f *tailed) bool {
		t.note(t.read(f))
		st, err := f.f.Stat()
		gone := err == nil && numbers(st).Nlink == 0 && st.Size() <= f.size
		if gone {
			t.close(f)
		}
		return gone
	})
}

// onceFS lists each folder under one name, so that links to folders lead into no loop.
type onceFS struct {
	fs.FS
	seen map[inode]string
}

// inode is what os.SameFile compares.
type inode struct{ dev, ino uint64 }

func numbers(st fs.FileInfo) *syscall.Stat_t { return st.Sys().(*syscall.Stat_t) }

// ReadDir implements fs.ReadDirFS.
func (o onceFS) ReadDir(name string) ([]fs.DirEntry, error) {
	st, err := fs.Stat(o.FS, name)
	if err != nil {
		return nil, err
	}
	n := inode{numbers(st).Dev, numbers(st).Ino}
	if first, ok := o.seen[n]; ok && first != name {
		return nil, nil
	}
	o.seen[n] = name
	return fs.ReadDir(o.FS, name)
}

// find opens the file at a path, unless it is open. One that was cut short is read anew.
func (t *tailing) find(rel string) {
	st, err := os.Stat(filepath.Join(t.dir, rel))
	if err != nil {
		t.note(err)
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
	t := &tailed{rel: rel, f: f, st: st, r: bufio.NewReaderSize(f, 64<<10)}
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
	for f.size < t.most {
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
		case err == nil || len(f.part) >= maxLogLine:
			t.end(f)
		case errors.Is(err, io.EOF):
			return lost
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("read a log file: %w", err)
		}
	}
	return fmt.Errorf("log file %s is longer than %d bytes: the rest is not read", f.f.Name(), t.most)
}

// end hands over what was read of a line.
func (t *tailing) end(f *tailed) {
	if len(f.part) > 0 {
		t.line(f, string(bytes.TrimRight(f.part, "\r\n")))
	}
	f.part = nil
}

// close hands over a last line without an end.
func (t *tailing) close(f *tailed) {
	t.end(f)
	f.f.Close()
	if f.copy != nil {
		f.copy.Close()
	}
}

func (t *tailing) closeAll() {
	for _, f := range t.files {
		t.close(f)
	}
}
