package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/model"
	"netsplit/record/rundir"
)

// policyReportCommand is "policy report".
func policyReportCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use:   "report CAMPAIGN",
		Short: "say what became of all that a campaign could have run: run, pruned and why, or given up",
		Long: `Says of a campaign over sequences of faults what it ran, what policies pruned and why, and
how often the point of each fault came; of one of strategy cofi, of every inconsistent state
and node. CAMPAIGN is an id below --runs-dir, or a directory; with --api a daemon is asked. The same is in the file
` + rundir.AccountFile + ` beside the campaign's runs.`,
		Args: exactArgs(1, "a campaign's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if conn.named(c) {
				return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
					a, err := cl.Account(ctx, args[0])
					if err != nil {
						return err
					}
					return printOne(o, c.OutOrStdout(), &a, printAccount)
				})
			}
			for _, dir := range []string{args[0], filepath.Join(runsDir, args[0])} {
				path := filepath.Join(dir, rundir.AccountFile)
				if _, err := os.Stat(path); err != nil {
					continue
				}
				var a model.Account
				if err := rundir.ReadJSON(path, &a); err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), &a, printAccount)
			}
			return usage("no account of %q: it is no ended search below %s (see --runs-dir)", args[0], runsDir)
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printAccount(out io.Writer, a *model.Account) error {
	var err error
	if len(a.Pairs) > 0 {
		err = printPairs(out, a)
	}
	if len(a.Levels) > 0 {
		err = printSequences(out, a)
	}
	fmt.Fprintf(out, "%d clean runs, %d fault runs: %s\n", a.CleanRuns, a.FaultRuns, model.OneLine(a.Why))
	return err
}

func printPairs(out io.Writer, a *model.Account) error {
	t := newTable(out, "FATE", "RUNS", "INVARIANT", "STATE", "ISOLATES", "WHY")
	for _, p := range a.Pairs {
		why := p.Why
		if p.Elsewhere > 0 {
			why += fmt.Sprintf("; %d of the runs on nodes that stand for these", p.Elsewhere)
		}
		t.row(p.Fate, p.Runs, p.Invariant, p.State, p.Node, why)
	}
	return t.end()
}

func printSequences(out io.Writer, a *model.Account) error {
	t := newTable(out, "FATE", "IDS", "FAULTS", "WHY")
	for _, l := range a.Levels {
		for _, s := range l.Sequences {
			why := s.Why
			if s.Like != nil {
				why += ", run instead: " + s.Like.String()
			}
			t.row(s.Fate, s.IDs, strings.Join(s.Faults, "; then "), why)
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = newTable(out, "ID", "ASKED", "CAME", "AT ANOTHER POINT", "FAULT")
	for _, f := range a.Faults {
		t.row(f.ID, f.Asked, f.Occurred, f.Other, f.Fault)
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, l := range a.Levels {
		fmt.Fprintf(out, "with %s: %s, %d kept, %d run with all faults, of which %d failed", model.Count(l.Depth, "fault", "faults"), model.Count(l.Candidates, "sequence", "sequences"), l.Kept, l.Run, l.Failed)
		for _, by := range l.Taken() {
			fmt.Fprintf(out, ", %d out by %s", l.By[by], by)
		}
		if l.Unlisted > 0 {
			fmt.Fprintf(out, ", %d of these not listed", l.Unlisted)
		}
		fmt.Fprintln(out)
	}
	return nil
}
