package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

func campaignCompareCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "compare CAMPAIGN [BEFORE]", Short: "say which findings of a campaign are new, still there, and gone since an earlier one",
		Long: `Compares the findings of a campaign with those of an earlier one on the same target.
Without BEFORE that is the last one that was done with the same strategy and settings.
Findings are the same if check and signature are. One that is gone was not shown: that is
no proof that it is mended.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			before := ""
			if len(args) == 2 {
				before = args[1]
			}
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				x, err := cl.Compare(ctx, args[0], before)
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), x, printComparison)
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printComparison(out io.Writer, x wire.Comparison) error {
	fmt.Fprintf(out, "%s (%s) against %s (%s)\n", x.Campaign.ID, model.Count(x.Campaign.Judged, "judged fault run", "judged fault runs"),
		x.Before.ID, model.Count(x.Before.Judged, "judged fault run", "judged fault runs"))
	if len(x.New)+len(x.Still)+len(x.Gone) == 0 {
		_, err := fmt.Fprintln(out, "neither has a finding")
		return err
	}
	t := newTable(out, "", "SEVERITY", "CLASS", "CHECK", "RUNS", "RUN", "SUMMARY")
	for _, part := range []struct {
		word string
		list []wire.Finding
	}{{"new", x.New}, {"still", x.Still}, {"gone", x.Gone}} {
		for _, f := range part.list {
			t.row(part.word, f.Severity, f.Class, f.Failure.Check, f.Seen, f.Run, short(f.Failure.Summary))
		}
	}
	return t.end()
}
