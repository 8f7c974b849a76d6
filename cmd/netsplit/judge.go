package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/campaign/judge"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed/agent"
)

func judgeCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var examine bool
	var o output
	c := &cobra.Command{
		Use:   "judge RUN",
		Short: "judge a recorded run again",
		Long: `Judges the record of a run again. RUN is its id below --runs-dir, or its directory: its
summary.json and report.html are written anew, and the store is left as it is. With --api
RUN is an id, and the daemon judges: the findings, causes, partition map and report of the
campaign follow.

With --examine it changes nothing; for a run without cuts it prints what "target check
--run" prints: what the target file announces and the run does not show, and what to
write under frames.`,
		Args: exactArgs(1, "a run's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if conn.named(c) && examine {
				return usage("--examine reads a record on this machine: leave out the flags of a daemon")
			}
			if conn.named(c) {
				return conn.judge(c, args[0], o)
			}
			dir, err := findRun(runsDir, args[0])
			if err != nil {
				return err
			}
			if examine {
				return examineRecord(c, dir, o)
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			sum, err := judge.Dir(dir, "netsplit replay "+filepath.Base(abs)+" -n 10 --runs-dir "+filepath.Dir(filepath.Dir(abs)))
			if err != nil {
				return err
			}
			r := wire.FromRun(sum)
			if err := printOne(o, c.OutOrStdout(), r, func(out io.Writer, r wire.Run) error {
				printVerdict(out, r)
				_, err := fmt.Fprintf(out, "report: %s\n", filepath.Join(dir, rundir.ReportFile))
				return err
			}); err != nil {
				return err
			}
			return verdictExit(r.Verdict)
		},
	}
	conn.register(c)
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().BoolVar(&examine, "examine", false, "compare the run with its target file instead of judging it")
	o.register(c.Flags())
	return c
}

// judge has the daemon judge a run.
func (d *daemonFlags) judge(c *cobra.Command, run string, o output) error {
	return d.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
		r, err := cl.JudgeRun(ctx, run)
		if err != nil {
			return err
		}
		if err := printOne(o, c.OutOrStdout(), r, func(out io.Writer, r wire.Run) error {
			printVerdict(out, r)
			return nil
		}); err != nil {
			return err
		}
		return verdictExit(r.Verdict)
	})
}

// examineRecord says what a recorded run shows of its target file.
func examineRecord(c *cobra.Command, dir string, o output) error {
	x, err := judge.Examine(dir)
	if err != nil {
		return fmt.Errorf("examine %s: %w", dir, err)
	}
	if err := printOne(o, c.OutOrStdout(), examinedOf(x), printExamined); err != nil {
		return err
	}
	if len(x.Problems) > 0 {
		return &exitError{code: exitFindings}
	}
	return nil
}

func findRun(runsDir, run string) (string, error) {
	if _, err := os.Stat(filepath.Join(run, rundir.MetaFile)); err == nil {
		return run, nil
	}
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(runsDir, pattern, filepath.Base(run), rundir.MetaFile))
		if err == nil && len(found) > 0 {
			return filepath.Dir(found[0]), nil
		}
	}
	return "", fmt.Errorf("no record of run %q: it is neither a run's directory nor an id below %s (see --runs-dir)", run, runsDir)
}

func printVerdict(out io.Writer, r wire.Run) {
	fmt.Fprintf(out, "%s: %s: %s\n", r.ID, r.Verdict.Value, r.Verdict.Reason)
	for _, f := range r.Verdict.Failures {
		fmt.Fprintf(out, "  %s, %s (%s): %s\n", f.Severity, f.Check, f.Class, f.Summary)
	}
}

func verdictExit(v wire.Verdict) error {
	switch model.VerdictValue(v.Value) {
	case model.VerdictPass:
		return nil
	case model.VerdictFail:
		for _, f := range v.Failures {
			if f.Class != string(model.Documented) {
				return &exitError{code: exitFindings}
			}
		}
		return nil
	}
	return &exitError{code: exitUndecided}
}

func agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Short: "answer probes, count and drop packets on a host (started by netsplit itself)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return agent.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}
