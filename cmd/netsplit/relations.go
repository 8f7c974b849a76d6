package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/model"
	"netsplit/record/relation"
)

func checkCommand() *cobra.Command {
	var runsDir, file string
	var limit time.Duration
	c := &cobra.Command{
		Use:   "check RUN --relations FILE",
		Short: "check rules of your own on the record of a run, offline",
		Long: "Checks the checks of a file of relations on the record of a run (RUN is its id below --runs-dir, or its directory) and prints what violates them, " +
			"with the numbers of the events (e) and messages (m) in question. It changes nothing. docs/relations.md says how such a file is written.",
		Args: exactArgs(1, "a run's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				return usage("name the file with the checks: --relations FILE")
			}
			dir, err := findRun(runsDir, args[0])
			if err != nil {
				return err
			}
			b, err := os.ReadFile(file)
			if err != nil {
				return usage("%w", err)
			}
			f, err := relation.Parse(file, b)
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
	c.Flags().StringVar(&file, "relations", "", "the file with facts, views and checks")
	c.Flags().DurationVar(&limit, "limit", queryLimit, "stop after this time, with an error")
	return c
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
		count[how]++
		broken = broken || how == "violated" && o.Check.Class == model.Broken
		fmt.Fprintf(out, "%s (%s, %s): %s\n", o.Check.Name, o.Check.Class, o.Where(), how)
		if how == "not checked" {
			fmt.Fprintf(out, "  %s has no moment in this run\n", o.Check.At)
		}
		for _, v := range o.Violations {
			word := "violation"
			if v.Warning {
				word = "warning"
			}
			fmt.Fprintf(out, "  %s at %v, e%d: %s%s\n", word, v.T.Round(time.Microsecond), v.N, cells(v), links(v))
		}
		if o.More > 0 {
			fmt.Fprintf(out, "  and %d more\n", o.More)
		}
		if how == "violated" {
			fmt.Fprintf(out, "  promised: %s\n", model.OneLine(o.Check.Quote))
		}
	}
	fmt.Fprintf(out, "%d checks: %d violated, %d warned, %d held, %d not checked\n", len(found.Outcomes), count["violated"], count["warned"], count["held"], count["not checked"])
	return broken
}

func cells(v relation.Violation) string {
	out := make([]string, len(v.Row))
	for i, x := range v.Row {
		if x == nil {
			x = "NULL"
		}
		out[i] = fmt.Sprintf("%s=%v", v.Columns[i], x)
	}
	return model.OneLine(strings.Join(out, " "))
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
