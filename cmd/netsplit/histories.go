package main

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
)

func findingHistoryCommand(conn *daemonFlags) *cobra.Command {
	var l listFlags
	var target, state string
	c := &cobra.Command{
		Use: "history", Short: "list failures over all campaigns: new, known, back or gone",
		Long: `Lists each failure once (the same check with the same signature on one target), with how it
stands by the newest search that shows it and those like it (release, strategy, settings,
effect and choice of faults) that show it or judged a fault run:
  new    one campaign shows it
  back   the newest such search shows it, the one before did not, an earlier one did
  known  several campaigns show it
  gone   the newest such search does not show it, nor does a later campaign, which is no
         proof that it is mended`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.read(c, l.runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				return printList(c, l.output, l.all, func(cursor string) ([]wire.FindingHistory, string, error) {
					p, err := cl.FindingHistories(ctx, target, state, 0, cursor)
					return p.Items, p.Next, err
				}, printHistories)
			})
		},
	}
	c.Flags().StringVar(&target, "target", "", "only those of this target, whatever its release")
	c.Flags().StringVar(&state, "state", "", "only those that are new, known, back or gone")
	l.register(c)
	conn.register(c)
	c.AddCommand(conn.completes(failureShowCommand(conn), false, failureNames))
	return c
}

func failureShowCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "show FAILURE", Short: "show a failure over all campaigns", Args: exactArgs(1, "a failure's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				h, err := cl.FindingHistory(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), h, printHistory)
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printHistory(out io.Writer, h wire.FindingHistory) error {
	return printHistories(out, []wire.FindingHistory{h})
}

func printHistories(out io.Writer, list []wire.FindingHistory) error {
	head := []any{"FAILURE", "STATE", "SEVERITY", "CLASS", "CHECK", "TARGET", "CAMPAIGNS", "LAST", "RUN", "SUMMARY", "NOTE"}
	return printTable(out, list, "no findings", head, func(h *wire.FindingHistory) []any {
		f := &h.Newest
		return []any{h.ID, h.State, f.Severity, f.Class, h.Check, h.Target, len(h.Campaigns), localTime(h.Last), f.Run, short(f.Failure.Summary), cmp.Or(short(h.Note), "-")}
	})
}

func findingNoteCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "note FAILURE TEXT", Short: "write a note about a failure, for all campaigns; an empty text forgets it",
		Example: `  netsplit findings note h-1a2b3c4d5e6f "upstream issue 7545"`,
		Args:    exactArgs(2, "a failure's id and a text"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				h, err := cl.NoteFinding(ctx, args[0], strings.TrimSpace(args[1]))
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), h, printHistory)
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}
