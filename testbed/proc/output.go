package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxLine is the longest line in bytes; a longer one is passed on in parts.
const maxLine = 64 << 10

// output carries what a process prints to where its Spec says.
type output struct {
	spec           Spec
	stdout, stderr *os.File // the process's ends, closed once it has started
	ours           []*os.File
	log            *os.File // nil if none

	mu sync.Mutex // one line at a time
}

func newOutput(spec Spec) (*output, error) {
	o := &output{spec: spec}
	if spec.LogPath != "" {
		f, err := os.OpenFile(spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		o.log = f
	}
	for _, theirs := range []**os.File{&o.stdout, &o.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			o.abandon()
			return nil, err
		}
		*theirs = w
		o.ours = append(o.ours, r)
	}
	return o, nil
}

// abandon closes everything; the process was not started.
func (o *output) abandon() {
	for _, f := range append([]*os.File{o.stdout, o.stderr, o.log}, o.ours...) {
		if f != nil {
			f.Close()
		}
	}
}

func (o *output) giveUp() {
	for _, f := range o.ours {
		_ = f.SetReadDeadline(time.Now())
	}
}

// read reads all output until the last process that holds it has ended.
func (o *output) read() {
	o.stdout.Close()
	o.stderr.Close()
	var wg sync.WaitGroup
	wg.Go(func() { o.lines(o.ours[0], o.spec.OnStdout) })
	wg.Go(func() { o.lines(o.ours[1], nil) })
	wg.Wait()
	for _, f := range o.ours {
		f.Close()
	}
	if o.log != nil {
		o.log.Close()
	}
}

// lines reads lines and passes them to f, or to the log and OnLine if f is nil.
func (o *output) lines(r io.Reader, f func(time.Time, string)) {
	if f == nil {
		f = o.line
	}
	br := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := br.ReadSlice('\n')
		if len(text) > 0 {
			f(time.Now(), string(bytes.TrimSuffix(text, []byte{'\n'})))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (o *output) line(at time.Time, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		if _, err := o.log.WriteString(text + "\n"); err != nil {
			o.log.Close()
			o.log = nil
			text += fmt.Sprintf(" [netsplit: the log %s ends here: %v]", o.spec.LogPath, err)
		}
	}
	if o.spec.OnLine != nil {
		o.spec.OnLine(at, text)
	}
}
