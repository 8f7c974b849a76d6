package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"netsplit/model"
)

// table is printed with its columns aligned; a row is one line, whatever its cells say.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, head ...any) *table {
	t := &table{tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)}
	if len(head) > 0 {
		t.row(head...)
	}
	return t
}

func (t *table) row(cells ...any) {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = model.OneLine(fmt.Sprint(c))
	}
	fmt.Fprintln(t.w, strings.Join(line, "\t"))
}

// say prints a line that is not in columns.
func (t *table) say(text string) { fmt.Fprintln(t.w, model.OneLine(text)) }

func (t *table) end() error { return t.w.Flush() }

// printTable prints a row for each element, or says that there is none.
func printTable[T any](out io.Writer, list []T, nothing string, head []any, row func(*T) []any) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, nothing)
		return err
	}
	t := newTable(out, head...)
	for i := range list {
		t.row(row(&list[i])...)
	}
	return t.end()
}
