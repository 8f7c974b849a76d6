package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
	"netsplit/record/relation"
)

// queryLimit is how long a query may take unless --limit says otherwise.
const queryLimit = time.Minute

// maxRows is the most rows that a daemon answers with.
const maxRows = 10_000

func queryCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, file string
	var asCSV bool
	var o output
	limits := relation.Limits{}
	c := &cobra.Command{
		Use:   "query RUN [SQL]",
		Short: "ask the record of a run with SQL",
		Long: "Makes an SQLite database of the record of a run (RUN is its id below --runs-dir, or its directory) and asks it one query. " +
			"With --db it writes the database to a file instead, for sqlite3 and other tools. With --api RUN is an id, and a daemon answers, " +
			"with 10,000 rows at most. docs/relations.md lists the tables.",
		Example: "  netsplit query c-20261125-030405-1-r0003 \"select type, fate, count(*) from message group by 1, 2\"",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if (file == "") == (len(args) == 1) {
				return usage("give a query or --db FILE, and not both; see %s --help", c.CommandPath())
			}
			if conn.named(c) {
				for _, flag := range []string{"db", "limit"} {
					if c.Flags().Changed(flag) {
						return usage("--%s is for records on this machine: leave out the flags of a daemon", flag)
					}
				}
				return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
					r, err := cl.Query(ctx, args[0], wire.Query{SQL: args[1], Limit: maxRows})
					if err != nil {
						return err
					}
					if r.Truncated {
						fmt.Fprintln(c.ErrOrStderr(), "there are more rows: the daemon answers with 10,000 rows or 8 MiB at most")
					}
					return printResult(c.OutOrStdout(), o, asCSV, model.QueryResult{Columns: r.Columns, Rows: r.Rows})
				})
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
			return printResult(c.OutOrStdout(), o, asCSV, out)
		},
	}
	f := c.Flags()
	f.StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	f.StringVar(&file, "db", "", "write the database to this new file instead of asking it")
	o.register(f)
	f.BoolVar(&asCSV, "csv", false, "print comma-separated values (RFC 4180); NULL is empty")
	f.DurationVar(&limits.Time, "limit", queryLimit, "stop after this time")
	c.MarkFlagsMutuallyExclusive(outputFlag, "csv", "db")
	conn.register(c)
	return c
}

func printResult(out io.Writer, o output, asCSV bool, r model.QueryResult) error {
	if asCSV {
		return printCSV(out, r)
	}
	return printAll(o, out, objects(r), func(w io.Writer, _ []map[string]any) error { return printRows(w, r) })
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
