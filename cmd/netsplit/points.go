package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	var from recorded
	var keys, faults, only []string
	var o output
	c := &cobra.Command{
		Use:   "points TARGET|CAMPAIGN",
		Short: "list the faults that recorded clean runs of a target have a point for",
		Long: `Lists where the recorded clean runs could fail: each fault with its id, how many of the
runs have its point, and the point. CAMPAIGN is an id below --runs-dir, or a directory; for a
TARGET (its name or path) those of all campaigns below --runs-dir are read that have the release (TARGET@RELEASE)
and the settings (--set) asked for; of several, those like the newest run. The list names the others. With
--api CAMPAIGN is an id, and a daemon reads. Nothing is run.`,
		Args: exactArgs(1, "a target's name or path, or a campaign's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := conn.askPoints(c, from, args[0], wire.PointsQuery{Keys: keys, Faults: faults}, only)
			if err != nil {
				return err
			}
			p.Items = slices.DeleteFunc(p.Items, func(f wire.FaultPoint) bool { return f.Pruned != "" })
			return printOne(o, c.OutOrStdout(), p, printPoints)
		},
	}
	o.register(c.Flags())
	from.register(c)
	c.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one, of "+model.Joined(model.PointKeys())+" (default: as the target says)")
	c.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	c.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults, of "+model.Joined(model.SearchedFaults())+" (default crash,isolate,lose, and those of disks if the records have operations on files)")
	conn.register(c)
	return completed(c, 1, 1, orFiles, func() []string { return append(conn.known(campaignNames), conn.targets()...) })
}

func policyCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "policies that prune sequences of faults"}
	var from recorded
	var on string
	var depth int
	var keys, faults, only []string
	var seed uint64
	var o output
	try := &cobra.Command{
		Use:   "try FILE",
		Short: "show which faults a policy keeps, on recorded runs",
		Long: `Asks the policies of FILE which of the faults that the clean runs of --on have a point for
would be run, and prints the others with the reason. FILE is one policy in Starlark (.star),
or a list of named ones in YAML. Nothing is run: with --depth 2 the sequences of two faults are shown that
follow from recorded runs of single faults that would be run. Of a target, runs of one release with
the same settings are read: see points --help. With --api a daemon reads the runs.`,
		Args: exactArgs(1, "a file of policies"),
		RunE: func(c *cobra.Command, args []string) error {
			if on == "" {
				return usage("%s needs --on: the campaign or target with the clean runs", c.CommandPath())
			}
			policies, err := policyFile(args[0])
			if err != nil {
				return usage("%w", err)
			}
			q := wire.PointsQuery{Keys: keys, Faults: faults, Policies: policies, Seed: seed}
			switch depth {
			case 1:
			case 2:
				q.Depth = depth
			default:
				return usage("--depth %d: single faults (1) and sequences of two (2) are shown", depth)
			}
			p, err := conn.askPoints(c, from, on, q, only)
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
	from.register(try)
	try.Flags().StringVar(&on, "on", "", "a campaign's id or directory, or a target's name or path")
	try.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one (default: as the target says)")
	try.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	try.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults: see points --help")
	try.Flags().Uint64Var(&seed, "seed", 1, "draws one sequence of each cluster")
	try.Flags().IntVar(&depth, "depth", 1, "2: show sequences of two faults, too")
	conn.register(try)
	c.AddCommand(try, policyListCommand(), conn.completesRecord(policyReportCommand(conn), campaignNames))
	return c
}

// namedPolicy is what policy list says of a policy.
type namedPolicy struct {
	Name  string `json:"name"`
	Takes string `json:"takes,omitempty"` // "keys": the keys of points that it compares
	Does  string `json:"does"`
}

func policyListCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "list the named policies", Args: exactArgs(0, "nothing"),
		RunE: func(c *cobra.Command, args []string) error {
			var list []namedPolicy
			for _, p := range prune.All() {
				list = append(list, namedPolicy{p.Name, p.Takes, p.Does})
			}
			return printAll(o, c.OutOrStdout(), list, func(out io.Writer, list []namedPolicy) error {
				return printTable(out, list, "no policies", []any{"NAME", "TAKES", "WHAT IT DOES"}, func(p *namedPolicy) []any { return []any{p.Name, cmp.Or(p.Takes, "-"), p.Does} })
			})
		},
	}
	o.register(c.Flags())
	return c
}

func pointKeys(keys []string) []model.PointKey {
	var out []model.PointKey
	for _, k := range keys {
		out = append(out, model.PointKey(k))
	}
	return out
}

// recorded says which recorded runs a user means.
type recorded struct {
	runsDir string
	set     map[string]string
}

func (r *recorded) register(c *cobra.Command) {
	c.Flags().StringVar(&r.runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().StringToStringVar(&r.set, "set", nil, "only runs with these settings of the target, name=value")
}

// profiles finds the records that a user means.
func (r *recorded) profiles(what string, keys []string) (*judge.Profiles, error) {
	for _, k := range keys {
		if !slices.Contains(model.PointKeys(), model.PointKey(k)) {
			return nil, usage("a point has no key %q: it has %s", k, model.Joined(model.PointKeys()))
		}
	}
	asked, name := judge.AskedSetup{Args: r.set}, what
	if t, _, err := sut.Load(what); err == nil {
		if name = t.Name; strings.HasSuffix(what, "@"+t.Release) {
			asked.Release = t.Release
		}
	} else {
		for _, dir := range []string{what, filepath.Join(r.runsDir, what)} {
			if s, err := os.Stat(dir); err == nil && s.IsDir() {
				return judge.CleanProfiles([]string{dir}, asked, pointKeys(keys))
			}
		}
		name, asked.Release, _ = strings.Cut(what, "@")
	}
	dirs, err := judge.CampaignsOf(r.runsDir, name)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, usage("%q is no campaign below %s, no directory, and no target with a recorded run there (see --runs-dir)", what, r.runsDir)
	}
	return judge.CleanProfiles(dirs, asked, pointKeys(keys))
}

// askPoints asks the clean runs that a user means: of a daemon that he names, or below --runs-dir.
func (d *daemonFlags) askPoints(c *cobra.Command, from recorded, what string, q wire.PointsQuery, only []string) (out wire.FaultPoints, err error) {
	if !d.named(c) {
		return askPoints(from, what, q, only)
	}
	if len(from.set) > 0 {
		return out, usage("--set is for records on this machine: a daemon's campaign has one release and one set of settings")
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

func askPoints(from recorded, what string, q wire.PointsQuery, only []string) (wire.FaultPoints, error) {
	p, err := from.profiles(what, q.Keys)
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
	release := ""
	if p.Release != "" {
		release = " " + model.OneLine(p.Release)
	}
	fmt.Fprintf(out, "%s%s: read from %d clean runs%s\n", p.Target, release, p.Runs, files)
	for _, q := range p.Periodic {
		fmt.Fprintf(out, "periodic, no point: %s, every %v\n", model.OneLine(q.Type), q.Every)
	}
	for _, why := range p.Apart {
		fmt.Fprintln(out, "left out, made otherwise:", model.OneLine(why))
	}
	for _, there := range p.Elsewhere {
		fmt.Fprintln(out, "--only asks for no fault of these runs, but of a campaign that was left out:", model.OneLine(there))
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
	if p.Pairs != nil {
		if err := printFaultPairs(out, p.Pairs); err != nil {
			return err
		}
	}
	sayProfiles(out, p)
	return nil
}

func printFaultPairs(out io.Writer, p *wire.FaultPairs) error {
	for _, why := range p.LeftOut {
		fmt.Fprintln(out, "left out, cannot be read:", model.OneLine(why))
	}
	switch {
	case p.Recorded == 0:
		fmt.Fprintf(out, "no sequence of two is known: of the %d single faults that would be run, no recorded run had one occur (netsplit campaign --explore policies makes such runs)\n", p.Firsts)
		return nil
	case p.Seen == 0:
		fmt.Fprintf(out, "no sequence of two is known: recorded runs of %d of the %d single faults show no point after the fault\n", p.Recorded, p.Firsts)
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "", "IDS", "FAULTS", "WHY")
	for _, s := range p.Items {
		run, why := "run", ""
		if s.Pruned != "" {
			run, why = "-", s.Pruned+": "+s.Why
		}
		if s.Like != "" {
			why += ", run instead: " + s.Like
		}
		t.row(run, strings.Join(s.IDs, " "), strings.Join(s.Texts, ", then "), why)
	}
	if err := t.end(); err != nil {
		return err
	}
	if len(p.Items) < p.Seen {
		fmt.Fprintf(out, "the first %d of %d sequences are listed\n", len(p.Items), p.Seen)
	}
	fmt.Fprintf(out, "%d of %d sequences of two would be run; they follow from recorded runs of %d of the %d single faults\n", p.Kept, p.Seen, p.Recorded, p.Firsts)
	return nil
}
