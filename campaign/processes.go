package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"netsplit/campaign/proc"
	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/model"
)

// How long a process may take to end when asked to, and a workload beyond the
// length of the workload phase before it counts as hung.
const (
	stopLimit  = 3 * time.Second
	hangLimit  = 5 * time.Second
	finalLimit = 30 * time.Second
)

// processes are the target's processes and workloads of one run.
type processes struct {
	r     *run
	plans map[model.NodeID]*model.Target // the target as each host sees it
	fatal []*regexp.Regexp
	allow []*regexp.Regexp

	mu      sync.Mutex // guards what follows
	servers []*proc.Proc
	ended   []record.Exit
	hung    []string
	closing bool // from here on an exit is expected
	wg      sync.WaitGroup
}

func newProcesses(r *run) *processes {
	return &processes{r: r, plans: map[model.NodeID]*model.Target{}}
}

// prepare expands the target for every host.
func (p *processes) prepare() error {
	ips := map[model.NodeID]netip.Addr{}
	for _, h := range p.r.bed.Testbed.Hosts {
		ips[h.Name] = h.IP
	}
	for _, h := range slices.Concat(p.r.target.Nodes, p.r.target.Clients) {
		dir := filepath.Join(p.r.dir, "work", string(h))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		t, err := target.Expand(p.r.target, target.ExpandInput{Host: h, Dir: dir, TargetDir: p.r.targetDir, Bin: p.r.bin,
			Hosts: ips, Args: p.r.work.Spec.Args, Seed: p.r.work.Scenario.Seed, RunStart: p.r.s.start})
		if err != nil {
			return err
		}
		p.plans[h] = t
	}
	for _, set := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{p.r.target.Logs.Fatal, &p.fatal}, {p.r.target.Logs.Allow, &p.allow}} {
		for _, pattern := range set.from {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return err
			}
			*set.to = append(*set.to, re)
		}
	}
	return nil
}

// condition is a condition as a host expands it.
func (p *processes) condition(h model.NodeID, name string) (model.Condition, bool) {
	plan := p.plans[h]
	if plan == nil {
		return model.Condition{}, false
	}
	i := slices.IndexFunc(plan.Stable, func(c model.Condition) bool { return c.Name == name })
	if i < 0 {
		return model.Condition{}, false
	}
	return plan.Stable[i], true
}

// source is a variable's source as a host expands it; index counts in the
// target file. Expand keeps message sources and those probed on the host.
func (p *processes) source(h model.NodeID, variable string, index int) (model.VarSource, bool) {
	plan := p.plans[h]
	if plan == nil {
		return model.VarSource{}, false
	}
	for v, base := range p.r.target.Variables {
		if base.Name != variable {
			continue
		}
		kept := 0
		for i, src := range base.Sources {
			here := src.Probe == nil || slices.Contains(target.ProbeHosts(p.r.target, src), h)
			if here && i == index {
				return plan.Variables[v].Sources[kept], true
			}
			if here {
				kept++
			}
		}
	}
	return model.VarSource{}, false
}

// start starts the target's processes in the order of the file, each when the
// conditions it comes after hold, and waits until all conditions hold. It
// returns what was still pending at the limit.
func (p *processes) start(ctx context.Context) []string {
	if err := p.prepare(); err != nil {
		return []string{err.Error()}
	}
	limit := p.r.target.Timing.Settle
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i, base := range p.r.target.Processes {
		if len(base.After) > 0 {
			if pending := p.r.settle(ctx, base.After, nil); len(pending) > 0 {
				return pending
			}
		}
		for _, h := range base.Hosts {
			if err := p.server(h, p.r.target.Processes[i].Name); err != nil {
				return []string{err.Error()}
			}
		}
	}
	return p.r.settle(ctx, nil, nil)
}

// server starts one server process on a host.
func (p *processes) server(h model.NodeID, name string) error {
	plan := p.plans[h]
	i := slices.IndexFunc(plan.Processes, func(q model.Process) bool { return q.Name == name })
	if i < 0 {
		return fmt.Errorf("process %s has no plan for host %s", name, h)
	}
	spec := plan.Processes[i]
	dir := filepath.Join(p.r.dir, "work", string(h))
	for file, text := range spec.Files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	host, ok := p.r.bed.Testbed.Host(h)
	if !ok {
		return fmt.Errorf("the testbed has no host %q", h)
	}
	pr, err := proc.Start(proc.Spec{Host: host, Dir: dir, Env: env(spec.Env, p.r.s.start), Argv: spec.Command,
		LogPath: filepath.Join(p.r.dir, record.LogsDir, fmt.Sprintf("%s-%s.log", h, name)),
		OnLine:  func(at time.Time, line string) { p.logLine(h, name, at, line) }})
	if err != nil {
		return fmt.Errorf("start %s on %s: %w", name, h, err)
	}
	p.mu.Lock()
	p.servers = append(p.servers, pr)
	p.mu.Unlock()
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		<-pr.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		x := pr.Status()
		p.ended = append(p.ended, record.Exit{Host: h, Process: name, At: x.At.Sub(p.r.s.start), Status: status(x),
			Expected: p.closing || spec.MayExit && status(x) == 0})
	}()
	return nil
}

// status is the exit status as a shell tells it: 128 + number for a signal.
func status(x proc.Status) int {
	if x.Signal != 0 {
		return 128 + int(x.Signal)
	}
	return x.Code
}

func (p *processes) logLine(h model.NodeID, process string, at time.Time, line string) {
	matches := func(res []*regexp.Regexp) bool {
		return slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(line) })
	}
	if matches(p.fatal) && !matches(p.allow) {
		p.r.rec.Append(record.LogLinesFile, record.LogLine{Host: h, Process: process, At: at.Sub(p.r.s.start), Line: line})
	}
}

func env(extra map[string]string, start time.Time) []string {
	out := []string{"NETSPLIT_RUN_START=" + strconv.FormatInt(start.UnixNano(), 10)}
	for k, v := range extra {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// workloads runs workloads side by side until all have ended. One that does
// not end in time is asked to by closing its input, then killed; it has hung.
func (p *processes) workloads(ctx context.Context, ws []model.Workload, phase string) {
	limit := p.r.target.Timing.Workload + hangLimit
	if phase == "final" {
		limit = finalLimit
	}
	var wg sync.WaitGroup
	for _, base := range ws {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := p.workloadProcess(ctx, base, phase, limit); err != nil {
				p.r.s.Fail("%s %s on %s: %v", phase, base.Name, base.Host, err)
			}
		}()
	}
	wg.Wait()
}

func (p *processes) workloadProcess(ctx context.Context, base model.Workload, phase string, limit time.Duration) error {
	plan := p.plans[base.Host]
	list := plan.Workloads
	if phase == "final" {
		list = plan.Final
	}
	i := slices.IndexFunc(list, func(w model.Workload) bool { return w.Name == base.Name })
	host, ok := p.r.bed.Testbed.Host(base.Host)
	if i < 0 || !ok {
		return fmt.Errorf("no such workload or host")
	}
	w := list[i]
	var broken error // the first line that was no operation
	pr, err := proc.Start(proc.Spec{Host: host, Dir: filepath.Join(p.r.dir, "work", string(base.Host)), Env: env(w.Env, p.r.s.start),
		Argv: w.Command, LogPath: filepath.Join(p.r.dir, record.LogsDir, fmt.Sprintf("%s-%s.log", base.Host, w.Name)), Input: true,
		OnStdout: func(_ time.Time, line string) {
			var op model.Operation
			if err := json.Unmarshal([]byte(line), &op); err != nil || op.Type == "" {
				if broken == nil {
					broken = fmt.Errorf("it printed a line that is no operation: %.200q", line)
				}
				return
			}
			p.r.rec.Append(record.HistoryFile, record.Entry{Workload: w.Name, Operation: op})
		}})
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

// exits returns the exits so far and the workloads that hung, sorted; exits
// from here on are expected.
func (p *processes) exits() ([]record.Exit, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	slices.SortFunc(p.ended, func(a, b record.Exit) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return bytes.Compare([]byte(a.Process), []byte(b.Process))
	})
	slices.Sort(p.hung)
	return slices.Clone(p.ended), slices.Clone(p.hung)
}

// stopAll ends every server process and removes the target's data.
func (p *processes) stopAll() {
	p.mu.Lock()
	p.closing = true
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := s.Stop(stopLimit); err != nil {
				p.r.s.Note("%v", err)
			}
		}()
	}
	wg.Wait()
	p.wg.Wait()
	os.RemoveAll(filepath.Join(p.r.dir, "work"))
}
