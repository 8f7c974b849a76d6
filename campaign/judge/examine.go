package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/campaign/record"
	"netsplit/explorer/check"
	"netsplit/inference/classify"
	"netsplit/inference/state"
	"netsplit/model"
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
	for _, why := range f.evidence.Incomplete {
		x.problem("the run could not be judged: %s", why)
	}
	x.verdict(check.Judge(f.checkRecord()), len(f.evidence.Incomplete) > 0)
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
		x.fact("%d probes, waited %v for each answer (that is not what it costs the system); on average, one was awaited %.1f %% of the workload and recovery",
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
		x.problem("the workload did not start: what the target file says of variables, ports and workloads was not examined")
		return nil
	}
	uses, err := f.uses()
	if err != nil {
		return fmt.Errorf("the record's target: %w", err)
	}
	x.variables(f, uses)
	x.sources(f, uses)
	x.protocols(f)
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

// variables looks for variables without a value. One that has the same value
// throughout is told, since nothing is mined from it: the settings may not
// change it. But where one of its sources showed nothing, the value that it
// would change to may be the one that is not seen.
func (x *Examination) variables(f *runFiles, uses map[sourceKey]sourceUse) {
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
		under := v.When.Under(f.target.Args)
		if seen[v.Name] == 0 {
			if under {
				x.problem("variable %s was never observed: no source of it matched a message or an answer", v.Name)
			} else {
				x.fact("variable %s was not observed: that takes %s", v.Name, v.When)
			}
			continue
		}
		some := slices.Sorted(maps.Keys(values[v.Name]))
		x.fact("variable %s: %d observations on %v, %d values: %.100s", v.Name, seen[v.Name], slices.Sorted(maps.Keys(hosts[v.Name])), len(some), strings.Join(some, " "))
		if len(some) > 1 {
			continue
		}
		if under && some[0] == model.Absent && !mayBeAbsent(v) {
			x.problem("variable %s was absent wherever it was looked for: no pattern of a source with absent_for matched anything; is what it reads right? If it takes a setting, say when; if it does not happen in every run, optional: true", v.Name)
			continue
		}
		silent := -1
		for i, src := range v.Sources {
			if !src.Optional && uses[sourceKey{v.Name, i}].seen == 0 {
				silent = i
				break
			}
		}
		if under && silent >= 0 {
			x.problem("variable %s had the value %q throughout, and source %d of it showed no value: does it read what it should? If what it shows does not happen in every run, say optional: true", v.Name, some[0], silent+1)
		} else {
			x.fact("variable %s had the value %q throughout: under these settings nothing changes it, and it shows no agreement", v.Name, some[0])
		}
	}
}

// mayBeAbsent says whether every source that shows v absent is one whose values
// need not occur.
func mayBeAbsent(v model.Variable) bool {
	return !slices.ContainsFunc(v.Sources, func(s model.VarSource) bool { return s.AbsentFor != "" && !s.Optional })
}

// sources looks for probes that never answered, and for sources that were given
// something to read and never found a value in it. One with a fixed value says
// that something happened, which need not be.
func (x *Examination) sources(f *runFiles, uses map[sourceKey]sourceUse) {
	idle, optional := f.idleHosts(), map[sourceKey]bool{}
	for _, v := range f.target.Variables {
		for i, src := range v.Sources {
			optional[sourceKey{v.Name, i}] = src.Optional
		}
	}
	for _, s := range f.evidence.Sources {
		at := fmt.Sprintf("variable %s, source %d, on %s", s.Variable, s.Source+1, s.Host)
		switch {
		case s.Asked > 0 && s.Answered == 0 && idle[s.Host]:
			x.fact("%s: the probe never answered: no server was started there", at)
		case s.Asked > 0 && s.Answered == 0 && optional[sourceKey{s.Variable, s.Source}] && uses[sourceKey{s.Variable, s.Source}].texts > 0:
			x.fact("%s: the probe never answered, elsewhere it did: %s", at, s.Error)
		case s.Asked > 0 && s.Answered == 0:
			x.problem("%s: the probe never answered (asked %d times): %s", at, s.Asked, s.Error)
		case s.Answered > 0 && s.Seen == 0:
			x.fact("%s: %d answers, none showed a value; the last one: %q", at, s.Answered, s.Answer)
		}
	}
	for _, v := range f.target.Variables {
		told := map[string]bool{}
		for i, src := range v.Sources {
			u := uses[sourceKey{v.Name, i}]
			if src.Probe == nil && u.texts == 0 && !src.Optional && (u.refused > 0 || !told[src.Type]) && v.When.Under(f.target.Args) {
				if u.refused > 0 {
					x.fact("variable %s, source %d: %d messages had type %q, and none is as where says: %s", v.Name, i+1, u.refused, src.Type, u.failing())
				} else {
					told[src.Type] = true
					x.fact("variable %s, source %d: no message had type %q%s", v.Name, i+1, src.Type, f.nearest(src.Type))
				}
			}
			if u.texts == 0 || u.seen > 0 || src.Value != "" || src.Optional || !v.When.Under(f.target.Args) {
				continue
			}
			what := "answers"
			if src.Probe == nil {
				what = "messages of its type"
			}
			x.problem("variable %s, source %d: none of %d %s showed a value: is what it reads right? If what it shows does not happen in every run, say optional: true", v.Name, i+1, u.texts, what)
		}
	}
}

// nearest names the types of the run that begin as a pattern that none matches:
// it may be misspelt, or what it means may not have happened.
func (f *runFiles) nearest(pattern string) string {
	common := func(typ string) int {
		n := 0
		for n < min(len(typ), len(pattern)) && typ[n] == pattern[n] {
			n++
		}
		return n
	}
	own := strings.IndexByte(pattern, ' ') + 1 // behind the reader's name, which tells nothing
	most, near := own, map[string]bool{}
	for _, e := range f.events {
		if e.Kind != model.EventMessage {
			continue
		}
		n := common(e.Message.Type)
		if n > most {
			most, near = n, map[string]bool{}
		}
		if n == most && n > own {
			near[fmt.Sprintf("%q", e.Message.Type)] = true
		}
	}
	if len(near) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(near))
	return "; there were " + strings.Join(names[:min(3, len(names))], ", ")
}

// idleHosts are those on which no server ran: a workload would have started it.
func (f *runFiles) idleHosts() map[model.NodeID]bool {
	idle := map[model.NodeID]bool{}
	for _, p := range f.target.Processes {
		for _, h := range p.Hosts {
			if p.Manual {
				idle[h] = true
			}
		}
	}
	for _, p := range f.target.Processes {
		for _, h := range p.Hosts {
			if !p.Manual && !p.Once {
				delete(idle, h)
			}
		}
	}
	for _, e := range f.events {
		if e.Kind == model.EventNode && e.Node.Verb == model.NodeStart {
			delete(idle, e.Node.Host)
		}
	}
	return idle
}

// sourceKey names a source of a variable by its index in the target file.
type sourceKey struct {
	variable string
	source   int
}

// sourceUse is what a run gave a source to read, on all hosts together.
type sourceUse struct {
	texts   int // answers of its probe, or messages of its type for which where holds
	seen    int // of them, those that showed a value
	refused int // messages of its type for which where does not hold
	// others are values of fields that where does not take, of each a few
	others map[string][]string
}

// refuse counts a message of which a field is not as where says.
func (u *sourceUse) refuse(m *model.Message, field string) {
	u.refused++
	if u.others == nil {
		u.others = map[string][]string{}
	}
	v, ok := m.Field(field)
	shown := fmt.Sprintf("%q", v)
	if !ok {
		shown = "not there"
	}
	if vs := u.others[field]; len(vs) < 3 && !slices.Contains(vs, shown) {
		u.others[field] = append(vs, shown)
	}
}

// failing says which fields were not as where says, and what they were.
func (u *sourceUse) failing() string {
	var out []string
	for _, field := range slices.Sorted(maps.Keys(u.others)) {
		out = append(out, fmt.Sprintf("field %s was %s", field, strings.Join(u.others[field], ", ")))
	}
	return strings.Join(out, "; ")
}

// uses counts what each source had to read. An observation of a message does not
// say by which source it was read, so each source reads the messages again, alone.
func (f *runFiles) uses() (map[sourceKey]sourceUse, error) {
	out := map[sourceKey]sourceUse{}
	for _, s := range f.evidence.Sources {
		u := out[sourceKey{s.Variable, s.Source}]
		out[sourceKey{s.Variable, s.Source}] = sourceUse{texts: u.texts + s.Answered, seen: u.seen + s.Seen}
	}
	for _, v := range f.target.Variables {
		for i, src := range v.Sources {
			if src.Probe != nil {
				continue
			}
			alone := v
			alone.Sources = []model.VarSource{src}
			reader, err := state.NewExtractor(f.testbed.Hosts, f.target.Nodes, []model.Variable{alone})
			if err != nil {
				return nil, err
			}
			reads, err := state.Reads(src)
			if err != nil {
				return nil, err
			}
			var u sourceUse
			for _, e := range f.events {
				if e.Kind != model.EventMessage {
					continue
				}
				typed, failed := reads(e.Message)
				if incomplete, _ := e.Message.Field("incomplete"); !typed || incomplete == "true" {
					continue
				}
				if failed != "" {
					u.refuse(e.Message, failed)
					continue
				}
				u.texts++
				if len(reader.Message(e.Message)) > 0 {
					u.seen++
				}
			}
			out[sourceKey{v.Name, i}] = u
		}
	}
	return out, nil
}

func (x *Examination) protocols(f *runFiles) {
	type count struct {
		all, unknown   int
		between        int    // messages of data between nodes
		opaque         int    // messages of TLS or SSH
		asked          int    // messages that begin as requests of HTTP do, to a reader of anything
		bytes, endless [2]int // to the port and from it: all; in messages that have no end
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
					c.asked++
				}
				if m.Bytes > 0 && slices.Contains(f.target.Nodes, m.From) && slices.Contains(f.target.Nodes, m.To) {
					c.between++
				}
				c.bytes[dir] += m.Bytes
				if torn, _ := m.Field("incomplete"); torn == "true" {
					c.endless[dir] += m.Bytes
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
			x.fact("%s: no message was seen: it is spoken with %s", at, p.When)
		case c.all == 0 && p.Optional:
			x.fact("%s: no message was seen: it is not spoken in every run", at)
		case c.all == 0:
			x.problem("%s: no message was seen: is the port right, and does the workload use it?", at)
		case float64(c.unknown) > unknownShare*float64(c.all) && p.Dissector != classify.NameFallback:
			x.problem("%s: %d of %d messages are of no known type: is the reader right? Most are %s", at, c.unknown, c.all, commonest(c.types, c.all))
		default:
			x.fact("%s: %d messages, most are %s", at, c.all, commonest(c.types, c.all))
		}
		encrypted := fmt.Sprintf("%s: %d of %d messages are encrypted: netsplit sees when they are sent and how long they are, and reads no variable from them; for tests, let nodes speak without TLS", at, c.opaque, c.all)
		switch {
		case p.Dissector == classify.NameTLS || 2*c.opaque <= c.all:
		case p.Dissector == classify.NameFallback:
			x.fact("%s", encrypted)
		default:
			x.problem("%s", encrypted)
		}
		switch {
		case p.Dissector == classify.NameFallback && c.asked > 0:
			x.fact("%s: %d messages begin as requests of HTTP do: reader %s tells more, %s where answers go on as long as their connection", at, c.asked, classify.NameHTTP, classify.NameHTTPStream)
		case p.Dissector == classify.NameFallback && p.Transport == "tcp" && c.between > 0 && !p.Optional:
			x.fact("%s: nodes speak to one another there (%d messages), and what one says is known when the other speaks next, which across a cut it seldom does: "+
				"little is then there to heal at but what is sent again and connections that are opened; reader %s reads binary messages that tell their length, reader %s lines, with the bytes that some of them count (what to write is below, if it was found)", at, c.between, classify.NameFrames, classify.NameText)
		case p.Dissector == classify.NameHTTP && float64(c.endless[0]+c.endless[1]) > endlessShare*float64(c.bytes[0]+c.bytes[1]):
			x.fact("%s: %d %% of what was said is in bodies without an end: reader %s tells their messages apart, if they are sent in chunks", at, 100*(c.endless[0]+c.endless[1])/(c.bytes[0]+c.bytes[1]), classify.NameHTTPStream)
		}
		for dir, who := range []string{"to", "from"} {
			if p.Dissector == classify.NameFrames && float64(c.endless[dir]) > endlessShare*float64(c.bytes[dir]) {
				x.problem("%s: %d %% of what was said %s the port is in messages that never ended: is their length elsewhere, or do connections begin with messages of another layout (frames.first)?", at, 100*c.endless[dir]/c.bytes[dir], who)
			}
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
	ok, failed, why := map[string]int{}, map[string]int{}, map[string]reasons{}
	for _, h := range f.history {
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
			x.fact("workload %s: no operation: it has something to do with %s", w.Name, w.When)
			continue
		}
		if ok[w.Name] == 0 {
			x.problem("workload %s: no operation succeeded (%d failed)%s; what it printed on standard error is in %s-%s.log", w.Name, failed[w.Name], why[w.Name], w.Host, w.Name)
			continue
		}
		x.fact("workload %s: %d operations succeeded, %d did not%s", w.Name, ok[w.Name], failed[w.Name], why[w.Name])
	}
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

// reasonsTold is how many of them are told, the commonest first.
const reasonsTold = 3

// String is ": " and the reasons, or "" for none.
func (r reasons) String() string {
	keys := slices.SortedFunc(maps.Keys(r), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(r[b].n, r[a].n), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	var out []string
	for _, k := range keys[:min(len(keys), reasonsTold)] {
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
