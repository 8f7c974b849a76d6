package state

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/model"
)

// typeCache bounds how many message types are remembered with the sources
// that read them.
const typeCache = 4096

// Extractor reads variables out of messages and probe answers, as the
// variables of a target file say (model.Variable, model.VarSource).
//
// Rules beyond those of the file format:
//   - only nodes have variables: what a client says or is told is not observed;
//   - the first source in file order that gives a variable wins, and in one
//     source the first match;
//   - a match in which a group named value or about takes no part, or about is
//     empty, shows nothing;
//   - an about that is the address of a host becomes the name of that host;
//   - a text that was cut (it ends in "…") shows what it holds, but nothing
//     that is missing in it is observed as absent; a message with the field
//     incomplete=true shows nothing;
//   - with absent_for: named, what is named for the first time was absent in what
//     the other nodes said last, as long as that is fresh; what the text itself shows
//     of them comes behind it.
type Extractor struct {
	hosts map[netip.Addr]model.NodeID
	nodes []model.NodeID // sorted
	vars  map[string]*variable
	order []*variable
	types map[string][]*source // by message type
	// ordinals holds, by kind, the values of variables that are read as
	// ordinals in the order in which they first appeared.
	ordinals map[string]map[string]int
	// epochs numbers, over all variables, what groups named epoch matched.
	epochs map[string]int
}

type variable struct {
	name, kind string
	named      *named            // nil: no source wants it
	host       bool              // values are hosts
	ordinal    bool              // values are numbered as they appear
	same       map[string]string // values that mean another one
	sources    []*source
}

type source struct {
	v        *variable
	index    int
	typ      *regexp.Regexp // nil: a probe
	field    string
	where    []condition // on other fields
	receiver bool
	lasts    bool // model.TellsChanges
	re       *regexp.Regexp
	value    []int // groups of the name, by alternatives; none: the whole match
	about    []int
	epoch    []int
	of       []int // groups that name whose value it is
	constant string
	replace  bool   // constant replaces the value
	whom     string // about for all values; "": the group says, or nobody
	absent   []string
	named    bool // and whatever the variable was said to be about
}

// NewExtractor checks and compiles the variables. The error names the
// variable and source and says what is allowed.
func NewExtractor(hosts []model.TestbedHost, nodes []model.NodeID, vars []model.Variable) (*Extractor, error) {
	e := &Extractor{hosts: map[netip.Addr]model.NodeID{}, vars: map[string]*variable{}, types: map[string][]*source{},
		ordinals: map[string]map[string]int{}, epochs: map[string]int{}}
	for _, h := range hosts {
		e.hosts[h.IP.Unmap()] = h.Name
	}
	e.nodes = slices.Sorted(slices.Values(nodes))
	for _, mv := range vars {
		v := &variable{name: mv.Name, kind: mv.Kind, host: mv.As == "host", ordinal: mv.As == "ordinal", same: mv.Same}
		switch {
		case mv.Name == "":
			return nil, fmt.Errorf("variable without a name: give it one")
		case mv.Kind == "":
			return nil, fmt.Errorf("variable %s: no kind: name what it is about, only variables of one kind are compared", mv.Name)
		case mv.As != "" && mv.As != "host" && mv.As != "ordinal":
			return nil, fmt.Errorf("variable %s: unknown as %q: leave it out or use host or ordinal", mv.Name, mv.As)
		case e.vars[mv.Name] != nil:
			return nil, fmt.Errorf("variable %s: defined twice: put all its sources in one definition", mv.Name)
		case len(mv.Sources) == 0:
			return nil, fmt.Errorf("variable %s: no sources: say where it shows", mv.Name)
		}
		for i, ms := range mv.Sources {
			s, err := e.compile(v, i, ms, mv.MaxAge)
			if err != nil {
				return nil, fmt.Errorf("variable %s, source %d: %w", mv.Name, i+1, err)
			}
			v.sources = append(v.sources, s)
		}
		e.vars[mv.Name] = v
		e.order = append(e.order, v)
	}
	return e, nil
}

// word is what stands for a host in a value or about.
var word = regexp.MustCompile(`\$[A-Za-z]+`)

func (e *Extractor) compile(v *variable, index int, ms model.VarSource, maxAge time.Duration) (*source, error) {
	s := &source{v: v, index: index, field: ms.Field, constant: ms.Value, replace: ms.Value != "", whom: ms.About, lasts: ms.Tells == model.TellsChanges}
	switch {
	case ms.Type == "" && ms.Probe == nil:
		return nil, fmt.Errorf("neither type nor probe: name a message type or a probe")
	case ms.Type != "" && ms.Probe != nil:
		return nil, fmt.Errorf("type and probe: make it two sources")
	case ms.Probe != nil && (ms.Field != "" || ms.Of != "" || len(ms.Where) > 0):
		return nil, fmt.Errorf("field, where and of belong to messages, not to a probe")
	case ms.Type != "" && ms.Field == "" && ms.Value == "":
		return nil, fmt.Errorf("neither field nor value: say what to read from the message")
	case ms.Field == "" && ms.Regexp != "" && ms.Probe == nil:
		return nil, fmt.Errorf("regexp without field: say what it reads")
	case ms.Probe != nil && (strings.Contains(ms.Value+ms.About, "$sender") || strings.Contains(ms.Value+ms.About, "$receiver")):
		return nil, fmt.Errorf("value %q, about %q: a probe has no sender and receiver: use $self", ms.Value, ms.About)
	}
	switch {
	case ms.Tells != "" && ms.Tells != model.TellsChanges:
		return nil, fmt.Errorf("unknown tells %q: leave it out or use %s", ms.Tells, model.TellsChanges)
	case ms.Tells != "" && ms.Probe != nil:
		return nil, fmt.Errorf("tells %s: a probe asks now and then, so it cannot tell every change", ms.Tells)
	}
	for _, w := range word.FindAllString(ms.Value+" "+ms.About, -1) {
		if w != "$sender" && w != "$receiver" && w != "$self" {
			return nil, fmt.Errorf("unknown %s: use $sender, $receiver or $self", w)
		}
	}
	switch ms.Of {
	case "", "sender":
	case "receiver":
		s.receiver = true
	default:
		return nil, fmt.Errorf("unknown of %q: use sender or receiver", ms.Of)
	}
	if ms.Type != "" {
		s.typ = typePattern(ms.Type)
	}
	var err error
	if s.where, err = conditions(ms.Where); err != nil {
		return nil, err
	}
	if ms.Regexp != "" {
		re, err := regexp.Compile(ms.Regexp)
		if err != nil {
			return nil, fmt.Errorf("regexp: %w", err)
		}
		s.re = re
		for i, name := range re.SubexpNames() {
			switch name {
			case "value":
				s.value = append(s.value, i)
			case "about":
				s.about = append(s.about, i)
			case "epoch":
				s.epoch = append(s.epoch, i)
			case "of":
				s.of = append(s.of, i)
			}
		}
	}
	if len(s.epoch) > 0 && len(s.about) == 0 {
		return nil, fmt.Errorf("a group named epoch tells instances apart: it needs a group named about beside it")
	}
	if len(s.about) > 0 && ms.About != "" {
		return nil, fmt.Errorf("about %q and a group named about: keep one of them", ms.About)
	}
	if ms.AbsentFor != "" {
		if len(s.about) == 0 {
			return nil, fmt.Errorf("absent_for needs a regexp with a group named about")
		}
		for _, a := range strings.FieldsFunc(ms.AbsentFor, func(c rune) bool { return c == ' ' || c == ',' }) {
			switch a {
			case "named":
				s.named = true
				if v.named == nil {
					v.named = &named{maxAge: maxAge, all: map[string]time.Duration{}, last: map[model.NodeID]model.Observation{}}
				}
			case "nodes":
				for _, n := range e.nodes {
					s.absent = append(s.absent, string(n))
				}
			default:
				s.absent = append(s.absent, a)
			}
		}
	}
	return s, nil
}

// typePattern compiles a pattern over message types: "*" matches any text.
func typePattern(pattern string) *regexp.Regexp {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
}

// Message returns what a message reveals behind what it shows to have been absent
// before: first of its sender, who knew it before he sent, then of others, each
// sorted by variable.
func (e *Extractor) Message(m *model.Message) []model.Observation {
	ss, ok := e.types[m.Type]
	if !ok {
		for _, v := range e.order {
			for _, s := range v.sources {
				if s.typ != nil && s.typ.MatchString(m.Type) {
					ss = append(ss, s)
				}
			}
		}
		if len(e.types) < typeCache {
			e.types[m.Type] = ss
		}
	}
	if len(ss) == 0 {
		return nil
	}
	if v, _ := m.Field("incomplete"); v == "true" {
		return nil
	}
	var found, before []model.Observation
	for _, s := range ss {
		if failed(s.where, m) != "" {
			continue
		}
		node := m.From
		if s.receiver {
			node = m.To
		}
		text, ok := "", true
		if s.field != "" {
			text, ok = m.Field(s.field)
		}
		if !ok {
			continue
		}
		now, was := e.read(s, text, node, m.From, m.To, model.Observation{At: m.At, Message: m.Num, Lasts: s.lasts})
		found, before = append(found, now...), append(before, was...)
	}
	out, later := first(before), []model.Observation(nil)
	for _, o := range first(found) {
		if o.Var.Node == m.From {
			out = append(out, o)
		} else {
			later = append(later, o)
		}
	}
	return append(out, later...)
}

// Probe returns what the answer of a variable's probe reveals, sorted by
// variable, behind what it shows to have been absent before. source is the index of
// the probe in Variable.Sources and host the host it ran on. An unknown variable or
// source reveals nothing.
func (e *Extractor) Probe(variable string, source int, host model.NodeID, at time.Duration, answer string) []model.Observation {
	v := e.vars[variable]
	if v == nil || source < 0 || source >= len(v.sources) || v.sources[source].typ != nil {
		return nil
	}
	s := v.sources[source]
	if s.re == nil {
		answer = strings.TrimSpace(answer)
	}
	now, was := e.read(s, answer, host, "", "", model.Observation{At: at, Probe: fmt.Sprintf("%s#%d", v.name, source)})
	return append(first(was), first(now)...)
}

// read applies one source to a text. like carries time and origin. before is what was
// absent at other nodes when they were heard of last.
func (e *Extractor) read(s *source, text string, node, from, to model.NodeID, like model.Observation) (out, before []model.Observation) {
	if _, is := slices.BinarySearch(e.nodes, node); !is {
		return nil, nil
	}
	like.Kind = s.v.kind
	like.Var = model.VarRef{Name: s.v.name, Node: node}
	hosts := strings.NewReplacer("$sender", string(from), "$receiver", string(to), "$self", string(node))
	constant := ""
	if s.replace {
		constant = hosts.Replace(s.constant)
	}
	if s.whom != "" {
		like.Var.About = e.host(hosts.Replace(s.whom))
	}
	value := func(v string) string {
		if s.replace {
			v = constant
		}
		if other, is := s.v.same[v]; is {
			v = other
		}
		switch {
		case s.v.host:
			v = e.host(v)
		case s.v.ordinal && !s.replace:
			v = e.ordinal(s.v.kind, v)
		}
		return v
	}
	seen := map[string]bool{}
	if s.re == nil {
		like.Value = value(text)
		if s.whom != "" {
			seen[like.Var.About] = true
		}
		return []model.Observation{like}, s.v.named.before(like, seen)
	}
	limit := 1
	if len(s.about) > 0 {
		limit = -1
	}
	for _, g := range s.re.FindAllStringSubmatchIndex(text, limit) {
		o := like
		if of, names := group(text, g, s.of); names && e.host(of) != string(node) {
			continue // the sender only passes it on
		}
		if len(s.about) > 0 {
			about, names := group(text, g, s.about)
			if !names || about == "" {
				continue
			}
			o.Var.About = e.host(about)
			if len(s.epoch) > 0 {
				epoch, _ := group(text, g, s.epoch)
				o.Var.About += e.epoch(epoch)
			}
			seen[o.Var.About] = true
		}
		v, shows := text[g[0]:g[1]], true
		if len(s.value) > 0 {
			v, shows = group(text, g, s.value)
		}
		if shows || s.replace {
			o.Value = value(v)
			out = append(out, o)
			if s.whom != "" {
				seen[like.Var.About] = true
			}
		}
	}
	whole := !strings.HasSuffix(text, "…")
	if whole {
		out = append(out, absent(like, s.absent, seen)...)
	}
	before = s.v.named.before(like, seen)
	if s.named && whole {
		out = append(out, s.v.named.list(like, seen)...)
	}
	return out, before
}

func absent(like model.Observation, of []string, seen map[string]bool) (out []model.Observation) {
	like.Value = model.Absent
	for _, like.Var.About = range of {
		if !seen[like.Var.About] {
			out = append(out, like)
		}
	}
	return out
}

// group is the first of the named groups that took part in a match; is is false
// if none did.
func group(text string, match, groups []int) (v string, is bool) {
	for _, n := range groups {
		if from := match[2*n]; from >= 0 {
			return text[from:match[2*n+1]], true
		}
	}
	return "", false
}

// ordinal numbers the values of a kind in the order in which they appear in
// the run: ids that differ from run to run become the same "#1", "#2", …
func (e *Extractor) ordinal(kind, v string) string {
	seen := e.ordinals[kind]
	if seen == nil {
		seen = map[string]int{}
		e.ordinals[kind] = seen
	}
	return "#" + strconv.Itoa(place(seen, v))
}

// epoch tells instances of one name apart that belong to different starts of a
// system: nothing for those of the first start that appears in the run, then
// "#2", "#3", …
func (e *Extractor) epoch(v string) string {
	if n := place(e.epochs, v); n > 1 {
		return "#" + strconv.Itoa(n)
	}
	return ""
}

// place numbers what it is given from 1 on, in the order in which it came.
func place(seen map[string]int, v string) int {
	n, ok := seen[v]
	if !ok {
		n = len(seen) + 1
		seen[v] = n
	}
	return n
}

// host turns an address, or address and port, into the host that owns it.
func (e *Extractor) host(v string) string {
	addr, err := netip.ParseAddr(v)
	if err != nil {
		ap, err := netip.ParseAddrPort(v)
		if err != nil {
			return v
		}
		addr = ap.Addr()
	}
	if h, ok := e.hosts[addr.Unmap()]; ok {
		return string(h)
	}
	return v
}

func first(obs []model.Observation) []model.Observation {
	slices.SortStableFunc(obs, func(a, b model.Observation) int { return a.Var.Compare(b.Var) })
	return slices.CompactFunc(obs, func(a, b model.Observation) bool { return a.Var == b.Var })
}
