package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	r       *run
	plans   map[model.NodeID]*model.Target // the target as each host sees it
	inputs  map[model.NodeID]target.ExpandInput
	logs    *logs
	control *control
	tails   sync.WaitGroup
	stop    context.CancelFunc // of the tails
	unread  []error            // what the tails could not read, by host; set once tails is over
	// building: this is the cluster that a template is made of.
	building bool
	template *template  // nil: start from nothing
	hooking  sync.Mutex // one hook writes to the logs at a time
	acting   sync.Map   // of *sync.Mutex, by host and process: a node action is under way

	mu       sync.Mutex // guards what follows
	servers  []*server
	ended    []record.Exit
	hung     []string
	gone     context.CancelCauseFunc // told of a server that ends while the target starts
	closing  bool                    // from here on an exit is expected
	closedAt time.Duration           // since when
	placed   []model.TestbedHost     // remote hosts that have something of the run
	wg       sync.WaitGroup
}

// server is a server process that was started.
type server struct {
	*proc.Proc // nil: a hook started it
	host       model.NodeID
	name       string
	asked      bool                    // a workload stopped it; guarded by processes.mu
	last       *atomic.Pointer[string] // line it printed
	// down: a hook ended it; paused: one paused it. Guarded by processes.mu.
	down, paused bool
}

func newProcesses(r *run) *processes {
	return &processes{r: r, plans: map[model.NodeID]*model.Target{}, inputs: map[model.NodeID]target.ExpandInput{}}
}

// prepare makes the hosts' directories and expands the target for every host.
func (p *processes) prepare() error {
	ips := map[model.NodeID]netip.Addr{}
	for _, h := range p.r.bed.Testbed.Hosts {
		ips[h.Name] = h.IP
	}
	cache := p.r.expand.Cache
	switch {
	case p.building || !p.wanted():
	case p.template != nil:
		cache = p.template.cache()
	default: // nothing is shared that nobody checks
		cache = filepath.Join(p.work(), ".cache")
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.shared(), 0o755); err != nil {
		return err
	}
	for _, h := range p.hosts() {
		if err := os.MkdirAll(p.dirOf(h), 0o755); err != nil {
			return err
		}
		in := p.r.expand
		in.Host, in.Dir, in.Work, in.Cache, in.Hosts, in.Args = h, p.dirOf(h), p.shared(), cache, ips, p.r.work.Spec.Args
		in.Seed, in.RunStart, in.Building = p.r.work.Scenario.Seed, p.r.s.start, p.building
		t, err := target.Expand(p.r.target, in)
		if err != nil {
			return err
		}
		p.plans[h], p.inputs[h] = t, in
	}
	return p.hostsFile(ips)
}

func (p *processes) hosts() []model.NodeID {
	return slices.Concat(p.r.target.Nodes, p.r.target.Clients)
}

// workDir is the folder of a run's directory that is gone when the run is over.
const workDir = "work"

// work is where the hosts' directories are, dirOf that of one host, shared the
// one they all have.
func (p *processes) work() string                { return filepath.Join(p.r.dir, workDir) }
func (p *processes) dirOf(h model.NodeID) string { return filepath.Join(p.work(), string(h)) }
func (p *processes) shared() string              { return filepath.Join(p.work(), ".shared") }
func (p *processes) hostsPath() string           { return filepath.Join(p.work(), ".hosts") }

// hostsFile writes the hosts(5) file of a target that wants names.
func (p *processes) hostsFile(ips map[model.NodeID]netip.Addr) error {
	if !p.r.target.Hostnames {
		return nil
	}
	text := "127.0.0.1 localhost\n"
	for _, h := range p.hosts() {
		text += fmt.Sprintf("%s %s\n", ips[h], h)
	}
	return os.WriteFile(p.hostsPath(), []byte(text), 0o644)
}

// named makes a command run under its host's name, with all hosts in
// /etc/hosts, if the target wants that: in a UTS and a mount namespace of its
// own, whose mounts nobody else sees.
func (p *processes) named(h model.NodeID, command []string) []string {
	if !p.r.target.Hostnames {
		return command
	}
	return append([]string{"unshare", "--uts", "--mount", "--propagation", "slave", "sh", "-c",
		`mount --bind "$1" /etc/hosts && hostname "$0" && shift && exec "$@"`, string(h), p.hostsPath()}, command...)
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

// start starts the target and waits until it is stable, and notes where the
// time went.
func (p *processes) start(ctx context.Context) error {
	return p.settled(ctx, p.r.target.Timing.Settle)
}

// settled begins and says why the target did not come up, or what was still
// pending at the limit.
func (p *processes) settled(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pending := p.begin(ctx)
	switch {
	case len(pending) == 0:
		return nil
	case ctx.Err() == nil:
		return fmt.Errorf("the target could not be started: %s", joined(pending))
	}
	return fmt.Errorf("the target did not become stable within %v: %s", limit, joined(pending))
}

// begin makes the hosts' directories, starts the target's processes in the
// order of the file, each when the conditions it comes after hold, and waits
// until all conditions hold or ctx ends.
func (p *processes) begin(ctx context.Context) []string {
	failed := func(err error) []string { return []string{err.Error()} }
	began := time.Now()
	var err error
	if p.logs, err = newLogs(p.r.target.Logs, p.fatalLine); err != nil {
		return failed(err)
	}
	if p.control, err = p.listen(); err != nil {
		return failed(err)
	}
	if err := p.prepare(); err != nil {
		return failed(err)
	}
	if err := p.freshen(); err != nil {
		return failed(err)
	}
	copied, err := p.fromTemplate()
	if err != nil {
		return failed(err)
	}
	p.tail(ctx)
	// A server that ends while the others start will not come back.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.gone = cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.gone = nil
		p.mu.Unlock()
	}()
	if pending := p.startServers(ctx, copied); len(pending) > 0 {
		return because(ctx, pending)
	}
	p.r.cost.Start = time.Since(began)
	pending := because(ctx, p.r.settle(ctx, p.r.target.Stable, nil))
	p.r.cost.Settle = time.Since(began) - p.r.cost.Start
	return pending
}

// errEnded says that a server ended by itself while the target started.
var errEnded = errors.New("ended by itself while the target started")

// because puts the end of a server before what did not hold because of it.
func because(ctx context.Context, pending []string) []string {
	if cause := context.Cause(ctx); len(pending) > 0 && errors.Is(cause, errEnded) {
		return []string{cause.Error()}
	}
	return pending
}

// startServers starts the processes in the order of the file; those that only
// set the cluster up are left out if that was done.
func (p *processes) startServers(ctx context.Context, setUp bool) []string {
	for _, base := range p.r.target.Processes {
		if base.Manual || base.Once && setUp {
			continue
		}
		if len(base.After) > 0 {
			if pending := p.r.settle(ctx, p.r.conditions(base.After), nil); len(pending) > 0 {
				return pending
			}
		}
		if base.Once {
			if err := p.once(ctx, base); err != nil {
				return []string{err.Error()}
			}
			continue
		}
		for i, h := range base.Hosts {
			if i > 0 && len(base.InTurn) > 0 {
				if pending := p.r.settle(ctx, on(base.Hosts[i-1], p.r.conditions(base.InTurn)), nil); len(pending) > 0 {
					return pending
				}
			}
			if err := p.server(h, base.Name); err != nil {
				return []string{err.Error()}
			}
		}
	}
	return nil
}

// on are the conditions, to hold on one host alone.
func on(h model.NodeID, all []model.Condition) []model.Condition {
	out := slices.Clone(all)
	for i := range out {
		out[i].Hosts = []model.NodeID{h}
	}
	return out
}

// once runs a command of the set-up on its hosts, side by side, to its end.
func (p *processes) once(ctx context.Context, base model.Process) error {
	errs := make([]error, len(base.Hosts))
	var wg sync.WaitGroup
	for i, h := range base.Hosts {
		wg.Go(func() {
			pr, err := p.spawn(h, base.Name, new(atomic.Pointer[string]))
			if err != nil {
				errs[i] = err
				return
			}
			select {
			case <-pr.Done():
			case <-ctx.Done():
				errs[i] = fmt.Errorf("%s on %s did not end in time; what it said is in %s", base.Name, h, record.LogsDir)
			}
			if x, err := pr.Stop(stopLimit); errs[i] == nil && err != nil {
				errs[i] = err
			} else if errs[i] == nil && !x.Success() {
				errs[i] = fmt.Errorf("%s on %s ended with %s; what it said is in %s", base.Name, h, x, record.LogsDir)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tail reads the log files that the target names, until the servers are gone.
func (p *processes) tail(ctx context.Context) {
	if len(p.r.target.Logs.Files) == 0 {
		return
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	hosts := p.hosts()
	p.unread = make([]error, len(hosts))
	for i, h := range hosts {
		p.tails.Go(func() {
			if err := p.logs.tail(ctx, h, p.dirOf(h), p.r.target.Logs.Files, p.r.s.start, p.copies(h)); err != nil {
				p.unread[i] = fmt.Errorf("log files of %s: %w", h, err)
			}
		})
	}
}

// server starts one server process on a host.
func (p *processes) server(h model.NodeID, name string) error {
	if p.hooked() {
		_, err := p.hookedServer(h, name)
		return err
	}
	last := new(atomic.Pointer[string])
	pr, err := p.spawn(h, name, last)
	if err != nil {
		return err
	}
	one := &server{Proc: pr, host: h, name: name, last: last}
	mayExit := slices.ContainsFunc(p.r.target.Processes, func(q model.Process) bool { return q.Name == name && q.MayExit })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing { // a workload asked for it at the last moment, and nobody would stop it
		_, err := pr.Kill()
		return errors.Join(fmt.Errorf("the run is over"), err)
	}
	p.servers = append(p.servers, one)
	p.wg.Go(func() {
		<-pr.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		x := pr.Status()
		if p.gone != nil && !p.closing && !one.asked && !(mayExit && status(x) == 0) {
			p.gone(fmt.Errorf("%s on %s %w: %s; the last it said: %q; all of it is in %s", name, h, errEnded, x, lastOf(one.last), p.logPath(h, name)))
		}
		p.ended = append(p.ended, record.Exit{Host: h, Process: name, At: x.At.Sub(p.r.s.start), Status: status(x),
			Expected: p.closing || one.asked || mayExit && status(x) == 0, LastLine: lastOf(one.last)})
	})
	return nil
}

func lastOf(p *atomic.Pointer[string]) string {
	if s := p.Load(); s != nil {
		return (*s)[:min(len(*s), 300)]
	}
	return ""
}

// spawn writes a process's files and starts it.
func (p *processes) spawn(h model.NodeID, name string, last *atomic.Pointer[string]) (*proc.Proc, error) {
	plan := p.plans[h]
	i := slices.IndexFunc(plan.Processes, func(q model.Process) bool { return q.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("process %s has no plan for host %s", name, h)
	}
	spec := plan.Processes[i]
	dir := p.dirOf(h)
	host, ok := p.r.bed.Testbed.Host(h)
	if !ok {
		return nil, fmt.Errorf("the testbed has no host %q", h)
	}
	for file, text := range spec.Files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { // some are scripts
			return nil, err
		}
		if err := p.place(host, path); err != nil {
			return nil, err
		}
	}
	env := p.env(spec.Env)
	pr, err := proc.Start(proc.Spec{Host: host, Dir: dir, Env: env, Argv: p.command(host, env, spec.Command),
		LogPath: p.logPath(h, name),
		OnLine: func(at time.Time, line string) {
			last.Store(&line)
			p.logs.line(record.LogLine{Host: h, Process: name, At: at.Sub(p.r.s.start)}, line)
		}})
	if err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", name, h, err)
	}
	return pr, nil
}

// status is the exit status as a shell tells it: 128 + number for a signal.
func status(x proc.Status) int {
	if x.Signal != 0 {
		return 128 + int(x.Signal)
	}
	return x.Code
}

// logPath is where what a process prints goes, copies where a host's log files
// are kept.
func (p *processes) logPath(h model.NodeID, name string) string {
	return filepath.Join(p.r.dir, record.LogsDir, fmt.Sprintf("%s%s-%s.log", p.prefix(), h, name))
}

func (p *processes) copies(h model.NodeID) string {
	return filepath.Join(p.r.dir, record.LogsDir, p.prefix()+string(h))
}

// prefix tells the logs of a template's cluster from those of the run.
func (p *processes) prefix() string {
	if p.building {
		return "template-"
	}
	return ""
}

// env is the environment of the target's processes.
func (p *processes) env(extra map[string]string) []string {
	out := []string{"NETSPLIT_RUN_START=" + strconv.FormatInt(p.r.s.start.UnixNano(), 10)}
	if p.control != nil {
		out = append(out, ControlEnv+"="+p.control.path())
	}
	for k, v := range extra {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// exits returns the exits so far and the workloads that hung, sorted; exits
// from here on are expected.
func (p *processes) exits() ([]record.Exit, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing, p.closedAt = true, p.r.s.now()
	slices.SortFunc(p.ended, func(a, b record.Exit) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return bytes.Compare([]byte(a.Process), []byte(b.Process))
	})
	slices.Sort(p.hung)
	return slices.Clone(p.ended), slices.Clone(p.hung)
}

// fatalLine keeps a line that the target file calls a failure. What servers say
// while they are all stopped at the end is our doing: it stays in their logs.
func (p *processes) fatalLine(l record.LogLine) {
	p.mu.Lock()
	over := p.closing && l.At > p.closedAt
	p.mu.Unlock()
	if !p.building && !over {
		p.r.rec.Append(record.LogLinesFile, l)
	}
}

// stopAll ends every server process and removes the target's data. The error
// says which log files could not be read, so that nobody can judge the run.
func (p *processes) stopAll() error {
	p.stopServers(0) // all is recorded: nobody waits for an orderly end
	if p.control != nil {
		p.control.close()
	}
	if p.stop != nil {
		p.stop()
	}
	p.tails.Wait()
	if p.logs != nil {
		p.logs.flush()
	}
	p.clearRemote()
	os.RemoveAll(p.work())
	p.cacheAfter()
	return errors.Join(p.unread...)
}

// stopServers ends the servers, all at once.
func (p *processes) stopServers(limit time.Duration) {
	p.mu.Lock()
	if !p.closing {
		p.closing, p.closedAt = true, p.r.s.now()
	}
	servers := slices.Clone(p.servers)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			if s.Proc == nil {
				if err := p.endHooked(s); err != nil {
					p.r.s.Note("%v", err)
				}
			} else if _, err := s.Stop(limit); err != nil {
				p.r.s.Note("%v", err)
			}
		})
	}
	wg.Wait()
	p.wg.Wait()
}
