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
	"netsplit/record"
)

// Examination is what one clean run shows of a target file.
type Examination struct {
	Problems []string // what does not work as the file says
	Facts    []string // what was seen, a line each
}

// unknownShare is how much of a protocol's messages may be of no known type.
const unknownShare = 0.01

// endlessShare is how much of what is said, over HTTP or in frames, may be in messages that
// only the end of their connection, or of the run, ended.
const endlessShare = 0.5

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
	lacks := slices.Concat(f.evidence.Incomplete, f.evidence.Unread)
	for _, why := range lacks {
		x.problem("the run could not be judged: %s", why)
	}
	rec := f.checkRecord()
	f.relations(dir, &rec)
	clean := !rec.Scenario.Faulty() && rec.Scenario.Strategy != model.StrategyScripted && rec.Proof == nil
	x.verdict(check.Judge(rec), len(lacks) > 0, clean)
	x.remarks(f)
	if err := x.shown(f); err != nil {
		return nil, err
	}
	if err := x.framings(dir, f); err != nil {
		return nil, err
	}
	if v := f.evidence.Version; v != "" {
		x.fact("version: %s", v)
	}
	c := f.evidence.Cost
	x.fact("start %v, settle %v, workload %v, recovery and final reads %v, netsplit %v", c.Start.Round(1e7), c.Settle.Round(1e7),
		c.Workload.Round(1e7), c.Recover.Round(1e7), c.Ours.Round(1e7))
	if n := f.evidence.Probes; n > 0 {
		askers := 0
		for _, s := range f.evidence.Sources {
			if !s.Along {
				askers++
			}
		}
		x.fact("%d probes, waited %v for each answer (this is not their cost for the system); on average a probe was pending for %.1f %% of the workload and recovery",
			n, (f.evidence.ProbeCost / time.Duration(n)).Round(1e4),
			100*float64(f.evidence.ProbeCost)/float64(max(c.Workload+c.Recover, 1))/float64(max(askers, 1)))
	}
	return x, nil
}

func (x *Examination) problem(format string, args ...any) {
	x.Problems = append(x.Problems, fmt.Sprintf(format, args...))
}

func (x *Examination) fact(format string, args ...any) {
	x.Facts = append(x.Facts, fmt.Sprintf(format, args...))
}

// shown compares what the target file has with what the run shows of it. A run
// that did not come to its workload shows nothing.
func (x *Examination) shown(f *runFiles) error {
	if !slices.ContainsFunc(f.events, func(e model.Event) bool { return e.Kind == model.EventWorkload }) {
		x.problem("the workload did not start, so variables, ports and workloads of the target file were not examined")
		return nil
	}
	uses, err := f.uses()
	if err != nil {
		return fmt.Errorf("the record's target: %w", err)
	}
	x.variables(f, uses)
	x.sources(f, uses)
	x.changes(f)
	x.protocols(f)
	x.ports(f)
	x.workloads(f)
	return nil
}

// remarks tells what the run has in its record beside what happened. That a
// template which the file asks for cannot be made does not keep the run from
// passing, and is a mistake of the file all the same.
func (x *Examination) remarks(f *runFiles) {
	for _, e := range f.events {
		switch {
		case e.Kind != model.EventNote:
		case strings.HasPrefix(e.Note, record.NoTemplate):
			x.problem("%s", e.Note)
		default:
			x.fact("remark: %s", e.Note)
		}
	}
}

// verdict tells what failed. In a clean run that is a check or a log pattern that is too strict,
// a timeout too short, or a bug that needs no fault.
func (x *Examination) verdict(v model.Verdict, told, clean bool) {
	for _, f := range v.Failures {
		switch {
		case !clean:
			x.fact("check %s failed in this run, which is no clean one: %s", f.Check, f.Summary)
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

func (x *Examination) protocols(f *runFiles) {
	type count struct {
		all, unknown   int
		between        int    // messages of data between nodes
		opaque         int    // messages of TLS or SSH
		requested      int    // messages that begin as requests of HTTP do, to a reader of anything
		bytes, endless [2]int // to the port and from it: all; in messages that have no end
		long           int    // bytes in messages of which reader text does not read all
		types          map[string]int
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
		for dir, port := range []uint16{m.ToPort, m.FromPort} {
			if c := ports[fmt.Sprintf("%s %d", transport, port)]; c != nil {
				c.all++
				c.types[m.Type]++
				if strings.Contains(m.Type, model.TypeUnknown) {
					c.unknown++
				}
				if classify.Opaque(m.Type) {
					c.opaque++
				}
				if word, _ := m.Field("token0"); slices.Contains([]string{"GET", "POST", "PUT", "HEAD", "DELETE"}, word) {
					c.requested++
				}
				if m.Bytes > 0 && slices.Contains(f.target.Nodes, m.From) && slices.Contains(f.target.Nodes, m.To) {
					c.between++
				}
				c.bytes[dir] += m.Bytes
				if torn, _ := m.Field("incomplete"); torn == "true" {
					c.endless[dir] += m.Bytes
				}
				if m.Bytes > classify.TextKeep {
					c.long += m.Bytes
				}
				break
			}
		}
	}
	for _, p := range f.target.Protocols {
		c := ports[fmt.Sprintf("%s %d", p.Transport, p.Port)]
		at := fmt.Sprintf("protocol %s on %s port %d", p.Dissector, p.Transport, p.Port)
		switch {
		case c.all == 0 && !p.When.Under(f.target.Args):
			x.fact("%s: no message was seen: it is used with %s", at, p.When)
		case c.all == 0 && p.Optional:
			x.fact("%s: no message was seen: it is not used in every run", at)
		case c.all == 0:
			x.problem("%s: no message was seen: is the port right, and does the workload use it?", at)
		case float64(c.unknown) > unknownShare*float64(c.all) && p.Dissector != classify.NameFallback:
			x.problem("%s: %d of %d messages have no known type: is the reader right? Most are %s", at, c.unknown, c.all, commonest(c.types, c.all))
		default:
			x.fact("%s: %d messages, most are %s", at, c.all, commonest(c.types, c.all))
		}
		encrypted := fmt.Sprintf("%s: %d of %d messages are encrypted: netsplit sees their times and lengths and reads no variable from them; for tests, let nodes speak without TLS", at, c.opaque, c.all)
		switch {
		case p.Dissector == classify.NameTLS || 2*c.opaque <= c.all:
		case p.Dissector == classify.NameFallback:
			x.fact("%s", encrypted)
		default:
			x.problem("%s", encrypted)
		}
		switch {
		case p.Dissector == classify.NameFallback && c.requested > 0:
			x.fact("%s: %d messages begin like HTTP requests: reader %s shows more, %s if answers last as long as their connection", at, c.requested, classify.NameHTTP, classify.NameHTTPStream)
		case p.Dissector == classify.NameFallback && p.Transport == "tcp" && c.between > 0 && !p.Optional:
			x.fact("%s: nodes speak to one another there (%d messages), and what one says is known when the other speaks next, which across a cut it seldom does: "+
				"little is then there to heal at but what is sent again and connections that are opened; reader %s reads binary messages that tell their length, reader %s lines, with the bytes that some of them count, reader %s JSON (what to write is below, if it was found)", at, c.between, classify.NameFrames, classify.NameText, classify.NameJSON)
		case p.Dissector == classify.NameText && p.Transport == "tcp" && len(p.Lines) == 0 && float64(c.long) > endlessShare*float64(c.bytes[0]+c.bytes[1]):
			x.fact("%s: %d %% of the bytes are in lines of more than %d bytes, of which netsplit does not read the rest: do its messages end with lines?", at, 100*c.long/(c.bytes[0]+c.bytes[1]), classify.TextKeep)
		case p.Dissector == classify.NameHTTP && float64(c.endless[0]+c.endless[1]) > endlessShare*float64(c.bytes[0]+c.bytes[1]):
			x.fact("%s: %d %% of the bytes are in bodies without an end: reader %s separates their messages, if they are sent in chunks", at, 100*(c.endless[0]+c.endless[1])/(c.bytes[0]+c.bytes[1]), classify.NameHTTPStream)
		}
		for dir, who := range []string{"to", "from"} {
			if p.Dissector == classify.NameFrames && float64(c.endless[dir]) > endlessShare*float64(c.bytes[dir]) {
				x.problem("%s: %d %% of the bytes %s the port are in messages that never ended: is their length elsewhere, or do connections begin with messages of another layout (frames.first)?", at, 100*c.endless[dir]/c.bytes[dir], who)
			}
		}
	}
	x.fact("%d message types in all", len(types))
}

func (x *Examination) ports(f *runFiles) {
	for _, p := range f.evidence.Ports {
		switch {
		case !p.Known:
			x.fact("read: %s", p)
		case p.Arrived > 0:
			part := func(n int64) float64 { return 100 * min(1, float64(n)/float64(p.Arrived)) }
			x.fact("read: %s; a fault run that isolates a node holds the messages of nodes there (%.1f %%) and reads a copy of the rest (%.1f %%)", p, part(p.Nodes), part(p.Read-p.Nodes))
		}
	}
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
	ok, failed, why := map[string]int{}, map[string]int{}, map[string]reasons{}
	said := map[[2]string]bool{}
	begin := f.workloadStart()
	for i := range f.history {
		h := &f.history[i]
		once := func(mistake, text string) {
			if k := [2]string{h.Workload, mistake}; !said[k] {
				said[k] = true
				x.problem("workload %s, %s %s: %s", h.Workload, h.Type, h.F, text)
			}
		}
		if h.Time < begin-time.Second {
			once("time", fmt.Sprintf("its time, %v, is before the workloads began (%v): time counts nanoseconds since the start of the run, NETSPLIT_RUN_START", h.Time, begin.Round(time.Millisecond)))
		}
		for _, n := range h.Needs {
			if bad := check.BadNeed(n, &f.target); bad != "" {
				once(bad, bad)
			}
		}
		switch h.Type {
		case model.OpOK:
			ok[h.Workload]++
		case model.OpFail, model.OpInfo:
			failed[h.Workload]++
			if why[h.Workload] == nil {
				why[h.Workload] = reasons{}
			}
			why[h.Workload].add(h.F, h.Error)
		}
	}
	for _, w := range slices.Concat(f.target.Workloads, f.target.Final) {
		if ok[w.Name] == 0 && failed[w.Name] == 0 && !w.When.Under(f.target.Args) {
			x.fact("workload %s: no operation: it is used with %s", w.Name, w.When)
			continue
		}
		if ok[w.Name] == 0 {
			x.problem("workload %s: no operation succeeded (%d failed)%s; its standard error is in %s-%s.log", w.Name, failed[w.Name], why[w.Name], w.Host, w.Name)
			continue
		}
		x.fact("workload %s: %d operations succeeded, %d did not%s", w.Name, ok[w.Name], failed[w.Name], why[w.Name])
	}
}

// workloadStart is when the workloads began; 0: they did not.
func (f *runFiles) workloadStart() time.Duration {
	i := slices.IndexFunc(f.events, func(e model.Event) bool { return e.Kind == model.EventWorkload })
	if i < 0 {
		return 0
	}
	return f.events[i].At
}

// reasons are what operations did not succeed for, by what they were and the first
// word of their error, which is what tells errors apart.
type reasons map[[2]string]*reason

type reason struct {
	n   int
	one string // an error
}

func (r reasons) add(f, err string) {
	word, _, _ := strings.Cut(err, " ")
	k := [2]string{f, word}
	if r[k] == nil {
		r[k] = &reason{one: err}
	}
	r[k].n++
}

// maxReasons is how many of them are listed, the commonest first.
const maxReasons = 3

// String is ": " and the reasons, or "" for none.
func (r reasons) String() string {
	keys := slices.SortedFunc(maps.Keys(r), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(r[b].n, r[a].n), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	var out []string
	for _, k := range keys[:min(len(keys), maxReasons)] {
		out = append(out, fmt.Sprintf("%s (%d) %q", k[0], r[k].n, model.Excerpt(r[k].one)))
	}
	if more := len(keys) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, "; ")
}
