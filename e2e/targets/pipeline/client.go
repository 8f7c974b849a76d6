package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
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

// client writes blocks, or reads them in the end, and writes down what became of it.
type client struct {
	name     string            // address of the name node
	peers    map[string]string // addresses of the data nodes
	hop      time.Duration     // for one answer
	patience time.Duration     // for a block
	seed     uint64
	blocks   int
	packets  int // of a block
	start    time.Time

	mu  sync.Mutex // guards what follows
	out io.Writer
	err error // first error of out
}

const (
	packetBytes = 64
	pause       = 20 * time.Millisecond  // before asking again
	between     = 100 * time.Millisecond // two blocks
	finalLimit  = 10 * time.Second       // until all data nodes must have answered
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

// content is the data of a block: its packets differ, in each run.
func (c *client) content(block string) string {
	var b strings.Builder
	for i := range c.packets {
		p := fmt.Sprintf("%s seed %d packet %d ", block, c.seed, i)
		b.WriteString(p + strings.Repeat(".", packetBytes-len(p)))
	}
	return b.String()
}

func digest(data string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(data))) }

// work writes the blocks one after the other, then waits for the end.
func (c *client) work(ctx context.Context) error {
	for i := range c.blocks {
		if !sleep(ctx, between) {
			return c.err
		}
		o := operation{F: "write", Key: fmt.Sprintf("b%d", i+1)}
		data := c.content(o.Key)
		o.Type, o.Value = "invoke", digest(data)
		c.write(o)
		// Also when the time is over: what was begun is finished.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.patience)
		o.Type = "ok"
		if err := c.put(limit, o.Key, data); err != nil {
			o.Type, o.Error = "fail", err.Error()
			if errors.Is(err, errUnknown) {
				o.Type = "info"
			}
		}
		cancel()
		c.write(o)
	}
	<-ctx.Done()
	return c.err
}

// errUnknown says that a block may have been completed.
var errUnknown = errors.New("no-answer")

// askName asks the name node until it answers.
func (c *client) askName(ctx context.Context, m message) (message, error) {
	for {
		a, err := askOnce(ctx, c.name, m, c.hop)
		if err == nil || asRefusal(err) != nil {
			return a, err
		}
		if !sleep(ctx, pause) {
			return a, fmt.Errorf("timeout of %s: %w", m.Type, err)
		}
	}
}

// put writes a block. A chain that cannot be set up, or that lost too many data
// nodes, is given up for another without the data nodes that failed.
func (c *client) put(ctx context.Context, block, data string) error {
	var failed []string
	for {
		a, err := c.askName(ctx, message{Type: "allocate", Block: block, Exclude: failed})
		r := asRefusal(err)
		switch {
		case r != nil && strings.HasPrefix(r.Error, "exists"): // an answer to complete came too late
			return fmt.Errorf("%w: %w", errUnknown, err)
		case r != nil: // too few data nodes, or a disk error
			failed = nil
			if !sleep(ctx, pause) {
				return err
			}
			continue
		case err != nil:
			return err
		}
		t := &transfer{client: c, replica: a.Replica, nodes: a.Nodes, data: data}
		done, err := t.run(ctx)
		if done || err != nil {
			return err
		}
		failed = append(failed, t.failed...)
		if _, err := c.askName(ctx, message{Type: "abandon", Replica: t.replica}); err != nil {
			return err
		}
	}
}

// transfer is a block on its way through one chain.
type transfer struct {
	*client
	replica replica
	nodes   []string // the chain
	failed  []string // were in it
	data    string
	acked   int  // bytes of it that all nodes of the chain have
	set     bool // the chain was set up
}

// run sends the block and completes it. Without an error and not done, the block is
// not complete and has to be written again.
func (t *transfer) run(ctx context.Context) (done bool, err error) {
	for {
		bad := t.stream(ctx)
		if bad == "" {
			return t.complete(ctx)
		}
		t.failed = append(t.failed, bad)
		t.nodes = slices.DeleteFunc(t.nodes, func(n string) bool { return n == bad })
		if !t.set || len(t.nodes) < least {
			return false, nil
		}
		a, err := t.askName(ctx, message{Type: "bump", Replica: t.replica})
		if asRefusal(err) != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		t.replica = a.Replica
	}
}

// stream sets up the chain, or after a failure what is left of it, sends what was
// not acknowledged, and closes it. It returns the data node that failed, or "".
func (t *transfer) stream(ctx context.Context) (bad string) {
	first := t.nodes[0]
	l, err := dial(ctx, t.peers[first], t.hop)
	if err != nil {
		return first
	}
	defer l.close()
	m := message{Type: "setup", Replica: t.replica, Nodes: t.nodes[1:]}
	if t.set {
		m.Type, m.Length = "recover", t.acked
	}
	if bad := t.ask(l, m); bad != "" {
		return bad
	}
	t.set = true
	for t.acked < len(t.data) {
		p := t.data[t.acked:min(len(t.data), t.acked+packetBytes)]
		if bad := t.ask(l, message{Type: "packet", Replica: t.replica, Offset: t.acked, Data: p}); bad != "" {
			return bad
		}
		t.acked += len(p)
	}
	return t.ask(l, message{Type: "close", Replica: t.replica, Length: len(t.data)})
}

// ask sends a request along the chain and returns the data node that failed, or "".
func (t *transfer) ask(l *link, m message) (bad string) {
	_, err := l.ask(m, t.hop*time.Duration(len(t.nodes)))
	a := asRefusal(err)
	switch {
	case err == nil:
		return ""
	case a != nil && slices.Contains(t.nodes, a.Bad):
		return a.Bad
	}
	return t.nodes[0]
}

// complete asks the name node to count the block as written. The data nodes may not
// have told it yet.
func (t *transfer) complete(ctx context.Context) (done bool, err error) {
	for range int(t.hop/pause) + 1 {
		_, err := t.askName(ctx, message{Type: "complete", Replica: t.replica, Length: len(t.data)})
		a := asRefusal(err)
		switch {
		case err == nil:
			return true, nil
		case a == nil:
			return false, fmt.Errorf("%w: %w", errUnknown, err)
		case strings.HasPrefix(a.Error, "unknown"):
			return false, nil
		}
		if !sleep(ctx, pause) {
			return false, err
		}
	}
	return false, nil
}

// read reads every replica of every block and writes down which blocks there are,
// and which are as often there as they should be.
func (c *client) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, finalLimit)
	defer cancel()
	list, err := c.askName(ctx, message{Type: "list"})
	if err != nil {
		c.done(err)
		return c.err
	}
	for _, h := range list.Replicas {
		block := h.Replica.block
		o := operation{Type: "ok", F: "final-copy", Key: block, Value: digest(c.content(block))}
		copies := 0
		for _, n := range slices.Sorted(maps.Keys(c.peers)) {
			var a message
			for {
				a, err = askOnce(ctx, c.peers[n], message{Type: "read", Replica: h.Replica}, c.hop)
				if err == nil || asRefusal(err) != nil {
					break
				}
				if !sleep(ctx, pause) {
					c.done(fmt.Errorf("unreachable %s: %w", n, err))
					return c.err
				}
			}
			if err == nil && a.Data == c.content(block) {
				o.Node = n
				c.write(o)
				copies++
			}
		}
		o.Node = ""
		if copies > 0 {
			o.F = "final-read"
			c.write(o)
		}
		if copies >= replicas {
			o.F = "final-full"
			c.write(o)
		}
	}
	c.done(nil)
	return c.err
}

// done says whether the list of what was read is whole.
func (c *client) done(err error) {
	o := operation{Type: "ok"}
	if err != nil {
		o.Type, o.Error = "fail", err.Error()
	}
	for _, o.F = range []string{"final-read-done", "final-full-done"} {
		c.write(o)
	}
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
