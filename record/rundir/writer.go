package rundir

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"netsplit/model"
)

const (
	// queued is the most entries that may wait to be written: 12 MB, if they are packets of
	// 1,500 bytes.
	queued = 8192
	// flushEvery is how soon entries reach the operating system, if the disk keeps up: a
	// killed process loses no more than that.
	flushEvery = 200 * time.Millisecond
)

// Writer appends to the files of one run directory. Its methods may be called
// from several goroutines. A goroutine of its own encodes and writes, in the order of
// the calls, so that no packet waits for a disk unless the queue is full; see Waits.
// The first error is kept and returned by Err, Flush and Close; later entries are
// dropped, so a full disk does not stop the healing of a network. What comes after
// Close is dropped and not counted: a packet may be on its way through the gate still.
type Writer struct {
	Dir string

	order sync.RWMutex // held to read while an entry is queued, to write by Close
	over  bool
	queue chan func() error // executed by the writing goroutine
	ended chan struct{}     // closed when the writing goroutine has ended

	mu     sync.Mutex     // guards what follows
	count  map[string]int // lines by file
	err    error
	waits  int
	waited time.Duration

	// Of the writing goroutine.
	files   map[string]*lines
	capture Capture
	dirty   bool
}

// Capture is a file of packets.
type Capture interface {
	Write(f model.Frame, comment string) error
	Flush() error
	Close() error
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
	w := &Writer{Dir: dir, files: map[string]*lines{}, count: map[string]int{}, queue: make(chan func() error, queued), ended: make(chan struct{})}
	go w.run()
	return w, nil
}

// Append writes v as one JSON line of the named file. v must not be changed any more.
func (w *Writer) Append(file string, v any) {
	w.enter(func() error { return w.line(file, v) })
}

// Capture has the writer write packets to c, and flush and close it with its own files. Call it
// before Packet.
func (w *Writer) Capture(c Capture) {
	w.enter(func() error {
		w.capture = c
		return nil
	})
}

// Packet adds a frame to the Capture. It keeps a copy of its bytes.
func (w *Writer) Packet(f model.Frame, comment string) {
	f.Data = bytes.Clone(f.Data)
	w.enter(func() error {
		if w.Err() != nil {
			return nil
		}
		w.dirty = true
		return w.capture.Write(f, comment)
	})
}

// enter queues an entry and says whether the writer was open.
func (w *Writer) enter(write func() error) bool {
	w.order.RLock()
	defer w.order.RUnlock()
	if w.over {
		return false
	}
	select {
	case w.queue <- write:
		return true
	default:
	}
	from := time.Now()
	w.queue <- write
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits++
	w.waited += time.Since(from)
	return true
}

func (w *Writer) run() {
	defer close(w.ended)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case write, more := <-w.queue:
			if !more {
				w.fail(guarded(w.flush))
				w.fail(guarded(w.end))
				return
			}
			w.fail(guarded(write))
		case <-tick.C:
			w.fail(guarded(w.flush))
		}
	}
}

// fail keeps the first error; nil is none.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// guarded calls write, and turns a panic into an error: the daemon goes on.
func guarded(write func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("netsplit itself failed while it wrote the record, please report it: %v\n%s", p, debug.Stack())
		}
	}()
	return write()
}

func (w *Writer) line(file string, v any) error {
	if w.Err() != nil {
		return nil
	}
	w.dirty = true
	l := w.files[file]
	if l == nil {
		f, err := os.OpenFile(filepath.Join(w.Dir, file), os.O_CREATE|os.O_WRONLY|os.O_APPEND, fileMode)
		if err != nil {
			return err
		}
		bw := bufio.NewWriterSize(f, 64<<10)
		l = &lines{f: f, w: bw, e: json.NewEncoder(bw)}
		l.e.SetEscapeHTML(false)
		w.files[file] = l
	}
	if err := l.e.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[file]++
	return nil
}

// flush hands what is buffered to the operating system.
func (w *Writer) flush() (err error) {
	if !w.dirty {
		return nil
	}
	w.dirty = false
	for name, l := range w.files {
		if e := l.w.Flush(); e != nil {
			err = cmp.Or(err, fmt.Errorf("write %s: %w (is the disk full?)", name, e))
		}
	}
	if w.capture != nil {
		err = cmp.Or(err, w.capture.Flush())
	}
	return err
}

func (w *Writer) end() (err error) {
	for _, l := range w.files {
		err = cmp.Or(err, l.f.Close())
	}
	if w.capture != nil {
		err = cmp.Or(err, w.capture.Close())
	}
	return err
}

// Lines is the number of lines that were written to each file.
func (w *Writer) Lines() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count)
}

// Waits is how often, and for how long in all, the queue was full and somebody waited.
func (w *Writer) Waits() (n int, all time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits, w.waited
}

// Flush hands all that was entered before to the operating system.
func (w *Writer) Flush() error {
	done := make(chan struct{})
	flush := func() error {
		defer close(done)
		w.fail(guarded(w.flush)) // before the caller asks for the error
		return nil
	}
	if !w.enter(flush) {
		return w.Err()
	}
	<-done
	return w.Err()
}

// Err returns the first error.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close writes what is queued, closes every file and returns the first error of all
// writes. Closing twice is harmless.
func (w *Writer) Close() error {
	w.order.Lock()
	if !w.over {
		w.over = true
		close(w.queue)
	}
	w.order.Unlock()
	<-w.ended
	return w.Err()
}
