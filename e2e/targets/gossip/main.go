package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gossip:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	f := flag.NewFlagSet("gossip", flag.ContinueOnError)
	f.SetOutput(log)
	var (
		id       = f.String("id", "", "name of this node, e.g. n1; as a client: of the node to decommission")
		addr     = f.String("addr", "0.0.0.0:7000", "address to gossip on (UDP)")
		admin    = f.String("admin", "0.0.0.0:7001", "address to administrate on (TCP)")
		peers    = f.String("peers", "", "all nodes with the addresses they gossip on: n1=10.0.0.1:7000,n2=…; as a client: they administrate on")
		bug      = f.Bool("bug", false, "forget the version of who left, as in CASSANDRA-2115")
		interval = f.Duration("interval", 100*time.Millisecond, "time between two gossips")
		forget   = f.Duration("forget", 1600*time.Millisecond, "time after which who left is forgotten")
		seed     = f.Uint64("seed", 1, "seed of all chance")
		workload = f.Bool("workload", false, "be the client that decommissions -id and reads statuses; ends with -for or standard input")
		final    = f.Bool("final", false, "be the client that reads all final statuses")
		length   = f.Duration("for", 4800*time.Millisecond, "length of the workload")
	)
	if err := f.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return nil
		}
		return err
	}
	all, err := parsePeers(*peers)
	if err != nil {
		return err
	}
	if _, ok := all[*id]; !ok {
		return fmt.Errorf("-id %q is none of -peers %s", *id, strings.Join(slices.Sorted(maps.Keys(all)), ","))
	}
	if *interval <= 0 || *forget <= 0 || *length <= 0 {
		return fmt.Errorf("-interval %s, -forget %s and -for %s must be positive", *interval, *forget, *length)
	}
	if *workload || *final {
		c := &client{admins: all, start: time.Now(), seed: *seed, leaver: *id, out: out}
		if s := os.Getenv("NETSPLIT_RUN_START"); s != "" {
			ns, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return fmt.Errorf("NETSPLIT_RUN_START=%q: want the start of the run in Unix nanoseconds", s)
			}
			c.start = time.Unix(0, ns)
		}
		if *final {
			return c.final(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, *length)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
		return c.work(ctx)
	}
	n, err := newNode(*id, all, *addr, log)
	if err != nil {
		return err
	}
	n.m = newMember(*id, slices.Collect(maps.Keys(n.addrs)), *forget, *interval, *bug, *seed, now())
	l, err := net.Listen("tcp", *admin)
	if err != nil {
		n.conn.Close()
		return fmt.Errorf("administration: %w: stop what listens there, or choose another -admin", err)
	}
	fmt.Fprintf(log, "gossip: %s gossips on %s, administration on %s\n", *id, n.conn.LocalAddr(), l.Addr())
	return n.serve(ctx, l)
}

func newNode(id string, all map[string]string, addr string, log io.Writer) (*node, error) {
	n := &node{addrs: map[string]*net.UDPAddr{}, log: log}
	for p, a := range all {
		if p == id {
			continue
		}
		u, err := net.ResolveUDPAddr("udp", a)
		if err != nil {
			return nil, fmt.Errorf("peer %s: %w", p, err)
		}
		n.addrs[p] = u
	}
	own, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("-addr: %w", err)
	}
	if n.conn, err = net.ListenUDP("udp", own); err != nil {
		return nil, fmt.Errorf("gossip: %w: stop what listens there, or choose another -addr", err)
	}
	return n, nil
}

// parsePeers reads n1=host:port,n2=host:port.
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
