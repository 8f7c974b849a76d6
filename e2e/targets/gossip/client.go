package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// operation is one line of the history, in Jepsen's shape.
type operation struct {
	Process int    `json:"process"`
	Type    string `json:"type"`
	F       string `json:"f"`
	Key     string `json:"key,omitempty"`
	Value   string `json:"value,omitempty"`
	Time    int64  `json:"time"` // nanoseconds since the run started
	Node    string `json:"node,omitempty"`
	Error   string `json:"error,omitempty"`
}

// client is the workload: it asks nodes and writes down what they answer.
type client struct {
	admins map[string]string // address of each node's administration
	start  time.Time         // of the run
	seed   uint64
	leaver string // is decommissioned

	mu  sync.Mutex // guards out
	out io.Writer
	err error // first error of out
}

// Settings of the client.
const (
	askTimeout  = 300 * time.Millisecond // of a STATUS
	readEvery   = 100 * time.Millisecond
	leaveAfter  = 1200 * time.Millisecond // plus up to a quarter of it, drawn
	leaveAgain  = 200 * time.Millisecond  // after a refusal
	finalPeriod = 10 * time.Second        // until all nodes must have answered
)

func (c *client) write(o operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Time = time.Since(c.start).Nanoseconds()
	b, err := json.Marshal(o)
	if err == nil {
		_, err = c.out.Write(append(b, '\n'))
	}
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("writing the history: %w", err)
	}
}

func (c *client) ask(ctx context.Context, node, verb string) ([]string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.admins[node])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, verb+"\n"); err != nil {
		return nil, err
	}
	var lines []string
	in := bufio.NewScanner(conn)
	for in.Scan() {
		if in.Text() == "." {
			return lines, nil
		}
		lines = append(lines, in.Text())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the answer broke off: %w", cmpErr(in.Err(), io.ErrUnexpectedEOF))
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (c *client) status(ctx context.Context, process int, f, node string) bool {
	c.write(operation{Process: process, Type: "invoke", F: f, Node: node})
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	lines, err := c.ask(ctx, node, "STATUS")
	if err != nil {
		c.write(operation{Process: process, Type: "fail", F: f, Node: node, Error: "unreachable " + err.Error()})
		return false
	}
	var view []string
	for _, l := range lines {
		if strings.Contains(l, "=") {
			view = append(view, l)
		}
	}
	c.write(operation{Process: process, Type: "ok", F: f, Node: node, Value: strings.Join(view, " ")})
	return true
}

func (c *client) work(ctx context.Context) error {
	var wg sync.WaitGroup
	for i, node := range c.others() {
		wg.Go(func() {
			for sleep(ctx, readEvery) {
				c.status(ctx, i+1, "status", node)
			}
		})
	}
	r := rand.New(rand.NewPCG(c.seed, 1))
	for wait := leaveAfter + time.Duration(r.Int64N(int64(leaveAfter/4))); sleep(ctx, wait); wait = leaveAgain {
		if c.decommission(ctx) {
			break
		}
	}
	wg.Wait()
	return c.err
}

// decommission tells the leaver to leave; true if asking again is of no use.
func (c *client) decommission(ctx context.Context) bool {
	o := operation{F: "decommission", Key: c.leaver, Node: c.leaver}
	o.Type = "invoke"
	c.write(o)
	lines, err := c.ask(ctx, c.leaver, "LEAVE")
	switch {
	case err != nil:
		o.Type, o.Error = "info", "no-answer "+err.Error()
	case slices.Equal(lines, []string{"OK"}):
		o.Type = "ok"
	default:
		o.Type, o.Error = "fail", strings.TrimPrefix(strings.Join(lines, " "), "ERR ")
	}
	c.write(o)
	return o.Type == "ok"
}

func (c *client) final(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, finalPeriod)
	defer cancel()
	for i, node := range c.others() {
		for !c.status(ctx, i+1, "final-status", node) {
			if !sleep(ctx, readEvery) {
				return fmt.Errorf("%s did not answer within %s", node, finalPeriod)
			}
		}
	}
	return c.err
}

func (c *client) others() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(c.admins)) {
		if id != c.leaver {
			out = append(out, id)
		}
	}
	return out
}

// sleep waits; false means that ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
