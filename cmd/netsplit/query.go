package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"netsplit/model"
	"netsplit/record/relation"
)

// queryLimit is how long a query may take unless --limit says otherwise.
const queryLimit = time.Minute

func queryCommand() *cobra.Command {
	var runsDir, file string
	var asCSV bool
	var o output
	limits := relation.Limits{}
	c := &cobra.Command{
		Use:   "query RUN [SQL]",
		Short: "ask the record of a run with SQL",
		Long: "Makes an SQLite database of the record of a run (RUN is its id below --runs-dir, or its directory) and asks it one query. " +
			"With --db it writes the database to a file instead, for sqlite3 and other tools. docs/relations.md lists the tables.",
		Example: "  netsplit query c-20261125-030405-1-r0003 \"select type, fate, count(*) from message group by 1, 2\"",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 1) {
				return usage("give a query or --db FILE, and not both; see %s --help", c.CommandPath())
			}
			dir, err := findRun(runsDir, args[0])
			if err != nil {
				return err
			}
			if file != "" {
				return relation.Write(c.Context(), dir, file)
			}
			out, err := relation.Query(c.Context(), dir, args[1], limits)
			if err != nil {
				return err
			}
			if asCSV {
				return printCSV(c.OutOrStdout(), out)
			}
			return printAll(o, c.OutOrStdout(), objects(out), func(w io.Writer, _ []map[string]any) error { return printRows(w, out) })
		},
	}
	f := c.Flags()
	f.StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	f.StringVar(&file, "db", "", "write the database to this new file instead of asking it")
	o.register(f)
	f.BoolVar(&asCSV, "csv", false, "print comma-separated values (RFC 4180); NULL is empty")
	f.DurationVar(&limits.Time, "limit", queryLimit, "stop after this time")
	c.MarkFlagsMutuallyExclusive(outputFlag, "csv", "db")
	return c
}

func printRows(out io.Writer, r model.QueryResult) error {
	head := make([]any, len(r.Columns))
	for i, name := range r.Columns {
		head[i] = name
	}
	t := newTable(out, head...)
	for _, row := range r.Rows {
		cells := make([]any, len(row))
		for i, v := range row {
			if cells[i] = v; v == nil {
				cells[i] = "NULL"
			}
		}
		t.row(cells...)
	}
	return t.end()
}

// objects makes a row an object; of two columns with one name the last stays.
func objects(r model.QueryResult) []map[string]any {
	all := make([]map[string]any, len(r.Rows))
	for i, row := range r.Rows {
		all[i] = map[string]any{}
		for j, v := range row {
			all[i][r.Columns[j]] = v
		}
	}
	return all
}

func printCSV(out io.Writer, r model.QueryResult) error {
	w := csv.NewWriter(out)
	if err := w.Write(r.Columns); err != nil {
		return err
	}
	for _, row := range r.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			if v != nil {
				cells[i] = fmt.Sprint(v)
			}
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
