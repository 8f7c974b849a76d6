package rundir

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"netsplit/model"
)

// Writer appends to the files of one run directory. Its methods may be called
// from several goroutines. The first write error is kept and returned by Err
// and Close; later writes are dropped, so a full disk does not stop the
// healing of a network. What comes after Close is dropped and not counted: a
// packet may be on its way through the gate still.
type Writer struct {
	Dir string

	mu    sync.Mutex // guards all below
	files map[string]*lines
	count map[string]int // lines by file
	over  bool
	err   error
}

type lines struct {
	f *os.File
	w *bufio.Writer
	e *json.Encoder
}

// Create makes the directory of a run and writes its meta.json. It fails if
// the run was recorded before.
func Create(dir string, meta model.RunMeta) (*Writer, error) {
	if _, err := os.Stat(filepath.Join(dir, MetaFile)); err == nil {
		return nil, fmt.Errorf("%s holds a recorded run already: it is not overwritten", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, LogsDir), dirMode); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	if err := WriteJSON(filepath.Join(dir, MetaFile), meta); err != nil {
		return nil, err
	}
	return &Writer{Dir: dir, files: map[string]*lines{}, count: map[string]int{}}, nil
}

// Append writes v as one JSON line of the named file.
func (w *Writer) Append(file string, v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.over {
		return
	}
	l := w.files[file]
	if l == nil {
		f, err := os.OpenFile(filepath.Join(w.Dir, file), os.O_CREATE|os.O_WRONLY|os.O_APPEND, fileMode)
		if err != nil {
			w.err = err
			return
		}
		bw := bufio.NewWriterSize(f, 64<<10)
		l = &lines{f: f, w: bw, e: json.NewEncoder(bw)}
		l.e.SetEscapeHTML(false)
		w.files[file] = l
	}
	if err := l.e.Encode(v); err != nil {
		w.err = fmt.Errorf("write %s: %w", file, err)
	}
	w.count[file]++
}

// Lines is the number of lines that were appended to each file.
func (w *Writer) Lines() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count)
}

// Flush hands what is buffered to the operating system.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// flush is Flush; the caller holds mu.
func (w *Writer) flush() error {
	for name, l := range w.files {
		if err := l.w.Flush(); err != nil && w.err == nil {
			w.err = fmt.Errorf("write %s: %w (is the disk full?)", name, err)
		}
	}
	return w.err
}

// Err returns the first write error.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close flushes and closes every file and returns the first error of all
// writes. Closing twice is harmless.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flush()
	for _, l := range w.files {
		err = errors.Join(err, l.f.Close())
	}
	w.files, w.over = map[string]*lines{}, true
	return err
}
