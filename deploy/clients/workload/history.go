package workload

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"netsplit/model"
)

// RunStart is when the run started, from the environment variable
// NETSPLIT_RUN_START (Unix nanoseconds); without it, now.
func RunStart() (time.Time, error) {
	s := os.Getenv("NETSPLIT_RUN_START")
	if s == "" {
		return time.Now(), nil
	}
	ns, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("NETSPLIT_RUN_START=%q: want the start of the run in Unix nanoseconds", s)
	}
	return time.Unix(0, ns), nil
}

// History prints operations, one JSON line each, in the order of their times.
// Its methods may be called by several goroutines at once.
type History struct {
	start time.Time

	mu   sync.Mutex // guards what follows
	enc  *json.Encoder
	fail error
}

// NewHistory prints to w; times count from start.
func NewHistory(w io.Writer, start time.Time) *History {
	return &History{start: start, enc: json.NewEncoder(w)}
}

// Since is a moment in the time of the history.
func (h *History) Since(t time.Time) time.Duration { return t.Sub(h.start) }

// Add stamps and prints one operation.
func (h *History) Add(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.Time = time.Since(h.start)
	h.print(op)
}

// Put prints an operation that has its time already.
func (h *History) Put(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.print(op)
}

// print prints an operation. The caller holds mu.
func (h *History) print(op model.Operation) {
	if err := h.enc.Encode(op); err != nil && h.fail == nil {
		h.fail = fmt.Errorf("write history: %w", err)
	}
}

// Err is the first failure to print; nil also of a history that nobody made, since
// help was asked for.
func (h *History) Err() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fail
}
