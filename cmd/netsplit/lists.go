package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// listFlags are those of commands that list what is stored.
type listFlags struct {
	runsDir string
	all     bool
	output
}

func (l *listFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&l.runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	c.Flags().BoolVar(&l.all, "all", false, "list all; default: the newest 100")
	l.output.register(c.Flags())
}

// readPages reads the first page of a list, or all.
func readPages[T any](whole bool, next func(cursor string) (items []T, after string, err error)) (out []T, more bool, err error) {
	for cursor := ""; ; {
		items, after, err := next(cursor)
		if err != nil {
			return nil, false, err
		}
		out = append(out, items...)
		if cursor = after; cursor == "" || !whole {
			return out, cursor != "", nil
		}
	}
}

// printList prints the first page of a list, or all of it.
func printList[T any](c *cobra.Command, o output, whole bool, next func(cursor string) ([]T, string, error), table func(io.Writer, []T) error) error {
	items, more, err := readPages(whole, next)
	if err != nil {
		return err
	}
	if err := printAll(o, c.OutOrStdout(), items, table); err != nil || !more {
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), "netsplit: there are older ones: --all lists them")
	return nil
}

func campaignListCommand(conn *daemonFlags) *cobra.Command {
	var l listFlags
	var of wire.CampaignFilter
	c := &cobra.Command{
		Use: "list", Short: "list campaigns, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.read(c, l.runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				return printList(c, l.output, l.all, func(cursor string) ([]wire.Campaign, string, error) {
					p, err := cl.Campaigns(ctx, of, 0, cursor)
					return p.Items, p.Next, err
				}, printCampaigns)
			})
		},
	}
	c.Flags().StringVar(&of.Target, "target", "", "only those on this target, whatever its release")
	c.Flags().StringVar(&of.State, "state", "", "only those that are queued, running, paused, done, cancelled or failed")
	c.Flags().StringVar(&of.Schedule, "schedule", "", "only those of this schedule")
	l.register(c)
	conn.register(c)
	return c
}

func printCampaigns(out io.Writer, list []wire.Campaign) error {
	head := []any{"CAMPAIGN", "STATE", "TARGET", "STRATEGY", "RUNS", "FINDINGS", "CREATED", "TOOK", "REASON"}
	return printTable(out, list, "no campaigns", head, func(c *wire.Campaign) []any {
		runs := fmt.Sprint(c.Done)
		if c.Planned > 0 {
			runs += fmt.Sprintf("/%d", c.Planned)
		}
		return []any{c.ID, c.State, madeOn(c.Spec), whatItDoes(c.Spec), runs, c.Findings, localTime(c.Created), took(c.Created, c.Ended), c.Reason}
	})
}

func whatItDoes(s wire.CampaignSpec) string {
	switch {
	case s.Replay == "" && s.Script != nil:
		return s.Strategy + " " + s.Script.Name
	case s.Replay == "":
		return s.Strategy
	case s.Shrink != nil:
		return "shrinks " + s.Replay
	}
	return "replays " + s.Replay
}

// localTime is a time in tables, with its zone.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func took(from time.Time, to *time.Time) string {
	if to == nil {
		return "-"
	}
	return to.Sub(from).Round(time.Second).String()
}

func campaignShowCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "show CAMPAIGN", Short: "show a campaign: its state, verdicts and findings", Args: exactArgs(1, "a campaign's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, dir string) error {
				camp, err := cl.Campaign(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), camp, func(io.Writer, wire.Campaign) error {
					_, _, err := tellCampaign(c, made{client: cl, campaign: camp, place: conn.place(dir)}, outTable)
					return err
				})
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func runsCommand(conn *daemonFlags) *cobra.Command {
	var l listFlags
	var of wire.RunFilter
	c := &cobra.Command{
		Use: "runs", Short: "list runs: the newest campaign's first, and of each the last one started first", Args: cobra.NoArgs,
		Example: "  netsplit runs --target redis-sentinel --verdict fail\n" +
			"  netsplit runs --campaign c-20261125-030405-1 --all -o jsonl",
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.read(c, l.runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				return printList(c, l.output, l.all, func(cursor string) ([]wire.RunRow, string, error) {
					p, err := cl.Runs(ctx, of, 0, cursor)
					return p.Items, p.Next, err
				}, printRuns)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&of.Campaign, "campaign", "", "only those of this campaign")
	f.StringVar(&of.Target, "target", "", "only those of the target with this name")
	f.StringVar(&of.Strategy, "strategy", "", "only those of this strategy: clean, cofi, random, steps, sequences or scripted")
	f.StringVar(&of.Verdict, "verdict", "", "only those with this verdict: pass, fail, unknown or vacuous")
	l.register(c)
	conn.register(c)
	c.AddCommand(conn.completes(runShowCommand(conn), false, runNames), runFileCommand(conn))
	return c
}

// rowRunes bounds a text in a column.
const rowRunes = 100

func short(s string) string {
	r := []rune(model.OneLine(s))
	if len(r) > rowRunes {
		r = append(r[:rowRunes-1], '…')
	}
	return string(r)
}

func printRuns(out io.Writer, list []wire.RunRow) error {
	head := []any{"RUN", "VERDICT", "TARGET", "RELEASE", "STRATEGY", "ISOLATES", "STARTED", "TOOK", "REASON"}
	return printTable(out, list, "no runs", head, func(r *wire.RunRow) []any {
		return []any{r.ID, r.Verdict.Value, r.Target, cmp.Or(r.Release, "-"), r.Scenario.Strategy, cmp.Or(r.Scenario.Isolate, "-"),
			localTime(r.Started), took(r.Started, r.Ended), short(r.Verdict.Reason)}
	})
}

func findingsCommand(conn *daemonFlags) *cobra.Command {
	var l listFlags
	var campaign string
	c := &cobra.Command{
		Use: "findings", Short: "list findings: the newest campaign's first, and of each the costliest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.read(c, l.runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				return printList(c, l.output, l.all, func(cursor string) ([]wire.Finding, string, error) {
					p, err := cl.Findings(ctx, campaign, 0, cursor)
					return p.Items, p.Next, err
				}, printFindingRows)
			})
		},
	}
	c.Flags().StringVar(&campaign, "campaign", "", "only those of this campaign")
	l.register(c)
	conn.register(c)
	c.AddCommand(conn.completes(findingShowCommand(conn), false, findingNames), findingHistoryCommand(conn), conn.completes(findingNoteCommand(conn), false, failureNames))
	return c
}

func printFindingRows(out io.Writer, list []wire.Finding) error {
	head := []any{"FINDING", "SEVERITY", "CLASS", "CHECK", "TARGET", "RUNS", "REPLAYED", "RUN", "SUMMARY"}
	return printTable(out, list, "no findings", head, func(f *wire.Finding) []any {
		replayed := "-"
		if f.Replays > 0 {
			replayed = fmt.Sprintf("%d of %d", f.Reproduced, f.Replays)
		}
		return []any{f.ID, f.Severity, f.Class, f.Failure.Check, f.Target, f.Seen, replayed, f.Run, short(f.Failure.Summary)}
	})
}

func findingShowCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "show FINDING", Short: "show a finding, the runs that showed it, and how to replay it", Args: exactArgs(1, "a finding's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, dir string) error {
				f, err := cl.Finding(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), f, func(out io.Writer, f wire.Finding) error {
					describeFinding(out, f, conn.place(dir))
					return nil
				})
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func describeFinding(out io.Writer, f wire.Finding, at place) {
	fmt.Fprintf(out, "%s\n  check      %s\n  signature  %s\n  %s\n", headline(f.Failure), f.Failure.Check, f.Failure.Signature, whenSeen(f, nil))
	if f.Failure.Quote != "" {
		fmt.Fprintf(out, "  quote      %s\n", model.OneLine(f.Failure.Quote))
	}
	for _, d := range f.Failure.Detail {
		fmt.Fprintf(out, "    %s\n", model.OneLine(d))
	}
	fmt.Fprintf(out, "  campaign   %s\n  runs       %s\n  replay     %s\n  report     %s\n", f.Campaign, strings.Join(f.Runs, " "), at.replay(f.Run), at.report(f.Campaign, f.Run))
}
