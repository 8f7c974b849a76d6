package script

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/model"
)

// spanOf reads a span: "3s", "failover", or "2.5 failover".
func spanOf(text string, period func(string) (time.Duration, error)) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return within(text, float64(d))
	}
	m := spanRE.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q: want a number of a period of the target, such as 2 failover, or a duration, such as 3s", text)
	}
	d, err := period(m[2])
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(cmp.Or(m[1], "1"), 64)
	if err != nil {
		return 0, err
	}
	return within(text, n*float64(d))
}

// longest is the longest span of a script.
const longest = 24 * time.Hour

func within(text string, nanoseconds float64) (time.Duration, error) {
	switch {
	case nanoseconds < 0:
		return 0, fmt.Errorf("%q: give a time that is not negative", text)
	case !(nanoseconds <= float64(longest)):
		return 0, fmt.Errorf("%q: give a time of %v at most", text, longest)
	}
	return time.Duration(nanoseconds), nil
}

// value is what a name stands for while a file is played.
type value struct {
	hosts []Host
	op    *Op
}

// player plays a file by the functions that Go scripts call.
type player struct {
	f    *File
	s    *Script
	at   string // path of the step under way
	vars map[string]value
	cuts map[string]*Cut
	// faults are those that act.
	faults map[string]*Fault
	left   map[string]string // where a step was left out that gives a name a meaning or makes a cut
}

func newPlayer(f *File, s *Script) *player {
	return &player{f: f, s: s, vars: map[string]value{}, cuts: map[string]*Cut{}, faults: map[string]*Fault{}, left: map[string]string{}}
}

// Play is the script of a file, for Play and Test.
func (f *File) Play(s *Script) {
	p := newPlayer(f, s)
	s.line = func() string { return fmt.Sprintf("%s:%d", filepath.Base(f.path), f.lineOf(p.at)) }
	for i := range f.Steps {
		p.at = fmt.Sprintf("steps[%d]", i)
		p.step(&f.Steps[i])
	}
}

// Config is how the file says to be played.
func (f *File) Config() Config {
	return Config{Name: f.Name, Target: f.Target, Set: f.Set, Class: model.FailureClass(f.Class), Quote: f.Quote}
}

func (p *player) step(st *Step) {
	s := p.s
	if why := p.leavesOut(st); why != "" {
		for _, name := range st.gives() {
			p.left[name] = s.where()
		}
		s.step("skip", strings.Join(st.verbs(), "")+" is left out", func() (string, error) { return why, nil })
		return
	}
	p.need(st.takes())
	p.needValues(st.arguments())
	switch {
	case st.Let != nil:
		for _, name := range slices.Sorted(maps.Keys(st.Let)) {
			words := strings.Fields(st.Let[name])
			p.need(words)
			p.let(name, words)
		}
	case st.Do != nil:
		p.do(st.Do)
	case st.Cut != nil:
		p.cut(st.Cut)
	case st.Heal != "":
		s.Heal(p.cuts[st.Heal])
		delete(p.cuts, st.Heal)
	case st.Fault != nil:
		p.fault(st.Fault)
	case st.End != "":
		s.End(p.faults[st.End])
		delete(p.faults, st.End)
	case st.Crash != "":
		p.node(s.Crash, st.Crash)
	case st.Stop != "":
		p.node(s.Stop, st.Stop)
	case st.Start != "":
		p.node(s.Start, st.Start)
	case st.Restart != "":
		p.node(s.Restart, st.Restart)
	case st.Pause != "":
		p.node(s.Pause, st.Pause)
	case st.Resume != "":
		p.node(s.Resume, st.Resume)
	case st.Sleep != "":
		d := p.span(st.Sleep)
		s.step("sleep", "sleep "+st.Sleep, func() (string, error) { return d.String(), s.live.Sleep(s.ctx, d) })
	case st.Await != nil:
		p.await(st.Await)
	case st.Assert != nil:
		p.assert(st.Assert)
	}
}

// leavesOut says why a step is left out, "" where it is not: the operation of its if
// was not acknowledged, or not done either, or what it heals or ends was never begun.
func (p *player) leavesOut(st *Step) string {
	if name, named := strings.CutPrefix(st.If, namePrefix); named {
		switch op := p.vars[name].op; {
		case op == nil:
			return p.without(st.If)
		case !op.OK():
			return fmt.Sprintf("%s was %s", st.If, op)
		}
	}
	if st.Heal != "" && p.cuts[st.Heal] == nil {
		return fmt.Sprintf("cut %s was left out (%s)", st.Heal, p.left[cutPrefix+st.Heal])
	}
	if st.End != "" && p.faults[st.End] == nil {
		return fmt.Sprintf("message fault %s was left out (%s)", st.End, p.left[faultPrefix+st.End])
	}
	return ""
}

// without says why a name has no meaning.
func (p *player) without(word string) string {
	return fmt.Sprintf("the step that gives %s a meaning was left out (%s)", word, p.left[word])
}

// need ends the script where one of some words is a name without a meaning.
func (p *player) need(words []string) {
	for _, w := range words {
		name, named := strings.CutPrefix(w, namePrefix)
		if _, known := p.vars[name]; named && !known {
			p.s.step("name", w, func() (string, error) {
				return "", fmt.Errorf("%s: use the same if here, or remove the other", p.without(w))
			})
		}
	}
}

// needValues ends the script where one of some words is an outcome without a value:
// what could not be read is not the empty text.
func (p *player) needValues(words []string) {
	for _, w := range words {
		name, named := strings.CutPrefix(w, namePrefix)
		if op := p.vars[name].op; named && op != nil && !op.OK() {
			p.s.step("name", w, func() (string, error) { return "", fmt.Errorf("it has no value, it ended %s", op) })
		}
	}
}

// span is a span under the settings of the play; the file was checked.
func (p *player) span(text string) time.Duration {
	d, err := spanOf(text, p.s.live.Period)
	if err != nil {
		p.s.step("period", text, func() (string, error) { return "", err })
	}
	return d
}

func (p *player) let(name string, words []string) {
	switch words[0] {
	case "role":
		p.vars[name] = value{hosts: []Host{p.s.Role(words[1])}}
	case restWord:
		p.vars[name] = value{hosts: p.s.Rest(p.group(words[2:]))}
	default:
		p.vars[name] = value{hosts: p.group(words)}
	}
}

func (p *player) group(words []string) []Host {
	var out []Host
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, namePrefix); ok {
			out = append(out, p.vars[name].hosts...)
			continue
		}
		out = append(out, Host(w))
	}
	return out
}

// withRoles has hosts in place of words that are roles: who has them is looked up now.
func (p *player) withRoles(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		if _, is := p.s.live.Target().Roles[w]; is && !slices.Contains(p.s.live.Hosts(), Host(w)) {
			out[i] = string(p.s.Role(w))
		}
	}
	return out
}

func (p *player) host(word string) Host { return Host(p.text(word)) }

// text is what a word stands for as an argument: a host's name, an operation's
// value, or itself.
func (p *player) text(word string) string {
	name, ok := strings.CutPrefix(word, namePrefix)
	if !ok {
		return word
	}
	v := p.vars[name]
	if v.op != nil {
		return v.op.Value
	}
	if len(v.hosts) > 0 {
		return string(v.hosts[0])
	}
	return ""
}

func (p *player) args(call []string) []string {
	var out []string
	for _, a := range call[1:] {
		out = append(out, p.text(a))
	}
	return out
}

func (p *player) node(do func(Host, ...string), words string) {
	f := strings.Fields(words)
	do(p.host(p.withRoles(f[:1])[0]), f[1:]...)
}

func (p *player) do(d *DoStep) {
	s, host, args := p.s, p.host(d.On), p.args(d.Call)
	s.step("op", opText(host, d.Call[0], args), func() (string, error) {
		op, err := (&Client{Host: host, s: s}).do(d.Call[0], args)
		if err == nil && d.Expect != "" && op.Type != model.OpType(d.Expect) {
			err = fmt.Errorf("the script continues only if it ends with %s, but it ended %s", d.Expect, op)
		}
		if d.As != "" {
			p.vars[d.As] = value{op: &op}
		}
		return op.String(), err
	})
}

func (p *player) cut(c *CutStep) {
	part := model.Partition{Shape: model.Shape(c.Shape), Effect: model.Effect(c.Effect), Label: c.Label, Role: c.Role}
	if c.Size != nil {
		part.Size = *c.Size
	}
	var named [][]Host
	rest := -1
	for i, g := range c.Groups {
		if len(g) == 1 && g[0] == restWord {
			rest = i
			part.Groups = append(part.Groups, nil)
			continue
		}
		hosts := p.group(p.withRoles(g))
		named, part.Groups = append(named, hosts), append(part.Groups, hosts)
	}
	if rest >= 0 {
		part.Groups[rest] = p.s.Rest(named...)
	}
	for _, o := range c.Only {
		t, _ := model.ParseTraffic(o) // checked
		part.Only = append(part.Only, t)
	}
	p.cuts[c.Name] = p.s.Cut(c.Name, part)
}

func (p *player) await(a *AwaitStep) {
	limit := p.span(a.Within)
	switch {
	case a.Role != "":
		h := p.s.AwaitRole(limit, a.Role, p.group(a.Among)...)
		if a.As != "" {
			p.vars[a.As] = value{hosts: []Host{h}}
		}
	case len(a.Call) > 0:
		p.awaitCall(a, limit)
	case a.Fault != "":
		p.awaitFault(a, limit)
	case a.Message != nil:
		p.s.AwaitMessage(limit, p.match(a.Message))
	case a.Conditions[0] == allWord:
		p.s.Await(limit)
	default:
		p.s.Await(limit, a.Conditions...)
	}
}

func (p *player) awaitCall(a *AwaitStep, limit time.Duration) {
	s, host, args := p.s, p.host(a.On), p.args(a.Call)
	text := opText(host, a.Call[0], args)
	s.step("await", "await "+text, func() (string, error) {
		op, ok, err := p.until(host, a.Call[0], args, limit, func(op Op) bool { return op.OK() && (a.Gives == nil || op.Value == p.text(*a.Gives)) })
		if a.As != "" {
			p.vars[a.As] = value{op: &op}
		}
		if err == nil && !ok {
			err = fmt.Errorf("not within %v, the last: %s", limit, op)
		}
		return op.String(), err
	})
}

// until does an operation until it ends as wanted, at least once.
func (p *player) until(host Host, name string, args []string, limit time.Duration, so func(Op) bool) (op Op, ok bool, err error) {
	ok, perr := p.s.poll(limit, func() bool {
		op, err = (&Client{Host: host, s: p.s}).do(name, args)
		return err != nil || so(op)
	})
	return op, ok && err == nil, errors.Join(err, perr)
}

func (p *player) assert(a *AssertStep) {
	s := p.s
	want, so := p.wanted(a)
	if a.That != "" {
		op := p.kept(a.That)
		s.step("assert", cmp.Or(a.Words, a.That+" "+want), func() (string, error) {
			return op.String(), p.judge(op, a, so(op), "")
		})
		return
	}
	host, args := p.host(a.On), p.args(a.Call)
	var limit time.Duration
	if a.Within != "" {
		limit = p.span(a.Within)
	}
	s.step("assert", cmp.Or(a.Words, opText(Host(a.On), a.Call[0], a.Call[1:])+" "+want), func() (string, error) {
		op, ok, err := p.until(host, a.Call[0], args, limit, so)
		if err == nil {
			err = p.judge(op, a, ok, opText(host, a.Call[0], args)+": ")
		}
		return op.String(), err
	})
}

// kept is the outcome that a name stands for.
func (p *player) kept(word string) Op {
	if name, named := strings.CutPrefix(word, namePrefix); named && p.vars[name].op != nil {
		return *p.vars[name].op
	}
	return Op{Type: model.OpOK, Value: p.text(word)}
}

// judge is what an assertion about an operation comes to, about being words
// before its outcome. Where a value is wanted and none was read, here or in what
// it is compared with, nobody knows: that ends the script.
func (p *player) judge(op Op, a *AssertStep, holds bool, about string) error {
	text := about + said(op, a, p)
	for _, with := range []*string{a.Gives, a.Not} {
		if with == nil {
			continue
		}
		if against := p.kept(*with); !against.OK() {
			return fmt.Errorf("it is compared with %s, which ended %s: a value that could not be read is not known to be wrong", *with, against)
		}
	}
	switch {
	case holds:
		return nil
	case a.Outcome == "" && !op.OK() && about != "":
		return fmt.Errorf("%s: a value that could not be read is not known to be wrong; give it time with within", text)
	case a.Outcome == "" && !op.OK():
		return fmt.Errorf("%s %s: a value that could not be read is not known to be wrong", a.That, text)
	}
	return errNot(text)
}

// said is what an operation came to, where that is not what was wanted.
func said(op Op, a *AssertStep, p *player) string {
	switch {
	case op.OK() && a.Gives != nil:
		return fmt.Sprintf("it gave %q, not %q", op.Value, p.text(*a.Gives))
	case op.OK() && a.Not != nil:
		return fmt.Sprintf("it gave %q", op.Value)
	}
	return "it ended " + op.String()
}

// wanted is what an assertion wants, in words, and a test of it.
func (p *player) wanted(a *AssertStep) (string, func(Op) bool) {
	switch {
	case a.Gives != nil:
		return "gives " + *a.Gives, func(op Op) bool { return op.OK() && op.Value == p.text(*a.Gives) }
	case a.Not != nil:
		return "does not give " + *a.Not, func(op Op) bool { return op.OK() && op.Value != p.text(*a.Not) }
	}
	return "ends " + a.Outcome, func(op Op) bool { return op.Type == model.OpType(a.Outcome) }
}
