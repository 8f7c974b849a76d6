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
	"netsplit/model"
)

func campaignCausesCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var all bool
	var o output
	c := &cobra.Command{
		Use: "causes CAMPAIGN [CAUSE]", Short: "list the causes of a campaign's failed runs, the costliest first, or show one with all of its runs",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				if len(args) == 2 {
					x, err := cl.Cause(ctx, args[0], args[1])
					if err != nil {
						return err
					}
					return printOne(o, c.OutOrStdout(), x, describeCause)
				}
				items, more, err := readPages(all, func(cursor string) ([]wire.Cause, string, error) {
					p, err := cl.Causes(ctx, args[0], 0, cursor)
					return p.Items, p.Next, err
				})
				if err != nil {
					return err
				}
				if err := printAll(o, c.OutOrStdout(), items, printCauseRows); err != nil || !more {
					return err
				}
				_, err = fmt.Fprintln(c.ErrOrStderr(), "netsplit: there are more, which cost less: --all lists them")
				return err
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "list all; default: the costliest 100")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printCauseRows(out io.Writer, list []wire.Cause) error {
	head := []any{"CAUSE", "SEVERITY", "CLASS", "RULE", "AFTER", "RUNS", "RUN", "SUMMARY"}
	return printTable(out, list, "no causes: no run failed", head, func(x *wire.Cause) []any {
		return []any{x.ID, x.Severity, x.Class, x.Rule, cmp.Or(x.Fault, "no fault"), x.Seen, x.Run, short(x.Summary)}
	})
}

func describeCause(out io.Writer, x wire.Cause) error {
	fmt.Fprintf(out, "%s (%s): %s\n  %s\n  %s\n", x.Severity, x.Class, model.OneLine(x.Rule), model.OneLine(x.Summary), causeLine(&x))
	for k, s := range x.Steps {
		fmt.Fprintf(out, "  %d) %s\n", k+1, model.OneLine(s))
	}
	if s := x.Shrunk; s != nil && s.All.Failed > 0 {
		fmt.Fprintf(out, "  %s\n", needLine(s))
	}
	if x.Unsure != "" {
		fmt.Fprintf(out, "  %s\n", model.OneLine(x.Unsure))
	}
	_, err := fmt.Fprintf(out, "  runs: %s\n", strings.Join(x.Runs, " "))
	return err
}
