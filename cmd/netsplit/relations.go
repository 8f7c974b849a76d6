package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/model"
	"netsplit/record/relation"
	"netsplit/record/rundir"
)

func checkCommand() *cobra.Command {
	var runsDir, file string
	var limit time.Duration
	c := &cobra.Command{
		Use:   "check RUN",
		Short: "check rules of your own on the record of a run, offline",
		Long: "Checks a file of relations, or that of the run's target, on the record of a run (RUN is its id below --runs-dir, or its directory) and prints what violates them, " +
			"with the numbers of the events (e) and messages (m) in question. It changes nothing. docs/relations.md says how such a file is written.",
		Args: exactArgs(1, "a run's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := findRun(runsDir, args[0])
			if err != nil {
				return err
			}
			f, err := relationsOf(dir, file)
			if err != nil {
				return err
			}
			found, err := f.Judge(c.Context(), dir, limit)
			if err != nil {
				return err
			}
			if printRelations(c.OutOrStdout(), found) {
				return &exitError{code: exitFindings}
			}
			return nil
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().StringVar(&file, "relations", "", "file with facts, views and checks (default: that of the run's target)")
	c.Flags().DurationVar(&limit, "limit", queryLimit, "stop after this time, with an error")
	return c
}

// relationsOf reads a file of relations; "": that of the run's target.
func relationsOf(dir, file string) (*relation.File, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, usage("%w", err)
		}
		return relation.Parse(file, b)
	}
	var t model.Target
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.TargetFile), &t); err != nil {
		return nil, err
	}
	if t.Relations == "" {
		return nil, usage("the target of this run has no relations: name a file with checks with --relations")
	}
	return relation.Parse(t.Relations, []byte(t.RelationsText))
}

// printRelations prints what the checks found, and says whether one of class broken is
// violated.
func printRelations(out io.Writer, found *relation.Findings) (broken bool) {
	for _, r := range found.Remarks {
		fmt.Fprintln(out, "remark:", r)
	}
	count := map[string]int{}
	for _, o := range found.Outcomes {
		how := "held"
		if o.Moments == 0 {
			how = "not checked"
		}
		for _, v := range o.Violations {
			if v.Warning && how == "held" {
				how = "warned"
			} else if !v.Warning {
				how = "violated"
			}
		}
		if o.Unsure != "" {
			how = "unknown"
		}
		count[how]++
		broken = broken || how == "violated" && o.Check.Class == model.Broken
		fmt.Fprintf(out, "%s (%s, %s): %s\n", o.Check.Name, o.Check.Class, o.Where(), how)
		if o.Unsure != "" {
			fmt.Fprintf(out, "  %s\n", o.Unsure)
		}
		if how == "not checked" {
			fmt.Fprintf(out, "  %s has no moment in this run\n", o.Check.At)
		}
		for _, v := range o.Violations {
			word := "violation"
			if v.Warning {
				word = "warning"
			}
			fmt.Fprintf(out, "  %s at %v, e%d: %s%s\n", word, v.T.Round(time.Microsecond), v.N, v, links(v))
		}
		if o.More > 0 {
			fmt.Fprintf(out, "  and %d more\n", o.More)
		}
		if how == "violated" {
			fmt.Fprintf(out, "  promised: %s\n", model.OneLine(o.Check.Quote))
		}
	}
	fmt.Fprintf(out, "%d checks: %d violated, %d warned, %d held, %d not checked, %d unknown\n", len(found.Outcomes), count["violated"], count["warned"], count["held"], count["not checked"], count["unknown"])
	return broken
}

func links(v relation.Violation) string {
	var out []string
	for _, n := range v.Events {
		out = append(out, fmt.Sprintf("e%d", n))
	}
	for _, n := range v.Messages {
		out = append(out, fmt.Sprintf("m%d", n))
	}
	return " [" + strings.Join(out, " ") + "]"
}
