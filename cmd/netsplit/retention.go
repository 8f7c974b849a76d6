package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	prometheus "github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// ageFlag is a duration that knows days and weeks, too.
type ageFlag time.Duration

// String is the duration; "" for none.
func (a *ageFlag) String() string {
	if *a == 0 {
		return ""
	}
	return prometheus.Duration(*a).String()
}

// Type is shown by help.
func (a *ageFlag) Type() string { return "duration" }

// Set takes a duration such as 36h, 30d or 2w; 0 is no bound.
func (a *ageFlag) Set(s string) error {
	d, err := prometheus.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("use a time such as 36h, 30d or 8w, or 0 for no bound")
	}
	*a = ageFlag(d)
	return nil
}

// sizeFlag is a number of bytes.
type sizeFlag int64

// String is the size; "" for none.
func (z *sizeFlag) String() string {
	if *z == 0 {
		return ""
	}
	return humanize.Bytes(uint64(*z))
}

// Type is shown by help.
func (z *sizeFlag) Type() string { return "size" }

// Set takes a size such as 500MB or 20GiB; 0 is no bound. A number without a unit would be
// bytes, which nobody means.
func (z *sizeFlag) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if unit := strings.TrimSpace(s); err != nil || n > 1<<62 || n > 0 && unicode.IsDigit(rune(unit[len(unit)-1])) {
		return errors.New("use a size with a unit, such as 500MB or 20GiB, or 0 for no bound")
	}
	*z = sizeFlag(n)
	return nil
}

// retentionFlags say which records of runs are deleted.
type retentionFlags struct {
	age  ageFlag
	size sizeFlag
}

func (r *retentionFlags) register(f *pflag.FlagSet) {
	f.Var(&r.age, "keep-age", "delete records of runs that ended longer ago (36h, 30d, 8w)")
	f.Var(&r.size, "keep-size", "delete the oldest records of runs beyond this size of all (20GB); passed and vacuous ones first")
}

func (r *retentionFlags) model() model.Retention {
	return model.Retention{Age: time.Duration(r.age), Bytes: int64(r.size)}
}

func storePruneCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var keep retentionFlags
	var dryRun bool
	var o output
	c := &cobra.Command{
		Use: "prune", Short: "delete records of runs by age and size; those that a finding names stay",
		Long: `Deletes records of runs: their packets, logs and reports. Runs, verdicts and findings stay in
the store. It never deletes the record that a finding names, that an open replay repeats, or
whose campaign has not ended (a failed one has not). A daemon prunes every hour if it is started with these flags.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r := keep.model()
			if r.None() {
				return usage("say what to keep: --keep-age, --keep-size or both")
			}
			r.DryRun = dryRun
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				p, err := cl.Prune(ctx, wire.FromRetention(r))
				if err != nil {
					return err
				}
				if err := printOne(o, c.OutOrStdout(), p, func(out io.Writer, p wire.Pruned) error { return printPruned(out, p, dryRun) }); err != nil {
					return err
				}
				if p.Failed > 0 {
					return fmt.Errorf("the records of %s could not be deleted: %s", model.Count(p.Failed, "run", "runs"), p.Why)
				}
				return nil
			})
		},
	}
	f := c.Flags()
	keep.register(f)
	f.BoolVar(&dryRun, "dry-run", false, "delete nothing, and say what would be deleted")
	f.StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(f)
	conn.register(c)
	return c
}

func printPruned(out io.Writer, p wire.Pruned, dryRun bool) error {
	word := "deleted"
	if dryRun {
		word = "would be deleted"
	}
	_, err := fmt.Fprintf(out, "records of %s, %s, %s; %s left", model.Count(p.Runs, "run", "runs"), humanize.Bytes(uint64(p.Bytes)), word, humanize.Bytes(uint64(p.Left)))
	if err == nil && p.Kept > 0 {
		_, err = fmt.Fprintf(out, "; %s kept that a finding names or a campaign needs", model.Count(p.Kept, "record", "records"))
	}
	if err == nil {
		_, err = fmt.Fprintln(out)
	}
	return err
}
