package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"netsplit/model"
)

// history prints operations, one JSON line each, in the order of their times.
type history struct {
	start time.Time

	mu   sync.Mutex // guards what follows
	w    *bufio.Writer
	fail error
}

func newHistory(w io.Writer, start time.Time) *history {
	return &history{start: start, w: bufio.NewWriter(w)}
}

// add stamps and prints one operation.
func (h *history) add(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.Time = time.Since(h.start)
	h.print(op)
}

// put prints one that has its time.
func (h *history) put(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.print(op)
}

// print prints an operation. The caller holds mu.
func (h *history) print(op model.Operation) {
	b, err := json.Marshal(op)
	if err == nil {
		_, err = h.w.Write(append(b, '\n'))
	}
	if err == nil {
		err = h.w.Flush()
	}
	if err != nil && h.fail == nil {
		h.fail = fmt.Errorf("write history: %w", err)
	}
}

// do prints an operation before and after it runs. An error that is a
// timeout leaves open what happened.
func (h *history) do(op model.Operation, f func() (value string, err error)) error {
	op.Type = model.OpInvoke
	h.add(op)
	value, err := f()
	op.Type, op.Needs = model.OpOK, nil
	if value != "" {
		op.Value = value
	}
	if err != nil {
		op.Type, op.Error = model.OpFail, err.Error()
		if isTimeout(err) {
			op.Type = model.OpInfo
		}
	}
	h.add(op)
	return err
}

// did prints an operation that failed and of which nobody knew, when it began, that
// it would be one.
func (h *history) did(began time.Time, op model.Operation, err error) {
	op.Type, op.Time = model.OpInvoke, began.Sub(h.start)
	h.put(op)
	op.Type, op.Needs, op.Error = model.OpFail, nil, err.Error()
	h.add(op)
}

func (h *history) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fail
}
