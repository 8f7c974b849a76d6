package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
)

func accessCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "access", Short: "let a browser or Prometheus use a running daemon"}
	page, token := accessPage(conn), accessReadToken(conn)
	conn.register(page, token)
	c.AddCommand(page, token)
	return c
}

func accessPage(conn *daemonFlags) *cobra.Command {
	var controls, start bool
	var o output
	cmd := &cobra.Command{
		Use: "page", Short: "print an address that opens the daemon's page in a browser, once", Args: cobra.NoArgs,
		Long: `Prints an address that opens the daemon's page once, within 5 minutes. Its browser
may then read, and nothing else, for 12 hours or until the daemon ends. With --controls
the page may also pause, resume and cancel campaigns, heal partitions, and write notes
about failures. With --start it may do that, start and schedule campaigns on the targets
that the daemon has, and try policies: processes of targets run as the daemon's user
lets them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				p, err := cl.AccessPage(ctx, controls, start)
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), p, func(out io.Writer, p wire.AccessPage) error {
					fmt.Fprintf(c.ErrOrStderr(), "netsplit: open it once, before %s\n", localTime(p.Until))
					_, err := fmt.Fprintln(out, p.URL)
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&controls, "controls", false, "let the page pause, resume and cancel campaigns, heal partitions, and write notes")
	cmd.Flags().BoolVar(&start, "start", false, "let the page do that, and start and schedule campaigns")
	o.register(cmd.Flags())
	return cmd
}

func accessReadToken(conn *daemonFlags) *cobra.Command {
	var another bool
	cmd := &cobra.Command{
		Use: "read-token", Short: "print the read-only token, for Prometheus", Args: cobra.NoArgs,
		Long: `Prints the daemon's read-only token: it allows GET requests, /metrics among them.
The daemon keeps it, mode 600, in the folder access beside its store.
Prometheus reads it from a file (authorization: credentials_file).`,
		Example: "  netsplit access read-token | install -m 600 -o prometheus /dev/stdin /etc/prometheus/netsplit.token",
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				token, err := cl.ReadToken(ctx, another)
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), token)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&another, "new", false, "replace the token")
	return cmd
}
