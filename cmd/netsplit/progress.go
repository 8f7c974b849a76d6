package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// progressFlags say how progress is shown.
type progressFlags struct{ mode string }

func (p *progressFlags) register(f *pflag.FlagSet) {
	f.StringVar(&p.mode, "progress", "auto", "auto (redraw on a terminal, else lines), plain (lines) or none")
}

// progress tells on stderr what runs, what is done, what was found and how
// long it may take. On a terminal one status line is redrawn; elsewhere a line
// is written per finished run, and one every 30 s.
type progress struct {
	w          io.Writer
	redraw     bool
	columns    func() int // of the terminal, 0: unknown; nil: it is none
	silent     bool
	began      time.Time
	started    time.Time              // when the campaign was first seen to be no longer queued
	seen       map[string]bool        // finished runs told
	counted    int                    // of those told, the ones that count as done: not cut short
	read       int                    // runs that were done when their list was last read
	lastReason string                 // last reason told while runs were under way
	warned     map[model.Warning]bool // told
	stop       string                 // how a user stops it
	// where, if set, says where the steps stand that a warning names.
	where func(text string) (at, others string)
	last  time.Time
	width int
	pace  pace
}

func (p progressFlags) progress(w io.Writer, began time.Time) *progress {
	out := &progress{w: w, began: began, seen: map[string]bool{}, warned: map[model.Warning]bool{}, silent: p.mode == "none", last: began}
	if f, ok := w.(*os.File); ok && p.mode == "auto" && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		out.redraw = term.IsTerminal(int(f.Fd()))
		out.columns = func() int {
			n, _, _ := term.GetSize(int(f.Fd()))
			return n
		}
	}
	return out
}

func (p *progress) say(format string, args ...any) {
	if p.silent {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

// fitting is a line that does not wrap: what wraps cannot be overwritten.
func (p *progress) fitting(line string) string {
	if p.columns == nil {
		return line
	}
	columns := p.columns()
	if r := []rune(line); columns > 1 && len(r) >= columns {
		return string(r[:columns-2]) + "…"
	}
	return line
}

// update tells what is new.
func (p *progress) update(ctx context.Context, cl *client.Client, c wire.Campaign) error {
	if p.silent {
		return nil
	}
	if c.Done > p.read {
		runs, err := p.finished(ctx, cl, c)
		if err != nil {
			return err
		}
		p.read = c.Done
		for _, r := range runs {
			p.seen[r.ID] = true
			p.counted += counts(&r)
			p.say("%s  %-7s %s", r.ID, r.Verdict.Value, firstLine(r.Verdict.Reason))
		}
	}
	if len(c.Running) > 0 && c.Reason != "" && c.Reason != p.lastReason { // what a user must know, though it goes on
		p.lastReason = c.Reason
		p.say("%s", c.Reason)
	}
	p.warn(c)
	line := p.status(c)
	switch {
	case p.redraw:
		p.clear()
		line = p.fitting(line)
		p.width = len([]rune(line))
		fmt.Fprintf(p.w, "\r%s", line)
	case time.Since(p.last) >= 30*time.Second:
		p.last = time.Now()
		p.say("%s", line)
	}
	return nil
}

// finished are the runs that were not told yet. They are the last ones of the list or,
// where several labs are used or a run took long, stand shortly before those: it is
// read from its end until all are found.
func (p *progress) finished(ctx context.Context, cl *client.Client, c wire.Campaign) (fresh []wire.RunRow, err error) {
	found := p.counted
	limit := c.Done - found + 2*max(c.Spec.Labs, 1)
	for cursor := ""; found < c.Done; limit = 200 {
		page, err := cl.Runs(ctx, wire.RunFilter{Campaign: c.ID}, min(limit, 200), cursor)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			if !p.seen[r.ID] {
				fresh = append(fresh, r)
				found += counts(&r)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Reverse(fresh)
	return fresh, nil
}

// counts is 1 for a run that counts as done, 0 for one that was cut short.
func counts(r *wire.RunRow) int {
	if r.CutShort {
		return 0
	}
	return 1
}

// warn tells of marks of a wrong target file that are new, and on a terminal how to
// stop.
func (p *progress) warn(c wire.Campaign) {
	for _, w := range c.Warnings {
		key := model.Warning{Kind: w.Kind, About: w.About}
		if p.warned[key] {
			continue
		}
		p.warned[key] = true
		at, others := "", ""
		if p.where != nil {
			at, others = p.where(w.Text)
		}
		p.say("warning: %s%s%s\n  what to change: %s", at, w.Text, others, w.Advice)
		if p.redraw && !ended(c.State) {
			p.say("  to stop: %s", p.stop)
		}
	}
}

func (p *progress) status(c wire.Campaign) string {
	elapsed := time.Since(p.began).Round(time.Second)
	left := "unknown"
	p.pace.see(p.began, time.Now(), c.Done, max(c.Spec.Labs, 1))
	if d := p.pace.left(time.Now(), c.Planned); d > 0 {
		left = "about " + d.Round(5*time.Second).String()
	}
	if b := time.Duration(c.Spec.Budget); b > 0 {
		if p.started.IsZero() && c.State != string(model.CampaignQueued) {
			p.started = time.Now()
		}
		rest := b
		if !p.started.IsZero() {
			rest = max(b-time.Since(p.started), 0).Round(time.Second)
		}
		if left == "unknown" {
			left = "at most " + rest.String()
		} else {
			left += ", at most " + rest.String()
		}
	}
	now := "preparing"
	if c.Reason != "" {
		now = c.Reason
	}
	if len(c.Running) > 0 {
		var short []string
		for _, r := range c.Running {
			what := strings.TrimPrefix(r, c.ID+"-")
			if d := c.Doing[r]; d != "" {
				what += " (" + d + ")"
			}
			short = append(short, what)
		}
		now = strings.Join(short, " ")
	} else if c.State == "queued" {
		now = "queued"
	}
	so := fmt.Sprintf("%d findings", c.Findings)
	if c.Spec.Replay != "" { // it looks for none
		so = fmt.Sprintf("%d failed as %s did", c.Reproduced, c.Spec.Replay)
		if c.Spec.Shrink != nil {
			so = "leaving out steps of " + c.Spec.Replay
		}
	}
	return model.OneLine(fmt.Sprintf("[%v] %d of at most %d runs, %s; now: %s; left: %s", elapsed, c.Done, c.Planned, so, now, left))
}

// pace tells from the runs that were seen to finish how long those to come take.
type pace struct {
	labs              int
	start, first, end finish // the zero finish: not yet
}

// finish is how many runs were done at a moment, and had just become so many.
type finish struct {
	done int
	at   time.Time
}

// see is told how many runs are done. The first time says how many were before
// anybody looked.
func (p *pace) see(began, now time.Time, done, labs int) {
	switch {
	case p.start.at.IsZero():
		p.start, p.end = finish{done, began}, finish{done, began}
	case done > p.end.done:
		p.end = finish{done, now}
		if p.first.at.IsZero() && done-p.start.done >= labs {
			p.first = p.end
		}
	}
	p.labs = labs
}

// left is how long the runs up to planned may take; 0 if nothing says so. The first
// run of each lab takes longer than others, for what is fetched and made before it:
// it counts until as many others are done.
func (p *pace) left(now time.Time, planned int) time.Duration {
	from := p.start
	if !p.first.at.IsZero() && p.end.done-p.first.done >= p.labs {
		from = p.first
	}
	n := p.end.done - from.done
	if n <= 0 || planned <= p.end.done {
		return 0
	}
	all := p.end.at.Sub(from.at) / time.Duration(n) * time.Duration(planned-p.end.done)
	return max(all-now.Sub(p.end.at), 5*time.Second)
}

func (p *progress) done() {
	if !p.silent {
		p.clear()
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func printInvariants(out io.Writer, list []wire.Invariant) error {
	head := []any{"ID", "TARGET", "STATUS", "INVARIANT", "SUPPORT", "CHANGES", "RUNS", "LIKE IT", "CHANCE"}
	return printTable(out, list, "no invariants yet: a campaign of strategy cofi or random mines them from its clean runs", head, func(i *wire.Invariant) []any {
		return []any{i.ID, i.Target, i.Status, i.Text, i.Support, i.Changes, i.Runs, i.Like, fmt.Sprintf("%.2g", i.Chance)}
	})
}
