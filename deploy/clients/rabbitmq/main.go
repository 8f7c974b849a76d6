// Command client is the workload of the rabbitmq target.
//
// "create" makes the queue, "publish" publishes unique messages through every
// node and waits for each confirmation, "operate" has other nodes lead the queue,
// "read" reads all messages of the queue after recovery and leaves them there. All but "create" print the operation
// history as JSON lines (model.Operation) on standard output and end at their time or
// when their standard input ends.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"netsplit/deploy/clients/workload"

	"github.com/spf13/cobra"
)

func main() { workload.Main("rabbitmq client", run) }

// common are the flags of every mode.
type common struct {
	nodes []workload.Node
	spec  string
	host  string
	dur   time.Duration
	tmo   time.Duration
	out   *workload.History
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	root := &cobra.Command{Use: "client", Short: "Workload of the rabbitmq target", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&c.spec, "nodes", "", "hosts with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	root.PersistentFlags().StringVar(&c.host, "host", "c1", "name of the host that this runs on; messages carry it")
	root.PersistentFlags().DurationVar(&c.dur, "for", 24*time.Second, "how long to run")
	root.PersistentFlags().DurationVar(&c.tmo, "timeout", 3*time.Second, "timeout of one operation")
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
	// mode makes the command whose work ends at --for or with stdin.
	mode := func(use, short string, work func(context.Context) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := workload.Bound(cmd.Context(), c.dur, in)
			defer cancel()
			return work(ctx)
		}}
	}

	var kind string
	create := &cobra.Command{Use: "create", Short: "Make the queue", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), c.dur)
		defer cancel()
		return createQueue(ctx, &c, kind)
	}}
	create.Flags().StringVar(&kind, "type", "quorum", "quorum or classic")

	var rate int
	var within time.Duration
	publish := mode("publish", "Publish unique messages through every node", func(ctx context.Context) error { return publishAll(ctx, &c, rate, within) })
	publish.Flags().IntVar(&rate, "rate", 20, "messages per second, all publishers together")
	publish.Flags().DurationVar(&within, "within", 10*time.Second, "how long a publisher may go without a confirmation")

	var moves int
	var seed uint64
	var by ctl
	operate := mode("operate", "Have other nodes lead the queue at seeded moments", func(ctx context.Context) error { return operateAll(ctx, &c, by, seed, moves) })
	operate.Flags().IntVar(&moves, "moves", 2, "how often")
	operate.Flags().Uint64Var(&seed, "seed", 1, "seed of every random choice")
	operate.Flags().StringVar(&by.program, "ctl", "/usr/lib/rabbitmq/bin/rabbitmqctl", "program that asks a node")
	operate.Flags().StringVar(&by.cookie, "cookie", "netsplit", "secret of the nodes")

	read := mode("read", "Read the whole queue and leave it as it is", func(ctx context.Context) error { return readAll(ctx, &c) })

	root.AddCommand(create, publish, operate, read)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}
