package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/trust"
	"netsplit/record/rundir"
)

// daemonFlags say which daemon a command speaks with. Commands are clients of
// the REST API: of the daemon that runs, or of one that lives in this process
// for as long as the command does.
type daemonFlags struct {
	addr, tokenFile, fingerprint string
	insecure                     bool
	about                        string // a flag that was given and is for --api, "" for none
}

// register gives them to the commands that use them, and to no others. With a runs
// directory of its own a command asks no daemon.
func (d *daemonFlags) register(cs ...*cobra.Command) {
	for _, c := range cs {
		d.registerOn(c)
	}
}

// daemonFlagNames are the flags that say which daemon is asked.
var daemonFlagNames = []string{"api", "api-token-file", "api-fingerprint", "insecure"}

func (d *daemonFlags) registerOn(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.addr, "api", os.Getenv("NETSPLIT_API"), fmt.Sprintf("a running daemon: https://HOST:PORT, 127.0.0.1:PORT or unix:SOCKET (or set NETSPLIT_API); default: your own daemon on port %d; without one, the command does the work itself", client.DefaultPort))
	f.StringVar(&d.tokenFile, "api-token-file", "", "file, mode 600, with the token for --api (or set "+trust.TokenEnv+"); your own daemon needs none")
	f.StringVar(&d.fingerprint, "api-fingerprint", os.Getenv("NETSPLIT_API_FINGERPRINT"), "SHA-256 of the certificate of the daemon at --api, as netsplit serve prints it (or set NETSPLIT_API_FINGERPRINT)")
	f.BoolVar(&d.insecure, "insecure", false, "send the token to another machine by plain HTTP")
	c.PreRunE = func(*cobra.Command, []string) error {
		for _, name := range daemonFlagNames {
			if f.Changed(name) && name != "api" {
				d.about = name
			}
			if f.Changed(name) && f.Lookup("runs-dir") != nil && f.Changed("runs-dir") {
				return usage("--%s and --runs-dir exclude one another: a daemon keeps records in its own directory, and with --runs-dir the command does the work itself", name)
			}
		}
		return nil
	}
}

// named says that the flags of a command name a daemon. NETSPLIT_API alone does not send those
// away that read records on this machine.
func (d *daemonFlags) named(c *cobra.Command) bool { return c.Flags().Changed("api") || d.about != "" }

// client speaks with the daemon that is named, or with this user's own.
func (d *daemonFlags) client() (*client.Client, error) {
	if d.addr == "" && d.about != "" {
		return nil, usage("--%s needs --api: your own daemon is reached without it", d.about)
	}
	if d.addr == "" {
		return client.New(client.Config{})
	}
	token, err := trust.LoadToken(d.tokenFile)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{API: d.addr, Token: token, Fingerprint: d.fingerprint, Insecure: d.insecure})
}

// connect finds a daemon or starts one in this process. The function it
// returns ends what it started; it must be called.
func (d *daemonFlags) connect(ctx context.Context, runsDir string) (*client.Client, string, func() error, error) {
	// With a runs directory of its own the command wants its own daemon.
	if runsDir == "" {
		c, err := d.running(ctx)
		if err == nil {
			return c, "", func() error { return nil }, nil
		}
		if d.addr != "" || !errors.Is(err, client.ErrNoDaemon) {
			return nil, "", nil, err
		}
		runsDir = defaultRunsDir
	}
	return d.within(ctx, runsDir)
}

// defaultRunsDir is where records are that no daemon keeps.
const defaultRunsDir = "runs"

// running is the daemon that is named, or this user's own, if it answers.
func (d *daemonFlags) running(ctx context.Context) (*client.Client, error) {
	c, err := d.client()
	if err == nil {
		_, err = versionOf(ctx, c)
	}
	return c, err
}

// read has what is stored read: from a daemon, or from the store in runsDir. dir is that
// folder, "" of a daemon. It makes no store.
func (d *daemonFlags) read(c *cobra.Command, runsDir string, ask func(ctx context.Context, cl *client.Client, dir string) error) error {
	return d.stored(c, runsDir, func(dir string) error { return storeIn(dir) }, ask)
}

// stored is read, given what is asked of the folder first.
func (d *daemonFlags) stored(c *cobra.Command, runsDir string, check func(dir string) error, ask func(ctx context.Context, cl *client.Client, dir string) error) error {
	ctx := c.Context()
	if runsDir == "" {
		cl, err := d.running(ctx)
		if err == nil {
			return ask(ctx, cl, "")
		}
		if d.addr != "" || !errors.Is(err, client.ErrNoDaemon) {
			return err
		}
		if runsDir = defaultRunsDir; check(runsDir) != nil {
			return fmt.Errorf("%w; or name the folder of the records with --runs-dir", err)
		}
	}
	if err := check(runsDir); err != nil {
		return err
	}
	cl, dir, end, err := d.inside(ctx, runsDir, true)
	if err != nil {
		return err
	}
	return errors.Join(ask(ctx, cl, dir), end())
}

// within starts a daemon in this process, which nobody else reaches.
func (d *daemonFlags) within(ctx context.Context, runsDir string) (*client.Client, string, func() error, error) {
	return d.inside(ctx, runsDir, false)
}

// inside is within; reads: the daemon does nothing but read (campaign.Config.Reads).
func (d *daemonFlags) inside(ctx context.Context, runsDir string, reads bool) (*client.Client, string, func() error, error) {
	runsDir, err := filepath.Abs(runsDir)
	if err != nil {
		return nil, "", nil, err
	}
	log, closeLog, err := quietLog(runsDir)
	if err != nil {
		return nil, "", nil, err
	}
	dm, err := openDaemon(ctx, daemonConfig{openflow: "127.0.0.1:0", runsDir: runsDir, log: log,
		switches: switchFlags{role: roleMaster}, inProcess: true, reads: reads})
	if err != nil {
		closeLog()
		return nil, "", nil, err
	}
	ln, dial := trust.Pipe()
	// It outlives ctx: an interrupted command still cancels and heals.
	sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- dm.serve(sctx, ln) }()
	end := func() error {
		stop()
		err := <-served
		closeLog()
		return err
	}
	return client.Over(dial), runsDir, end, nil
}

// place is where records are, and what commands that go on with them need.
type place struct {
	dir   string // of the records; "" where a daemon has them
	flags string // that name the folder or the daemon
}

func (d *daemonFlags) place(dir string) place {
	p := place{dir: dir}
	for _, f := range []struct{ name, value string }{{"runs-dir", dir}, {"api", d.addr}, {"api-token-file", d.tokenFile}, {"api-fingerprint", d.fingerprint}} {
		if f.value != "" && (dir == "" || f.name == "runs-dir") {
			p.flags += " --" + f.name + " " + shellquote.Join(f.value)
		}
	}
	if dir == "" && d.insecure {
		p.flags += " --insecure"
	}
	return p
}

func (p place) command(words string) string { return os.Args[0] + " " + words + p.flags }

func (p place) replay(run string) string { return p.command("replay " + run + " -n 10") }

// campaignReport is report, of a campaign.
func (p place) campaignReport(campaign string) string {
	if p.dir == "" {
		return p.command("open " + campaign)
	}
	return filepath.Join(p.dir, campaign, rundir.ReportFile)
}

// report is the path of a run's report, or the command that opens it.
func (p place) report(campaign, run string) string {
	if p.dir == "" {
		return p.command("open " + run)
	}
	return filepath.Join(p.dir, campaign, run, rundir.ReportFile)
}
