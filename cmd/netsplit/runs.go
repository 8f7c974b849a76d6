package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api"
	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

func runShowCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "show RUN", Short: "show a run: its verdict, and what its steps and faults did", Args: exactArgs(1, "a run's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, dir string) error {
				r, err := cl.Run(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), r, func(out io.Writer, r wire.Run) error {
					describeRun(out, &r, conn.place(dir))
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

// describeRun tells of a run, its failures, steps and faults.
func describeRun(out io.Writer, r *wire.Run, at place) {
	fmt.Fprintf(out, "%s: %s: %s\n", r.ID, r.Verdict.Value, model.OneLine(r.Verdict.Reason))
	fmt.Fprintf(out, "  campaign %s, target %s, started %s, took %s\n", r.Campaign, r.Target, localTime(r.Started), took(r.Started, r.Ended))
	for _, f := range r.Verdict.Failures {
		fmt.Fprintf(out, "  %s, %s (%s): %s\n", f.Severity, f.Check, f.Class, model.OneLine(f.Summary))
	}
	describeSteps(out, r)
	fmt.Fprintf(out, "  report: %s\n", at.report(r.Campaign, r.ID))
}

// describeSteps tells what the steps and faults of a run did.
func describeSteps(out io.Writer, r *wire.Run) {
	for i := range r.Steps {
		fmt.Fprintf(out, "  step %d: %s\n", r.Steps[i].Step, stepWords(&r.Steps[i]))
	}
	for k := range r.Faults {
		fmt.Fprintf(out, "  fault %d: %s\n", r.Faults[k].Fault, faultWords(&r.Faults[k]))
	}
}

func runFileCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, file string
	names := slices.Sorted(maps.Keys(api.RunFiles))
	c := &cobra.Command{
		Use: "file RUN NAME", Short: "get a file of a run's record, such as its packets",
		Long:    "Gets a file of the record of a run: " + strings.Join(names, ", ") + ".",
		Example: "  netsplit runs file c-20261125-030405-1-r0003 packets.pcapng --file run.pcapng",
		Args:    exactArgs(2, "a run's id and the name of a file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := newFile(file); err != nil {
				return err
			}
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				from, err := cl.RunFile(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return writeStream(c.OutOrStdout(), file, from)
			})
		},
	}
	c.Flags().StringVar(&file, "file", "", "write to this new file instead of the standard output")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	conn.register(c)
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return conn.known(runNames), noFiles
		case 1:
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// newFile refuses a file that is there: nobody's is replaced.
func newFile(file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Lstat(file); err == nil {
		return usage("%s is there already: name a new file", file)
	}
	return nil
}

// writeStream copies what a daemon sends to a new file, or to out if that is "", and closes it.
func writeStream(out io.Writer, file string, from io.ReadCloser) error {
	var err error
	if file == "" {
		_, err = io.Copy(out, from)
	} else {
		_, err = save(file, from)
	}
	return errors.Join(err, from.Close())
}
