package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
	"netsplit/model"
	"netsplit/record/relation"
	"netsplit/record/rundir"
)

func checkCommand() *cobra.Command {
	var runsDir, file string
	var limit time.Duration
	var o output
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
			x := checkedRecord(found)
			if err := printOne(o, c.OutOrStdout(), x, printRelations); err != nil {
				return err
			}
			if slices.ContainsFunc(x.Checks, func(r checkRow) bool { return r.Result == resultViolated && r.Class == string(model.Broken) }) {
				return &exitError{code: exitFindings}
			}
			return nil
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	c.Flags().StringVar(&file, "relations", "", "file with facts, views and checks (default: that of the run's target)")
	c.Flags().DurationVar(&limit, "limit", queryLimit, "stop after this time, with an error")
	o.register(c.Flags())
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

// Results of a check on a record.
const (
	resultHeld       = "held"
	resultViolated   = "violated"
	resultWarned     = "warned"
	resultNotChecked = "not checked"
	resultUnknown    = "unknown"
)

// relationChecks is what check says of a record.
type relationChecks struct {
	Remarks []string   `json:"remarks"` // facts of whose messages the run has none
	Checks  []checkRow `json:"checks"`
}

// checkRow is a check and how it ended.
type checkRow struct {
	Check      string         `json:"check"`
	Class      string         `json:"class"`
	Where      string         `json:"where"` // file and line
	Result     string         `json:"result"`
	At         string         `json:"at,omitempty"`     // the table of the moments at which it runs
	Unsure     string         `json:"unsure,omitempty"` // why the result is unknown
	Quote      string         `json:"quote"`
	Violations []violationRow `json:"violations"`
	More       int            `json:"more,omitempty"` // violations that are not listed
}

// violationRow is a row that a check returned.
type violationRow struct {
	Warning  bool           `json:"warning,omitempty"`
	N        uint64         `json:"n"` // number of the event at which the check ran
	T        wire.Duration  `json:"t"` // time of that event since the run started
	Row      map[string]any `json:"row"`
	Events   []uint64       `json:"events"`   // numbers that the row links to
	Messages []uint64       `json:"messages"` // likewise
	text     string
}

func checkedRecord(found *relation.Findings) relationChecks {
	out := relationChecks{Remarks: append([]string{}, found.Remarks...), Checks: []checkRow{}}
	for _, o := range found.Outcomes {
		r := checkRow{Check: o.Check.Name, Class: string(o.Check.Class), Where: o.Where(), Result: resultHeld, At: o.Check.At, Unsure: o.Unsure,
			Quote: o.Check.Quote, Violations: []violationRow{}, More: o.More}
		if o.Moments == 0 {
			r.Result = resultNotChecked
		}
		for _, v := range o.Violations {
			if v.Warning && r.Result == resultHeld {
				r.Result = resultWarned
			} else if !v.Warning {
				r.Result = resultViolated
			}
			row := map[string]any{}
			for i, name := range v.Columns {
				row[name] = v.Row[i]
			}
			r.Violations = append(r.Violations, violationRow{Warning: v.Warning, N: v.N, T: wire.Duration(v.T), Row: row,
				Events: append([]uint64{}, v.Events...), Messages: append([]uint64{}, v.Messages...), text: v.String()})
		}
		if o.Unsure != "" {
			r.Result = resultUnknown
		}
		out.Checks = append(out.Checks, r)
	}
	return out
}

func printRelations(out io.Writer, x relationChecks) error {
	for _, r := range x.Remarks {
		fmt.Fprintln(out, "remark:", r)
	}
	count := map[string]int{}
	for _, r := range x.Checks {
		count[r.Result]++
		fmt.Fprintf(out, "%s (%s, %s): %s\n", r.Check, r.Class, r.Where, r.Result)
		if r.Unsure != "" {
			fmt.Fprintf(out, "  %s\n", r.Unsure)
		}
		if r.Result == resultNotChecked {
			fmt.Fprintf(out, "  %s has no moment in this run\n", r.At)
		}
		for _, v := range r.Violations {
			word := "violation"
			if v.Warning {
				word = "warning"
			}
			fmt.Fprintf(out, "  %s at %v, e%d: %s%s\n", word, time.Duration(v.T).Round(time.Microsecond), v.N, v.text, links(v))
		}
		if r.More > 0 {
			fmt.Fprintf(out, "  and %d more\n", r.More)
		}
		if r.Result == resultViolated {
			fmt.Fprintf(out, "  promised: %s\n", model.OneLine(r.Quote))
		}
	}
	_, err := fmt.Fprintf(out, "%d checks: %d violated, %d warned, %d held, %d not checked, %d unknown\n", len(x.Checks), count[resultViolated], count[resultWarned], count[resultHeld], count[resultNotChecked], count[resultUnknown])
	return err
}

func links(v violationRow) string {
	var out []string
	for _, n := range v.Events {
		out = append(out, fmt.Sprintf("e%d", n))
	}
	for _, n := range v.Messages {
		out = append(out, fmt.Sprintf("m%d", n))
	}
	return " [" + strings.Join(out, " ") + "]"
}
