package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	var c config
	flag.StringVar(&c.root, "root", ".", "the checkout, with bin/netsplit built")
	flag.DurationVar(&c.time, "time", time.Hour, "how long")
	flag.DurationVar(&c.kill, "kill", 2*time.Minute, "kill the daemon this often; 0: never")
	flag.IntVar(&c.runners, "runners", 3, "have so many runners make the runs; 0: the daemon does")
	flag.DurationVar(&c.killRunner, "kill-runner", 5*time.Minute, "kill each runner this often; 0: never")
	flag.IntVar(&c.labs, "labs", 4, "labs of a campaign")
	flag.IntVar(&c.rate, "rate", 100, "requests a second")
	flag.IntVar(&c.pages, "pages", 3, "have the daemon's page open in so many tabs, and a Prometheus scrape it; 0: neither")
	flag.StringVar(&c.dir, "dir", "", "keep records here; default: a folder that is removed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type config struct {
	root, dir  string
	time, kill time.Duration
	killRunner time.Duration
	labs, rate int
	runners    int
	pages      int
}

func run(ctx context.Context, c config) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("labs need root: run it with sudo")
	}
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "netsplit-soak-")
		if err != nil {
			return err
		}
		c.dir = dir
		defer os.RemoveAll(dir)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if c.root, err = filepath.Abs(c.root); err != nil {
		return err
	}
	before, err := links()
	if err != nil {
		return err
	}
	d := &daemon{config: c, socket: filepath.Join(c.dir, "api.sock")}
	if err := d.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	r, err := startRunners(ctx, d)
	defer func() { err = errors.Join(err, r.stop()) }()
	if err != nil {
		return err
	}
	w := newWork(d)
	if err := w.upload(ctx); err != nil {
		return err
	}
	eyes, err := startWatchers(ctx, d)
	defer func() { err = errors.Join(err, eyes.end()) }()
	if err != nil {
		return err
	}
	lctx, over := context.WithTimeout(ctx, c.time)
	defer over()
	a := newAsker(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ask(lctx)
	}()
	began, killed, looked := time.Now(), time.Now(), time.Now()
	for tick := time.NewTicker(2 * time.Second); lctx.Err() == nil; {
		select {
		case <-lctx.Done():
			tick.Stop()
			continue
		case <-tick.C:
		}
		if c.kill > 0 && time.Since(killed) >= c.kill {
			if err := d.kill(lctx); err != nil {
				return err
			}
			killed = time.Now()
			if err := eyes.open(lctx); err != nil && lctx.Err() == nil {
				return err
			}
		}
		if time.Since(looked) > 10*time.Second {
			looked = time.Now()
			eyes.look()
		}
		if err := r.disturb(); err != nil {
			return err
		}
		if err := w.look(lctx); err != nil && lctx.Err() == nil {
			return err
		}
		d.sample()
		r.sample()
		fmt.Fprintf(os.Stderr, "\r%s of %s: %d runs judged, %d kills, %d requests ", time.Since(began).Round(time.Second), c.time, len(w.judged), d.kills, a.n.Load())
	}
	<-done
	fmt.Fprintln(os.Stderr)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	lost := w.check(ctx)
	unseen := eyes.report(row)
	stopped := errors.Join(unseen, r.stop(), d.stop(ctx))
	after, err := links()
	if err != nil {
		return err
	}
	left := append(newIn(after, before), r.left()...)
	report(d, w, a, lost, left)
	tenth := len(d.lives) / 10
	growth := grown("the daemon", most(slices.Concat(d.lives[:tenth+1]...)...), most(slices.Concat(d.lives[len(d.lives)-tenth-1:]...)...))
	if c.runners > 0 {
		tenth := len(r.taken)/10 + 1
		first, last := most(r.taken[:min(tenth, len(r.taken))]...), most(r.taken[max(len(r.taken)-tenth, 0):]...)
		row("memory and open files of a runner, first, last", "%d MB, %d; %d MB, %d", first.mb, first.files, last.mb, last.files)
		growth = errors.Join(growth, grown("a runner", first, last))
		row("kills of runners; runs cut short", "%d; %d", r.kills, len(w.cutShort))
	}
	stopped = errors.Join(stopped, growth)
	if w.gap > maxGap {
		stopped = errors.Join(stopped, fmt.Errorf("no run was judged for %v: the campaign stood still", w.gap.Round(time.Second)))
	}
	if stopped != nil || len(lost) > 0 || len(left) > 0 || a.failures() > 0 {
		return cmp.Or(stopped, errors.New("something was lost, left behind or refused: see above"))
	}
	return nil
}

func row(what, format string, args ...any) {
	fmt.Printf("%-46s %s\n", what, fmt.Sprintf(format, args...))
}

func report(d *daemon, w *work, a *asker, lost, left []string) {
	row("runs judged, in so many campaigns", "%d in %d", len(w.judged), len(w.campaigns))
	row("of them given up, as runners were killed", "%d", w.givenUp)
	row("longest time in which none was", "%s", w.gap.Round(time.Second))
	row("results lost", "%d", len(lost))
	for _, l := range lost {
		row("", "%s", l)
	}
	row("namespaces and links left behind", "%d %v", len(left), left)
	row("kills; the daemon answered again after", "%d; median %s, at most %s", d.kills, quantile(d.back, .5).Round(time.Millisecond), quantile(d.back, 1).Round(time.Millisecond))
	row("requests; refused or failed while it was up", "%d; %d %s", a.n.Load(), a.failures(), a.first())
	row("answers", "p50 %.1f ms, p99 %.1f ms", quantile(a.took, .5).Seconds()*1e3, quantile(a.took, .99).Seconds()*1e3)
	for _, l := range []struct {
		when string
		s    []sample
	}{{"first", d.lives[0]}, {"last", d.lives[len(d.lives)-1]}} {
		if len(l.s) > 0 {
			row("memory and open files, "+l.when+" daemon, at its end", "%d MB, %d", l.s[len(l.s)-1].mb, l.s[len(l.s)-1].files)
		}
	}
	m := most(slices.Concat(d.lives...)...)
	row("memory and open files, at most", "%d MB, %d", m.mb, m.files)
}
