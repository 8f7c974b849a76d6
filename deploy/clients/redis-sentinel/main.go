// Command client is the workload of the redis-sentinel target.
//
// "write" writes unique keys through the master that the Sentinels name,
// "operate" forces failovers at seeded moments, "read" reads all keys back
// from every node after recovery. Each prints the operation history as JSON
// lines (model.Operation) on standard output and ends at its time or when its
// standard input ends.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"netsplit/deploy/clients/workload"

	"github.com/spf13/cobra"
)

func main() { workload.Main("redis-sentinel client", run) }

// common are the flags of every mode.
type common struct {
	nodes []workload.Node
	spec  string
	dur   time.Duration
	seed  uint64
	tmo   time.Duration
	out   *workload.History
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	root := &cobra.Command{Use: "client", Short: "Workload of the redis-sentinel target", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&c.spec, "nodes", "", "hosts with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	root.PersistentFlags().DurationVar(&c.dur, "for", 9*time.Second, "how long to run")
	root.PersistentFlags().Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	root.PersistentFlags().DurationVar(&c.tmo, "timeout", 300*time.Millisecond, "timeout of one operation")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		var err error
		if c.nodes, err = workload.ParseNodes(c.spec); err != nil {
			return err
		}
		start, err := workload.RunStart()
		if err != nil {
			return err
		}
		c.out = workload.NewHistory(out, start)
		return nil
	}
	// bound gives the context of the work: it ends at --for or with stdin.
	bound := func(cmd *cobra.Command) (context.Context, context.CancelFunc) {
		return workload.Bound(cmd.Context(), c.dur, in)
	}

	var w writeOptions
	write := &cobra.Command{Use: "write", Args: cobra.NoArgs, Short: "Write unique keys through the master", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := bound(cmd)
		defer cancel()
		return writeAll(ctx, &c, w)
	}}
	write.Flags().IntVar(&w.rate, "rate", 70, "writes per second, all writers together")
	write.Flags().IntVar(&w.writers, "writers", 1, "writers, each with a connection of its own")
	write.Flags().IntVar(&w.wait, "wait", 0, "replicas to WAIT for, 100 ms at most, after each write")

	write.Flags().DurationVar(&w.refresh, "refresh", 0, "how often writers with an odd number ask the Sentinels without an error; 0: never")

	var failovers int
	var drain bool
	operate := &cobra.Command{Use: "operate", Args: cobra.NoArgs, Short: "Force failovers at seeded moments", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := bound(cmd)
		defer cancel()
		return operateAll(ctx, &c, failovers, drain)
	}}
	operate.Flags().IntVar(&failovers, "failovers", 1, "how many")
	operate.Flags().BoolVar(&drain, "drain", false, "ask the Sentinel on the master's host, not any")

	read := &cobra.Command{Use: "read", Args: cobra.NoArgs, Short: "Read all keys from every node", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := bound(cmd)
		defer cancel()
		return readAll(ctx, &c)
	}}
	root.AddCommand(write, operate, read)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}
