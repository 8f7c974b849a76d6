package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
	"netsplit/testbed/nft"
	"netsplit/testbed/proc"
)

const (
	// startLimit is how long an agent may take to say hello.
	startLimit = 10 * time.Second
	// grace is how much longer than its limit a probe's answer is waited for.
	grace = 2 * time.Second
	// stopLimit is how long an agent may take to end once its input is closed.
	stopLimit = 2 * time.Second
	// readLimit is how long an agent may leave a request unread once nobody waits
	// for its answer any more.
	readLimit = 200 * time.Millisecond
)

// ErrGone says that the agent has ended.
var ErrGone = errors.New("the agent has ended")

// Client is a running agent. Its methods may be called concurrently.
type Client struct {
	host   model.NodeID
	remote bool // another machine, with a clock of its own
	cmd    *exec.Cmd
	stdin  requests
	ended  chan struct{} // closed when the agent's output has ended

	writing chan struct{} // holds one entry while a request line is written
	mu      sync.Mutex    // guards what follows
	next    uint64
	waiting map[uint64]chan response
	stuck   error // why it was killed
	why     error // once ended is closed

	clock  sync.Mutex // guards offset
	offset Offset

	closing sync.Once
}

// requests is the pipe to an agent; *os.File is one.
type requests interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// Start starts an agent on a host: `<exec prefix> binary agent`. On a remote host
// binary is what the host's file says, or a copy that is put there.
func Start(ctx context.Context, host model.TestbedHost, binary string) (*Client, error) {
	binary, err := present(ctx, host, binary)
	if err != nil {
		return nil, fmt.Errorf("host %s: cannot put the agent there: %w", host.Name, err)
	}
	argv := host.Argv(binary, "agent")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	fail := func(err error) (*Client, error) {
		return nil, fmt.Errorf("host %s: cannot start the agent (%s): %w", host.Name, strings.Join(argv, " "), err)
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	stdin, ok := pipe.(requests)
	if !ok {
		return fail(fmt.Errorf("writes to a %T cannot be given up", pipe))
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	c := &Client{host: host.Name, remote: host.Remote(), cmd: cmd, stdin: stdin, ended: make(chan struct{}), writing: make(chan struct{}, 1), waiting: map[uint64]chan response{}}
	said := new(tail)
	cmd.Stderr = said
	if err := proc.StartCommand(cmd); err != nil {
		return fail(err)
	}
	hello := make(chan response, 1)
	c.waiting[0] = hello
	go c.read(stdout, said)
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case r := <-hello:
		if r.Version != ProtocolVersion {
			err = fmt.Errorf("it speaks version %d of the agent protocol, netsplit %d: install the same netsplit on the host, or restart this one if the program was replaced meanwhile", r.Version, ProtocolVersion)
		}
	case <-c.ended:
		err = c.why
	case <-ctx.Done():
		err = fmt.Errorf("it does not answer: %w", ctx.Err())
	}
	if err == nil {
		err = c.compareClocks(ctx)
	}
	if err != nil {
		c.kill()
		return fail(err)
	}
	return c, nil
}

func (c *Client) read(stdout io.Reader, said *tail) {
	dec := json.NewDecoder(bufio.NewReader(stdout))
	var r response
	var err error
	for {
		r = response{}
		if err = dec.Decode(&r); err != nil {
			break
		}
		c.mu.Lock()
		w := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if w != nil {
			w <- r
		}
	}
	if !errors.Is(err, io.EOF) { // what it says is not ours: do not wait for its end
		c.kill()
	}
	werr := c.cmd.Wait()
	why := ErrGone
	if werr != nil {
		why = fmt.Errorf("%w: %w", ErrGone, werr)
	}
	if !errors.Is(err, io.EOF) {
		why = fmt.Errorf("%w: unexpected output: %w", why, err)
	}
	if s := said.String(); s != "" {
		why = fmt.Errorf("%w: %s", why, s)
	}
	c.mu.Lock()
	if c.stuck != nil {
		why = fmt.Errorf("%w: %w", ErrGone, c.stuck)
	}
	c.why = why
	c.mu.Unlock()
	close(c.ended)
}

func (c *Client) call(ctx context.Context, r request) (response, error) {
	w := make(chan response, 1)
	c.mu.Lock()
	c.next++
	r.ID = c.next
	c.waiting[r.ID] = w
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
	}
	line, err := json.Marshal(r)
	if err != nil {
		forget()
		return response{}, fmt.Errorf("host %s: agent: %w", c.host, err)
	}
	if c.write(ctx, append(line, '\n')) != nil && ctx.Err() == nil { // it has ended, or is about to
		select {
		case <-c.ended:
		case <-time.After(stopLimit):
		}
	}
	select {
	case resp := <-w:
		if resp.Expired {
			return resp, fmt.Errorf("host %s: %w", c.host, nft.ErrExpired)
		}
		if resp.Error != "" {
			return resp, fmt.Errorf("host %s: %s", c.host, resp.Error)
		}
		return resp, nil
	case <-c.ended:
		forget()
		return response{}, fmt.Errorf("host %s: %w", c.host, c.why)
	case <-ctx.Done():
		forget()
		return response{}, fmt.Errorf("host %s: agent: gave up waiting for its answer: %w", c.host, ctx.Err())
	}
}

// write sends a request line. The agent must have read everything before it when ctx ends.
// An agent that is stopped, or whose network is gone, has not, and may have half of the
// line. write kills it, so that later calls find it gone and do not wait.
func (c *Client) write(ctx context.Context, line []byte) error {
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-c.ended:
		return ErrGone
	case <-ctx.Done():
		return ctx.Err()
	}
	limited := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(limited)
		_ = c.stdin.SetWriteDeadline(time.Now().Add(readLimit))
	})
	_, err := c.stdin.Write(line)
	if !stop() {
		<-limited
		_ = c.stdin.SetWriteDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		c.stuck = errors.New("it was killed because it no longer read its requests")
		c.mu.Unlock()
		c.kill()
	}
	return err
}

// Probe runs a probe of any kind on the host. It returns the answer and how long it took
// there. On an error the answer is what had arrived by then.
func (c *Client) Probe(ctx context.Context, p model.Probe) (string, time.Duration, error) {
	limit := p.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	r, err := c.call(ctx, request{Op: opProbe, Probe: &probe{
		Command: p.Command, TCP: p.TCP, Send: []byte(p.Send), Until: p.Until, HTTP: p.HTTP, Limit: limit,
	}})
	return string(r.Text), r.Took, err
}

// Emit sends probe packets from the host's address from to the host with the addresses to
// and mac. It returns which of them could be sent: a router forwards only some.
func (c *Client) Emit(ctx context.Context, from, to netip.Addr, mac net.HardwareAddr, probePackets []model.ProbePacket) ([]bool, error) {
	r, err := c.call(ctx, request{Op: opEmit, Emit: &emission{From: from, To: to, MAC: mac, ProbePackets: probePackets}})
	if err == nil && len(r.Sent) != len(probePackets) {
		err = fmt.Errorf("host %s: the agent does not say what it sent", c.host)
	}
	return r.Sent, err
}

// Filter has the host drop what matches the rules, and nothing else, until the lease ends.
// The rules are in a table of that name, at the device with the address. Filter returns
// what rules had dropped before, by key. nft.ErrExpired says that the earlier rules were
// not renewed in time; the new ones are in force.
func (c *Client) Filter(ctx context.Context, table string, addr netip.Addr, rules []hostrules.Rule, lease time.Duration) (map[string]uint64, error) {
	r, err := c.call(ctx, request{Op: opFilter, Filter: &filter{Table: table, Addr: addr, Rules: rules, Lease: lease}})
	return r.Dropped, err
}

// Renew lets the lease last that long from now; nft.ErrExpired if it ran out.
func (c *Client) Renew(ctx context.Context, lease time.Duration) error {
	_, err := c.call(ctx, request{Op: opRenew, Filter: &filter{Lease: lease}})
	return err
}

// Dropped is what the rules have dropped, by key.
func (c *Client) Dropped(ctx context.Context) (map[string]uint64, error) {
	r, err := c.call(ctx, request{Op: opDropped})
	return r.Dropped, err
}

// CountFrom counts the sender's packets that certainly arrived at the host in [from, to).
// The host's clock is known only within an error: Unsure counts the packets that arrived
// too close to from or to, except those that a gate released. CountFrom waits until to has
// passed.
func (c *Client) CountFrom(ctx context.Context, src Sender, from, to time.Time) (Count, error) {
	o, err := c.offsetNow(ctx)
	if err != nil {
		return Count{}, err
	}
	maybe, err := c.count(ctx, src, from.Add(o.Ahead-o.Within), to.Add(o.Ahead+o.Within), o)
	if err != nil || o.Within == 0 || maybe.Packets+maybe.Group == 0 {
		return maybe, err
	}
	var sure Count
	if to.Sub(from) > 2*o.Within {
		if sure, err = c.count(ctx, src, from.Add(o.Ahead+o.Within), to.Add(o.Ahead-o.Within), o); err != nil {
			return Count{}, err
		}
	}
	sure.Unsure = maybe.Packets + maybe.Group - sure.Packets - sure.Group
	sure.Within, sure.Incomplete = o.Within, sure.Incomplete || maybe.Incomplete
	if sure.Unsure > 0 {
		sure.Unsure -= min(sure.Unsure, c.excused(ctx, src.Released, from, to, o))
	}
	return sure, nil
}

// count asks for a count between two moments by the agent's clock.
func (c *Client) count(ctx context.Context, src Sender, from, to time.Time, o Offset) (Count, error) {
	r, err := c.call(ctx, request{Op: opCount, Query: &netQuery{Sources: src.Addrs, MAC: src.MAC, Only: src.Only, Like: src.Like, From: from.UnixNano(), To: to.UnixNano()}})
	if err != nil {
		return Count{}, err
	}
	if r.Count == nil {
		return Count{}, fmt.Errorf("host %s: the agent's answer holds no count", c.host)
	}
	n := r.Count.count()
	n.First, n.Last = ours(n.First, o.Ahead), ours(n.Last, o.Ahead)
	return n, nil
}

// FirstFrom returns when the sender's first packet arrived that certainly came at after or
// later; zero if none has so far. It is certain by the error of the host's clock, or
// because a gate released it then. Broadcasts and multicasts count, unless the sender has a
// Like.
func (c *Client) FirstFrom(ctx context.Context, src Sender, after time.Time) (time.Time, error) {
	o, err := c.offsetNow(ctx)
	if err != nil {
		return time.Time{}, err
	}
	r, err := c.call(ctx, request{Op: opFirst, Query: &netQuery{Sources: src.Addrs, MAC: src.MAC, Only: src.Only, Like: src.Like, From: after.Add(o.Ahead + o.Within).UnixNano()}})
	first := ours(timeOf(r.First), o.Ahead)
	if err != nil || o.Within == 0 {
		return first, err
	}
	if at := c.firstReleased(ctx, src.Released, after, o); !at.IsZero() && (first.IsZero() || at.Before(first)) {
		first = at
	}
	return first, nil
}

// Close ends the agent.
func (c *Client) Close() error {
	c.closing.Do(func() { c.stdin.Close() })
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopLimit):
	}
	c.kill()
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopLimit):
		return fmt.Errorf("host %s: the agent (process %d) does not end", c.host, c.cmd.Process.Pid)
	}
}

// Ended is closed when the agent has ended.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Err says why the agent has ended; nil while it lives.
func (c *Client) Err() error {
	select {
	case <-c.ended:
		return fmt.Errorf("host %s: %w", c.host, c.why)
	default:
		return nil
	}
}

// PID is the agent's process number on this machine.
func (c *Client) PID() int { return c.cmd.Process.Pid }

func (c *Client) kill() { _ = c.cmd.Process.Kill() }

// Command runs a command on a host through its exec prefix and returns its
// standard output; see proc.Output.
func Command(ctx context.Context, host model.TestbedHost, argv []string, limit time.Duration) (string, error) {
	out, err := proc.Output(ctx, host.Argv(argv...), limit)
	if err != nil {
		err = fmt.Errorf("host %s: %w", host.Name, err)
	}
	return out, err
}

// tail keeps the last of what an agent says on standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 4096; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
