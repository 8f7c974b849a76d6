package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The seeded bugs: see README.md.
const (
	earlyAnswer  = "early-answer"  // name node: complete is answered before it is saved
	secondLease  = "second-lease"  // name node: who asks again for a block gets a second lease on it
	ignoredError = "ignored-error" // data node: an error of write or fsync counts as success
	countedCopy  = "counted-copy"  // name node: a copy counts when it is ordered
	oneReport    = "one-report"    // data node: a bad replica is reported once, heard or not
)

var bugs = []string{"none", earlyAnswer, secondLease, ignoredError, countedCopy, oneReport}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(log)
	var (
		role     = f.String("role", "", "name, data, write or read")
		id       = f.String("id", "", "name of this data node, e.g. n2")
		addr     = f.String("addr", "0.0.0.0:7400", "address to serve on")
		name     = f.String("name", "", "address of the name node")
		peers    = f.String("peers", "", "all data nodes with their addresses: n2=10.0.0.2:7401,n3=…")
		dir      = f.String("dir", ".", "where a node keeps its files")
		bug      = f.String("bug", "none", "one of "+strings.Join(bugs, ", "))
		blocks   = f.Int("blocks", 2, "blocks to write")
		packets  = f.Int("packets", 2, "packets of a block")
		hop      = f.Duration("hop", 150*time.Millisecond, "how long to wait for an answer, for each node behind it")
		beat     = f.Duration("beat", 100*time.Millisecond, "time between two heartbeats")
		dead     = f.Duration("dead", 500*time.Millisecond, "time without a heartbeat after which a data node is dead")
		lease    = f.Duration("lease", 800*time.Millisecond, "time without a request after which a writer is dead")
		delay    = f.Duration("delay", 600*time.Millisecond, "time from a block's completion to the first order to copy it; longer than -dead")
		copying  = f.Duration("copying", 450*time.Millisecond, "time after which an order to copy is given to another")
		patience = f.Duration("patience", 3*time.Second, "how long to try to write a block")
		length   = f.Duration("for", 1500*time.Millisecond, "length of the workload; it ends with standard input, too")
		seed     = f.Uint64("seed", 1, "makes the content of the blocks")
	)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if !slices.Contains(bugs, *bug) {
		return fmt.Errorf("-bug %q is none of %s", *bug, strings.Join(bugs, ", "))
	}
	if *blocks < 1 || *packets < 1 || min(*hop, *beat, *dead, *lease, *delay, *copying, *patience, *length) <= 0 {
		return errors.New("numbers and times must be positive")
	}
	if !slices.Contains([]string{"name", "data", "write", "read"}, *role) {
		return fmt.Errorf("-role %q: want name, data, write or read", *role)
	}
	var all map[string]string
	if *role != "name" {
		var err error
		if all, err = parsePeers(*peers); err != nil {
			return err
		}
		if *name == "" {
			return fmt.Errorf("-role %s needs -name, the address of the name node", *role)
		}
	}
	switch *role {
	case "name":
		l := limits{dead: *dead, lease: *lease, delay: *delay, copying: *copying, quiet: 3 * *beat}
		n, err := newNameNode(*dir, l, *bug, log)
		if err != nil {
			return err
		}
		return listen(*addr, log, func(l net.Listener) error { return n.serve(ctx, l, *beat) })
	case "data":
		if _, ok := all[*id]; !ok {
			return fmt.Errorf("-id %q is none of -peers %s", *id, *peers)
		}
		s, err := openStore(*dir, *bug == ignoredError, log)
		if err != nil {
			return err
		}
		d := &dataNode{id: *id, name: *name, peers: all, hop: *hop, bug: *bug, store: s, log: log, kick: make(chan struct{}, 1)}
		return listen(*addr, log, func(l net.Listener) error { return d.serve(ctx, l, *beat) })
	}
	start, err := runStart()
	if err != nil {
		return err
	}
	c := &client{name: *name, peers: all, hop: *hop, patience: *patience, seed: *seed, blocks: *blocks, packets: *packets, start: start, out: out}
	if *role == "read" {
		return c.read(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return c.work(ctx)
}

func listen(addr string, log io.Writer, serve func(net.Listener) error) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: stop what listens there, or choose another -addr", err)
	}
	fmt.Fprintln(log, "pipeline: serves on", l.Addr())
	return serve(l)
}

// runStart is when the run started, from NETSPLIT_RUN_START; without it, now.
func runStart() (time.Time, error) {
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

// parsePeers reads n2=host:port,n3=host:port.
func parsePeers(s string) (map[string]string, error) {
	out := map[string]string{}
	for _, w := range strings.Split(s, ",") {
		id, a, ok := strings.Cut(w, "=")
		if _, _, err := net.SplitHostPort(a); !ok || id == "" || err != nil {
			return nil, fmt.Errorf("-peers: %q: want name=host:port,…", w)
		}
		if _, dup := out[id]; dup {
			return nil, fmt.Errorf("-peers: %s is named twice", id)
		}
		out[id] = a
	}
	return out, nil
}
