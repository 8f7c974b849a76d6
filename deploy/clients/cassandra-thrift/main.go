// Command client is the workload of the cassandra-thrift target.
//
// "work" is a user of the cluster with one Thrift connection to each node: it
// makes a keyspace and reads and writes rows, or makes, fills and drops column
// families. "node" stands for the administrator at one node: it reports the
// ring as this node sees it, and may take the node out of it. "read" reads
// everything back through every node after recovery; "state" reports what one
// node then thinks. Each prints the operation history as JSON lines
// (model.Operation) on standard output and ends at its time or when its
// standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"netsplit/deploy/clients/cassandra/admin"
	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func main() { workload.Main("cassandra-thrift client", run) }

// common are the flags of every mode.
type common struct {
	spec     string
	nodes    []workload.Node
	self     model.NodeID // host this program runs on
	workload string
	leaver   model.NodeID
	release  string
	dur      time.Duration
	longer   time.Duration
	enough   time.Time // when dur is over
	seed     uint64
	rate     float64
	port     int
	tmo      time.Duration
	jolokia  string
	out      *workload.History
}

// workloads: regular access, and what the reports of CASSANDRA-2115
// (decommission a node) and CASSANDRA-3975 (write data, drop the table) did.
var workloads = []string{"data", "decommission", "drop"}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	root := &cobra.Command{Use: "client", Short: "Workload of the cassandra-thrift target", SilenceUsage: true, SilenceErrors: true}
	f := root.PersistentFlags()
	f.StringVar(&c.spec, "nodes", "", "hosts with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	f.StringVar((*string)(&c.self), "self", "c1", "name of the host this runs on")
	f.StringVar(&c.workload, "workload", "data", "one of "+strings.Join(workloads, ", "))
	f.StringVar((*string)(&c.leaver), "leaver", "n3", "the node that leaves in the workload decommission")
	f.StringVar(&c.release, "release", "0.7.0", "release of the servers")
	f.DurationVar(&c.dur, "for", 30*time.Second, "how long to run")
	f.DurationVar(&c.longer, "longer", 45*time.Second, "how much longer to wait, in the workload decommission, until the node has left")
	f.Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	f.Float64Var(&c.rate, "rate", 2, "operations per second and node")
	f.IntVar(&c.port, "port", 9160, "Thrift port")
	f.DurationVar(&c.tmo, "timeout", 15*time.Second, "how long to wait for the answer of one operation")
	f.StringVar(&c.jolokia, "jolokia", "http://127.0.0.1:8778/jolokia", "where Jolokia answers on the node (node, state)")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		var err error
		if c.nodes, err = workload.ParseNodes(c.spec); err != nil {
			return err
		}
		if !slices.Contains(workloads, c.workload) {
			return fmt.Errorf("no workload %q: choose one of %s", c.workload, strings.Join(workloads, ", "))
		}
		if c.rate <= 0 {
			return fmt.Errorf("--rate %g: must be more than 0", c.rate)
		}
		start, err := workload.RunStart()
		if err != nil {
			return err
		}
		c.out = workload.NewHistory(out, start)
		return nil
	}
	mode := func(use, short string, waits bool, do func(context.Context, *common)) {
		root.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			c.enough = time.Now().Add(c.dur)
			limit := c.dur
			if waits && c.workload == "decommission" {
				limit += c.longer
			}
			ctx, cancel := workload.Bound(cmd.Context(), limit, in)
			defer cancel()
			do(ctx, &c)
			return nil
		}})
	}
	mode("work", "Use the cluster", true, workAll)
	mode("node", "Report the ring as one node sees it, and take the node out of it", true, administrate)
	mode("read", "Read everything back through every node", false, readAll)
	mode("state", "Report what one node thinks when all is over", false, func(ctx context.Context, c *common) { c.admin().Final(ctx) })
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}

func (c *common) names() []model.NodeID {
	var out []model.NodeID
	for _, n := range c.nodes {
		out = append(out, n.Name)
	}
	return out
}

// admin is the administrator at the node that this runs on.
func (c *common) admin() *admin.Admin {
	return &admin.Admin{Self: c.self, Nodes: c.nodes, Seed: c.seed, At: &admin.Jolokia{Base: c.jolokia}, Out: c.out}
}

// administrate reports the ring and takes the node out of it if it is the one
// to leave: in the workload decommission only.
func administrate(ctx context.Context, c *common) {
	if c.workload != "decommission" {
		return
	}
	var wg sync.WaitGroup
	if c.self == c.leaver {
		wg.Go(func() { c.admin().Leave(ctx) })
	}
	c.admin().Watch(ctx, c.leaver, c.enough)
	wg.Wait() // an operation that was begun gets its answer
}
