package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/trust"
	"netsplit/model"
)

// Pauses before a broken event stream is resumed: the first, and the longest.
const (
	resumeAfter = 200 * time.Millisecond
	resumeLast  = 5 * time.Second
)

func eventsCommand(conn *daemonFlags) *cobra.Command {
	var after uint64
	var o output
	c := &cobra.Command{
		Use: "events", Short: "print what changes at the daemon, as it happens", Args: cobra.NoArgs,
		Long: `Prints a line for each change at the daemon, from now on: of campaigns, runs, findings,
partitions, switches, hosts, invariants and schedules. It begins with the event's number.
If the connection breaks, or the daemon is restarted, the command goes on after the last
event that it printed. An event of kind events and state missed says that the daemon does
not keep all of those between. It keeps the last 10,000.`,
		Example: "  netsplit events -o jsonl | jq 'select(.kind == \"finding\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			if o == outJSON {
				return usage("events prints no single document: use -o jsonl")
			}
			if !c.Flags().Changed("after") {
				after = model.EventsFromNow
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				f := eventFollower{after: after, format: o, out: c.OutOrStdout(), note: c.ErrOrStderr()}
				return f.follow(ctx, cl)
			})
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "number of the last event that you saw; 0: start at the first that is kept (default: from now on)")
	o.register(c.Flags())
	conn.register(c)
	return c
}

// eventFollower prints the events of a daemon, each once.
type eventFollower struct {
	after     uint64 // number of the last one printed
	format    output
	out, note io.Writer
	wrote     error // of out
}

// follow prints what happens until ctx ends. It fails if the daemon does not answer at first.
func (f *eventFollower) follow(ctx context.Context, cl *client.Client) error {
	begun, told, pause := false, false, resumeAfter
	came := func(e model.ServiceEvent) error {
		told, pause = false, resumeAfter
		return f.print(e)
	}
	for {
		err := cl.EventsAfter(ctx, f.after, func() { begun = true }, came)
		var p *client.Problem
		refused := errors.As(err, &p) && p.Status < http.StatusInternalServerError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f.wrote != nil:
			return f.wrote
		case !begun || refused || errors.Is(err, trust.ErrStranger), errors.Is(err, client.ErrUnreadable):
			return err
		}
		if !told {
			told = true
			from := fmt.Sprintf("after event %d", f.after)
			if f.after == model.EventsFromNow {
				from = "without what happens meanwhile: none was printed yet"
			}
			fmt.Fprintf(f.note, "netsplit: %v; trying to go on %s\n", err, from)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, resumeLast)
		}
	}
}

func (f *eventFollower) print(e model.ServiceEvent) error {
	if f.format == outLines {
		f.wrote = printLine(f.out, e)
	} else {
		words := strings.Join(strings.Fields(e.Kind+" "+e.ID+" "+e.State), " ") // some have no id
		_, f.wrote = fmt.Fprintf(f.out, "%d  %s  %s: %s\n", e.Num, localTime(e.At), model.OneLine(words), model.OneLine(e.Text))
	}
	if f.wrote == nil {
		f.after = e.Num
	}
	return f.wrote
}
