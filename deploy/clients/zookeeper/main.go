// Command client is the workload of the zookeeper target.
//
// "data" creates nodes, changes others by compare-and-set and reads after a
// sync; "lock" takes turns at a lock, as ZooKeeper's recipe of
// sequential ephemeral nodes has it; "operate" restarts the leader's server
// at seeded moments; "read" reads the whole tree from every server after
// recovery. Each prints the operation history as JSON lines (model.Operation)
// on standard output and ends at its time or when its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func main() { workload.Main("zookeeper client", run) }

// node is a server.
type node struct {
	name model.NodeID
	addr string // of the client port
}

// common are the flags of every mode.
type common struct {
	nodes   []node
	host    model.NodeID // of this client
	dur     time.Duration
	seed    uint64
	session time.Duration
	on      string // the workloads asked for
	out     *workload.History
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	var spec, host string
	root := &cobra.Command{Use: "client", Short: "Workload of the zookeeper target", SilenceUsage: true, SilenceErrors: true}
	f := root.PersistentFlags()
	f.StringVar(&spec, "nodes", "", "servers with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	f.StringVar(&host, "host", "", "name of the host this runs on")
	f.DurationVar(&c.dur, "for", 10*time.Second, "how long to run")
	f.Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	f.DurationVar(&c.session, "session", 4*time.Second, "session timeout")
	f.StringVar(&c.on, "workload", "all", "workloads to run, joined by commas: data, failover, lock, or all; others end at once")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		var err error
		if c.nodes, err = parseNodes(spec); err != nil {
			return err
		}
		c.host = model.NodeID(host)
		start, err := workload.RunStart()
		if err != nil {
			return err
		}
		for _, w := range strings.Split(c.on, ",") {
			if !slices.Contains([]string{"all", "data", "failover", "lock"}, w) {
				return fmt.Errorf("--workload %q: want data, failover, lock or all", w)
			}
		}
		c.out = workload.NewHistory(out, start)
		return nil
	}
	// mode makes a command whose context ends at --for or with stdin.
	mode := func(use, short, on string, work func(context.Context, *common) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			if on != "" && !c.wants(on) {
				return nil
			}
			ctx, cancel := workload.Bound(cmd.Context(), c.dur, in)
			defer cancel()
			return work(ctx, &c)
		}}
	}
	var d dataOptions
	data := mode("data", "Create nodes, change others by compare-and-set, read after a sync", "data", func(ctx context.Context, c *common) error { return runData(ctx, c, d) })
	data.Flags().IntVar(&d.rate, "rate", 20, "writes per second, all writers together")
	data.Flags().IntVar(&d.writers, "writers", 2, "writers, each with a session of its own")
	data.Flags().DurationVar(&d.configure, "configure", 2*time.Second, "how often the configuration node is set; each server's copy of it is read all the time")
	var l lockOptions
	lock := mode("lock", "Take turns at a lock", "lock", func(ctx context.Context, c *common) error { return runLock(ctx, c, l) })
	lock.Flags().IntVar(&l.contenders, "contenders", 3, "how many want the lock, each with a session of its own")
	lock.Flags().DurationVar(&l.hold, "hold", 1500*time.Millisecond, "how long it is held")
	var o operateOptions
	operate := mode("operate", "Restart the leader's server at seeded moments", "failover", func(ctx context.Context, c *common) error { return runOperate(ctx, c, o) })
	operate.Flags().IntVar(&o.failovers, "failovers", 1, "how many")
	operate.Flags().DurationVar(&o.down, "down", 1500*time.Millisecond, "how long the server stays down")
	operate.Flags().StringVar(&o.netsplit, "netsplit", "netsplit", "the program that acts on servers")
	operate.Flags().StringVar(&o.verb, "verb", "stop", "stop (in order) or kill (as a crash)")
	operate.Flags().StringVar(&o.process, "process", "zookeeper", "name of the server process")
	read := mode("read", "Read the whole tree from every server", "", readAll)
	root.AddCommand(data, lock, operate, read)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}

func (c *common) wants(workload string) bool {
	on := strings.Split(c.on, ",")
	return slices.Contains(on, "all") || slices.Contains(on, workload)
}

func parseNodes(spec string) ([]node, error) {
	servers, err := workload.ParseNodes(spec)
	var out []node
	for _, s := range servers {
		out = append(out, node{s.Name, netip.AddrPortFrom(s.IP, clientPort).String()})
	}
	return out, err
}

const clientPort = 2181
