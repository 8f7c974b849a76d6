package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsplit/inference/state"
	"netsplit/model"
)

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
				x.fact("variable %s was not observed: it needs %s", v.Name, v.When)
			}
			continue
		}
		some := slices.Sorted(maps.Keys(values[v.Name]))
		x.fact("variable %s: %d observations on %v, %d values: %.100s", v.Name, seen[v.Name], slices.Sorted(maps.Keys(hosts[v.Name])), len(some), strings.Join(some, " "))
		if len(some) > 1 {
			continue
		}
		if under && some[0] == model.Absent && !mayBeAbsent(v) {
			x.problem("variable %s was always absent: no pattern of a source with absent_for matched: does it read the right thing? If it needs a setting, write when; if it does not occur in every run, optional: true", v.Name)
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
			x.problem("variable %s had the value %q throughout, and source %d of it showed no value: does it read the right thing? If it does not occur in every run, write optional: true", v.Name, some[0], silent+1)
		} else {
			x.fact("variable %s had the value %q throughout: these settings never change it, so it shows no agreement", v.Name, some[0])
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
		case s.Requested > 0 && s.Answered == 0 && idle[s.Host]:
			x.fact("%s: the probe never answered: no server was started there", at)
		case s.Requested > 0 && s.Answered == 0 && optional[sourceKey{s.Variable, s.Source}] && uses[sourceKey{s.Variable, s.Source}].texts > 0:
			x.fact("%s: the probe never answered, but did elsewhere: %s", at, s.Error)
		case s.Requested > 0 && s.Answered == 0:
			x.problem("%s: the probe never answered (asked %d times): %s", at, s.Requested, s.Error)
		case s.Answered > 0 && s.Seen == 0:
			x.fact("%s: %d answers, none showed a value; the last one: %q", at, s.Answered, s.Answer)
		}
	}
	for _, v := range f.target.Variables {
		told := map[string]bool{}
		for i, src := range v.Sources {
			u := uses[sourceKey{v.Name, i}]
			if src.Optional || !v.When.Under(f.target.Args) {
				continue
			}
			switch {
			case src.Probe != nil || u.texts > 0:
			case u.refused > 0:
				x.fact("variable %s, source %d: %d messages had type %q, but where matched none: %s", v.Name, i+1, u.refused, src.Type, u.failing())
			case !told[src.Type]:
				told[src.Type] = true
				x.fact("variable %s, source %d: no message had type %q%s", v.Name, i+1, src.Type, f.nearest(src.Type))
			}
			if u.texts == 0 || u.seen > 0 || src.Value != "" {
				continue
			}
			what := "answers"
			if src.Probe == nil {
				what = "messages of its type"
			}
			x.problem("variable %s, source %d: none of %d %s showed a value%s; does it read the right thing? If it does not occur in every run, write optional: true", v.Name, i+1, u.texts, what, u.without(src.Field))
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
	fields map[string]bool // of the messages for which where holds
}

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

func (u *sourceUse) failing() string {
	var out []string
	for _, field := range slices.Sorted(maps.Keys(u.others)) {
		out = append(out, fmt.Sprintf("field %s was %s", field, strings.Join(u.others[field], ", ")))
	}
	return strings.Join(out, "; ")
}

func (u *sourceUse) has(m *model.Message) {
	if u.fields == nil {
		u.fields = map[string]bool{}
	}
	for _, f := range m.Fields {
		u.fields[f.Name] = true
	}
}

// without says that no message had the field that a source reads, and which
// ones they had; "" if one had it.
func (u *sourceUse) without(field string) string {
	if field == "" || u.fields[field] {
		return ""
	}
	names := slices.Sorted(maps.Keys(u.fields))
	if len(names) == 0 {
		return fmt.Sprintf(": neither field %s nor any other was there", field)
	}
	more := ""
	if len(names) > 12 {
		names, more = names[:12], ", …"
	}
	return fmt.Sprintf(": field %s was missing; there were %s%s", field, strings.Join(names, ", "), more)
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
				u.has(e.Message)
				if len(reader.Message(e.Message)) > 0 {
					u.seen++
				}
			}
			out[sourceKey{v.Name, i}] = u
		}
	}
	return out, nil
}
