package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// watchEvery is how often a run under way is looked at.
const watchEvery = 500 * time.Millisecond

func watchCommand(conn *daemonFlags) *cobra.Command {
	var faults bool
	var o output
	c := &cobra.Command{
		Use: "watch RUN", Short: "print the messages and faults of a run under way, as they come", Args: exactArgs(1, "a run's id"),
		Long: `Prints the steps of a run that is under way, and then its messages and faults, a line for
each, until the run ends. netsplit campaign show lists the runs of a campaign that are
under way. A run that has ended has a report: netsplit open.`,
		RunE: func(c *cobra.Command, args []string) error {
			if o == outJSON {
				return usage("watch prints no single document: use -o jsonl")
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				w := watcher{cl: cl, run: args[0], faults: faults, format: o, out: c.OutOrStdout(), note: c.ErrOrStderr()}
				return w.watch(ctx)
			})
		},
	}
	c.Flags().BoolVar(&faults, "faults", false, "leave out messages that pass")
	o.register(c.Flags())
	conn.register(c)
	return c
}

type watcher struct {
	cl        *client.Client
	run       string
	faults    bool
	format    output
	out, note io.Writer

	after uint64
	phase string
	steps int // told so far
}

// watch prints what happens until the run ends.
func (w *watcher) watch(ctx context.Context) error {
	for seen := false; ; seen = true {
		l, err := w.cl.LiveState(ctx, w.run, w.after)
		var p *client.Problem
		if seen && errors.As(err, &p) && p.Status == http.StatusConflict {
			_, err = fmt.Fprintln(w.note, "netsplit:", p.Detail)
			return err
		}
		if err != nil {
			return err
		}
		if err := w.show(l); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

func (w *watcher) show(l wire.LiveState) error {
	if l.Phase != w.phase {
		w.phase = l.Phase
		fmt.Fprintf(w.note, "netsplit: %s of %s: %s\n", l.Run, l.Campaign, l.Phase)
	}
	if len(l.Events) > 0 && l.Events[0].Number > w.after+1 {
		fmt.Fprintf(w.note, "netsplit: %d events came too fast and are left out\n", l.Events[0].Number-w.after-1)
	}
	for ; w.steps < len(l.Steps); w.steps++ {
		fmt.Fprintf(w.note, "netsplit: step %d: %s\n", l.Steps[w.steps].Step, model.OneLine(l.Steps[w.steps].Text))
	}
	w.after = l.Last
	for _, e := range l.Events {
		if w.faults && e.Kind == "message" && e.Action == "pass" {
			continue
		}
		var err error
		if w.format == outLines {
			err = printLine(w.out, e)
		} else {
			_, err = fmt.Fprintln(w.out, liveWords(e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// liveWords is an event as a line.
func liveWords(e wire.LiveEvent) string {
	at := fmt.Sprintf("%10.3f s  ", time.Duration(e.At).Seconds())
	if e.Kind != "message" {
		return at + strings.Join(slices.DeleteFunc([]string{e.Kind + ":", e.Name, e.Host, e.Text}, func(w string) bool { return w == "" }), " ")
	}
	words := fmt.Sprintf("%s -> %s  %s, %d bytes", e.From, e.To, e.Type, e.Bytes)
	if e.Action != "pass" {
		words += ": " + e.Action
	}
	return at + words
}
