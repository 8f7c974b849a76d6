package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/explorer/check"
	"netsplit/inference/classify"
	"netsplit/model"
)

// Examination is what one clean run shows of a target file.
type Examination struct {
	Problems []string // what does not work as the file says
	Facts    []string // what was seen, a line each
}

// unknownShare is how much of a protocol's messages may be of no known type.
const unknownShare = 0.01

// Examine reads the record of a clean run for what a target file promises and
// the run does not show: a variable that no source gave a value, a probe that
// never answered, a port without traffic or with messages its reader does not
// know, a workload without operations; and for what failed though nothing was
// cut.
func Examine(dir string) (*Examination, error) {
	f, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	x := &Examination{}
	for _, why := range f.evidence.Incomplete {
		x.problem("the run could not be judged: %s", why)
	}
	x.verdict(check.Judge(f.checkRecord()), len(f.evidence.Incomplete) > 0)
	x.variables(f)
	x.sources(f)
	x.protocols(f)
	x.workloads(f)
	c := f.evidence.Cost
	x.fact("start %v, settle %v, workload %v, recovery and final reads %v, netsplit %v", c.Start.Round(1e7), c.Settle.Round(1e7),
		c.Workload.Round(1e7), c.Recover.Round(1e7), c.Ours.Round(1e7))
	if n := f.evidence.Probes; n > 0 {
		x.fact("%d probes, %v each, %.1f %% of the workload and recovery was spent waiting for one of them on average",
			n, (f.evidence.ProbeCost / time.Duration(n)).Round(1e4),
			100*float64(f.evidence.ProbeCost)/float64(max(c.Workload+c.Recover, 1))/float64(max(len(f.evidence.Sources), 1)))
	}
	return x, nil
}

func (x *Examination) problem(format string, args ...any) {
	x.Problems = append(x.Problems, fmt.Sprintf(format, args...))
}

func (x *Examination) fact(format string, args ...any) {
	x.Facts = append(x.Facts, fmt.Sprintf(format, args...))
}

// verdict tells what failed in a run without any cut: a check or a log pattern
// that is too strict, a timeout too short, or a bug that needs no partition.
func (x *Examination) verdict(v model.Verdict, told bool) {
	for _, f := range v.Failures {
		switch {
		case f.Known != "":
			x.fact("check %s failed without any cut, %s: %s", f.Check, model.KnownAs(f.Known, f.KnownBy), f.Summary)
		case f.Class == model.Documented:
			x.fact("check %s failed without any cut, as the documentation admits: %s", f.Check, f.Summary)
		default:
			x.problem("check %s failed though nothing was cut: %s", f.Check, f.Summary)
		}
	}
	if v.Value == model.VerdictUnknown && !told {
		x.problem("the run could not be judged: %s", v.Reason)
	}
}

// variables looks for variables without a value, and for those that nothing
// can be mined from since they never change.
func (x *Examination) variables(f *runFiles) {
	seen, hosts, values := map[string]int{}, map[string]map[model.NodeID]bool{}, map[string]map[string]bool{}
	for _, e := range f.events {
		if e.Kind != model.EventObserve {
			continue
		}
		o := e.Observation
		if hosts[o.Var.Name] == nil {
			hosts[o.Var.Name], values[o.Var.Name] = map[model.NodeID]bool{}, map[string]bool{}
		}
		seen[o.Var.Name]++
		hosts[o.Var.Name][o.Var.Node] = true
		values[o.Var.Name][o.Value] = true
	}
	for _, v := range f.target.Variables {
		if seen[v.Name] == 0 {
			x.problem("variable %s was never observed: no source of it matched a message or an answer", v.Name)
			continue
		}
		some := slices.Sorted(maps.Keys(values[v.Name]))
		x.fact("variable %s: %d observations on %v, %d values: %.100s", v.Name, seen[v.Name], slices.Sorted(maps.Keys(hosts[v.Name])), len(some), strings.Join(some, " "))
		if len(some) == 1 {
			x.problem("variable %s had the value %q throughout: what never changes shows no agreement; the workload should change it", v.Name, some[0])
		}
	}
}

func (x *Examination) sources(f *runFiles) {
	for _, s := range f.evidence.Sources {
		at := fmt.Sprintf("variable %s, source %d, on %s", s.Variable, s.Source+1, s.Host)
		switch {
		case s.Asked > 0 && s.Answered == 0:
			x.problem("%s: the probe never answered (asked %d times): %s", at, s.Asked, s.Error)
		case s.Answered > 0 && s.Seen == 0:
			x.fact("%s: %d answers, none showed a value; the last one: %.120q", at, s.Answered, s.Answer)
		}
	}
}

func (x *Examination) protocols(f *runFiles) {
	type count struct {
		all, unknown int
		types        map[string]int
	}
	ports := map[string]*count{}
	for _, p := range f.target.Protocols {
		ports[fmt.Sprintf("%s %d", p.Transport, p.Port)] = &count{types: map[string]int{}}
	}
	types := map[string]bool{}
	for _, e := range f.events {
		if e.Kind != model.EventMessage {
			continue
		}
		m := e.Message
		types[m.Type] = true
		transport, _, _ := strings.Cut(m.Stream, " ")
		for _, port := range []uint16{m.ToPort, m.FromPort} {
			if c := ports[fmt.Sprintf("%s %d", transport, port)]; c != nil {
				c.all++
				c.types[m.Type]++
				if strings.Contains(m.Type, model.TypeUnknown) {
					c.unknown++
				}
				break
			}
		}
	}
	for _, p := range f.target.Protocols {
		c := ports[fmt.Sprintf("%s %d", p.Transport, p.Port)]
		at := fmt.Sprintf("protocol %s on %s port %d", p.Dissector, p.Transport, p.Port)
		switch {
		case c.all == 0:
			x.problem("%s: no message was seen: is the port right, and does the workload use it?", at)
		case float64(c.unknown) > unknownShare*float64(c.all) && p.Dissector != classify.NameFallback:
			x.problem("%s: %d of %d messages are of no known type: is the reader right? Most are %s", at, c.unknown, c.all, commonest(c.types, c.all))
		default:
			x.fact("%s: %d messages, most are %s", at, c.all, commonest(c.types, c.all))
		}
	}
	x.fact("%d message types in all", len(types))
}

// commonest are the three most frequent types with their share, so that a reader
// who knows the protocol sees whether they make sense.
func commonest(types map[string]int, all int) string {
	names := slices.SortedFunc(maps.Keys(types), func(a, b string) int { return cmp.Or(types[b]-types[a], strings.Compare(a, b)) })
	var out []string
	for _, n := range names[:min(3, len(names))] {
		out = append(out, fmt.Sprintf("%q (%d %%)", n, 100*types[n]/all))
	}
	return strings.Join(out, ", ")
}

func (x *Examination) workloads(f *runFiles) {
	ok, failed := map[string]int{}, map[string]int{}
	for _, h := range f.history {
		switch h.Type {
		case model.OpOK:
			ok[h.Workload]++
		case model.OpFail, model.OpInfo:
			failed[h.Workload]++
		}
	}
	for _, w := range slices.Concat(f.target.Workloads, f.target.Final) {
		if ok[w.Name] == 0 {
			x.problem("workload %s: no operation succeeded (%d failed): what it printed on standard error is in %s-%s.log", w.Name, failed[w.Name], w.Host, w.Name)
			continue
		}
		x.fact("workload %s: %d operations succeeded, %d did not", w.Name, ok[w.Name], failed[w.Name])
	}
}
