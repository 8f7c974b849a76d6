package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"netsplit/campaign/proc"
	"netsplit/campaign/record"
	"netsplit/model"
)

// Workloads runs workloads side by side until all have ended. One that does
// not end in time is asked to by closing its input, then killed; it has hung.
func (p *Processes) Workloads(ctx context.Context, ws []model.Workload, phase string) {
	timing := p.c.Kit.Target.Timing
	limit := timing.Workload + cmp.Or(timing.Hang, hangLimit)
	if phase == "final" {
		limit = cmp.Or(timing.Final, finalLimit)
	}
	var wg sync.WaitGroup
	for _, base := range ws {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := p.workloadProcess(ctx, base, phase, limit); err != nil {
				p.c.Journal.Fail("%s %s on %s: %v", phase, base.Name, base.Host, err)
			}
		}()
	}
	wg.Wait()
}

func (p *Processes) workloadProcess(ctx context.Context, base model.Workload, phase string, limit time.Duration) error {
	plan := p.plans[base.Host]
	list := plan.Workloads
	if phase == "final" {
		list = plan.Final
	}
	i := slices.IndexFunc(list, func(w model.Workload) bool { return w.Name == base.Name })
	host, ok := p.c.Bed.Testbed.Host(base.Host)
	if i < 0 || !ok {
		return fmt.Errorf("no such workload or host")
	}
	w := list[i]
	var broken error // the first line that was no operation
	run := p.spec(host, w.Name, w.Env, w.Command)
	run.LogPath, run.Input, run.Sweep = filepath.Join(p.c.Dir, record.LogsDir, fmt.Sprintf("%s-%s.log", base.Host, w.Name)), true, true
	run.OnStdout = func(_ time.Time, line string) {
		var op model.Operation
		if err := json.Unmarshal([]byte(line), &op); err != nil || op.Type == "" {
			if broken == nil {
				broken = fmt.Errorf("it printed a line that is no operation: %.200q", line)
			}
			return
		}
		p.c.Record.Append(record.HistoryFile, record.Entry{Workload: w.Name, Operation: op})
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
	case hung:
		p.mu.Lock()
		p.hung = append(p.hung, fmt.Sprintf("%s %s on %s did not end within %v", phase, w.Name, base.Host, limit))
		p.mu.Unlock()
		return nil
	case err != nil:
		return err
	case broken != nil:
		return broken
	case status(x) != 0:
		return fmt.Errorf("it ended with %s; what it said is in %s", x, record.LogsDir)
	}
	return nil
}
