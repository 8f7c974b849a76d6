package main

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
)

func annotationsCommand(conn *daemonFlags) *cobra.Command {
	var from, to string
	var limit int
	var o output
	c := &cobra.Command{
		Use: "annotations", Short: "list the cuts of a time span, of campaigns and by hand, for graphs", Args: cobra.NoArgs,
		Long: `Lists the cuts that overlap a time span, by their start, as graphs mark them. Times in JSON
are milliseconds since 1970. A cut that lasts ends with the span.`,
		Example: "  netsplit annotations --from 2026-11-28T03:00:00Z --to 2026-11-28T04:00:00Z -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := requireCount(c, "limit"); err != nil {
				return err
			}
			begin, err := timeFlag("from", from)
			if err != nil {
				return err
			}
			end, err := timeFlag("to", to)
			if err != nil {
				return err
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				list, err := cl.Annotations(ctx, begin, end, limit)
				if err != nil {
					return err
				}
				return printAll(o, c.OutOrStdout(), list, printAnnotations)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "beginning of the span (RFC 3339); default: one hour before its end")
	f.StringVar(&to, "to", "", "end of the span (RFC 3339); default: now")
	f.IntVar(&limit, "limit", 500, "list the last cuts, this many at most; if there are more, the first line says so")
	o.register(f)
	conn.register(c)
	return c
}

// timeFlag is the time that a flag gives; zero: none.
func timeFlag(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("--%s %q: write a time with its zone, such as 2026-11-28T03:00:00Z or 2026-11-28T03:00:00+01:00", name, text)
	}
	return t, nil
}

func printAnnotations(out io.Writer, list []wire.Annotation) error {
	return printTable(out, list, "no cuts", []any{"FROM", "TO", "TITLE", "TEXT", "TAGS"}, func(a *wire.Annotation) []any {
		return []any{localTime(time.UnixMilli(a.Time)), localTime(time.UnixMilli(a.TimeEnd)), a.Title, cmp.Or(short(a.Text), "-"), cmp.Or(a.Tags, "-")}
	})
}
