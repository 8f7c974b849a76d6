package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/sut"
)

func printDaemonTargets(out io.Writer, list []wire.Target) error {
	return printTable(out, list, "no targets", []any{"TARGET", "FROM", "STANDS FOR ITS NAME"}, func(t *wire.Target) []any {
		switch {
		case !t.Uploaded:
			return []any{t.Name, "netsplit", "-"}
		case t.Newest:
			return []any{t.Name, "upload", "yes"}
		}
		return []any{t.Name, "upload", "no"}
	})
}

func targetShowCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "show NAME[@RELEASE]", Short: "show a target of the daemon: its settings, releases and hosts", Args: exactArgs(1, "a target's name"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				t, err := cl.Target(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), t, describeTarget)
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

func describeTarget(out io.Writer, d wire.TargetDetail) error {
	t := newTable(out)
	t.say(d.Name + ": " + cmp.Or(d.Title, "no title"))
	release := "what is installed"
	if d.Release != "" {
		release = d.Release + ", of " + strings.Join(d.Releases, ", ")
	}
	t.row("  release", release)
	t.row("  nodes", strings.Join(d.Nodes, ", "))
	t.row("  clients", cmp.Or(strings.Join(d.Clients, ", "), "none"))
	if d.Scripted {
		t.row("  for", "scripts; it has no workloads")
	}
	for _, s := range d.Settings {
		t.row("  --set "+s.Name+"="+s.Default, s.Help)
	}
	return t.end()
}

func targetUploadCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "upload FILE", Short: "upload a target file to the daemon, for campaigns and schedules",
		Long: `Uploads a target file, and the files beside it if it refers to others, and prints the name
that campaigns take. netsplit campaign, run and script upload what they need themselves.`,
		Args: exactArgs(1, "a target file, or its folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if !sut.IsPath(args[0]) {
				return usage("%q is no path: write ./%s for a file or folder", args[0], args[0])
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				archive, release, err := sut.Pack(args[0])
				if err != nil {
					return err
				}
				if release != "" {
					return usage("an upload has all releases: leave out @%s", release)
				}
				t, err := cl.UploadTarget(ctx, archive)
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), t, func(out io.Writer, t wire.Target) error {
					_, err := fmt.Fprintln(out, t.Name)
					return err
				})
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

func targetDeleteCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{
		Use: "delete NAME:VERSION", Short: "delete an upload of the daemon; runs on it keep their records", Args: exactArgs(1, "the name and version of an upload"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				if err := cl.DeleteTarget(ctx, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "upload %s is deleted\n", args[0])
				return err
			})
		},
	}
	conn.register(c)
	return c
}
