// Command client is the workload of the cassandra target.
//
// "work" is a user of the cluster with one connection to each node: it makes a
// keyspace and a table and then reads and writes data, makes and drops
// keyspaces, tables and columns, or uses lightweight transactions. "node"
// stands for the administrator at one node: it reports the ring as this node
// sees it, by Jolokia over HTTP on the node itself, and may take the node out
// of the ring. "read" reads everything back through every node after recovery.
// Each prints the operation history as JSON lines (model.Operation) on
// standard output and ends at its time or when its standard input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netsplit/model"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cassandra client:", err)
		os.Exit(1)
	}
}

// node is one server.
type node struct {
	name model.NodeID
	ip   netip.Addr
}

// common are the flags of every mode.
type common struct {
	spec     string
	nodes    []node
	self     model.NodeID // host this program runs on
	workload string
	leaver   model.NodeID
	dur      time.Duration
	seed     uint64
	rate     float64
	port     int
	tmo      time.Duration
	jolokia  string
	out      *history
}

// workloads are those of CoFI §5.1.2: regular data access, Paxos data access,
// schema update, node decommission.
var workloads = []string{"data", "paxos", "schema", "decommission"}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	root := &cobra.Command{Use: "client", Short: "Workload of the cassandra target", SilenceUsage: true, SilenceErrors: true}
	f := root.PersistentFlags()
	f.StringVar(&c.spec, "nodes", "", "hosts with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	f.StringVar((*string)(&c.self), "self", "c1", "name of the host this runs on")
	f.StringVar(&c.workload, "workload", "data", "one of "+strings.Join(workloads, ", "))
	f.StringVar((*string)(&c.leaver), "leaver", "n3", "the node that leaves in the workload decommission")
	f.DurationVar(&c.dur, "for", 30*time.Second, "how long to run")
	f.Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	f.Float64Var(&c.rate, "rate", 2, "operations per second and node")
	f.IntVar(&c.port, "port", 9042, "port of the native protocol")
	f.DurationVar(&c.tmo, "timeout", 12*time.Second, "how long to wait for the answer of one operation")
	f.StringVar(&c.jolokia, "jolokia", "http://127.0.0.1:8778/jolokia", "where Jolokia answers on the node (node)")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		var err error
		if c.nodes, err = parseNodes(c.spec); err != nil {
			return err
		}
		if !slices.Contains(workloads, c.workload) {
			return fmt.Errorf("no workload %q: choose one of %s", c.workload, strings.Join(workloads, ", "))
		}
		if c.rate <= 0 {
			return fmt.Errorf("--rate %g: must be more than 0", c.rate)
		}
		start := time.Now()
		if s := os.Getenv("NETSPLIT_RUN_START"); s != "" {
			ns, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return fmt.Errorf("NETSPLIT_RUN_START=%q: want the start of the run in Unix nanoseconds", s)
			}
			start = time.Unix(0, ns)
		}
		c.out = newHistory(out, start)
		return nil
	}
	mode := func(use, short string, do func(context.Context, *common) error) {
		root.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), c.dur)
			defer cancel()
			go func() { // the work ends at --for, or with standard input
				_, _ = io.Copy(io.Discard, in)
				cancel()
			}()
			return do(ctx, &c)
		}})
	}
	mode("work", "Use the cluster", workAll)
	mode("node", "Report the ring as one node sees it, and take the node out of it", watchNode)
	mode("read", "Read everything back through every node", readAll)
	mode("state", "Report what one node thinks when all is over", finalState)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	if c.out == nil {
		return nil // help
	}
	return c.out.err()
}

func parseNodes(spec string) ([]node, error) {
	var out []node
	for _, f := range strings.Split(spec, ",") {
		name, addr, ok := strings.Cut(f, "=")
		ip, err := netip.ParseAddr(addr)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("--nodes %q: want hosts with their addresses, such as n1=10.0.0.1,n2=10.0.0.2", spec)
		}
		out = append(out, node{model.NodeID(name), ip})
	}
	return out, nil
}

// nameOf gives the host that owns an address, or the address.
func (c *common) nameOf(addr string) string {
	for _, n := range c.nodes {
		if n.ip.String() == addr {
			return string(n.name)
		}
	}
	return addr
}

// names lists all nodes.
func (c *common) names() []model.NodeID {
	var out []model.NodeID
	for _, n := range c.nodes {
		out = append(out, n.name)
	}
	return out
}

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

func (h *history) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fail
}
