package main

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

func main() { workload.Main("hdfs client", run) }

// cluster is where everything is.
type cluster struct {
	me            model.NodeID
	newcomer      model.NodeID // host of a DataNode that was not started; "" none
	nns, dns, jns []model.NodeID
	httpPort      int    // of the NameNodes' web server
	ipcPort       int    // of the DataNodes
	script        string // java.sh of this host
	jar           string // Shell.java, packed
	dir           string // a directory for files to upload
	work          string // the run's shared directory
	netsplit      string // the netsplit program
	replication   int
	pause         time.Duration // between a user's operations, if longer than pause

	dur  time.Duration
	seed uint64
	out  history

	active atomic.Pointer[model.NodeID] // the NameNode that serves; nil while the administrator changes that
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var c cluster
	var me, newcomer string
	var nns, dns, jns []string
	root := &cobra.Command{Use: "client", Short: "Workload of the targets hdfs and hdfs-ha", SilenceUsage: true, SilenceErrors: true}
	f := root.PersistentFlags()
	f.StringVar(&me, "me", "c1", "this host")
	f.StringVar(&newcomer, "newcomer", "", "host of a DataNode that the administrator adds")
	f.StringSliceVar(&nns, "namenodes", nil, "hosts of the NameNodes, the one that is active at first first")
	f.StringSliceVar(&dns, "datanodes", nil, "hosts of the DataNodes")
	f.StringSliceVar(&jns, "journalnodes", nil, "hosts of the JournalNodes; none without a second NameNode")
	f.IntVar(&c.httpPort, "http-port", 9870, "port of the NameNodes' web server")
	f.IntVar(&c.ipcPort, "ipc-port", 9867, "port of the DataNodes' RPC")
	f.StringVar(&c.script, "script", "java.sh", "script that runs a class of Hadoop")
	f.StringVar(&c.jar, "jar", "", "Shell.java, packed by jar")
	f.StringVar(&c.dir, "dir", ".", "directory for files to upload")
	f.StringVar(&c.work, "work-dir", ".", "directory that all hosts of the run share")
	f.StringVar(&c.netsplit, "netsplit", "netsplit", "the netsplit program")
	f.IntVar(&c.replication, "replication", 2, "copies of each block")
	f.DurationVar(&c.dur, "for", 12*time.Second, "how long to run")
	f.Uint64Var(&c.seed, "seed", 1, "seed of every random choice")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		start, err := workload.RunStart()
		if err != nil {
			return err
		}
		c.me, c.newcomer, c.nns, c.dns, c.jns = model.NodeID(me), model.NodeID(newcomer), ids(nns), ids(dns), ids(jns)
		c.out = history{workload.NewHistory(out, start)}
		return nil
	}
	// bound gives the context of the work: it ends at --for or with stdin.
	bound := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return workload.Bound(ctx, c.dur, in)
	}

	var which string
	var users int
	work := &cobra.Command{Use: "work", Args: cobra.NoArgs, Short: "Users and an administrator", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := bound(cmd.Context())
		defer cancel()
		return workAll(ctx, &c, which, users)
	}}
	work.Flags().StringVar(&which, "workload", "files", "files, failover, datanode or shutdown")
	work.Flags().IntVar(&users, "users", 2, "users, side by side")

	final := &cobra.Command{Use: "final", Args: cobra.NoArgs, Short: "Read every file back", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := bound(cmd.Context())
		defer cancel()
		return finalAll(ctx, &c)
	}}
	var due bool
	fence := &cobra.Command{Use: "fence HOST", Args: cobra.ExactArgs(1), Short: "Kill the NameNode of a host", RunE: func(cmd *cobra.Command, args []string) error {
		host := model.NodeID(args[0])
		if due {
			if d, err := c.due(); err != nil || d != host {
				return err
			}
		}
		return c.fence(cmd.Context(), host)
	}}
	fence.Flags().BoolVar(&due, "due", false, "only if it is the one that the running failover has to fence")
	var jar packing
	pack := &cobra.Command{Use: "jar", Args: cobra.NoArgs, Short: "Compile and pack Shell.java", RunE: func(cmd *cobra.Command, _ []string) error {
		return jar.run(cmd.Context())
	}}
	pack.Flags().StringVar(&jar.out, "out", "shell.jar", "file to write")
	pack.Flags().StringVar(&jar.lib, "lib", "", "class path")

	root.AddCommand(work, final, fence, pack)
	root.SetArgs(args)
	root.SetOut(os.Stderr)
	root.SetErr(os.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return c.out.Err()
}

func ids(in []string) []model.NodeID {
	out := make([]model.NodeID, len(in))
	for i, s := range in {
		out[i] = model.NodeID(s)
	}
	return out
}
