package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

// trial is a short campaign.
type trial struct {
	target      string
	path        string // as netsplit campaign takes it
	labs        int
	clean, runs int
}

// outcome is what a trial took.
type outcome struct {
	runs    []model.RunSummary // in order of their start
	wall    time.Duration      // of the whole command
	perHour float64            // fault runs an hour, labs up and down not counted
	ours    float64            // part of the runs' time, by their own account
	known   bool               // the runs say what their time went into
}

// do runs the trial with the built program and reads its summaries.
func (t trial) do(ctx context.Context, root string) (o outcome, err error) {
	dir, err := os.MkdirTemp("", "netsplit-bench-")
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "netsplit"), "campaign", t.path, "--runs-dir", dir, "--labs", strconv.Itoa(t.labs),
		"--clean", strconv.Itoa(t.clean), "--faults", strconv.Itoa(t.runs), "--strategy", "random", "--seed", "1", "--budget", "4m")
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up
	cmd.WaitDelay = 90 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	err = cmd.Run()
	o.wall = time.Since(began)
	var exit *exec.ExitError
	// 3: findings, 4: no run could be judged. Both are outcomes of a campaign.
	if err != nil && !(errors.As(err, &exit) && (exit.ExitCode() == 3 || exit.ExitCode() == 4)) {
		return o, fmt.Errorf("campaign on %s with %d labs: %w\n%s", t.target, t.labs, err, said.String())
	}
	if o.runs, err = summaries(dir); err != nil {
		return o, err
	}
	if len(o.runs) == 0 {
		return o, fmt.Errorf("campaign on %s with %d labs made no run:\n%s", t.target, t.labs, said.String())
	}
	o.account()
	return o, nil
}

// summaries reads runs/<campaign>/<run>/summary.json, in order of start.
func summaries(dir string) ([]model.RunSummary, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", rundir.SummaryFile))
	if err != nil {
		return nil, err
	}
	var out []model.RunSummary
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var s model.RunSummary
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b model.RunSummary) int { return a.Started.Compare(b.Started) })
	return out, nil
}

// account works out rate and shares from the summaries. Runs per hour count
// from the first start of a fault run to the last end; the share that is ours
// is what the runs say or, if that is more, what passes between one fault run's
// start and the next one's on the same lab that is neither start, workload nor
// recovery of the target.
func (o *outcome) account() {
	// Clean runs come first and together: with many labs some of these wait.
	faults := slices.DeleteFunc(slices.Clone(o.runs), func(r model.RunSummary) bool { return r.Scenario.Strategy == model.StrategyClean })
	if len(faults) == 0 {
		return
	}
	first, last := faults[0].Started, faults[0].Ended
	for _, r := range faults {
		if r.Ended.After(last) {
			last = r.Ended
		}
	}
	o.perHour = float64(len(faults)) / last.Sub(first).Hours()
	var ours, theirs time.Duration
	for _, r := range o.runs {
		ours += r.Cost.Ours
		theirs += r.Cost.Start + r.Cost.Workload + r.Cost.Recover
	}
	if o.known = ours+theirs > 0; o.known {
		o.ours = float64(ours) / float64(ours+theirs)
	}
	onLab := map[string][]model.RunSummary{}
	for _, r := range faults {
		onLab[r.Lab] = append(onLab[r.Lab], r)
	}
	var span, used time.Duration
	for _, rs := range onLab {
		for i := range len(rs) - 1 {
			c := rs[i].Cost
			span += rs[i+1].Started.Sub(rs[i].Started)
			used += c.Start + c.Workload + c.Recover
		}
	}
	// Some of it is nobody's account: the clock knows best.
	if span > 0 {
		o.ours = max(o.ours, float64(span-used)/float64(span))
	}
}

func (o *outcome) share(target string) row {
	r := row{what: fmt.Sprintf("%s, part of a run's time that is netsplit's, %d runs", target, len(o.runs)), ours: "not known", goal: "at most 10 %"}
	if o.known {
		r.ours, r.met = fmt.Sprintf("%.1f %%", 100*o.ours), is(o.ours <= .1)
	}
	return r
}

// held says how long packets were held in fault runs, from their arrival at
// netsplit until they were decided: reading, exploring and recording included.
func held(target string, runs []model.RunSummary) []row {
	var p50, p99 []time.Duration
	packets := 0
	for _, r := range runs {
		if d := r.GateDelay; d != nil && d.Count > 0 && r.Scenario.Strategy != model.StrategyClean {
			p50, p99, packets = append(p50, d.P50), append(p99, d.P99), packets+d.Count
		}
	}
	if packets == 0 {
		return nil
	}
	return []row{{what: fmt.Sprintf("%s, µs from a packet's arrival at the gate to its decision, p50; p99 of each of %d fault runs, %d packets", target, len(p50), packets),
		ours: spreadOf(micros(p50)).text("%.0f") + "; " + spreadOf(micros(p99)).text("%.0f")}}
}

// campaignCost measures the part of a run that is ours, and runs per hour with
// several labs.
func campaignCost(ctx context.Context, root string, trials []trial, say func(string, ...any)) ([]row, error) {
	gossip := filepath.Join(root, "e2e", "targets", "gossip", "target.yaml")
	alone := map[string]float64{} // runs per hour with one lab
	var rows []row
	for _, t := range trials {
		if t.path = t.target; t.target == "gossip" {
			t.path = gossip
		}
		o, err := t.do(ctx, root)
		if err != nil {
			return nil, err
		}
		unknown := 0
		for _, r := range o.runs {
			if r.Verdict.Value == model.VerdictUnknown {
				unknown++
			}
		}
		say("%s with %d labs: %d runs (%d unknown) in %v, %.0f an hour, %.1f %% of their time ours", t.target, t.labs, len(o.runs), unknown,
			o.wall.Round(time.Second), o.perHour, 100*o.ours)
		if t.labs == 1 {
			alone[t.target] = o.perHour
			rows = append(rows, o.share(t.target))
			rows = append(rows, held(t.target, o.runs)...)
		}
		r := row{what: fmt.Sprintf("%s, fault runs an hour with %d labs beside 1 lab", t.target, t.labs), ours: fmt.Sprintf("%.0f", o.perHour)}
		if unknown > 0 {
			r.ours += fmt.Sprintf(" (%d of %d runs unknown)", unknown, len(o.runs))
		}
		if base := alone[t.target]; base > 0 && t.labs > 1 {
			r.beside, r.ratio = fmt.Sprintf("%.0f", base), fmt.Sprintf("%.2f", o.perHour/base)
		} else {
			r.what = t.target + ", fault runs an hour with 1 lab"
		}
		rows = append(rows, r)
	}
	return rows, nil
}
