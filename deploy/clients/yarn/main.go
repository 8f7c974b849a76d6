// Command client is the workload of the targets yarn and yarn-ha.
//
// "run" does what a user and an administrator of a YARN cluster do: launch
// applications, stop one, and, by --workload, restart a NodeManager, fail over
// the ResourceManager or restart the cluster. "final" comes after recovery: it
// stops what is left over, runs one more application and compares what
// ResourceManager and NodeManagers say. Both print the operation history as
// JSON lines (model.Operation). "containers" and "ask" are probes, "storage"
// and "cluster" conditions, "archive" a step of the set-up; see the target
// files.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func main() { workload.Main("yarn client", run) }

// settings are the flags of "run" and "final".
type settings struct {
	rms, nms []string // hosts
	storage  string   // host of HDFS and ZooKeeper; "": none
	self     string   // host the client runs on
	java     string
	dir      string // with conf/tool.opts; logs go to log/
	netsplit string
	workload string
	failover string
	app      string
	maps     int
	task     time.Duration
	dur      time.Duration
	seed     uint64
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var s settings
	root := &cobra.Command{Use: "client", Short: "Workload of the YARN targets", SilenceUsage: true, SilenceErrors: true}
	flags := func(c *cobra.Command) *cobra.Command {
		f := c.Flags()
		f.StringSliceVar(&s.rms, "rm", []string{"n1"}, "hosts with a ResourceManager")
		f.StringSliceVar(&s.nms, "nm", []string{"n2"}, "hosts with a NodeManager")
		f.StringVar(&s.storage, "storage", "", "host that YARN needs for its files or its election; none: local files")
		f.StringVar(&s.self, "self", "c1", "host this runs on")
		f.StringVar(&s.java, "java", "java", "java program")
		f.StringVar(&s.dir, "dir", ".", "directory with conf/tool.opts")
		f.StringVar(&s.netsplit, "netsplit", "netsplit", "netsplit program, for restarts of servers")
		f.StringVar(&s.workload, "workload", "app", "app, two, nm-failover, rm-failover or start")
		f.StringVar(&s.failover, "failover", "stop", "how the active ResourceManager is failed over: stop or kill")
		f.StringVar(&s.app, "app", "sleep", "application to run: sleep (SleepJob) or pi (ExampleDriver)")
		f.IntVar(&s.maps, "maps", 2, "map tasks of an application")
		f.DurationVar(&s.task, "task", 3*time.Second, "length of a map task of a sleep job")
		f.DurationVar(&s.dur, "for", 45*time.Second, "how long to run")
		f.Uint64Var(&s.seed, "seed", 1, "seed of every random choice")
		return c
	}
	session := func(name string, f func(context.Context, *client)) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			start, err := workload.RunStart()
			if err != nil {
				return err
			}
			h := history{workload.NewHistory(out, start)}
			ctx, cancel := workload.Bound(cmd.Context(), s.dur, in)
			defer cancel()
			c := &client{settings: s, h: h, web: newWeb(s.rms), limits: usual()}
			f(ctx, c)
			return h.Err()
		}
	}
	root.AddCommand(
		flags(&cobra.Command{Use: "run", Short: "launch and stop applications", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, a []string) error {
			f, ok := workloads[s.workload]
			if !ok {
				return fmt.Errorf("unknown workload %q: use app, two, nm-failover, rm-failover or start", s.workload)
			}
			return session("run", func(ctx context.Context, c *client) { f(c, ctx) })(cmd, a)
		}}),
		flags(&cobra.Command{Use: "final", Short: "see that the cluster works and agrees after recovery", Args: cobra.NoArgs,
			RunE: session("final", func(ctx context.Context, c *client) { c.final(ctx) })}),
		containersCommand(out), clusterCommand(out), askCommand(out), storageCommand(out), archiveCommand(),
	)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	return root.ExecuteContext(ctx)
}

func via(h string, from []string, count int) model.Need {
	n := model.Need{Via: model.NodeID(h), Count: count}
	for _, f := range from {
		n.From = append(n.From, model.NodeID(f))
	}
	return n
}
