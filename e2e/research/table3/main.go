package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "table3:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flag.NewFlagSet("table3", flag.ContinueOnError)
	fs.SetOutput(errs)
	dir := fs.String("dir", "e2e/research/table3", "where plan.yaml and results.jsonl are")
	runs := fs.String("runs", "runs/table3", "where the records of runs go")
	program := fs.String("netsplit", "bin/netsplit", "the netsplit program")
	labs := fs.Int("labs", 2, "labs used at once")
	only := fs.String("only", "", "only campaigns whose name has this prefix")
	strategies := fs.String("strategies", "cofi,random", "strategies to run")
	seeds := fs.Int("seeds", 1, "how many of the plan's seeds to use")
	limit := fs.Duration("for", 0, "begin no campaign after this time (0: no limit)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 {
		return fmt.Errorf("-seeds %d: use 1 or more", *seeds)
	}
	for _, st := range strings.Split(*strategies, ",") {
		if st != string(model.StrategyCoFI) && st != string(model.StrategyRandom) {
			return fmt.Errorf("-strategies: unknown strategy %q: use %s and %s", st, model.StrategyCoFI, model.StrategyRandom)
		}
	}
	p, err := readPlan(filepath.Join(*dir, "plan.yaml"))
	if err != nil {
		return err
	}
	switch fs.Arg(0) {
	case "run":
		w := worker{plan: p, file: filepath.Join(*dir, resultsFile), runs: *runs, program: *program, labs: *labs, errs: errs}
		failed := w.all(ctx, p.Seeds[:min(*seeds, len(p.Seeds))], strings.Split(*strategies, ","), *only, *limit)
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, err)...)
		}
		if err := printTable(out, p, *dir); err != nil {
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	case "table":
		return printTable(out, p, *dir)
	}
	return fmt.Errorf("usage: table3 [flags] run|table")
}

// all runs the campaigns whose names begin with only, and begins none after the
// limit (0: none). One that fails does not keep the others from being run.
func (w *worker) all(ctx context.Context, seeds []uint64, strategies []string, only string, limit time.Duration) (failed []error) {
	began := time.Now()
	for _, seed := range seeds {
		for _, c := range w.plan.Campaigns {
			for _, strategy := range strategies { // in turn: both meet the same machine
				if !strings.HasPrefix(c.Name, only) {
					continue
				}
				if limit > 0 && time.Since(began) > limit {
					fmt.Fprintf(w.errs, "table3: %v are over; run it again to go on\n", limit)
					return failed
				}
				err := w.campaign(ctx, c, strategy, seed)
				if ctx.Err() != nil {
					return failed // what it says is that it was interrupted
				}
				if err != nil {
					err = fmt.Errorf("campaign %s, %s, seed %d failed: %w", c.Name, strategy, seed, err)
					fmt.Fprintf(w.errs, "table3: %v; going on with the next\n", err)
					failed = append(failed, err)
				}
			}
		}
	}
	return failed
}

// worker runs campaigns.
type worker struct {
	plan                *plan
	file, runs, program string
	labs                int
	errs                io.Writer
}

// campaign runs one campaign, unless results.jsonl has it, and replays what it
// found.
func (w *worker) campaign(ctx context.Context, c campaign, strategy string, seed uint64) error {
	done, err := readResults(w.file)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(done, func(r result) bool { return r.Campaign == c.Name && r.Strategy == strategy && r.Seed == seed }) {
		return nil
	}
	dir := filepath.Join(w.runs, c.Name, strategy, strconv.FormatUint(seed, 10))
	r, err := w.search(ctx, c, strategy, seed, dir)
	if err != nil {
		return err
	}
	if err := gather(dir, r); err != nil {
		return err
	}
	if r.Faults == 0 {
		if r.Note = nothingToExplore(dir); r.Note != "" {
			return appendResult(w.file, *r)
		}
		return fmt.Errorf("%s, %s: no fault run was made; see %s", c.Name, strategy, dir)
	}
	replayed := map[string]bool{}
	for _, f := range r.Findings {
		if w.plan.Replay == "known" && f.Known == "" {
			continue
		}
		if f.run != "" && !f.Clean && f.Class == string(model.Broken) && !replayed[f.run] && f.Tried < w.plan.Replays {
			replayed[f.run] = true
			began := time.Now()
			err := w.netsplit(ctx, dir, "replay", f.run, "-n", strconv.Itoa(w.plan.Replays-f.Tried), "--labs", strconv.Itoa(w.labs), "--runs-dir", dir)
			r.ReplayWall += time.Since(began).Seconds()
			if err := errors.Join(err, rundir.WriteJSON(filepath.Join(dir, searched), r)); err != nil {
				return err
			}
		}
	}
	if err := gather(dir, r); err != nil {
		return err
	}
	return appendResult(w.file, *r)
}

// resultsFile is the name of the file of results.
const resultsFile = "results.jsonl"

// outcomeFile is what the program said.
const outcomeFile = "outcome.txt"

// searched is the file in which a search that came to its end is noted, so
// that one who is interrupted while replaying goes on with the replays.
const searched = "searched.json"

// search runs the search of a campaign, unless it was made.
func (w *worker) search(ctx context.Context, c campaign, strategy string, seed uint64, dir string) (*result, error) {
	r := new(result)
	if err := rundir.ReadJSON(filepath.Join(dir, searched), r); err == nil {
		return r, nil
	}
	if err := os.RemoveAll(dir); err != nil { // of one that was interrupted
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	*r = result{Campaign: c.Name, Strategy: strategy, Seed: seed, Date: time.Now().UTC().Truncate(time.Second), Labs: w.labs,
		Load: strings.Fields(string(load))[0]}
	fmt.Fprintf(w.errs, "%s %s, %s, seed %d\n", r.Date.Format("15:04:05"), c.Name, strategy, seed)
	args := []string{"campaign", c.Target, "--runs-dir", dir, "--strategy", strategy, "--seed", strconv.FormatUint(seed, 10),
		"--faults", strconv.Itoa(cmp.Or(c.Faults, w.plan.Faults)), "--labs", strconv.Itoa(w.labs)}
	if c.Clean > 0 {
		args = append(args, "--clean", strconv.Itoa(c.Clean))
	}
	if c.Effect != "" {
		args = append(args, "--effect", c.Effect)
	}
	for k, v := range c.Set {
		args = append(args, "--set", k+"="+v)
	}
	if err := w.netsplit(ctx, dir, args...); err != nil {
		return nil, err
	}
	r.Wall = time.Since(r.Date).Seconds()
	return r, rundir.WriteJSON(filepath.Join(dir, searched), r)
}

// netsplit runs the program; that it found something is no error.
func (w *worker) netsplit(ctx context.Context, dir string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(dir, outcomeFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 2 * time.Minute
	cmd.Stdout, cmd.Stderr = log, io.MultiWriter(log, w.errs)
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 3 || exit.ExitCode() == 4) { // findings; nothing could be judged
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w; see %s", w.program, strings.Join(args, " "), err, log.Name())
	}
	return nil
}
