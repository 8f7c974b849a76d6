package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/campaign"
	"netsplit/campaign/cluster"
	"netsplit/record/rundir"
)

// clusterFlags say whether runners make the runs of a daemon, and how they reach it.
type clusterFlags struct {
	on       bool
	address  string
	existing cluster.Existing
}

// clusterPort is where the broker of a daemon listens by default.
const clusterPort = 7072

func (f *clusterFlags) register(s *pflag.FlagSet) {
	s.BoolVar(&f.on, "cluster", false, fmt.Sprintf("have runners make the runs (netsplit runner); they join at --cluster-address, which is 127.0.0.1:%d", clusterPort))
	s.StringVar(&f.address, "cluster-address", "", "have runners make the runs: HOST:PORT for them to join at, or the URL of an existing NATS server with JetStream")
	registerExisting(s, &f.existing)
}

// registerExisting registers how to connect to an existing NATS server.
func registerExisting(s *pflag.FlagSet, e *cluster.Existing) {
	s.StringVar(&e.Name, "cluster-name", "", "existing NATS server: what this daemon's streams and subjects begin with (default "+cluster.DefaultName+")")
	s.StringVar(&e.Credentials, "cluster-credentials", "", "existing NATS server: file with credentials")
	s.StringVar(&e.CA, "cluster-ca", "", "existing NATS server: CA certificates (PEM)")
	s.StringVar(&e.Cert, "cluster-cert", "", "existing NATS server: certificate to show (PEM)")
	s.StringVar(&e.Key, "cluster-key", "", "existing NATS server: key of the certificate (PEM)")
}

// config is nil where the daemon makes the runs itself.
func (f *clusterFlags) config(testbed string) (*cluster.Config, error) {
	if f.on && f.address == "" {
		f.address = fmt.Sprintf("127.0.0.1:%d", clusterPort)
	}
	if f.address == "" {
		if f.existing != (cluster.Existing{}) {
			return nil, usage("--cluster-name, -credentials, -ca, -cert and -key are about an existing NATS server: give its URL with --cluster-address")
		}
		return nil, nil
	}
	if testbed != "" {
		return nil, usage("--cluster and --testbed exclude each other: runners make the runs, so give the testbed to one of them (netsplit runner --testbed)")
	}
	if !isURL(f.address) {
		if _, _, err := net.SplitHostPort(f.address); err != nil {
			return nil, usage("--cluster-address %s: %w: use HOST:PORT, or the URL of a NATS server", f.address, err)
		}
		if f.existing != (cluster.Existing{}) {
			return nil, usage("--cluster-name, -credentials, -ca, -cert and -key are about an existing NATS server, and --cluster-address %s is one of this daemon's own", f.address)
		}
	}
	return &cluster.Config{Address: f.address, Existing: f.existing}, nil
}

func isURL(s string) bool { return strings.Contains(s, "://") }

func clusterCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "invite runners, which make the runs of a daemon on other machines"}
	c.AddCommand(clusterInvite(), clusterRevoke(), clusterRunners(conn))
	return c
}

func clusterInvite() *cobra.Command {
	var runsDir, address, file string
	cmd := &cobra.Command{
		Use: "invite NAME", Short: "make the file with which a runner joins", Args: exactArgs(1, "the runner's name"),
		Long: `Makes an invitation: a file with the address of the daemon's broker and a
certificate of its own for this runner. Whoever has the file can make runs and send
their records, so keep it secret: copy it to the other machine, and start the runner
there:

  netsplit runner --join FILE

An earlier invitation of the same name is void from then on. netsplit cluster revoke withdraws one.`,
		Example: "  netsplit cluster invite rack2 --address 192.0.2.7:7072 -f rack2.join",
		RunE: func(c *cobra.Command, args []string) error {
			a := cluster.Authority{Dir: filepath.Join(runsDir, campaign.ClusterDir)}
			st, err := os.Stat(runsDir)
			if err != nil {
				return usage("%s: %w: give the daemon's --runs-dir", runsDir, err)
			}
			if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
				name := fmt.Sprint("#", owner.Uid)
				if u, err := user.LookupId(fmt.Sprint(owner.Uid)); err == nil {
					name = u.Username
				}
				return usage("%s belongs to %s, whose daemon cannot read what another user writes there: run this as that user (runuser -u %s -- %s …)", runsDir, name, name, c.CommandPath())
			}
			if address == "" {
				if address = a.Address(); address == "" {
					return usage("the daemon of %s has no cluster yet: start it with --cluster, or give --address", runsDir)
				}
				host, port, err := net.SplitHostPort(address)
				if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
					name, err := os.Hostname()
					if err != nil {
						return err
					}
					address = net.JoinHostPort(name, port)
					fmt.Fprintf(c.ErrOrStderr(), "netsplit: the runner will reach the daemon at %s: give another --address if it cannot\n", address)
				}
			}
			i, err := a.Invite(args[0], address)
			if err != nil {
				return err
			}
			b, err := json.MarshalIndent(i, "", "  ")
			if err != nil {
				return err
			}
			b = append(b, '\n')
			if file == "" {
				_, err = c.OutOrStdout().Write(b)
				return err
			}
			if err := rundir.WriteFile(file, func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "netsplit: on the other machine: netsplit runner --join %s\n", filepath.Base(file))
			return nil
		},
	}
	cmd.Flags().StringVar(&runsDir, "runs-dir", "runs", "the daemon's")
	cmd.Flags().StringVar(&address, "address", "", "HOST:PORT of the daemon's broker as the runner reaches it (default: where it listens)")
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the invitation here, mode 600, instead of printing it")
	return cmd
}

func clusterRevoke() *cobra.Command {
	var runsDir string
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "withdraw the invitation of a runner, and disconnect it", Args: exactArgs(1, "the runner's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := (cluster.Authority{Dir: filepath.Join(runsDir, campaign.ClusterDir)}).Revoke(args[0]); err != nil {
				return usage("%w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "the invitation of %s is void\n", args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&runsDir, "runs-dir", "runs", "the daemon's")
	return completed(cmd, 1, 1, noFiles, func() []string {
		invited, err := cluster.Authority{Dir: filepath.Join(runsDir, campaign.ClusterDir)}.Runners()
		if err != nil {
			return nil
		}
		return invited
	})
}

func clusterRunners(conn *daemonFlags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "runners", Short: "list the runners that have joined", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				list, err := cl.Runners(ctx)
				if err != nil {
					return err
				}
				return printAll(out, c.OutOrStdout(), list, printRunners)
			})
		},
	}
	conn.register(cmd)
	out.register(cmd.Flags())
	return cmd
}

func printRunners(w io.Writer, list []wire.Runner) error {
	t := newTable(w, "RUNNER", "STATE", "CAMPAIGN", "RUNS", "MACHINE", "HAS", "REASON")
	for _, r := range list {
		campaign, reason := "none", r.Reason
		if r.Campaign != "" {
			campaign = r.Campaign
		}
		t.row(r.Name, r.State, campaign, fmt.Sprintf("%d of %d", r.Busy, r.Slots), fmt.Sprintf("%d cores, %d MB", r.Cores, r.Memory), strings.Join(r.Has, ","), reason)
	}
	return t.end()
}
