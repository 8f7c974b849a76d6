// Command client is the workload of the nats target.
//
// "create" makes the stream with a first message, "publish" publishes unique messages through every
// server and waits for each acknowledgement, "operate" makes leaders step
// down at seeded moments, "read" reads the whole stream after recovery, from
// its leader and from every replica. All but "create" print the operation history
// as JSON lines (model.Operation) on standard output and end at their time or when
// their standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"netsplit/deploy/clients/workload"
	"netsplit/model"

	"github.com/spf13/cobra"
)

func main() { workload.Main("nats client", run) }

// common are the flags of every mode.
type common struct {
	nodes []workload.Node
	spec  string
	host  string
	dur   time.Duration
	seed  uint64
	tmo   time.Duration
	out   *workload.History
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c common
	root := &cobra.Command{Use: "client", Short: "Workload of the nats target", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&c.spec, "nodes", "", "hosts with their addresses: n1=10.0.0.1,n2=10.0.0.2 (required)")
	root.PersistentFlags().StringVar(&c.host, "host", "c1", "name of the host that this runs on; messages carry it")
	root.PersistentFlags().DurationVar(&c.dur, "for", 24*time.Second, "how long to run")
	root.PersistentFlags().Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	root.PersistentFlags().DurationVar(&c.tmo, "timeout", 1500*time.Millisecond, "timeout of one operation")
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

	var replicas int
	create := &cobra.Command{Use: "create", Short: "Make the stream", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), c.dur)
		defer cancel()
		return createStream(ctx, &c, replicas)
	}}
	create.Flags().IntVar(&replicas, "replicas", 3, "replicas of the stream, 1 to 5")

	const movesHelp = "how often another server gets a replica of the stream in place of one that has it"
	var rate, moves int
	var first bool
	var within time.Duration
	publish := mode("publish", "Publish unique messages through every server", func(ctx context.Context) error {
		if first {
			c.out.Add(model.Operation{Process: 2 * len(c.nodes), Type: model.OpInvoke, F: "publish", Key: firstMessage})
			c.out.Add(model.Operation{Process: 2 * len(c.nodes), Type: model.OpOK, F: "publish", Key: firstMessage, Value: "1"})
		}
		return publishAll(ctx, &c, rate, within, replicas, moves > 0)
	})
	publish.Flags().BoolVar(&first, "first", false, "note the message that create published")
	publish.Flags().IntVar(&rate, "rate", 25, "messages per second, all publishers together")
	publish.Flags().IntVar(&replicas, "replicas", 3, "replicas of the stream, 1 to 5")
	publish.Flags().IntVar(&moves, "moves", 0, movesHelp+": nobody knows for long who has one")
	publish.Flags().DurationVar(&within, "within", 10*time.Second, "how long a publisher may go without an acknowledgement")

	var stepdowns, metas int
	operate := mode("operate", "Make leaders step down and replicas move at seeded moments", func(ctx context.Context) error { return operateAll(ctx, &c, stepdowns, metas, moves) })
	operate.Flags().IntVar(&stepdowns, "stepdowns", 2, "how often the stream's leader")
	operate.Flags().IntVar(&metas, "meta-stepdowns", 1, "how often the leader of all servers")
	operate.Flags().IntVar(&moves, "moves", 0, movesHelp)

	read := mode("read", "Read the whole stream from its leader and from every replica", func(ctx context.Context) error { return readAll(ctx, &c) })

	root.AddCommand(create, publish, operate, read)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}

// node finds a server by name.
func (c *common) node(name string) (workload.Node, error) {
	for _, n := range c.nodes {
		if n.Name == model.NodeID(name) {
			return n, nil
		}
	}
	return workload.Node{}, fmt.Errorf("the stream has a replica on %q, which --nodes does not name", name)
}
