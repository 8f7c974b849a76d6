package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/campaign/script"
	"netsplit/model"
	"netsplit/sut"
)

func scriptCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{
		Use: "script", Short: "play scripted tests: cut, crash, pause, operate and assert, step by step",
		Long: `Plays scripted tests that are written as files (docs/scripted-tests.md). They can
also be written in Go and run by go test.`,
	}
	c.AddCommand(completed(scriptRun(conn), 1, 1, orFiles, script.Known), completed(scriptSchedule(conn), 2, 2, orFiles, script.Known),
		completed(scriptCheck(), 1, math.MaxInt, orFiles, script.Known), scriptList(conn))
	return c
}

// checkedScript is what script check says of a file.
type checkedScript struct {
	File    string `json:"file"`
	Target  string `json:"target,omitempty"`
	Steps   int    `json:"steps"`
	Asserts bool   `json:"asserts"`         // without an assertion no play can pass
	Error   string `json:"error,omitempty"` // what is wrong with it
}

func scriptCheck() *cobra.Command {
	var on string
	var o output
	c := &cobra.Command{
		Use: "check FILE...", Short: "say what is wrong with script files, without playing them", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var errs []error
			var checked []checkedScript
			for _, file := range files {
				f, err := script.Load(file, on)
				if err != nil {
					errs = append(errs, err)
					checked = append(checked, checkedScript{File: file, Error: err.Error()})
					continue
				}
				checked = append(checked, checkedScript{File: file, Target: f.Target, Steps: len(f.Steps), Asserts: f.Asserts()})
			}
			return errors.Join(append(errs, printAll(o, c.OutOrStdout(), checked, printCheckedScripts))...)
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&on, "target", "", "check it for this target instead of the file's")
	return c
}

func printCheckedScripts(out io.Writer, list []checkedScript) error {
	for _, s := range list {
		note := ""
		switch {
		case s.Error != "":
			continue // the command fails, and says why
		case !s.Asserts:
			note = "; it asserts nothing, so no play can pass"
		}
		if _, err := fmt.Fprintf(out, "%s: %d steps on %s%s\n", s.File, s.Steps, s.Target, note); err != nil {
			return err
		}
	}
	return nil
}

func scriptList(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "list the scripts that come with netsplit, or with --api those that the daemon has", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := conn.scripts(c)
			if err != nil {
				return err
			}
			return printAll(o, c.OutOrStdout(), list, func(out io.Writer, list []wire.Script) error {
				return printTable(out, list, "no scripts", []any{"SCRIPT", "TARGET", "TITLE"}, func(s *wire.Script) []any { return []any{s.Name, s.Target, s.Title} })
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

// scripts are those of the daemon that is named, or of this program.
func (d *daemonFlags) scripts(c *cobra.Command) (list []wire.Script, err error) {
	if d.named(c) {
		err = d.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
			list, err = cl.Scripts(ctx)
			return err
		})
		return list, err
	}
	known, err := script.Files{}.Known()
	return wire.All(known, wire.FromScript), err
}

// scriptFlags are those of script run.
type scriptFlags struct {
	times            int
	on, runsDir, rig string
	openflow         string
	set              map[string]string
	seed             uint64
	quiet            bool
	labs             int
	switches         switchFlags
}

func scriptRun(conn *daemonFlags) *cobra.Command {
	var o scriptFlags
	var ci ciFlags
	var show progressFlags
	var end output
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "play a script on its target, and judge what happened",
		Long: `Plays a script on its target, in a lab on this machine (root) or on the testbed of
--testbed. With --api, a daemon plays it as a campaign: in its labs, on its testbed or on its
runners. NETSPLIT_API alone does not do this. Each play starts the target anew, leaves a record and a report, and is
judged from its record.

Exit status: 0 every play passed (or failed as the script documents), 1 netsplit
or the testbed failed, 2 wrong use, 3 an assertion did not hold, 4 no play could
be judged, 130 interrupted.`,
		Example: "  netsplit script run deploy/targets/redis-sentinel/scripts/split-brain.yaml --times 10",
		Args:    exactArgs(1, "a script file"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.times < 1 {
				return usage("--times %d: play it once or more", o.times)
			}
			if conn.named(c) {
				return conn.playScript(c, args[0], o, show, &ci, end)
			}
			for _, flag := range daemonsAlone {
				if c.Flags().Changed(flag) {
					return usage("--%s is for plays of a daemon: name one with --api", flag)
				}
			}
			return playScript(c, args[0], o)
		},
	}
	f := c.Flags()
	o.registerPlay(f)
	f.StringVar(&o.runsDir, "runs-dir", "runs", "keep records here")
	f.StringVar(&o.rig, "testbed", "", "testbed file; without one, a lab is made on this machine")
	f.StringVar(&o.openflow, "openflow", "127.0.0.1:6653", "address that the switches of --testbed connect to")
	o.switches.register(f)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print plays, not their steps")
	labsFlag(f, &o.labs)
	show.register(f)
	ci.register(f)
	end.registerEnd(f)
	conn.register(c)
	for _, name := range daemonsAlone {
		f.Lookup(name).Usage = "with --api: " + f.Lookup(name).Usage
	}
	for _, name := range notDaemons {
		f.Lookup(name).Usage += "; not with --api"
	}
	return c
}

// registerPlay registers what a play of this process and one of a daemon have in common.
func (o *scriptFlags) registerPlay(f *pflag.FlagSet) {
	f.IntVarP(&o.times, "times", "n", 1, "how often to play it")
	f.StringVar(&o.on, "target", "", "play it on this target instead of the file's: a name or a target file")
	f.StringToStringVar(&o.set, "set", nil, "settings of the target, name=value, in addition to those of the file")
	f.Uint64Var(&o.seed, "seed", 0, "drives every random choice of the target's operations (0: one is chosen and recorded)")
}

// daemonsAlone are flags of plays that a daemon makes, notDaemons of those of this process.
var (
	daemonsAlone = []string{"labs", "progress", "junit", "fail-on", "baseline", outputFlag}
	notDaemons   = []string{"testbed", "openflow", "quiet", "tls-cert", "tls-key", "tls-ca", "allowed-datapath", "role"}
)

// playScript has a daemon play a script.
func (d *daemonFlags) playScript(c *cobra.Command, path string, o scriptFlags, show progressFlags, ci *ciFlags, end output) error {
	for _, flag := range notDaemons {
		if c.Flags().Changed(flag) {
			return usage("--%s and --api exclude one another: the daemon has switches of its own, and does not print steps", flag)
		}
	}
	if err := errors.Join(requireCount(c, "labs"), ci.read()); err != nil {
		return err
	}
	spec, err := o.campaign(path)
	if err != nil {
		return err
	}
	return d.campaign(c, "", spec, show, nil, func(m made) error { return summarise(c, m, ci, end) })
}

// campaign is the campaign in which a daemon plays a script.
func (o *scriptFlags) campaign(path string) (wire.CampaignSpec, error) {
	f, target, err := script.Text(path)
	if err != nil {
		return wire.CampaignSpec{}, err
	}
	spec := wire.CampaignSpec{Target: o.on, Script: &wire.ScriptFile{Name: f.Name, Text: f.Text}, Runs: o.times, Args: o.set, Seed: o.seed, Labs: o.labs}
	if o.on == "" && sut.IsPath(target) {
		spec.Target = target // it is uploaded
	}
	return spec, nil
}

func scriptSchedule(conn *daemonFlags) *cobra.Command {
	var o scriptFlags
	var when scheduleFlags
	var out output
	c := &cobra.Command{
		Use: "schedule NAME FILE", Short: "have the daemon play a script at a time, or again and again",
		Long: `Makes a schedule, or replaces the one of this name: your running daemon plays the script
at the time --at, or at each time of the cron expression --cron. netsplit schedule
lists, pauses and deletes schedules. The script, and a target file that it names, are
uploaded now; later changes to them do not count.`,
		Example: "  netsplit script schedule nightly redis-sentinel/split-brain --cron '0 3 * * *' --times 10",
		Args:    exactArgs(2, "the schedule's name, and a script file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(requireCount(c, "labs"), requireCount(c, "times")); err != nil {
				return err
			}
			spec, err := o.campaign(args[1])
			if err != nil {
				return err
			}
			return conn.schedule(c, args[0], spec, when, out)
		},
	}
	o.registerPlay(c.Flags())
	labsFlag(c.Flags(), &o.labs)
	when.register(c)
	out.register(c.Flags())
	conn.register(c)
	return c
}

func playScript(c *cobra.Command, path string, o scriptFlags) (err error) {
	ctx, out := c.Context(), c.OutOrStdout()
	f, err := script.Load(path, o.on)
	if err != nil {
		return err
	}
	cfg := f.Config()
	cfg.Set, cfg.Seed = map[string]string{}, o.seed
	maps.Copy(cfg.Set, f.Set)
	maps.Copy(cfg.Set, o.set)
	if cfg.RunsDir, err = filepath.Abs(o.runsDir); err != nil {
		return err
	}
	cfg.Repeat = repeatOf(c.Flags(), path, o.set)
	if cfg.Binary, err = binary(); err != nil {
		return err
	}
	cfg.Version = version
	if o.rig != "" {
		if cfg.Testbed, err = readTestbed(o.rig); err != nil {
			return err
		}
		cfg.OpenFlow = o.openflow
	} else if c.Flags().Changed("openflow") {
		return usage("--openflow needs --testbed: the switch of a lab gets its address by itself")
	}
	if cfg.TLS, cfg.Allowed, err = o.switches.load(cfg.Testbed); err != nil {
		return err
	}
	cfg.Equal = o.switches.role == roleEqual
	n := 0
	cfg.Step = func(st model.ScriptStep) {
		if !o.quiet {
			fmt.Fprintln(out, "  "+script.StepLine(st))
		}
	}
	cfg.Played = func(sum model.RunSummary) {
		n++
		fmt.Fprintf(out, "play %d of %d, %.0f s: %s: %s\n", n, o.times, sum.Ended.Sub(sum.Started).Seconds(), sum.Verdict.Value, sum.Verdict.Reason)
	}
	fmt.Fprintf(out, "%s on %s, %d time(s)\n", f.Name, f.Target, o.times)
	r, err := script.Play(ctx, cfg, o.times, f.Play)
	if ctx.Err() != nil {
		return &exitError{code: exitInterrupted}
	}
	return errors.Join(summariseScript(c, f, cfg, r, o.times), err)
}

// repeatOf is the command that plays a script again as this one does: elsewhere, or
// by other flags, it would be another test.
func repeatOf(f *pflag.FlagSet, path string, set map[string]string) string {
	words := []string{"netsplit", "script", "run", path}
	f.Visit(func(g *pflag.Flag) {
		switch g.Name {
		case "times", "quiet": // how often, and what is printed
		case "set":
			for _, k := range slices.Sorted(maps.Keys(set)) {
				words = append(words, "--set", k+"="+set[k])
			}
		default:
			value := g.Value.String()
			if list, ok := g.Value.(pflag.SliceValue); ok {
				value = strings.Join(list.GetSlice(), ",")
			}
			words = append(words, "--"+g.Name, value)
		}
	})
	return shellquote.Join(words...)
}

func summariseScript(c *cobra.Command, f *script.File, cfg script.Config, r script.Result, times int) error {
	out := c.OutOrStdout()
	if len(r.Runs) == 0 {
		return nil // the error says why
	}
	verdicts := verdictCount{}
	for _, s := range r.Runs {
		verdicts[string(s.Verdict.Value)]++
	}
	fmt.Fprintf(out, "\n%s: %d of %d plays failed (%s)\n", f.Name, r.Count(model.VerdictFail), times, verdicts)
	counting := 0
	for _, x := range r.Findings {
		if x.Class != model.Documented {
			counting++
		}
		fmt.Fprintf(out, "  %s, %s, %s, in %d play(s): %s\n    report: %s\n", x.Severity, x.Failure.Check, x.Class, len(x.Runs), x.Failure.Summary, r.Report(x.Run))
		if x.Failure.Quote != "" {
			fmt.Fprintf(out, "    the documentation: %s\n", strings.TrimSpace(x.Failure.Quote))
		}
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(out, "  no findings; records: %s\n", r.Dir)
	}
	fmt.Fprintf(out, "  to play it again: %s\n  to judge a record again: netsplit judge %s\n", cfg.Repeat, filepath.Join(r.Dir, r.Runs[len(r.Runs)-1].Run))
	switch {
	case counting > 0:
		return &exitError{code: exitFindings}
	case verdicts.decided() == 0:
		return &exitError{exitUndecided, fmt.Errorf("no play could be judged: all are unknown or vacuous")}
	case verdicts[string(model.VerdictUnknown)]+verdicts[string(model.VerdictVacuous)] > 0:
		fmt.Fprintf(out, "  unknown and vacuous plays count neither for nor against\n")
	}
	return nil
}
