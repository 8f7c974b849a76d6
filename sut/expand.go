package sut

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"netsplit/model"
)

// ExpandInput is what a run knows and a target file does not.
type ExpandInput struct {
	// Host is the host to expand for; "" expands only what belongs to the run
	// as a whole (the settings of the checks).
	Host model.NodeID
	// Dir is the host's own fresh directory, TargetDir that of the target file
	// ("" for a built-in target), Bin that of helper programs.
	Dir, TargetDir, Bin string
	// Hosts holds the address of every host of the target.
	Hosts map[model.NodeID]netip.Addr
	// Args are the settings asked for; the others have their defaults.
	Args     map[string]string
	Seed     uint64
	RunStart time.Time

	// Version is the release that runs; "" stands for the target's Release.
	Version string
	// Lib, Files, Java, JavaHome and Cache are those of its software (software.Set); ""
	// for a target without software.
	Lib, Files, Java, JavaHome, Cache string
	// Netsplit is the path of the netsplit program, Work a directory that all
	// hosts share during this run.
	Netsplit, Work string
	// Building is true while the template of the cluster is made.
	Building bool
}

// Values are what templates may use.
type Values struct {
	Host        string            // name of this host
	IP          string            // its address
	IPs         map[string]string // address of a host: `.IPs.n1`, or `index .IPs "node-1"`
	Dir         string            // this host's directory, at the start of a run empty or what `template` kept
	TargetDir   string            // directory of the target file and of the scripts beside it; a copy of a built-in target's, "" if it has none
	Bin         string            // directory of the helper programs that come with netsplit
	Args        map[string]string // a setting: `.Args.rate`
	Seed        uint64            // the run's seed, 0 to 2^64-1; take every random choice from it, or a replay is another run
	RunStart    int64             // start of the run, Unix time in nanoseconds
	WorkloadFor time.Duration     // `timing.workload`, such as `9s`
	Version     string            // release of the software, such as `3.3.0`
	Lib         string            // directory of its jars, class path `{{.Lib}}/*`, and of programs built from Go: `{{.Lib}}/nats-server`
	Files       string            // directory of its single artifacts, under Maven's names
	Java        string            // the java program to use
	JavaHome    string            // directory of that Java
	Cache       string            // directory of this target and release that outlives runs (`template.warm`)
	Netsplit    string            // the netsplit program
	Work        string            // directory that all hosts share in this run
	Building    bool              // `true` while the template is made
	Op          map[string]string // of `operations`: an argument, `.Op.key`
}

func values(t *model.Target, in ExpandInput, args map[string]string) Values {
	v := Values{
		Host: string(in.Host), IPs: map[string]string{}, Dir: in.Dir, TargetDir: in.TargetDir, Bin: in.Bin,
		Args: args, Seed: in.Seed, RunStart: in.RunStart.UnixNano(), WorkloadFor: t.Timing.Workload,
		Version: in.Version, Lib: in.Lib, Files: in.Files, Java: in.Java, JavaHome: in.JavaHome, Cache: in.Cache,
		Netsplit: in.Netsplit, Work: in.Work, Building: in.Building,
	}
	if v.Version == "" {
		v.Version = t.Release
	}
	for h, ip := range in.Hosts {
		v.IPs[string(h)] = ip.String()
	}
	return v
}

// Args returns all settings of the target: its defaults, replaced by those
// given. The error names a setting that the target does not have.
func Args(t *model.Target, specified map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for k, a := range t.Args {
		out[k] = a.Default
	}
	for _, k := range slices.Sorted(maps.Keys(specified)) {
		if _, ok := t.Args[k]; !ok {
			names := slices.Sorted(maps.Keys(t.Args))
			return nil, fmt.Errorf("target %s has no setting %q%s: it has %s", t.Name, k, DidYouMean(k, names), orNone(names))
		}
		out[k] = specified[k]
	}
	return out, nil
}

// Expand returns a copy of the target as one host sees it, with every template filled in:
// the processes and workloads of that host, the conditions and variable sources that are
// probed there, and all message sources.
//
// Without a host, Expand returns the whole target. Settings have their values as defaults.
// Checks whose when does not match the settings are left out; the settings of the other
// checks are expanded. Commands and probes stay templates.
//
// Errors name the part of the target file.
func Expand(t *model.Target, in ExpandInput) (*model.Target, error) {
	args, err := Args(t, in.Args)
	if err != nil {
		return nil, err
	}
	x := &expander{v: values(t, in, args)}
	out := *t
	out.Args = map[string]model.TargetArg{}
	for k, v := range args {
		out.Args[k] = model.TargetArg{Default: v, Help: t.Args[k].Help}
	}
	out.Checks = nil
	for i, c := range t.Checks {
		if c.When.Under(out.Args) {
			c.With = x.mapping(fmt.Sprintf("checks[%d].with", i), c.With)
			out.Checks = append(out.Checks, c)
		}
	}
	if in.Host != "" {
		ip, ok := in.Hosts[in.Host]
		if !ok {
			return nil, fmt.Errorf("expand target %s: no address for host %q: the testbed must have every node and client of the target", t.Name, in.Host)
		}
		x.v.IP = ip.String()
		x.host(t, &out)
	}
	if len(x.errs) > 0 {
		return nil, fmt.Errorf("expand target %s for host %q: %w", t.Name, in.Host, x.errs[0])
	}
	return &out, nil
}

// expander fills templates and collects what failed, by path.
type expander struct {
	v    Values
	errs []*templateProblem
}

func (x *expander) host(t, out *model.Target) {
	h := model.NodeID(x.v.Host)
	out.Processes = nil
	for i, p := range t.Processes {
		if !slices.Contains(p.Hosts, h) {
			continue
		}
		at := fmt.Sprintf("processes[%d]", i)
		p.Files = x.mapping(at+".files", p.Files)
		p.Command = x.list(at+".command", p.Command)
		p.Env = x.mapping(at+".env", p.Env)
		out.Processes = append(out.Processes, p)
	}
	out.Stable, out.Quiesce = x.conditions("stable", t.Stable), x.quiesce(t.Quiesce)
	out.Variables = slices.Clone(t.Variables)
	for i, v := range t.Variables {
		var sources []model.VarSource
		for j, src := range v.Sources {
			if src.Probe != nil {
				if !slices.Contains(ProbeHosts(t, src), h) {
					continue
				}
				p := x.probe(fmt.Sprintf("variables[%d].sources[%d].probe", i, j), *src.Probe)
				src.Probe = &p
			}
			sources = append(sources, src)
		}
		out.Variables[i].Sources = sources
	}
	out.Workloads = x.workloads("workloads", h, t.Workloads)
	out.Final = x.workloads("final", h, t.Final)
}

// ProbeHosts lists the hosts on which a probed source is read: those it names,
// or else all nodes.
func ProbeHosts(t *model.Target, src model.VarSource) []model.NodeID {
	if len(src.Hosts) > 0 {
		return src.Hosts
	}
	return t.Nodes
}

func (x *expander) workloads(key string, h model.NodeID, in []model.Workload) []model.Workload {
	var out []model.Workload
	for i, w := range in {
		if w.Host != h {
			continue
		}
		at := fmt.Sprintf("%s[%d]", key, i)
		w.Command = x.list(at+".command", w.Command)
		w.Env = x.mapping(at+".env", w.Env)
		out = append(out, w)
	}
	return out
}

func (x *expander) probe(at string, p model.Probe) model.Probe {
	p.Command = x.list(at+".command", p.Command)
	p.TCP = x.text(at+".tcp", p.TCP)
	p.Send = x.text(at+".send", p.Send)
	p.HTTP = x.text(at+".http", p.HTTP)
	return p
}

func (x *expander) list(at string, in []string) []string {
	var out []string
	for i, s := range in {
		out = append(out, x.text(fmt.Sprintf("%s[%d]", at, i), s))
	}
	return out
}

func (x *expander) mapping(at string, in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for _, k := range slices.Sorted(maps.Keys(in)) {
		out[k] = x.text(at+"."+k, in[k])
	}
	return out
}

func (x *expander) text(at, s string) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	text, problem := x.v.filled(at, s)
	if problem != nil {
		x.errs = append(x.errs, problem)
	}
	return text
}

// functions are what templates may call beside those of text/template.
var functions = template.FuncMap{"atLeast": AtLeast, "times": times}

// times multiplies two numbers, written as settings are, as of a period of several ticks:
// {{times .Args.tick .Args.limit}}ms.
func times(a, b any) (string, error) {
	product := 1.0
	for _, n := range []any{a, b} {
		f, err := strconv.ParseFloat(fmt.Sprint(n), 64)
		if err != nil {
			return "", fmt.Errorf("times: %q is no number", n)
		}
		product *= f
	}
	return strconv.FormatFloat(product, 'f', -1, 64), nil
}

// AtLeast says whether a release is not older than another: their runs of
// digits are compared as numbers, left to right, missing ones count as 0, so
// that 3.11 is newer than 3.5. Templates write {{if atLeast .Version "4.0"}}.
// What follows the numbers (-beta1, .Final) does not count.
func AtLeast(release, than string) bool {
	a, b := numbers(release), numbers(than)
	for i := range max(len(a), len(b)) {
		var x, y uint64
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x > y
		}
	}
	return true
}

// numbers reads the dotted numbers a release begins with.
func numbers(release string) []uint64 {
	var out []uint64
	for _, part := range strings.Split(release, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return out
		}
		out = append(out, n)
		if digits != part {
			return out
		}
	}
	return out
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
