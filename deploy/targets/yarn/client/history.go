package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"netsplit/model"
)

// history prints operations, one JSON object a line.
type history struct {
	mu    sync.Mutex
	enc   *json.Encoder
	start time.Time // of the run
	first error
}

// newHistory takes the start of the run from NETSPLIT_RUN_START, Unix
// nanoseconds.
func newHistory(out io.Writer) (*history, error) {
	h := &history{enc: json.NewEncoder(out), start: time.Now()}
	if v := os.Getenv("NETSPLIT_RUN_START"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("NETSPLIT_RUN_START is %q: want Unix nanoseconds", v)
		}
		h.start = time.Unix(0, n)
	}
	return h, nil
}

func (h *history) print(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.Time = time.Since(h.start)
	if err := h.enc.Encode(op); err != nil && h.first == nil {
		h.first = err
	}
}

func (h *history) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first
}

// outcome of an operation: an error whose first word is stable, and whether
// it is certain that the operation did not happen.
type outcome struct {
	key     string // "": as at the invocation
	value   string // likewise
	err     string
	unknown bool
}

func ok(value string) outcome { return outcome{value: value} }

func failed(word, format string, a ...any) outcome {
	return outcome{err: word + ": " + fmt.Sprintf(format, a...)}
}

func unknown(word, format string, a ...any) outcome {
	o := failed(word, format, a...)
	o.unknown = true
	return o
}

// do runs an operation and prints its two lines.
func (h *history) do(op model.Operation, f func() outcome) outcome {
	op.Type = model.OpInvoke
	h.print(op)
	o := f()
	op.Needs = nil
	op.Key, op.Value = cmp.Or(o.key, op.Key), cmp.Or(o.value, op.Value)
	op.Type, op.Error = model.OpOK, o.err
	switch {
	case o.unknown:
		op.Type = model.OpInfo
	case o.err != "":
		op.Type = model.OpFail
	}
	h.print(op)
	return o
}
