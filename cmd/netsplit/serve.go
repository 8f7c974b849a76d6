package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api"
	"netsplit/campaign"
	"netsplit/campaign/cluster"
	"netsplit/campaign/script"
	"netsplit/model"
	"netsplit/record/rundir"
)

// daemon is the service and its API in one process.
type daemon struct {
	service *campaign.Service
	metrics *api.Metrics
	access  *api.Access
	doors   *doors
	allowed []string
	log     *slog.Logger
}

// daemonConfig is what serve and the in-process daemon differ in.
type daemonConfig struct {
	doors             doorFlags
	openflow, testbed string
	gate              string
	runsDir, store    string
	allowed           []string
	log               *slog.Logger
	switches          switchFlags
	keep              retentionFlags
	cluster           clusterFlags
	logs              logFlags
	// inProcess: for one command, which alone reaches the API.
	inProcess bool
	reads     bool // campaign.Config.Reads
}

// load reads the files that the flags name, and checks that they go together. tb is nil where
// campaigns make their own labs.
func (c *daemonConfig) load() (tb *model.Testbed, tlsConf *tls.Config, datapaths []model.DatapathID, err error) {
	if err := c.logs.check(); err != nil {
		return nil, nil, nil, err
	}
	if err := model.Gate(c.gate).Validate(); err != nil {
		return nil, nil, nil, usage("--gate: %w", err)
	}
	if c.testbed != "" {
		if tb, err = readTestbed(c.testbed); err != nil {
			return nil, nil, nil, err
		}
	}
	if tb != nil && tb.Backend == model.BackendNFTables && (c.gate != "" || c.switches.specified()) {
		return nil, nil, nil, usage("testbed %s has no switch (backend: %s): leave out --gate, --role, --allowed-datapath and --tls-*", tb.Name, tb.Backend)
	}
	tlsConf, datapaths, err = c.switches.load(tb)
	return tb, tlsConf, datapaths, err
}

// runners says how runners reach the daemon; nil: it makes the runs itself.
func (c *daemonConfig) runners() (*cluster.Config, error) {
	conf, err := c.cluster.config(c.testbed)
	if err == nil && conf != nil && (c.gate != "" || c.switches.specified()) {
		err = usage("runners drive the switches: give --gate, --role, --allowed-datapath and --tls-* to netsplit runner")
	}
	return conf, err
}

// openDaemon opens the API's address first: if that is taken, nothing of the
// testbed was touched yet.
func openDaemon(ctx context.Context, c daemonConfig) (_ *daemon, err error) {
	tb, tlsConf, datapaths, err := c.load()
	if err != nil {
		return nil, err
	}
	runners, err := c.runners()
	if err != nil {
		return nil, err
	}
	d := &daemon{allowed: c.allowed, log: c.log, metrics: api.NewMetrics(version, nil), doors: &doors{}}
	defer func() {
		if err != nil {
			d.doors.close()
		}
	}()
	if !c.inProcess {
		if d.doors, d.access, err = c.doors.open(ctx, c.runsDir, c.store, c.log); err != nil {
			return nil, err
		}
	}
	exe, err := binary()
	if err != nil {
		return nil, err
	}
	cfg := campaign.Config{Testbed: tb, TLS: tlsConf, Allowed: datapaths, Equal: c.switches.role == roleEqual, RunsDir: c.runsDir, StorePath: c.store, ControllerAddr: c.openflow, Binary: exe,
		BinDir: filepath.Dir(exe), Metrics: d.metrics, Log: c.log, Version: version, Gate: model.Gate(c.gate), InProcess: c.inProcess, Reads: c.reads, APIAddr: d.doors.commands(), Retention: c.keep.model(), Cluster: runners, Scripts: script.Files{}}
	if d.service, err = campaign.Open(cfg); err != nil {
		return nil, err
	}
	d.metrics.State(d.service.State)
	return d, nil
}

// serve answers on the listeners until ctx ends; then it heals everything and closes.
func (d *daemon) serve(ctx context.Context, lns ...net.Listener) error {
	h := api.New(api.Config{Service: d.service, Metrics: d.metrics, Keys: d.service.Keys(), Access: d.access,
		AllowedHosts: d.allowed, Version: version, Log: d.log})
	err := api.Serve(ctx, h, lns...)
	return errors.Join(err, d.service.Close())
}

// gateHelp explains --gate.
const gateHelp = "how held packets leave the switch and return: port (a gate port) or packet-in (default: port if the testbed has one)"

func serveCommand() *cobra.Command {
	var c daemonConfig
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the OpenFlow controller and the REST API",
		Long: `Runs the OpenFlow controller and the REST API until it is told to stop.

With --testbed it drives the switches and hosts of that file; point the switches
at --openflow (ovs-vsctl set-controller BRIDGE tcp:ADDRESS:PORT). Without --testbed
and --cluster, each campaign makes its own labs on this machine, as root.

A testbed with "backend: nftables" needs no switch: its hosts drop packets
themselves (docs/without-a-switch.md). It allows manual partitions, no campaigns.

With --tls-cert, --tls-key and --tls-ca switches connect by TLS (ssl: in place of
tcp:) and must show a certificate that --tls-ca signed; ovs-pki makes all of them.

With --cluster or --cluster-address the daemon makes no runs and needs no root: runners
make them, on this machine or on others (docs/runners.md). Invite them with netsplit
cluster invite.

The API requires credentials. Commands of the daemon's own user and of root need
none: they use a Unix socket (--socket), where the kernel identifies the user.
netsplit access prints credentials for a browser and for Prometheus; all others
need the token in --token-file. On loopback the API speaks plain HTTP, on other
addresses TLS, with --api-cert and --api-key or with a certificate that is made at
the first start and kept. netsplit serve prints its fingerprint, for
--api-fingerprint.

A file given with --config has the same keys as the flags (runs-dir: /var/lib/netsplit);
flags override it. netsplit config check examines one.

The daemon asks to be master of its switches. While another controller is master,
it can neither cut nor heal, and current runs are unknown.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if err := applyConfig(cmd.Flags(), file); err != nil {
					return err
				}
			}
			c.log = c.logs.open(cmd.ErrOrStderr())
			d, err := openDaemon(cmd.Context(), c)
			if err != nil {
				return err
			}
			cuts := "hosts that drop packets themselves"
			if addr := d.service.ControllerAddr(); addr != "" {
				cuts = fmt.Sprintf("switches on %s:%s", c.switches.scheme(), addr)
			}
			if addr := d.service.ClusterAddr(); addr != "" {
				cuts = "runners join at " + addr
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "netsplit: API on %s, %s, records in %s\n", d.doors, cuts, c.runsDir)
			go notify(cmd.Context(), c.log, d.service.Health)
			told := make(chan struct{})
			tells := context.AfterFunc(cmd.Context(), func() {
				stopping(c.log)
				close(told)
			})
			err = d.serve(cmd.Context(), d.doors.tcp, d.doors.socket)
			if !tells() {
				<-told
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, configFlag, "", "YAML file with these flags as keys; flags override it")
	cmd.Flags().AddFlagSet(serveFlags(&c))
	return cmd
}

// serveFlags are the flags of serve that a configuration file can have, too.
func serveFlags(c *daemonConfig) *pflag.FlagSet {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.doors.register(f)
	f.StringVar(&c.openflow, "openflow", "127.0.0.1:6653", "address that switches connect to; nothing listens there with --cluster or --cluster-address")
	f.StringVar(&c.testbed, "testbed", "", "testbed file; without one, labs are made on this machine")
	f.StringVar(&c.gate, "gate", "", gateHelp+"; campaigns may ask for the other")
	f.StringVar(&c.runsDir, "runs-dir", "runs", "where records of runs and the store are kept")
	f.StringVar(&c.store, "store", "", "path of the store (default RUNS-DIR/netsplit.db)")
	f.StringSliceVar(&c.allowed, "allowed-host", nil, "further host names of the API")
	c.switches.register(f)
	c.keep.register(f)
	c.cluster.register(f)
	c.logs.register(f)
	return f
}

// quietLog keeps warnings of an in-process daemon for its log file.
func quietLog(dir string) (*slog.Logger, func(), error) {
	if err := rundir.MakeRoot(dir); err != nil {
		return nil, nil, fmt.Errorf("make the runs directory: %w", err)
	}
	f, err := rundir.OpenLog(filepath.Join(dir, "netsplit.log"))
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	return logFlags{}.open(f), func() { f.Close() }, nil
}
