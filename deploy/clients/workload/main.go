package workload

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"netsplit/model"
)

// Main runs a program on its arguments, standard input and output, with a context
// that ends at SIGTERM or an interrupt, and ends the process: with status 1 and
// the error on standard error if it fails.
func Main(name string, run func(ctx context.Context, args []string, in io.Reader, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Bound is the context of the work: it ends after a time, or when the program's
// standard input does.
func Bound(ctx context.Context, d time.Duration, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// Node is one server.
type Node struct {
	Name model.NodeID
	IP   netip.Addr
}

// ParseNodes reads "n1=10.0.0.1,n2=10.0.0.2".
func ParseNodes(spec string) ([]Node, error) {
	var out []Node
	for f := range strings.SplitSeq(spec, ",") {
		name, addr, ok := strings.Cut(f, "=")
		ip, err := netip.ParseAddr(addr)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("--nodes %q: want hosts with their addresses, such as n1=10.0.0.1,n2=10.0.0.2", spec)
		}
		out = append(out, Node{model.NodeID(name), ip})
	}
	return out, nil
}

// ServingFirst orders nodes: those first that take connections to a port, so that one that is
// down takes no time from them.
func ServingFirst(nodes []Node, port int) []Node {
	down := map[model.NodeID]int{}
	for _, n := range nodes {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(n.IP, uint16(port)).String(), time.Second)
		if err != nil {
			down[n.Name] = 1
			continue
		}
		conn.Close()
	}
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b Node) int { return down[a.Name] - down[b.Name] })
}
