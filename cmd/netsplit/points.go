package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/campaign/judge"
	"netsplit/explorer/prune"
	"netsplit/explorer/sequence"
	"netsplit/internal/regular"
	"netsplit/model"
)

func pointsCommand() *cobra.Command {
	var runsDir string
	var keys, faults, only []string
	c := &cobra.Command{
		Use:   "points TARGET|CAMPAIGN",
		Short: "list the faults that recorded clean runs of a target have a point for",
		Long: `Lists where the recorded clean runs could fail: each fault with its id, how many of the
runs have its point, and the point. CAMPAIGN is an id below --runs-dir, or a directory; for a
TARGET all its clean runs below --runs-dir are read. Nothing is run.`,
		Args: exactArgs(1, "a target's name, or a campaign's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readProfiles(runsDir, args[0], keys)
			if err != nil {
				return err
			}
			kinds, err := kindsOf(faults, p)
			if err != nil {
				return err
			}
			cfg := sequence.Config{Depth: 1, Kinds: kinds}
			if cfg.Policies, err = onlyPolicy(only); err != nil {
				return err
			}
			return printPoints(c, p, cfg)
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one, of "+joined(model.PointKeys())+" (default: as the target says)")
	c.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	c.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults, of "+joined(model.PointFaultKinds())+" (default all)")
	return c
}

func policyCommand() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "policies that prune sequences of faults"}
	var runsDir, on string
	var keys, faults, only []string
	var seed uint64
	try := &cobra.Command{
		Use:   "try FILE",
		Short: "show which single faults a policy keeps, on recorded clean runs",
		Long: `Asks the policies of FILE which of the faults that the clean runs of --on have a point for
would be run, and prints the others with the reason. FILE is one policy in Starlark (.star),
or a list of named ones in YAML. Nothing is run, so sequences of two faults and more,
which follow from runs with the first, are not shown.`,
		Args: exactArgs(1, "a file of policies"),
		RunE: func(c *cobra.Command, args []string) error {
			if on == "" {
				return usage("%s needs --on: the campaign or target with the clean runs", c.CommandPath())
			}
			policies, err := readPolicies(args[0])
			if err != nil {
				return usage("%w", err)
			}
			p, err := readProfiles(runsDir, on, keys)
			if err != nil {
				return err
			}
			kinds, err := kindsOf(faults, p)
			if err != nil {
				return err
			}
			first, err := onlyPolicy(only)
			if err != nil {
				return err
			}
			return tryPolicies(c, p, sequence.Config{Seed: seed, Depth: 1, Kinds: kinds, Policies: append(first, policies...)})
		},
	}
	try.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	try.Flags().StringVar(&on, "on", "", "a campaign's id or directory, or a target's name")
	try.Flags().StringSliceVar(&keys, "keys", nil, "what makes two points one (default: as the target says)")
	try.Flags().StringArrayVar(&only, "only", nil, onlyHelp)
	try.Flags().StringSliceVar(&faults, "fault", nil, "kinds of faults (default all)")
	try.Flags().Uint64Var(&seed, "seed", 1, "draws one sequence of each cluster")
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
	c.AddCommand(try, list, policyReportCommand())
	return c
}

func joined[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
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
			return nil, usage("a point has no key %q: it has %s", k, joined(model.PointKeys()))
		}
	}
	for _, dir := range []string{what, filepath.Join(runsDir, what)} {
		if s, err := os.Stat(dir); err == nil && s.IsDir() {
			return judge.CleanProfiles([]string{dir}, pointKeys(keys))
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

// kindsOf are the kinds of faults that a user names, at all points that can have them; none
// named: all that the records show points of.
func kindsOf(faults []string, p *judge.Profiles) ([]sequence.FaultAt, error) {
	switch {
	case len(faults) > 0:
	case hasFiles(p):
		return sequence.AllKinds(), nil
	default:
		return sequence.AtMessages(), nil
	}
	var out []sequence.FaultAt
	for _, f := range faults {
		before := len(out)
		for _, k := range sequence.AllKinds() {
			if string(k.Kind) == f {
				out = append(out, k)
			}
		}
		if len(out) == before {
			return nil, usage("no kind of fault %q: there are %s", f, joined(model.PointFaultKinds()))
		}
	}
	return out, nil
}

func readPolicies(path string) ([]sequence.Policy, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return prune.Read(path, src, func(name string) ([]byte, error) {
		return regular.Read(filepath.Dir(path), name)
	})
}

// explore hands clean profiles to a search that makes no run.
func explore(p *judge.Profiles, cfg sequence.Config) (*sequence.Search, error) {
	cfg.Clean, cfg.Keys = len(p.Profiles), p.Options.Keys
	if err := cfg.Validate(); err != nil {
		return nil, usage("%w", err)
	}
	s := sequence.New(cfg)
	for i, run := range s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: cfg.Clean}).Runs {
		s.Step(sequence.Input{Kind: sequence.InputResult, Result: &sequence.Result{Run: run.ID, Profile: p.Profiles[i], Verdict: model.VerdictPass}})
	}
	s.Step(sequence.Input{Kind: sequence.InputAsk, Slots: 1})
	return s, nil
}

// counted says how many of the profiles have each point, by its identity.
func counted(p *judge.Profiles) map[string]int {
	out, keys := map[string]int{}, p.Options.Identity()
	for _, prof := range p.Profiles {
		once := map[string]bool{}
		for _, s := range prof.Points {
			if id := s.Identity(keys); !once[id] {
				once[id] = true
				out[id]++
			}
		}
	}
	return out
}

// onlyPolicy is the policy that --only asks for; none: nothing is asked.
func onlyPolicy(flags []string) ([]sequence.Policy, error) {
	want, err := onlyOf(flags)
	if err != nil || want == nil {
		return nil, err
	}
	p, err := prune.Only(want)
	return []sequence.Policy{p}, err
}

func printPoints(c *cobra.Command, p *judge.Profiles, cfg sequence.Config) error {
	s, err := explore(p, cfg)
	if err != nil {
		return err
	}
	level, in := s.Level(), counted(p)
	t := newTable(c.OutOrStdout(), "ID", "RUNS", "FAULT")
	for _, f := range level {
		t.row(f.IDs, fmt.Sprintf("%d/%d", in[f.Last().Identity(p.Options.Identity())], len(p.Runs)), f.Last())
	}
	if err := t.end(); err != nil {
		return err
	}
	sayProfiles(c, p)
	if len(level) == 0 {
		fmt.Fprintln(c.OutOrStdout(), "no point of a node was seen while a workload ran")
	}
	return nil
}

// hasFiles says whether a record has operations on files.
func hasFiles(p *judge.Profiles) bool {
	return slices.ContainsFunc(p.Profiles, func(prof model.Profile) bool {
		return slices.ContainsFunc(prof.Points, func(s model.SeenPoint) bool { return s.Side == model.SideFile })
	})
}

func sayProfiles(c *cobra.Command, p *judge.Profiles) {
	out, files := c.OutOrStdout(), ""
	if !hasFiles(p) {
		files = "; no record has file operations: campaigns with --kinds disk record them"
	}
	fmt.Fprintf(out, "%s: read from %d clean runs%s\n", p.Target, len(p.Runs), files)
	for _, q := range p.Periodic {
		fmt.Fprintf(out, "periodic, no point: %s, every %v\n", model.OneLine(q.Type), q.Every)
	}
	for _, why := range p.Unread {
		fmt.Fprintln(out, "left out, cannot be read:", model.OneLine(why))
	}
	for _, lack := range p.Torn {
		fmt.Fprintln(out, "torn:", model.OneLine(lack))
	}
}

func tryPolicies(c *cobra.Command, p *judge.Profiles, cfg sequence.Config) error {
	s, err := explore(p, cfg)
	if err != nil {
		return err
	}
	rep, out := s.Report(), c.OutOrStdout()
	for _, pol := range cfg.Policies {
		if star, ok := pol.(*prune.Star); ok {
			for _, line := range star.Printed() {
				fmt.Fprintln(c.ErrOrStderr(), model.OneLine(line))
			}
		}
	}
	if rep.Err != nil {
		return usage("%w", rep.Err)
	}
	level := s.Level()
	t := newTable(out, "", "ID", "FAULT", "WHY")
	for _, k := range level {
		t.row("run", k.IDs, k.Last(), "")
	}
	for _, q := range rep.Levels[0].Pruned {
		why := q.Policy + ": " + q.Why
		if q.Like != nil {
			why += ", run instead: " + q.Like.String()
		}
		t.row("-", q.IDs, q.Last(), why)
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d single faults would be run\n", len(level), rep.Levels[0].Candidates)
	sayProfiles(c, p)
	return nil
}
