package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netsplit/api/client"
)

// output is how a command prints what it answers: for people, or for programs.
type output string

// Formats of output.
const (
	outTable output = "table"
	outJSON  output = "json"  // one document
	outLines output = "jsonl" // a line for each element
)

const outputFlag = "output"

func (o *output) register(f *pflag.FlagSet) {
	*o = outTable
	f.VarP(o, outputFlag, "o", "table, json (one document) or jsonl (a line for each element)")
}

// registerEnd is register for a command that waits for the end of a campaign.
func (o *output) registerEnd(f *pflag.FlagSet) {
	o.register(f)
	f.Lookup(outputFlag).Usage = "table, json or jsonl: the last two print the campaign as the API has it, once it has ended"
}

// String is the format.
func (o *output) String() string { return string(*o) }

// Type is shown by help.
func (o *output) Type() string { return "format" }

// Set takes a format.
func (o *output) Set(s string) error {
	switch output(s) {
	case outTable, outJSON, outLines:
		*o = output(s)
		return nil
	}
	return errors.New("use table, json or jsonl")
}

// printAll prints a list: an array, a line for each element, or what table prints.
func printAll[T any](o output, out io.Writer, items []T, table func(io.Writer, []T) error) error {
	switch o {
	case outJSON:
		return printObject(out, append([]T{}, items...)) // none is a list, too
	case outLines:
		for _, v := range items {
			if err := printLine(out, v); err != nil {
				return err
			}
		}
		return nil
	}
	return table(out, items)
}

// printOne prints one thing: an object, or what words prints.
func printOne[T any](o output, out io.Writer, v T, words func(io.Writer, T) error) error {
	switch o {
	case outJSON:
		return printObject(out, v)
	case outLines:
		return printLine(out, v)
	}
	return words(out, v)
}

func printObject(out io.Writer, v any) error { return encoder(out, "  ").Encode(v) }

func printLine(out io.Writer, v any) error { return encoder(out, "").Encode(v) }

func encoder(out io.Writer, indent string) *json.Encoder {
	e := json.NewEncoder(out)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e
}

// counter counts what a command has printed.
type counter struct {
	to    io.Writer
	bytes int
}

// Write passes on.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.bytes += n
	return n, err
}

// printProblem prints the error of a command that was to print one document and has not: a
// problem of RFC 9457, as the API answers it.
func printProblem(c *cobra.Command, err error) {
	f := c.Flags().Lookup(outputFlag)
	if f == nil || f.Value.String() != string(outJSON) {
		return
	}
	p := &client.Problem{}
	if !errors.As(err, &p) {
		p = &client.Problem{Type: "about:blank", Title: "netsplit failed", Detail: err.Error()}
	}
	if err := printObject(c.OutOrStdout(), p); err != nil {
		fmt.Fprintln(c.ErrOrStderr(), "netsplit:", err)
	}
}
