package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/testbed/proc"
)

// Workloads runs the workloads that the settings ask for (model.Workload.When),
// side by side, until all have ended. One that does not end in time is asked to by closing its input, then killed; it has hung.
func (p *Processes) Workloads(ctx context.Context, ws []model.Workload, phase string) {
	p.workloads(ctx, ws, phase, func(why string) { p.c.Journal.Unread("%s", why) })
}

// Again runs final workloads a second time and says why they do not tell all.
// NETSPLIT_LOOK is 2 in their environment.
func (p *Processes) Again(ctx context.Context, ws []model.Workload) (trouble []string) {
	var mu sync.Mutex
	p.workloads(ctx, ws, phaseAgain, func(why string) {
		mu.Lock()
		defer mu.Unlock()
		trouble = append(trouble, why)
	})
	slices.Sort(trouble)
	return trouble
}

// Phases in which workloads run.
const (
	phaseFinal = "final"
	phaseAgain = "second look:"
)

// looks are the phases that read what the system has in the end (record.Entry.Look).
var looks = map[string]int{phaseFinal: 1, phaseAgain: 2}

func (p *Processes) workloads(ctx context.Context, ws []model.Workload, phase string, missing func(why string)) {
	timing := p.c.Kit.Target.Timing
	limit, key := timing.Workload+cmp.Or(timing.Hang, HangLimit), "timing.workload and timing.hang"
	if looks[phase] > 0 {
		limit, key = cmp.Or(timing.Final, finalLimit), "timing.final"
	}
	var wg sync.WaitGroup
	for _, base := range ws {
		if !base.When.Under(p.c.Kit.Target.Args) {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := p.workloadProcess(ctx, base, phase, limit, key); err != nil {
				missing(fmt.Sprintf("%s %s on %s: %v", phase, base.Name, base.Host, err))
			}
		}()
	}
	wg.Wait()
}

// clockSkew is by how much the clock of a workload's host may differ from ours.
const clockSkew = time.Minute

// readOperation reads a line that a workload printed, given the time since the run started. The error says what of it
// to write otherwise.
func readOperation(line string, now time.Duration) (model.Operation, error) {
	var op model.Operation
	err := json.Unmarshal([]byte(line), &op)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		want := "a text, in quotes"
		switch wrong.Type.Kind() {
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.Slice:
			want = "a list"
		}
		return op, fmt.Errorf("%q is a JSON %s, want %s", wrong.Field, wrong.Value, want)
	case err != nil:
		return op, fmt.Errorf("print only JSON objects on standard output, one a line, and all else on standard error")
	case !slices.Contains([]model.OpType{model.OpInvoke, model.OpOK, model.OpFail, model.OpInfo}, op.Type):
		return op, fmt.Errorf("\"type\" is %q, want invoke, ok, fail or info", op.Type)
	case op.Time < -clockSkew || op.Time > now+clockSkew:
		return op, fmt.Errorf("\"time\" is %d, and it is %d now: count nanoseconds since the start of the run, NETSPLIT_RUN_START (or does its host have another time?)", op.Time, now)
	}
	return op, nil
}

func (p *Processes) workloadProcess(ctx context.Context, base model.Workload, phase string, limit time.Duration, key string) error {
	plan := p.plans[base.Host]
	list := plan.Workloads
	if looks[phase] > 0 {
		list = plan.Final
	}
	i := slices.IndexFunc(list, func(w model.Workload) bool { return w.Name == base.Name })
	host, ok := p.c.Testbed.Testbed.Host(base.Host)
	if i < 0 || !ok {
		return fmt.Errorf("no such workload or host")
	}
	w := list[i]
	var broken error // the first line that was no operation
	last := new(lastLine)
	env, log := w.Env, fmt.Sprintf("%s-%s.log", base.Host, w.Name)
	if phase == phaseAgain {
		env, log = maps.Clone(env), fmt.Sprintf("%s-%s-again.log", base.Host, w.Name)
		if env == nil {
			env = map[string]string{}
		}
		env["NETSPLIT_LOOK"] = "2"
	}
	run, err := p.spec(host, w.Name, env, p.c.Kit.Target.Rights, w.Command)
	if err != nil {
		return err
	}
	run.LogPath, run.Input, run.Sweep = filepath.Join(p.c.Dir, rundir.LogsDir, log), true, true
	run.OnStdout = func(_ time.Time, line string) {
		op, err := readOperation(line, time.Since(p.c.Start))
		if err != nil {
			if broken == nil {
				broken = fmt.Errorf("it printed a line that is no operation: %w: %.200q", err, line)
			}
			return
		}
		p.c.Record.Append(rundir.HistoryFile, record.Entry{Workload: w.Name, Look: looks[phase], Num: p.c.Journal.Number(), Operation: op})
	}
	run.OnLine = func(_ time.Time, line string) {
		last.enter(plain(line))
	}
	pr, err := proc.Start(run)
	if err != nil {
		return err
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	hung := false
	select {
	case <-pr.Done():
	case <-ctx.Done():
	case <-t.C:
		hung = true
	}
	pr.CloseInput()
	if hung { // end of input was the last polite request
		select {
		case <-pr.Done():
		case <-time.After(stopLimit):
		}
	}
	x, err := pr.Stop(stopLimit) // also ends what it left behind
	switch {
	case ctx.Err() != nil:
		return nil
	case hung && phase == phaseAgain:
		return fmt.Errorf("it did not end within %v of its start (%s)", limit, key)
	case hung:
		p.mu.Lock()
		p.hung = append(p.hung, fmt.Sprintf("%s %s on %s did not end within %v of its start (%s)", phase, w.Name, base.Host, limit, key))
		p.mu.Unlock()
		return nil
	case err != nil:
		return err
	case broken != nil:
		return broken
	case status(x) != 0:
		return fmt.Errorf("it ended with %s; it printed %q; all output is in %s%s", x, last.String(), run.LogPath, mayLack(p.c.Kit.Target.Rights, last.String()))
	}
	return nil
}
