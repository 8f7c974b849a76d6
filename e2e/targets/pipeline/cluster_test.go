package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// asNode makes the test binary the program: nodes of a test are processes, so that
// a crash is a SIGKILL.
const asNode = "PIPELINE_TEST_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(asNode) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

var dataNodes = []string{"n2", "n3", "n4", "n5"}

// transit is a message on its way between two hosts of a test.
type transit struct {
	from, to string
	message
}

// step is a fault: it hits the first message that matches after the step before it
// was played. It says whether the message passes.
type step struct {
	when func(transit) bool
	do   func(*cluster, transit) (pass bool)
}

// cluster is a name node n1 and data nodes n2 to n5, with a relay for each pair of
// hosts between which steps are played.
type cluster struct {
	t    *testing.T
	bug  string
	args map[string][]string // further flags, by host; "" for all
	dirs map[string]string

	mu         sync.Mutex // guards what follows
	steps      []step
	next       int            // step
	done       int            // steps
	registered map[string]int // how often, by data node
	nodes      map[string]*node
	log        bytes.Buffer

	relays map[[2]string]string // address at which the first host reaches the second
}

type node struct {
	cmd  *exec.Cmd
	addr chan string // says once where it serves
	at   string
}

// settings let nothing expire but orders to copy: every failure shows at once, on
// a slow machine too.
var settings = []string{"-hop", "60s", "-beat", "50ms", "-dead", "60s", "-lease", "60s", "-delay", "1ms", "-copying", "500ms", "-patience", "60s", "-for", "60s"}

func start(t *testing.T, bug string, args map[string][]string, steps ...step) *cluster {
	c := &cluster{t: t, bug: bug, args: args, dirs: map[string]string{}, steps: steps,
		registered: map[string]int{}, nodes: map[string]*node{}, relays: map[[2]string]string{}}
	all := append([]string{"n1"}, dataNodes...)
	for _, to := range all {
		c.dirs[to] = t.TempDir()
		for _, from := range append([]string{"c1"}, all...) {
			c.relays[[2]string{from, to}] = c.relay(from, to)
		}
	}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, n := range slices.Sorted(maps.Keys(c.nodes)) {
			c.kill(n)
		}
		if t.Failed() {
			t.Logf("%s\n%s", bug, c.log.String())
		}
	})
	c.mu.Lock()
	for _, n := range all {
		c.start(n)
	}
	c.mu.Unlock()
	c.until("all data nodes are registered", func(s status) bool { return s.Live == len(dataNodes) })
	return c
}

// reach is the flags with which a host reaches the others.
func (c *cluster) reach(host string) []string {
	var peers []string
	for _, n := range dataNodes {
		peers = append(peers, n+"="+c.relays[[2]string{host, n}])
	}
	flags := []string{"-name", c.relays[[2]string{host, "n1"}], "-peers", strings.Join(peers, ","), "-bug", c.bug}
	return slices.Concat(flags, settings, c.args[""], c.args[host])
}

// start starts a node. The caller holds mu.
func (c *cluster) start(name string) {
	role := "data"
	if name == "n1" {
		role = "name"
	}
	n := &node{addr: make(chan string, 1)}
	n.cmd = exec.Command(os.Args[0], append(c.reach(name), "-role", role, "-id", name, "-addr", "127.0.0.1:0", "-dir", c.dirs[name])...)
	n.cmd.Env = append(os.Environ(), asNode+"=1")
	r, w := io.Pipe()
	n.cmd.Stderr = w
	if err := n.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			if at, ok := strings.CutPrefix(s.Text(), "pipeline: serves on "); ok {
				n.addr <- at
			}
			c.mu.Lock()
			fmt.Fprintln(&c.log, name, s.Text())
			c.mu.Unlock()
		}
	}()
	c.nodes[name] = n
}

// kill ends a node at once. The caller holds mu.
func (c *cluster) kill(name string) {
	n := c.nodes[name]
	_ = n.cmd.Process.Kill()
	_, _ = n.cmd.Process.Wait()
}

// crash kills a node, starts it again, and returns when it takes part again.
func (c *cluster) crash(name string) {
	c.mu.Lock()
	fmt.Fprintln(&c.log, name, "is killed")
	c.kill(name)
	before := c.registered[name]
	c.start(name)
	c.mu.Unlock()
	c.address(name)
	for again := name == "n1"; !again && c.t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		again = c.registered[name] > before
		c.mu.Unlock()
	}
}

// address is where a node serves, once it does.
func (c *cluster) address(name string) string {
	c.mu.Lock()
	n := c.nodes[name]
	c.mu.Unlock()
	select {
	case at := <-n.addr:
		n.addr <- at
		return at
	case <-c.t.Context().Done():
		return ""
	}
}

// relay listens for what one host says to another.
func (c *cluster) relay(from, to string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				b, err := net.Dial("tcp", c.address(to))
				if err != nil {
					reset(a)
					return
				}
				go c.pump(from, to, a, b)
				c.pump(to, from, b, a)
			}()
		}
	}()
	return l.Addr().String()
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// pump carries messages from a to b. A lost one resets the connection.
func (c *cluster) pump(from, to string, a, b net.Conn) {
	defer reset(a)
	defer b.Close()
	in := json.NewDecoder(a)
	for {
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return
		}
		m := transit{from: from, to: to}
		if err := json.Unmarshal(text, &m.message); err != nil {
			c.t.Errorf("%s to %s: %q: %v", from, to, text, err)
		}
		if !c.pass(m) {
			reset(b)
			return
		}
		if _, err := b.Write(text); err != nil {
			return
		}
	}
}

// pass plays the next step if the message is what it waits for. Other messages go
// on meanwhile.
func (c *cluster) pass(m transit) bool {
	c.mu.Lock()
	if m.Type == "register-ok" {
		c.registered[m.to]++
	}
	plays := c.next < len(c.steps) && c.steps[c.next].when(m)
	if !plays {
		c.mu.Unlock()
		return true
	}
	fmt.Fprintf(&c.log, "step %d at %s from %s to %s\n", c.next+1, m.Type, m.from, m.to)
	do := c.steps[c.next].do
	c.next++
	c.mu.Unlock()
	passes := do(c, m)
	c.mu.Lock()
	c.done++
	c.mu.Unlock()
	return passes
}

// played waits until this many steps were played.
func (c *cluster) played(n int) {
	c.t.Helper()
	c.wait(fmt.Sprintf("%d steps are played", n), func() (string, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Sprintf("%d are", c.done), c.done >= n
	})
}

// until waits until the name node says so.
func (c *cluster) until(what string, want func(status) bool) {
	c.t.Helper()
	c.wait(what, func() (string, bool) {
		m, err := askOnce(c.t.Context(), c.address("n1"), message{Type: "status"}, 5*time.Second)
		if err != nil || m.Status == nil {
			return fmt.Sprint(err), false
		}
		return fmt.Sprintf("%+v", *m.Status), want(*m.Status)
	})
}

func (c *cluster) wait(what string, ask func() (string, bool)) {
	c.t.Helper()
	var got string
	for end := time.Now().Add(50 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var ok bool
		if got, ok = ask(); ok {
			return
		}
	}
	c.t.Fatalf("never: %s; last: %s", what, got)
}

// client runs a client and returns what it did: the type of each operation by its
// name and key.
func (c *cluster) client(role string) map[string]string {
	c.t.Helper()
	in, end := io.Pipe()
	out, w := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		failed <- run(c.t.Context(), append(c.reach("c1"), "-role", role), in, w, io.Discard)
		w.Close()
	}()
	done := map[string]string{}
	for s := bufio.NewScanner(out); s.Scan(); {
		var o operation
		if err := json.Unmarshal(s.Bytes(), &o); err != nil {
			c.t.Fatalf("%s: %v", s.Bytes(), err)
		}
		c.mu.Lock()
		fmt.Fprintln(&c.log, s.Text())
		c.mu.Unlock()
		if o.F != "final-copy" {
			done[strings.TrimSpace(o.F+" "+o.Key)] = o.Type
		}
		if o.Key == "b2" && o.Type != "invoke" {
			end.Close()
		}
	}
	if err := <-failed; err != nil {
		c.t.Fatal(err)
	}
	return done
}

// judged is what became of the blocks that were acknowledged.
type judged struct {
	acked, lost, thin []string
}

// came is how many steps were played so far.
func (c *cluster) came() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// play writes, plays this many steps, waits until there is nothing left to do, and
// judges.
func (c *cluster) play(steps int) (j judged) {
	c.t.Helper()
	wrote := c.client("write")
	c.played(steps)
	c.until("the cluster is at rest", func(s status) bool {
		return s.Live == len(dataNodes) && s.Open == 0 && s.Under == 0 && s.Extra == 0
	})
	read := c.client("read")
	if read["final-read-done"] != "ok" || read["final-full-done"] != "ok" {
		c.t.Fatalf("the final read: %v", read)
	}
	for _, op := range slices.Sorted(maps.Keys(wrote)) {
		key := strings.TrimPrefix(op, "write ")
		switch {
		case wrote[op] != "ok":
			continue
		case read["final-read "+key] == "":
			j.lost = append(j.lost, key)
		case read["final-full "+key] == "":
			j.thin = append(j.thin, key)
		}
		j.acked = append(j.acked, key)
	}
	return j
}
