package nodes

import (
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

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed"
	"netsplit/testbed/disk"
	"netsplit/testbed/proc"
)

// Config is what the processes of one run need.
type Config struct {
	Kit     *Kit
	Testbed *testbed.Testbed
	Run     string            // its id
	Dir     string            // of its record
	Args    map[string]string // of the target
	Seed    uint64            // of its scenario
	Start   time.Time         // of the record's clock
	Record  *rundir.Writer
	// Journal receives what processes do beside their output.
	Journal Journal
	// Files, if set, has file operations of servers held.
	Files *Files
}

// Journal enters what happens into the record of a run, in the order of its
// calls.
type Journal interface {
	// Note enters a remark.
	Note(format string, args ...any)
	// Fail enters why the run cannot be judged.
	Fail(format string, args ...any)
	// Unread enters why what workloads did is not known in full.
	Unread(format string, args ...any)
	// NodeDone enters what was done to a server process.
	NodeDone(a model.NodeAction)
	// Number is the number, among all events of the run, of something that comes now.
	Number() uint64
}

// Processes are the target's processes and workloads of one run.
type Processes struct {
	c       Config
	plans   map[model.NodeID]*model.Target // the target as each host sees it
	inputs  map[model.NodeID]sut.ExpandInput
	logs    *logs
	control *control
	tails   sync.WaitGroup
	stop    context.CancelFunc // of the tails
	unread  []error            // what the tails could not read, by host; set once tails is over
	// building: these processes run to make a template; cache is then their {{.Cache}}.
	building bool
	cache    string
	// cacheDir is the folder that target files see as {{.Cache}}.
	cacheDir string
	template *template    // nil: start from nothing
	hooking  sync.Mutex   // one hook writes to the logs at a time
	acting   sync.Map     // of *action, by host and process: a node action is under way
	failed   atomic.Bool  // a process ended by itself, or failed, while the target started
	closedAt atomic.Int64 // since when closing is set, ns since Config.Start; 0: it is not

	mu       sync.Mutex // guards what follows
	servers  []*server
	ended    []record.Exit
	hung     []string
	gone     context.CancelCauseFunc // told of a server that ends while the target starts
	closing  bool                    // from here on an exit is expected
	placed   []model.TestbedHost     // remote hosts that have something of the run
	sessions int                     // that were made on remote hosts
	gates    gates
	// How long the servers took to start, and the cluster then to settle.
	starting, settling time.Duration
	wg                 sync.WaitGroup
}

// server is a server process that was started.
type server struct {
	*proc.Proc // nil: a hook started it
	host       model.NodeID
	name       string
	requested  bool // a workload stopped it; guarded by Processes.mu
	last       *lastLine
	// State of a server that hooks control; guarded by Processes.mu. down: stopped, or not
	// started yet. starting: its start hook runs. doubtful: that hook failed, so the server
	// may run.
	down, paused, starting, doubtful bool
	ending                           bool // the end of the run stops it, or has stopped it; guarded by Processes.mu
	// turn is held while a hook does something to it; taken before Processes.mu.
	turn sync.Mutex
}

// New starts nothing.
func New(c Config) *Processes {
	return &Processes{c: c, plans: map[model.NodeID]*model.Target{}, inputs: map[model.NodeID]sut.ExpandInput{},
		gates: gates{map[string]*disk.Gate{}, map[model.NodeID]*disk.Unsynced{}}}
}

func (p *Processes) prepare() error {
	ips := map[model.NodeID]netip.Addr{}
	for _, h := range p.c.Testbed.Testbed.Hosts {
		ips[h.Name] = h.IP
	}
	cache := p.c.Kit.expand.Cache
	switch {
	case p.building:
		cache = p.cache
	case !p.wanted():
	case p.template != nil:
		cache = p.template.cache()
	default: // without a template nobody checks a shared cache: each run has its own
		cache = filepath.Join(p.work(), ".cache")
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return err
		}
	}
	p.cacheDir = cache
	dirs := []string{p.shared()}
	if p.template == nil && cache != "" { // that of a template is shared, so it stays read-only
		dirs = append(dirs, cache)
	}
	for _, h := range p.Hosts() {
		dirs = append(dirs, p.dirOf(h))
	}
	for _, dir := range dirs {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755), p.give(p.c.Kit.Target.Rights, dir)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(p.work(), 0o711), p.writePasswd()); err != nil { // whatever the umask
		return err
	}
	for _, h := range p.Hosts() {
		in := p.c.Kit.expand
		in.Host, in.Dir, in.Work, in.Cache, in.Hosts, in.Args = h, p.dirOf(h), p.shared(), cache, ips, p.c.Args
		in.Seed, in.RunStart, in.Building = p.c.Seed, p.c.Start, p.building
		t, err := sut.Expand(p.c.Kit.Target, in)
		if err != nil {
			return err
		}
		p.plans[h], p.inputs[h] = t, in
	}
	return p.hostsFile(ips)
}

// Hosts lists the target's hosts, its nodes first.
func (p *Processes) Hosts() []model.NodeID {
	return slices.Concat(p.c.Kit.Target.Nodes, p.c.Kit.Target.Clients)
}

// WorkDir is the folder of a run's directory that is gone when the run is over.
const WorkDir = "work"

// now is the time since the run started, on the record's clock.
func (p *Processes) now() time.Duration { return time.Since(p.c.Start) }

// work is the parent of the hosts' directories.
func (p *Processes) work() string { return filepath.Join(p.c.Dir, WorkDir) }

// dirOf is the directory of a host.
func (p *Processes) dirOf(h model.NodeID) string { return filepath.Join(p.work(), string(h)) }

// shared is the directory that all hosts have in common.
func (p *Processes) shared() string { return filepath.Join(p.work(), ".shared") }

func (p *Processes) hostsPath() string { return filepath.Join(p.work(), ".hosts") }

// hostsFile writes the hosts(5) file of a target that wants names, and copies it to remote
// hosts: commands there need it.
func (p *Processes) hostsFile(ips map[model.NodeID]netip.Addr) error {
	if !p.c.Kit.Target.Hostnames {
		return nil
	}
	text := "127.0.0.1 localhost\n"
	for _, h := range p.Hosts() {
		text += fmt.Sprintf("%s %s\n", ips[h], h)
	}
	if err := os.WriteFile(p.hostsPath(), []byte(text), 0o644); err != nil {
		return err
	}
	hosts := p.Hosts()
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		if host, ok := p.c.Testbed.Testbed.Host(h); ok {
			wg.Go(func() { errs[i] = p.place(host, p.hostsPath()) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// named makes a command run under its host's name, with all hosts in
// /etc/hosts, if the target wants that: in a UTS and a mount namespace of its
// own, whose mounts nobody else sees.
func (p *Processes) named(h model.NodeID, command []string) []string {
	if !p.c.Kit.Target.Hostnames {
		return command
	}
	return append([]string{"unshare", "--uts", "--mount", "--propagation", "slave", "sh", "-c",
		`mount --bind "$1" /etc/hosts && hostname "$0" && shift && exec "$@"`, string(h), p.hostsPath()}, command...)
}

// env is the environment of the target's processes.
func (p *Processes) env(extra map[string]string) []string {
	out := []string{"NETSPLIT_RUN_START=" + strconv.FormatInt(p.c.Start.UnixNano(), 10)}
	if p.control != nil {
		out = append(out, ControlEnv+"="+p.control.path())
	}
	for k, v := range extra {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// condition is a condition as a host expands it.
func (p *Processes) condition(h model.NodeID, name string) (model.Condition, bool) {
	plan := p.plans[h]
	if plan == nil {
		return model.Condition{}, false
	}
	all := plan.Stable
	if plan.Quiesce != nil {
		all = slices.Concat(all, plan.Quiesce.Until)
	}
	i := slices.IndexFunc(all, func(c model.Condition) bool { return c.Name == name })
	if i < 0 {
		return model.Condition{}, false
	}
	return all[i], true
}

// Source is a variable's source as a host expands it; index counts in the
// target file. Expand keeps message sources and those probed on the host.
func (p *Processes) Source(h model.NodeID, variable string, index int) (model.VarSource, bool) {
	plan := p.plans[h]
	if plan == nil {
		return model.VarSource{}, false
	}
	for v, base := range p.c.Kit.Target.Variables {
		if base.Name != variable {
			continue
		}
		kept := 0
		for i, src := range base.Sources {
			here := src.Probe == nil || slices.Contains(sut.ProbeHosts(p.c.Kit.Target, src), h)
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

// logPath is where what a process prints goes, copies where a host's log files
// are kept.
func (p *Processes) logPath(h model.NodeID, name string) string {
	return filepath.Join(p.c.Dir, rundir.LogsDir, fmt.Sprintf("%s%s-%s.log", p.prefix(), h, name))
}

func (p *Processes) copies(h model.NodeID) string {
	return filepath.Join(p.c.Dir, rundir.LogsDir, p.prefix()+string(h))
}

// prefix tells the logs of a template's cluster from those of the run.
func (p *Processes) prefix() string {
	if p.building {
		return "template-"
	}
	return ""
}
