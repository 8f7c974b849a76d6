package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

func healthCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "health", Short: "say whether the daemon can do its work", Args: cobra.NoArgs,
		Long: `Says of each thing that the daemon needs, such as its store and its switches, whether it is
there. Exit status 1 if a campaign or a partition would not find what it needs now.
netsplit doctor examines the switches themselves.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				h, err := cl.Health(ctx)
				if err != nil {
					return err
				}
				if err := printOne(o, c.OutOrStdout(), h, printHealth); err != nil {
					return err
				}
				if !h.OK {
					return errors.New("the daemon cannot do its work")
				}
				return nil
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printHealth(out io.Writer, h model.Health) error {
	return printTable(out, h.Checks, "the daemon tells no details without credentials", []any{"CHECK", "STATE", "DETAIL"}, func(c *model.HealthCheck) []any {
		return []any{c.Name, map[bool]string{true: "ok", false: "FAILED"}[c.OK], cmp.Or(c.Detail, "-")}
	})
}

// versions is what version prints.
type versions struct {
	wire.Version
	Daemon *wire.Version `json:"daemon,omitempty"` // absent: none was asked, or none runs
}

func versionCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "version", Short: "print the version of this program, and of the daemon if one runs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versions{Version: wire.Version{Version: version, Go: runtime.Version()}}
			cl, err := conn.client()
			if err == nil {
				var d wire.Version
				if d, err = versionOf(c.Context(), cl); err == nil {
					v.Daemon = &d
				}
			}
			if errors.Is(err, client.ErrNoDaemon) && conn.addr == "" {
				err = nil
			}
			return errors.Join(printOne(o, c.OutOrStdout(), v, printVersions), err)
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

// versionTime is how long a daemon has to say its version: one that hangs, or is stopped, never
// does.
var versionTime = 5 * time.Second

func versionOf(ctx context.Context, cl *client.Client) (wire.Version, error) {
	soon, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	v, err := cl.Version(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return v, fmt.Errorf("no answer of the daemon for %v: it hangs, is stopped, or cannot be reached: %w", versionTime, err)
	}
	return v, err
}

func printVersions(out io.Writer, v versions) error {
	t := newTable(out)
	t.row("netsplit", v.Version.Version, v.Go)
	if v.Daemon != nil {
		t.row("daemon", v.Daemon.Version, v.Daemon.Go)
	}
	return t.end()
}
