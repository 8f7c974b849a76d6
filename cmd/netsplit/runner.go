package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"netsplit/api"
	"netsplit/campaign"
	"netsplit/campaign/cluster"
	"netsplit/campaign/script"
	"netsplit/model"
	"netsplit/sut/software"
)

// runnerFlags are those of a runner.
type runnerFlags struct {
	join, name, dir, testbed, openflow string
	labs                               int
	has                                []string
	existing                           cluster.Existing
	switches                           switchFlags
	logs                               logFlags
}

func runnerCommand() *cobra.Command {
	var f runnerFlags
	cmd := &cobra.Command{
		Use: "runner", Short: "make runs on this machine for the daemon of a cluster", Args: cobra.NoArgs,
		Long: `Makes runs on this machine for a daemon that was started with --cluster, until it is
stopped. It joins with an invitation (netsplit cluster invite), or at the URL of the
NATS server that the daemon uses.

It makes labs, as root, as many as --labs and the free memory allow. With --testbed it
drives the switches and hosts of that file in their place. Software that this machine
lacks comes from the daemon's cache. Records of runs go to the daemon; nothing of them
stays here.

Campaigns can ask for tags (netsplit campaign --needs). A runner has the tag lab or
testbed, the tag root if it runs as root, and those of --has.

If it is stopped or killed, other runners execute its runs. It waits for a daemon that is
away.`,
		Example: "  netsplit runner --join rack2.join --labs 4\n  netsplit runner --join rack7.join --testbed rack7.yaml --openflow 192.0.2.8:6653",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := requireCount(c, "labs"); err != nil {
				return err
			}
			if f.labs == 0 {
				f.labs = max(runtime.NumCPU()/2, 1)
			}
			return f.run(c)
		},
	}
	s := cmd.Flags()
	s.StringVar(&f.join, "join", "", "file with the invitation, or URL of the NATS server that the daemon uses")
	s.StringVar(&f.name, "name", "", "with a URL: name of this runner (default: that of the machine)")
	s.StringVar(&f.dir, "dir", "runner", "folder for runs under way")
	s.IntVar(&f.labs, "labs", 0, "labs at once, at most (default: half as many as the machine has cores)")
	s.StringVar(&f.testbed, "testbed", "", "testbed file; without one, labs are made on this machine")
	s.StringVar(&f.openflow, "openflow", "127.0.0.1:0", "address that switches connect to; with --testbed give one that they reach, such as 192.0.2.8:6653")
	s.StringSliceVar(&f.has, "has", nil, "further tags that campaigns can ask for, such as hardware-switch")
	registerExisting(s, &f.existing)
	f.switches.register(s)
	f.logs.register(s)
	return cmd
}

func (f *runnerFlags) run(c *cobra.Command) error {
	if f.join == "" {
		return usage("give --join: a file that netsplit cluster invite made, or the URL of a NATS server")
	}
	d := daemonConfig{openflow: f.openflow, testbed: f.testbed, switches: f.switches, logs: f.logs}
	tb, tlsConf, datapaths, err := d.load()
	if err != nil {
		return err
	}
	if _, port, _ := net.SplitHostPort(f.openflow); tb != nil && port == "0" {
		return usage("give --openflow HOST:PORT, and point the switches of testbed %s at it", tb.Name)
	}
	conf := cluster.RunnerConfig{Existing: f.existing, Log: f.logs.open(c.ErrOrStderr()),
		About: model.Runner{Name: f.name, Version: version, Cores: runtime.NumCPU(), Memory: machineMemory(), Root: os.Geteuid() == 0, Labs: f.labs, Has: f.has, Software: software.Sets(), State: model.RunnerIdle}}
	a := &conf.About
	if tb != nil {
		a.Labs, a.Testbed, a.Has = 0, tb.Name, append(a.Has, "testbed")
	} else {
		a.Has = append(a.Has, "lab")
	}
	if a.Root {
		a.Has = append(a.Has, "root")
	}
	slices.Sort(a.Has)
	if isURL(f.join) {
		conf.URL = f.join
		if a.Name == "" {
			if a.Name, err = os.Hostname(); err != nil {
				return err
			}
		}
	} else if conf.Invitation, err = cluster.ReadInvitation(f.join); err != nil {
		return usage("%w", err)
	}
	exe, err := binary()
	if err != nil {
		return err
	}
	service, err := campaign.Open(campaign.Config{RunsDir: filepath.Join(f.dir, campaign.UnderWay), ControllerAddr: f.openflow, Testbed: tb, TLS: tlsConf, Allowed: datapaths, Equal: f.switches.role == roleEqual,
		Binary: exe, BinDir: filepath.Dir(exe), Metrics: api.NewMetrics(version, nil), Log: conf.Log, Version: version, InProcess: true, Scripts: script.Files{}})
	if err != nil {
		return err
	}
	worker := campaign.Worker{Service: service, Labs: f.labs}
	conf.Worker = worker
	conf.State = func(r model.Runner) {
		line := fmt.Sprintf("netsplit: runner %s is %s", r.Name, r.State)
		if r.Campaign != "" {
			line += ", campaign " + r.Campaign
		}
		if r.State == model.RunnerReady {
			line += ", " + model.Count(r.Slots, "run", "runs") + " at once"
		}
		if r.Reason != "" {
			line += ": " + r.Reason
		}
		fmt.Fprintln(c.ErrOrStderr(), line)
	}
	err = worker.Sweep()
	var r *cluster.Runner
	if err == nil {
		r, err = cluster.Join(conf)
	}
	if err == nil {
		err = r.Run(c.Context())
	}
	if cerr := service.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, cluster.ErrRefused) {
		return usage("%w", err)
	}
	return err
}

// machineMemory is what the machine has, in MB; 0 where that is not known.
func machineMemory() int {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return int(uint64(i.Totalram) * uint64(i.Unit) >> 20)
}
