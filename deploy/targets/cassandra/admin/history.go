package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsplit/model"
)

// Node is one server.
type Node struct {
	Name model.NodeID
	IP   netip.Addr
}

// ParseNodes reads "n1=10.0.0.1,n2=10.0.0.2".
func ParseNodes(spec string) ([]Node, error) {
	var out []Node
	for _, f := range strings.Split(spec, ",") {
		name, addr, ok := strings.Cut(f, "=")
		ip, err := netip.ParseAddr(addr)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("--nodes %q: want hosts with their addresses, such as n1=10.0.0.1,n2=10.0.0.2", spec)
		}
		out = append(out, Node{model.NodeID(name), ip})
	}
	return out, nil
}

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
	w    *bufio.Writer
	fail error
}

// NewHistory prints to w; times count from start.
func NewHistory(w io.Writer, start time.Time) *History {
	return &History{start: start, w: bufio.NewWriter(w)}
}

// Add stamps and prints one operation.
func (h *History) Add(op model.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.Time = time.Since(h.start)
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

// Err is the first failure to print.
func (h *History) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fail
}
