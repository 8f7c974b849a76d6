package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// mapCells choose cells of a partition map.
var mapCells = map[string]func(wire.MapCell) bool{
	"all":   func(wire.MapCell) bool { return true },
	"never": func(c wire.MapCell) bool { return len(c.Outcomes) == 0 },
	"met":   func(c wire.MapCell) bool { return len(c.Outcomes) > 0 },
	"failed": func(c wire.MapCell) bool {
		return slices.ContainsFunc(c.Outcomes, func(o wire.MapOutcome) bool { return o.Failed > 0 })
	},
}

func campaignMapCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, only string
	var o output
	c := &cobra.Command{
		Use: "map CAMPAIGN", Short: "show which messages the faults of a campaign met, and how those runs ended",
		Long: `Shows the partition map of a campaign: a line for each type of message on each directed
link and kind of fault. A run counts in every line whose messages its fault met, so a
failure is evidence, not proof, against a line.`,
		Args: exactArgs(1, "a campaign's id"),
		RunE: func(c *cobra.Command, args []string) error {
			keep := mapCells[only]
			if keep == nil {
				return usage("--only %q: use all, met, never or failed", only)
			}
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				m, err := cl.PartitionMap(ctx, args[0])
				if err != nil {
					return err
				}
				if m.LeftOut > 0 {
					fmt.Fprintf(c.ErrOrStderr(), "netsplit: the map is full; what runs had of %s is left out\n", model.Count(m.LeftOut, "further cell", "further cells"))
				}
				return printAll(o, c.OutOrStdout(), slices.DeleteFunc(m.Items, func(c wire.MapCell) bool { return !keep(c) }), printMap)
			})
		},
	}
	c.Flags().StringVar(&only, "only", "all", "all, met (by a fault), never (met), or failed (met in a run that broke a promise)")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printMap(out io.Writer, cells []wire.MapCell) error {
	if len(cells) == 0 {
		_, err := fmt.Fprintln(out, "no cells")
		return err
	}
	t := newTable(out, "TYPE", "FROM", "TO", "SEEN IN", "FAULT", "MET IN", "FAILED", "DOCUMENTED", "PASSED", "UNDECIDED", "FIRST")
	for _, c := range cells {
		if len(c.Outcomes) == 0 {
			t.row(c.Type, c.From, c.To, c.Runs, "never", 0, "", "", "", "", "")
		}
		for _, o := range c.Outcomes {
			t.row(c.Type, c.From, c.To, c.Runs, o.Kind, o.Passed+o.Failed+o.Documented+o.Undecided, o.Failed, o.Documented, o.Passed, o.Undecided, o.First)
		}
	}
	return t.end()
}
