package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/campaign/judge"
	"netsplit/campaign/points"
	"netsplit/explorer/prune"
	"netsplit/model"
	"netsplit/sut"
)

func pointsCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var keys, faults, only []string
	var o output
	c := &cobra.Command{
		Use:   "points TARGET|CAMPAIGN",
		Short: "list the faults that recorded clean runs of a target have a point for",
		Long: `Lists where the recorded clean runs could fail: each fault with its id, how many of the
runs have its point, and the point. CAMPAIGN is an id below --runs-dir, or a directory; for a
TARGET (its name or path) all its clean runs below --runs-dir are read. With --api CAMPAIGN is an id, and a
daemon reads. Nothing is run.`,
		Args: exactArgs(1, "a target's name or path, or a campaign's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := conn.askPoints(c, runsDir, args[0], wire.PointsQuery{Keys: keys, Faults: faults}, only)
			if err != nil {
				return err
			}
			p.Items = slices.DeleteFunc(p.Items, func(f wire.FaultPoint) bool { return f.Pruned != "" })
			return printOne(o, c.OutOrStdout(), p, printPoints)
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one, of "+model.Joined(model.PointKeys())+" (default: as the target says)")
	c.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	c.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults, of "+model.Joined(model.SearchedFaults())+" (default crash,isolate,lose, and those of disks if the records have operations on files)")
	conn.register(c)
	return c
}

func policyCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "policies that prune sequences of faults"}
	var runsDir, on string
	var keys, faults, only []string
	var seed uint64
	var o output
	try := &cobra.Command{
		Use:   "try FILE",
		Short: "show which single faults a policy keeps, on recorded clean runs",
		Long: `Asks the policies of FILE which of the faults that the clean runs of --on have a point for
would be run, and prints the others with the reason. FILE is one policy in Starlark (.star),
or a list of named ones in YAML. Nothing is run, so sequences of two faults and more,
which follow from runs with the first, are not shown. With --api a daemon reads the runs.`,
		Args: exactArgs(1, "a file of policies"),
		RunE: func(c *cobra.Command, args []string) error {
			if on == "" {
				return usage("%s needs --on: the campaign or target with the clean runs", c.CommandPath())
			}
			policies, err := policyFile(args[0])
			if err != nil {
				return usage("%w", err)
			}
			p, err := conn.askPoints(c, runsDir, on, wire.PointsQuery{Keys: keys, Faults: faults, Policies: policies, Seed: seed}, only)
			if err != nil {
				return err
			}
			for _, line := range p.Printed {
				fmt.Fprintln(c.ErrOrStderr(), model.OneLine(line))
			}
			return printOne(o, c.OutOrStdout(), p, printTried)
		},
	}
	o.register(try.Flags())
	try.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	try.Flags().StringVar(&on, "on", "", "a campaign's id or directory, or a target's name or path")
	try.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one (default: as the target says)")
	try.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	try.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults: see points --help")
	try.Flags().Uint64Var(&seed, "seed", 1, "draws one sequence of each cluster")
	conn.register(try)
	list := &cobra.Command{
		Use: "list", Short: "list the named policies", Args: exactArgs(0, "nothing"),
		RunE: func(c *cobra.Command, args []string) error {
			t := newTable(c.OutOrStdout(), "NAME", "TAKES", "WHAT IT DOES")
			for _, p := range prune.All() {
				takes := p.Takes
				if takes == "" {
					takes = "-"
				}
				t.row(p.Name, takes, p.Does)
			}
			return t.end()
		},
	}
	c.AddCommand(try, list, policyReportCommand(conn))
	return c
}

func pointKeys(keys []string) []model.PointKey {
	var out []model.PointKey
	for _, k := range keys {
		out = append(out, model.PointKey(k))
	}
	return out
}

// readProfiles finds the records that a user means.
func readProfiles(runsDir, what string, keys []string) (*judge.Profiles, error) {
	for _, k := range keys {
		if !slices.Contains(model.PointKeys(), model.PointKey(k)) {
			return nil, usage("a point has no key %q: it has %s", k, model.Joined(model.PointKeys()))
		}
	}
	if t, _, err := sut.Load(what); err == nil {
		what = t.Name
	} else {
		for _, dir := range []string{what, filepath.Join(runsDir, what)} {
			if s, err := os.Stat(dir); err == nil && s.IsDir() {
				return judge.CleanProfiles([]string{dir}, pointKeys(keys))
			}
		}
	}
	dirs, err := judge.CampaignsOf(runsDir, what)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, usage("%q is no campaign below %s, no directory, and no target with a recorded run there (see --runs-dir)", what, runsDir)
	}
	return judge.CleanProfiles(dirs, pointKeys(keys))
}

// askPoints asks the clean runs that a user means: of a daemon that he names, or below runsDir.
func (d *daemonFlags) askPoints(c *cobra.Command, runsDir, what string, q wire.PointsQuery, only []string) (out wire.FaultPoints, err error) {
	if !d.named(c) {
		return askPoints(runsDir, what, q, only)
	}
	if q.Only, err = onlyOf(only); err != nil {
		return out, err
	}
	err = d.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
		out, err = cl.Points(ctx, what, q)
		return err
	})
	return out, err
}

func askPoints(runsDir, what string, q wire.PointsQuery, only []string) (wire.FaultPoints, error) {
	p, err := readProfiles(runsDir, what, q.Keys)
	if err != nil {
		return wire.FaultPoints{}, err
	}
	if q.Only, err = onlyOf(only); err != nil {
		return wire.FaultPoints{}, err
	}
	out, err := points.Of(p, q.Model())
	if err != nil {
		return wire.FaultPoints{}, usage("%w", err)
	}
	return wire.FromFaultPoints(out), nil
}

func printPoints(out io.Writer, p wire.FaultPoints) error {
	t := newTable(out, "ID", "RUNS", "FAULT")
	for _, f := range p.Items {
		t.row(f.ID, fmt.Sprintf("%d/%d", f.Runs, p.Runs), f.Text)
	}
	if err := t.end(); err != nil {
		return err
	}
	sayProfiles(out, p)
	if len(p.Items) == 0 {
		fmt.Fprintln(out, "no point of a node was seen while a workload ran")
	}
	return nil
}

func sayProfiles(out io.Writer, p wire.FaultPoints) {
	files := ""
	if !p.Files {
		files = "; no record has file operations: campaigns with --kinds disk record them"
	}
	fmt.Fprintf(out, "%s: read from %d clean runs%s\n", p.Target, p.Runs, files)
	for _, q := range p.Periodic {
		fmt.Fprintf(out, "periodic, no point: %s, every %v\n", model.OneLine(q.Type), q.Every)
	}
	for _, why := range p.LeftOut {
		fmt.Fprintln(out, "left out, cannot be read:", model.OneLine(why))
	}
	for _, lack := range p.Torn {
		fmt.Fprintln(out, "torn:", model.OneLine(lack))
	}
}

func printTried(out io.Writer, p wire.FaultPoints) error {
	t := newTable(out, "", "ID", "FAULT", "WHY")
	for _, f := range p.Items {
		switch {
		case f.Pruned == "":
			t.row("run", f.ID, f.Text, "")
		case f.Like != "":
			t.row("-", f.ID, f.Text, f.Pruned+": "+f.Why+", run instead: "+f.Like)
		default:
			t.row("-", f.ID, f.Text, f.Pruned+": "+f.Why)
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d single faults would be run\n", p.Kept, len(p.Items))
	sayProfiles(out, p)
	return nil
}
