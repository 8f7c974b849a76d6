package sut

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/explorer/check"
	"netsplit/inference/classify"
	"netsplit/model"
)

var nameRE = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]*$`)

// validator checks what the schema cannot: names that must be declared,
// patterns that must compile, templates that must expand.
type validator struct {
	*schema
	t     *model.Target
	hosts []model.NodeID
}

func validate(t *model.Target, s *schema) {
	v := &validator{schema: s, t: t}
	v.hostNames()
	v.args()
	v.protocols()
	v.processes()
	v.conditions()
	v.variables()
	v.workloads()
	v.checks()
	v.rest()
	v.software()
	v.template()
	v.logs()
	v.known()
	v.scripts()
	v.rights("", t.Rights)
	if len(s.problems) == 0 {
		v.expansion()
	}
}

func (v *validator) hostNames() {
	if v.t.Name == "" {
		v.addf("name", "the target has no name: give one, such as name: my-system")
	} else if !nameRE.MatchString(v.t.Name) {
		v.addf("name", "%q: use letters, digits, - and _", v.t.Name)
	}
	if len(v.t.Nodes) == 0 {
		v.addf("nodes", "no nodes: list the hosts that run server processes, such as nodes: [n1, n2, n3]")
	}
	seen := map[model.NodeID]string{}
	add := func(key string, hosts []model.NodeID) {
		for i, h := range hosts {
			at := fmt.Sprintf("%s[%d]", key, i)
			if !nameRE.MatchString(string(h)) {
				v.addf(at, "host name %q: use letters, digits, - and _", h)
			}
			if first, dup := seen[h]; dup {
				v.addf(at, "host %q is declared already at %s: a host is one node or one client", h, first)
				continue
			}
			seen[h] = at
			v.hosts = append(v.hosts, h)
		}
	}
	add("nodes", v.t.Nodes)
	add("clients", v.t.Clients)
	for _, h := range slices.Sorted(maps.Keys(v.t.Labels)) {
		at := fmt.Sprintf("labels.%s", h)
		v.declared(at, h)
		for _, name := range slices.Sorted(maps.Keys(v.t.Labels[h])) {
			if !model.Labelling(name) {
				v.addf(at, "label %q: %s", name, model.WantLabelling)
			}
		}
	}
}

func (v *validator) declared(at string, hosts ...model.NodeID) {
	for i, h := range hosts {
		if slices.Contains(v.hosts, h) {
			continue
		}
		p := at
		if len(hosts) > 1 {
			p = fmt.Sprintf("%s[%d]", at, i)
		}
		names := make([]string, len(v.hosts))
		for i, h := range v.hosts {
			names[i] = string(h)
		}
		v.addf(p, "host %q is not declared%s: add it to nodes or clients, which have %s", h, DidYouMean(string(h), names), orNone(names))
	}
}

// unique reports names that are empty or occur twice in a list.
func (v *validator) unique(key, what string, n int, name func(int) string) {
	seen := map[string]int{}
	for i := range n {
		at := fmt.Sprintf("%s[%d]", key, i)
		s := name(i)
		if s == "" {
			v.addf(at, "the %s has no name: give one", what)
			continue
		}
		if !nameRE.MatchString(s) {
			v.addf(at+".name", "%q: use letters, digits, - and _", s)
		}
		if first, dup := seen[s]; dup {
			v.addf(at+".name", "%s %q stands twice (first at %s[%d]): give each a name of its own", what, s, key, first)
			continue
		}
		seen[s] = i
	}
}

func (v *validator) args() {
	for _, k := range slices.Sorted(maps.Keys(v.t.Args)) {
		if !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(k) {
			v.addf("args."+k, "setting name %q: use letters, digits and _, since templates write .Args.%s", k, k)
		}
	}
}

func (v *validator) protocols() {
	seen := map[string]int{}
	for i, p := range v.t.Protocols {
		at := fmt.Sprintf("protocols[%d]", i)
		if p.Port == 0 {
			v.addf(at+".port", "want a port from 1 to 65535")
		}
		if p.Transport != "tcp" && p.Transport != "udp" {
			v.addf(at+".transport", "unknown transport %q: use tcp or udp", p.Transport)
		}
		if known := classify.Names(); !slices.Contains(known, p.Dissector) {
			v.addf(at+".dissector", "unknown dissector %q%s: use %s", p.Dissector, DidYouMean(p.Dissector, known), strings.Join(known, ", "))
		} else if _, err := classify.New(p); err != nil {
			where := at + ".dissector"
			switch {
			case p.Frames != nil:
				where = at + ".frames"
			case p.Lines != nil:
				where = at + ".lines"
			}
			v.addf(where, "%s", model.OneLine(err.Error()))
		}
		v.when(at+".when", p.When)
		k := fmt.Sprintf("%s port %d", p.Transport, p.Port)
		if first, dup := seen[k]; dup {
			v.addf(at, "%s stands twice (first at protocols[%d]): keep one", k, first)
			continue
		}
		seen[k] = i
	}
}

// when reports settings that the target does not have.
func (v *validator) when(at string, w model.When) {
	names := slices.Sorted(maps.Keys(v.t.Args))
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if _, ok := v.t.Args[k]; !ok {
			v.addf(at+"."+k, "no setting %q%s: args has %s", k, DidYouMean(k, names), orNone(names))
		} else if len(w[k]) == 0 {
			v.addf(at+"."+k, "no values: list those of setting %s under which it belongs to a run, such as [%s]", k, v.t.Args[k].Default)
		}
	}
}

func (v *validator) processes() {
	if len(v.t.Processes) == 0 {
		v.addf("processes", "no processes: a target runs at least one server process")
	}
	v.unique("processes", "process", len(v.t.Processes), func(i int) string { return v.t.Processes[i].Name })
	var names []string
	for _, c := range v.t.Stable {
		names = append(names, c.Name)
	}
	for i, p := range v.t.Processes {
		at := fmt.Sprintf("processes[%d]", i)
		if len(p.Hosts) == 0 {
			v.addf(at+".hosts", "process %q has no hosts: say where it runs", p.Name)
		}
		v.declared(at+".hosts", p.Hosts...)
		v.command(at+".command", p.Command)
		v.rights(at+".", p.Rights)
		for _, f := range slices.Sorted(maps.Keys(p.Files)) {
			if !filepath.IsLocal(f) {
				v.addf(at+".files."+f, "file name %q must stay inside the host's directory: use a relative path without ..", f)
			}
		}
		if p.Once && p.Manual {
			v.addf(at+".manual", "process %q cannot be once (a command of the set-up) and manual (started by a workload): keep one", p.Name)
		}
		if p.Once && p.MayExit {
			v.addf(at+".may_exit", "process %q is once, so it must end with status 0: leave out may_exit", p.Name)
		}
		if p.Manual && len(p.After) > 0 {
			v.addf(at+".after", "process %q is manual, so its workload says when it starts: leave out after", p.Name)
		}
		if (p.Manual || p.Once) && len(p.InTurn) > 0 {
			v.addf(at+".in_turn", "process %q is manual or once: in_turn is for servers that the run starts; leave it out", p.Name)
		}
		for _, list := range []struct {
			key   string
			names []string
		}{{"after", p.After}, {"in_turn", p.InTurn}} {
			for j, a := range list.names {
				if !slices.Contains(names, a) {
					v.addf(fmt.Sprintf("%s.%s[%d]", at, list.key, j), "no condition %q%s: stable has %s", a, DidYouMean(a, names), orNone(names))
				}
			}
		}
	}
}

var userRE = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// rights checks what something may do; at ends in a dot, or is "" for the target.
func (v *validator) rights(at string, r model.Rights) {
	if r.User != "" && !userRE.MatchString(r.User) {
		v.addf(at+"user", "%q: name a user of the machine, such as root", r.User)
	}
	all := model.Capabilities()
	for i, c := range r.Capabilities {
		if !slices.Contains(all, c) {
			v.addf(fmt.Sprintf("%scapabilities[%d]", at, i), "no capability %q%s: write them as net_bind_service (capabilities(7))", c, DidYouMean(c, all))
		}
	}
}

func (v *validator) command(at string, c []string) {
	if len(c) == 0 || c[0] == "" {
		v.addf(at, "no command: give a list, such as [redis-server, redis.conf]")
	}
}

func (v *validator) probe(at string, p model.Probe) {
	p.Check(func(key, format string, args ...any) { v.addf(strings.TrimSuffix(at+"."+key, "."), format, args...) })
}

// regexp checks a pattern; groups, where given, lists the group names allowed.
func (v *validator) regexp(at, pattern string, groups []string) *regexp.Regexp {
	if strings.Contains(pattern, "{{") {
		return nil // checked when expanded
	}
	for _, p := range patternProblems(pattern, groups) {
		v.addf(at, "%s", p)
	}
	re, _ := regexp.Compile(pattern)
	return re
}

func patternProblems(pattern string, groups []string) []string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return []string{model.WrongPattern(err).Error()}
	}
	var out []string
	for _, g := range re.SubexpNames() {
		if g != "" && groups != nil && !slices.Contains(groups, g) {
			out = append(out, fmt.Sprintf("unknown group %q%s: groups here are named %s", g, DidYouMean(g, groups), strings.Join(groups, ", ")))
		}
	}
	return out
}

func (v *validator) conditions() {
	if len(v.t.Stable) == 0 {
		v.addf("stable", "no stable conditions: say how to see that the target is ready (an open port is not enough)")
	}
	v.conditionsOf("stable", v.t.Stable)
	v.quiesce()
	v.points()
}

func (v *validator) conditionsOf(key string, all []model.Condition) {
	v.unique(key, "condition", len(all), func(i int) string { return all[i].Name })
	for i, c := range all {
		at := fmt.Sprintf("%s[%d]", key, i)
		if len(c.Hosts) == 0 {
			v.addf(at+".hosts", "condition %q has no hosts: say where it is probed", c.Name)
		}
		v.declared(at+".hosts", c.Hosts...)
		v.probe(at+".probe", c.Probe)
		if c.Match == "" {
			v.addf(at+".match", "condition %q has no match: give the regular expression that its answer must match", c.Name)
		}
		v.regexp(at+".match", c.Match, []string{"same"})
	}
}

func (v *validator) variables() {
	v.unique("variables", "variable", len(v.t.Variables), func(i int) string { return v.t.Variables[i].Name })
	for i, vr := range v.t.Variables {
		at := fmt.Sprintf("variables[%d]", i)
		if vr.Kind == "" {
			v.addf(at+".kind", "variable %q has no kind: give one, such as leader, role or term; only variables of one kind are compared", vr.Name)
		}
		if vr.As != "" && vr.As != "host" && vr.As != "ordinal" {
			v.addf(at+".as", "unknown form %q: use host (addresses become host names) or ordinal (ids become #1, #2, …), or leave it out", vr.As)
		}
		for _, from := range slices.Sorted(maps.Keys(vr.Same)) {
			if to := vr.Same[from]; vr.Same[to] != "" {
				v.addf(at+".same", "%s becomes %s, and %s becomes %s: write %s for both", from, to, to, vr.Same[to], vr.Same[to])
			}
		}
		if len(vr.Gone) > 0 && !slices.ContainsFunc(vr.Sources, func(s model.VarSource) bool { return s.About != "" || strings.Contains(s.Regexp, "(?P<about>") }) {
			v.addf(at+".gone", "gone is said of an instance, and variable %q has none: add a group named about to a regexp, or about: $self", vr.Name)
		}
		if vr.MaxAge <= 0 {
			v.addf(at+".max_age", "variable %q has no max_age: say how old an observation may be and still count, such as 1s", vr.Name)
		}
		if len(vr.Sources) == 0 {
			v.addf(at+".sources", "variable %q has no sources: say which message or probe shows it", vr.Name)
		}
		v.when(at+".when", vr.When)
		for j, src := range vr.Sources {
			v.source(fmt.Sprintf("%s.sources[%d]", at, j), src)
		}
	}
}

// hostWord is what stands for a host in value and about.
var hostWord = regexp.MustCompile(`\$[A-Za-z]+`)

func (v *validator) source(at string, src model.VarSource) {
	re := v.regexp(at+".regexp", src.Regexp, []string{"value", "about", "epoch", "of"})
	for _, field := range slices.Sorted(maps.Keys(src.Where)) {
		v.regexp(at+".where."+field, src.Where[field], nil)
	}
	switch {
	case (src.Type != "") == (src.Probe != nil):
		v.addf(at, "a source has either type (a message) or probe")
	case src.Probe != nil:
		v.probe(at+".probe", *src.Probe)
		v.declared(at+".hosts", src.Hosts...)
		if src.Every <= 0 {
			v.addf(at+".every", "a probed source needs an interval, such as every: 200ms")
		} else if src.Every < 10*time.Millisecond {
			v.addf(at+".every", "%s is too often: use 10ms or more", src.Every)
		}
		if src.Field != "" || src.Of != "" || len(src.Where) > 0 {
			v.addf(at, "field, where and of go with type only")
		}
	default:
		if src.Field == "" && src.Value == "" {
			v.addf(at, "a message source needs field (what to read) or value (what it means)")
		}
		if src.Field == "" && src.Regexp != "" {
			v.addf(at+".regexp", "regexp without field: say which field of the message it reads")
		}
		v.framesFields(at, src)
		if src.Of != "" && src.Of != "sender" && src.Of != "receiver" {
			v.addf(at+".of", "unknown end %q: use sender or receiver", src.Of)
		}
		if len(src.Hosts) > 0 || src.Every != 0 {
			v.addf(at, "hosts and every go with probe only")
		}
	}
	if src.Tells != "" && src.Tells != model.TellsChanges {
		v.addf(at+".tells", "unknown %q: use %s if the source's messages show each change of the variable, or leave it out", src.Tells, model.TellsChanges)
	}
	if src.Tells != "" && src.Probe != nil {
		v.addf(at+".tells", "a probe asks at intervals and misses changes in between: tells goes with type only")
	}
	if src.About != "" && re != nil && slices.Contains(re.SubexpNames(), "about") {
		v.addf(at+".about", "about %q and a group named about in regexp: keep one of them", src.About)
	}
	for _, word := range hostWord.FindAllString(src.Value+" "+src.About, -1) {
		if words := []string{"$sender", "$receiver", "$self"}; !slices.Contains(words, word) {
			v.addf(at, "unknown %s%s: use $sender, $receiver or $self", word, DidYouMean(word, words))
		}
	}
	for _, word := range []string{"$sender", "$receiver"} {
		if src.Probe != nil && strings.Contains(src.Value+" "+src.About, word) {
			v.addf(at, "a probe has no %s: use $self", word)
		}
	}
	if re != nil && slices.Contains(re.SubexpNames(), "epoch") && !slices.Contains(re.SubexpNames(), "about") {
		v.addf(at+".regexp", "a group named epoch tells instances apart: it needs a group named about beside it")
	}
	if src.AbsentFor != "" {
		if re != nil && !slices.Contains(re.SubexpNames(), "about") {
			v.addf(at+".absent_for", "absent_for needs a regexp with a group named about")
		}
		names := strings.FieldsFunc(src.AbsentFor, func(r rune) bool { return r == ',' || r == ' ' })
		// Hosts, or other things: where one is a host, one that is none is a typo.
		isHost := func(n string) bool { return slices.Contains(v.hosts, model.NodeID(n)) }
		if slices.ContainsFunc(names, isHost) {
			for _, n := range names {
				if n == "nodes" || n == "named" {
					continue
				}
				v.declared(at+".absent_for", model.NodeID(n))
			}
		}
	}
}

// framesFields checks what a source wants of messages whose fields the file
// names itself.
func (v *validator) framesFields(at string, src model.VarSource) {
	if kind, _, _ := strings.Cut(src.Type, " "); kind != "frame" {
		return
	}
	fields := map[string]bool{}
	for _, p := range v.t.Protocols {
		if p.Frames != nil {
			for name := range p.Frames.Fields {
				fields[name] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(fields))
	check := func(at, name string) {
		if !fields[name] {
			v.addf(at, "reader frames finds no field %q%s: the protocols' frames have %s", name, DidYouMean(name, names), cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	if src.Field != "" {
		check(at+".field", src.Field)
	}
	for _, name := range slices.Sorted(maps.Keys(src.Where)) {
		check(at+".where."+name, name)
	}
}

func (v *validator) workloads() {
	if len(v.t.Workloads) == 0 && len(v.t.Operations) == 0 {
		v.addf("workloads", "no workloads: add a process on a client host, or operations for scripts")
	}
	all := slices.Concat(v.t.Workloads, v.t.Final)
	n := len(v.t.Workloads)
	v.unique("workloads", "workload", n, func(i int) string { return v.t.Workloads[i].Name })
	v.unique("final", "workload", len(v.t.Final), func(i int) string { return v.t.Final[i].Name })
	for i, w := range all {
		at := fmt.Sprintf("workloads[%d]", i)
		if i >= n {
			at = fmt.Sprintf("final[%d]", i-n)
			if slices.ContainsFunc(v.t.Workloads, func(o model.Workload) bool { return o.Name == w.Name }) {
				v.addf(at+".name", "workload %q stands in workloads too: give each a name of its own", w.Name)
			}
		}
		if w.Host == "" {
			v.addf(at+".host", "workload %q has no host: say on which client it runs", w.Name)
		} else {
			v.declared(at+".host", w.Host)
		}
		v.command(at+".command", w.Command)
		v.when(at+".when", w.When)
	}
}

func (v *validator) checks() {
	for i, c := range v.t.Checks {
		at := fmt.Sprintf("checks[%d]", i)
		if !slices.Contains(check.Names(), c.Name) {
			v.addf(at+".name", "unknown check %q%s: there are %s", c.Name, DidYouMean(c.Name, check.Names()), strings.Join(check.Names(), ", "))
		}
		switch c.Class {
		case model.Broken:
		case model.Documented:
			if c.Quote == "" {
				v.addf(at+".quote", "a documented failure needs quote: the sentence of the documentation that admits it")
			}
		default:
			v.addf(at+".class", "unknown class %q: use broken or documented", c.Class)
		}
		v.when(at+".when", c.When)
		for j, o := range v.t.Checks[:i] {
			if o.Name == c.Name && maps.Equal(o.With, c.With) && maps.EqualFunc(o.When, c.When, slices.Equal) { // other settings are another promise
				v.addf(at+".name", "check %q stands twice (first at checks[%d]): keep one, or give them different settings", c.Name, j)
				break
			}
		}
	}
}

func (v *validator) rest() {
	if v.t.Relations != "" && !filepath.IsLocal(v.t.Relations) {
		v.addf("relations", "%q must stand beside the target file: use a relative path without ..", v.t.Relations)
	}
	for _, d := range []struct {
		key  string
		have time.Duration
		what string
	}{
		{"settle", v.t.Timing.Settle, "how long the target may take to be stable after its start"},
		{"workload", v.t.Timing.Workload, "how long the workload runs"},
		{"max_cut", v.t.Timing.MaxCut, "the longest partition"},
		{"recover", v.t.Timing.Recover, "how long the target may take to be stable again after heal"},
	} {
		if d.have <= 0 {
			v.addf("timing."+d.key, "missing: say %s, such as 10s", d.what)
		}
	}
	if v.t.Timing.Repair < 0 {
		v.addf("timing.repair", "%v is negative: give the time after heal that the target's own repair may take, or leave it out (recover)", v.t.Timing.Repair)
	}
	if tick, most := v.t.Timing.Tick, v.t.Timing.MaxCut; tick > most && most > 0 {
		v.addf("timing.tick", "%v is longer than max_cut (%v), and a cut ends at a tick: give %v or less", tick, most, most)
	}
	for _, prog := range slices.Sorted(maps.Keys(v.t.Needs)) {
		if v.t.Needs[prog] == "" {
			v.addf("needs."+prog, "name the Debian package that has %s", prog)
		}
	}
}

// expansion fills every template with made-up values, for every host, release
// and stage, and checks the patterns and settings that come out.
func (v *validator) expansion() {
	args, _ := Args(v.t, nil)
	in := ExpandInput{Dir: "/tmp/d", TargetDir: "/tmp/t", Bin: "/tmp/b", Seed: 1, RunStart: time.Unix(1, 0), Hosts: map[model.NodeID]netip.Addr{},
		Lib: "/tmp/l", Files: "/tmp/f", Java: "/tmp/j/bin/java", JavaHome: "/tmp/j", Cache: "/tmp/c", Netsplit: "/tmp/n", Work: "/tmp/w"}
	for i, h := range v.hosts {
		in.Hosts[h] = netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i%250)})
	}
	releases := []string{""}
	if v.t.Software != nil {
		releases = v.t.Software.Versions
	}
	said := map[string]bool{} // once, not once per host
	sayAt := func(at string, line int, text string) {
		if !said[at+text] {
			v.addfIn(at, line, "%s", text)
		}
		said[at+text] = true
	}
	say := func(at, text string) { sayAt(at, 1, text) }
	for _, in.Version = range releases {
		for _, in.Building = range []bool{false, true} {
			x := &expander{v: values(v.t, in, args)}
			v.expand(x, say)
			seen := map[string]bool{}
			for _, e := range x.errs {
				if !seen[e.path] {
					sayAt(e.path, e.line, "template: "+e.text)
				}
				seen[e.path] = true
			}
		}
	}
}

func (v *validator) expand(x *expander, say func(at, text string)) {
	for i, c := range v.t.Checks {
		c.With = x.mapping(fmt.Sprintf("checks[%d].with", i), c.With)
		for _, p := range check.Settings(c, v.t.Variables) {
			text := p.Text
			if p.Name != "" {
				text += DidYouMean(p.Name, p.Has) + ": it has " + orNone(p.Has)
			}
			say(fmt.Sprintf("checks[%d].with.%s", i, p.Setting), text)
		}
	}
	for _, h := range v.hosts {
		x.v.Host, x.v.IP = string(h), x.v.IPs[string(h)]
		var out model.Target
		x.host(v.t, &out)
		v.expandScripts(x, say)
		for _, c := range out.Stable {
			for i, o := range v.t.Stable {
				if o.Name != c.Name || !strings.Contains(o.Match, "{{") {
					continue
				}
				for _, p := range patternProblems(c.Match, []string{"same"}) {
					say(fmt.Sprintf("stable[%d].match", i), p)
				}
			}
		}
	}
}
