package target

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
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
}

// Values are what templates may use. Hosts in .IPs are reached as .IPs.n1 (or
// index .IPs "node-1"), settings as .Args.rate.
type Values struct {
	Host        string            // name of this host
	IP          string            // its address
	IPs         map[string]string // address of every host, by name
	Dir         string            // this host's fresh directory of this run
	TargetDir   string            // directory of the target file
	Bin         string            // directory of helper programs
	Args        map[string]string // settings, defaults filled in
	Seed        uint64            // the run's seed
	RunStart    int64             // start of the run, Unix nanoseconds
	WorkloadFor time.Duration     // timing.workload; prints as 9s
}

// Args returns all settings of the target: its defaults, replaced by those
// given. The error names a setting that the target does not have.
func Args(t *model.Target, given map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for k, a := range t.Args {
		out[k] = a.Default
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if _, ok := t.Args[k]; !ok {
			names := slices.Sorted(maps.Keys(t.Args))
			return nil, fmt.Errorf("target %s has no setting %q%s: it has %s", t.Name, k, didYouMean(k, names), orNone(names))
		}
		out[k] = given[k]
	}
	return out, nil
}

// Expand returns a copy of the target as one host sees it: only the processes
// and workloads of that host, only the conditions and variable sources that
// are probed there (message sources stay), every template filled in. Without
// a host it returns the whole target with its settings filled in as defaults
// and the checks' settings expanded; commands and probes stay templates.
// Errors name the part of the target file.
func Expand(t *model.Target, in ExpandInput) (*model.Target, error) {
	args, err := Args(t, in.Args)
	if err != nil {
		return nil, err
	}
	x := &expander{v: Values{
		Host: string(in.Host), IPs: map[string]string{}, Dir: in.Dir, TargetDir: in.TargetDir, Bin: in.Bin,
		Args: args, Seed: in.Seed, RunStart: in.RunStart.UnixNano(), WorkloadFor: t.Timing.Workload,
	}}
	for h, ip := range in.Hosts {
		x.v.IPs[string(h)] = ip.String()
	}
	out := *t
	out.Args = map[string]model.TargetArg{}
	for k, v := range args {
		out.Args[k] = model.TargetArg{Default: v, Help: t.Args[k].Help}
	}
	out.Checks = slices.Clone(t.Checks)
	for i := range out.Checks {
		out.Checks[i].With = x.mapping(fmt.Sprintf("checks[%d].with", i), t.Checks[i].With)
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
		return nil, fmt.Errorf("expand target %s for host %q: %w", t.Name, in.Host, x.errs[0].err)
	}
	return &out, nil
}

// expander fills templates and collects what failed, by path.
type expander struct {
	v    Values
	errs []pathError
}

type pathError struct {
	path string
	err  error
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
	out.Stable = nil
	for i, c := range t.Stable {
		if !slices.Contains(c.Hosts, h) {
			continue
		}
		at := fmt.Sprintf("stable[%d]", i)
		c.Probe = x.probe(at+".probe", c.Probe)
		c.Match = x.text(at+".match", c.Match)
		out.Stable = append(out.Stable, c)
	}
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
	t, err := template.New(at).Option("missingkey=error").Parse(s)
	if err == nil {
		var b strings.Builder
		if err = t.Execute(&b, x.v); err == nil {
			return b.String()
		}
	}
	x.errs = append(x.errs, pathError{at, templateError(at, err)})
	return ""
}

// templateError puts the text of text/template into words of the target file.
func templateError(at string, err error) error {
	return fmt.Errorf("template of %s: %w; templates may use .Host .IP .IPs .Dir .TargetDir .Bin .Args .Seed .RunStart .WorkloadFor", at, err)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
