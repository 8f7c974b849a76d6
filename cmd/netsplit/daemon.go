package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"netsplit/api"
	"netsplit/api/client"
)

// defaultAPI is where serve listens if not told otherwise.
const defaultAPI = "127.0.0.1:7070"

// daemonFlags say which daemon a command speaks with. Commands are clients of
// the REST API: of the daemon that runs, or of one that lives in this process
// for as long as the command does.
type daemonFlags struct {
	addr, tokenFile, runsDir string
}

// register gives them to the commands that use them, and to no others. With a runs
// directory of its own a command asks no daemon.
func (d *daemonFlags) register(cs ...*cobra.Command) {
	for _, c := range cs {
		d.registerOn(c)
	}
}

func (d *daemonFlags) registerOn(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.addr, "api", os.Getenv("NETSPLIT_API"), "address of a running daemon's API (or set NETSPLIT_API); without one, "+defaultAPI+" is tried, then the command does the work itself")
	f.StringVar(&d.tokenFile, "api-token-file", "", "file with the daemon's bearer token (or set "+api.TokenEnv+")")
	c.PreRunE = func(*cobra.Command, []string) error {
		for _, name := range []string{"api", "api-token-file"} {
			if f.Changed(name) && f.Lookup("runs-dir") != nil && f.Changed("runs-dir") {
				return usage("--%s and --runs-dir exclude one another: a daemon keeps records in its own directory, and with --runs-dir the command does the work itself", name)
			}
		}
		return nil
	}
}

// connect finds a daemon or starts one in this process. The function it
// returns ends what it started; it must be called.
func (d *daemonFlags) connect(ctx context.Context, runsDir string) (*client.Client, string, func() error, error) {
	token, err := api.LoadToken(d.tokenFile)
	if err != nil {
		return nil, "", nil, err
	}
	addr := d.addr
	if addr == "" {
		addr = defaultAPI
	}
	// With a runs directory of its own the command wants its own daemon.
	if runsDir == "" {
		c, err := client.New(addr, token)
		if err != nil {
			return nil, "", nil, err
		}
		_, err = c.Version(ctx)
		if err == nil {
			return c, "", func() error { return nil }, nil
		}
		if d.addr != "" || !errors.Is(err, client.ErrNoDaemon) {
			return nil, "", nil, err
		}
	}
	if runsDir == "" {
		runsDir = "runs"
	}
	return d.within(ctx, runsDir)
}

// within starts a daemon in this process, on free loopback ports.
func (d *daemonFlags) within(ctx context.Context, runsDir string) (*client.Client, string, func() error, error) {
	runsDir, err := filepath.Abs(runsDir)
	if err != nil {
		return nil, "", nil, err
	}
	log, closeLog, err := quietLog(runsDir)
	if err != nil {
		return nil, "", nil, err
	}
	dm, err := openDaemon(ctx, daemonConfig{listen: "127.0.0.1:0", openflow: "127.0.0.1:0", runsDir: runsDir, log: log,
		switches: switchFlags{role: roleMaster}, inProcess: true})
	if err != nil {
		closeLog()
		return nil, "", nil, err
	}
	// It outlives ctx: an interrupted command still cancels and heals.
	sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- dm.serve(sctx) }()
	end := func() error {
		stop()
		err := <-served
		closeLog()
		return err
	}
	c, err := client.New(dm.ln.Addr().String(), dm.token)
	if err != nil {
		return nil, "", nil, errors.Join(err, end())
	}
	return c, runsDir, end, nil
}

// report is where the report of a run or campaign can be found.
func reportPath(runsDir, campaign, run string) string {
	if runsDir == "" {
		return fmt.Sprintf("/v1/runs/%s/report", run)
	}
	return filepath.Join(runsDir, campaign, run, "report.html")
}
