package script

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/sut"
)

var nameRE = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)

func (c *checker) name(at, name string, k kind) {
	if name == "" {
		return
	}
	if !nameRE.MatchString(name) {
		c.bad(at, "name %q: use letters, digits, - and _; steps that follow write $%s", name, name)
		return
	}
	if was, known := c.known[name]; known && was != k && c.maybe {
		c.bad(at, "%s is already %s, and stays so if this step is skipped: choose another name", namePrefix+name, was)
	}
	c.known[name] = k
}

// nameOf is what a word stands for; "" if it is no name. A name that is not there
// yet is reported.
func (c *checker) nameOf(at, word string) kind {
	name, ok := strings.CutPrefix(word, namePrefix)
	if !ok {
		return ""
	}
	k, ok := c.known[name]
	if !ok {
		c.bad(at, "no step before this one gives %s a meaning (let or as): known are %s", word, orNone(slices.Sorted(maps.Keys(c.known))))
		return "unknown"
	}
	return k
}

func (c *checker) host(at, word string) {
	switch k := c.nameOf(at, word); k {
	case "unknown", aHost:
	case "":
		if !slices.Contains(c.hosts, Host(word)) {
			c.bad(at, "no host %q: the target has %s", word, names(c.hosts))
		}
	default:
		c.bad(at, "%s is %s: name a host", word, k)
	}
}

func (c *checker) group(at string, words []string) {
	for i, w := range words {
		p := fmt.Sprintf("%s[%d]", at, i)
		if c.nameOf(p, w) != aGroup {
			c.host(p, w)
		}
	}
}

func (c *checker) hostOrRole(at, word string) {
	if _, is := c.t.Roles[word]; is && !slices.Contains(c.hosts, Host(word)) {
		return
	}
	c.host(at, word)
}

func (c *checker) node(at, words string) {
	f := strings.Fields(words)
	if len(f) == 0 {
		c.bad(at, "name a host or a role")
		return
	}
	c.hostOrRole(at, f[0])
	for _, p := range f[1:] {
		if !slices.ContainsFunc(c.t.Processes, func(q model.Process) bool { return q.Name == p && !q.Once }) {
			var have []string
			for _, q := range c.t.Processes {
				have = append(have, q.Name)
			}
			c.bad(at, "no server %q: the target has %s", p, orNone(have))
		}
	}
}

// let gives names: "role NAME", "rest of HOST…", hosts with spaces between, or a
// text in quotes.
func (c *checker) let(at string, let map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(let)) {
		p := at + "." + name
		words := strings.Fields(let[name])
		switch {
		case len(words) == 0:
			c.bad(p, "no meaning: write role NAME, rest of HOST…, or hosts")
		case words[0] == "role":
			if len(words) != 2 {
				c.bad(p, "want role and its name, such as role leader")
				continue
			}
			c.role(p, words[1])
			c.name(p, name, aHost)
		case words[0] == "rest":
			if len(words) < 3 || words[1] != "of" {
				c.bad(p, "want rest of, and hosts, such as rest of n1 c1")
				continue
			}
			c.group(p, words[2:])
			c.name(p, name, aGroup)
		default:
			c.group(p, words)
			k := aGroup
			if len(words) == 1 && c.nameOf(p, words[0]) != aGroup {
				k = aHost
			}
			c.name(p, name, k)
		}
	}
}

func (c *checker) role(at, role string) {
	if _, err := sut.RoleOf(c.t, sut.ExpandInput{}, role); err != nil {
		if _, has := c.t.Roles[role]; !has {
			c.bad(at, "%v; add it under roles of the target file", err)
		}
	}
}

func (c *checker) call(at, on string, call []string) {
	if on == "" {
		c.bad(at+".on", "on is missing: say which host does it, such as on: c1")
	} else {
		c.host(at+".on", on)
	}
	if len(call) == 0 {
		c.bad(at+".call", "call is missing: name an operation of the target and its arguments, such as call: [set, n1, x, v1]")
		return
	}
	i := slices.IndexFunc(c.t.Operations, func(o model.ClientOperation) bool { return o.Name == call[0] })
	if i < 0 {
		_, err := sut.Operation(c.t, sut.ExpandInput{}, call[0], nil)
		c.bad(at+".call[0]", "%v; add it under operations of the target file", err)
		return
	}
	op := c.t.Operations[i]
	if len(call)-1 != len(op.Takes) {
		c.bad(at+".call", "operation %s takes %d argument(s), %s, but has %d here", op.Name, len(op.Takes), orNone(op.Takes), len(call)-1)
		return
	}
	for j, a := range call[1:] {
		p := fmt.Sprintf("%s.call[%d]", at, j+1)
		if k := c.nameOf(p, a); k == aGroup {
			c.bad(p, "%s is %s, but an argument is one value", a, k)
		}
		if op.Takes[j] == "node" {
			c.host(p, a)
		}
	}
}

func (c *checker) outcome(at, o string) {
	switch model.OpType(o) {
	case "", model.OpOK, model.OpFail, model.OpInfo:
	default:
		c.bad(at, "unknown outcome %q: use ok (it happened), fail (it was refused) or info (nobody knows)", o)
	}
}

func (c *checker) cut(at string, cut *CutStep) {
	if cut.Name == "" {
		c.bad(at+".name", "the cut has no name: give one, for heal")
	}
	if slices.Contains(c.cuts, cut.Name) {
		c.bad(at+".name", "a cut named %q is in force here already: heal it first, or take another name", cut.Name)
	}
	c.cuts = append(c.cuts, cut.Name)
	if !slices.Contains(model.Shapes(), model.Shape(cut.Shape)) {
		c.bad(at+".shape", "unknown shape %q: use one of %v", cut.Shape, model.Shapes())
	}
	if n := len(cut.Groups); !model.Shape(cut.Shape).TakesGroups(n) {
		c.bad(at+".groups", "%s takes %s, not %d", cut.Shape, model.Shape(cut.Shape).Takes(), n)
	}
	if e := model.Effect(cut.Effect); e != "" && e != model.Drop && e != model.Reset {
		c.bad(at+".effect", "unknown effect %q: use %s or %s", e, model.Drop, model.Reset)
	}
	if cut.Size != nil && *cut.Size < 1 {
		c.bad(at+".size", "size %d: cut off one host or more", *cut.Size)
	}
	rest := 0
	for i, g := range cut.Groups {
		if len(g) == 1 && g[0] == restWord {
			rest++
			continue
		}
		for j, w := range g {
			if p := fmt.Sprintf("%s.groups[%d][%d]", at, i, j); c.nameOf(p, w) != aGroup {
				c.hostOrRole(p, w)
			}
		}
	}
	if rest > 1 {
		c.bad(at+".groups", "%d groups are the rest: only one can be", rest)
	}
	for i, o := range cut.Only {
		t, err := model.ParseTraffic(o)
		if err == nil {
			err = model.Partition{Only: []model.Traffic{t}}.NeedsGate()
		}
		if err != nil {
			c.bad(fmt.Sprintf("%s.only[%d]", at, i), "%v", err)
		}
	}
	if cut.Role != "" {
		c.role(at+".role", cut.Role)
	}
}

// restWord stands for all hosts that are in no other group of the cut.
const restWord = "rest"

var spanRE = regexp.MustCompile(`^(?:(\d+(?:\.\d+)?) +)?([a-zA-Z][a-zA-Z0-9_-]*)$`)

func (c *checker) span(at, text string) {
	if text == "" {
		c.bad(at, "missing: say how long, in the target's own periods, such as 2 %s", c.aPeriod())
		return
	}
	if _, err := spanOf(text, func(name string) (time.Duration, error) {
		return sut.PeriodOf(c.t, sut.ExpandInput{Args: c.f.Set}, name)
	}); err != nil {
		c.bad(at, "%v", err)
	}
}

func (c *checker) aPeriod() string {
	if all := slices.Sorted(maps.Keys(c.t.Periods)); len(all) > 0 {
		return all[0]
	}
	return "election"
}

func (c *checker) await(at string, a *AwaitStep) {
	ways := 0
	for _, set := range []bool{len(a.Conditions) > 0, a.Role != "", len(a.Call) > 0, a.Fault != "", a.Message != nil} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		c.bad(at, "wait for exactly one of conditions, role, call, fault and message; this step has %d of them", ways)
	}
	c.span(at+".within", a.Within)
	for i, n := range a.Conditions {
		if n == allWord && len(a.Conditions) == 1 {
			continue
		}
		if !slices.ContainsFunc(c.t.Stable, func(o model.Condition) bool { return o.Name == n }) {
			var have []string
			for _, o := range c.t.Stable {
				have = append(have, o.Name)
			}
			c.bad(fmt.Sprintf("%s.conditions[%d]", at, i), "no condition %q: stable of the target has %s; [all] stands for all of them", n, orNone(have))
		}
	}
	switch {
	case a.Role != "":
		c.role(at+".role", a.Role)
		c.group(at+".among", a.Among)
		c.name(at+".as", a.As, aHost)
	case len(a.Call) > 0:
		c.call(at, a.On, a.Call)
		c.name(at+".as", a.As, anOutcome)
	case a.Fault != "":
		c.awaitFault(at, a)
	case a.Message != nil:
		c.match(at+".message", a.Message)
	}
	if a.Packets != nil && a.Fault == "" {
		c.bad(at+".packets", "packets goes with fault")
	}
	if a.Role == "" && len(a.Among) > 0 {
		c.bad(at+".among", "among goes with role")
	}
	if a.Gives != nil {
		c.nameOf(at+".gives", *a.Gives)
	}
}

// allWord stands for all conditions of the target.
const allWord = "all"

func (c *checker) assert(at string, a *AssertStep) {
	switch {
	case (a.That != "") == (len(a.Call) > 0):
		c.bad(at, "assert exactly one thing: an operation (on and call), or an earlier outcome (that)")
	case a.That != "":
		if k := c.nameOf(at+".that", a.That); k == "" || k == aGroup {
			c.bad(at+".that", "%q: write $ and the name of a host or of an operation's outcome", a.That)
		}
		if a.Within != "" {
			c.bad(at+".within", "an earlier outcome does not change: use within with call")
		}
	default:
		c.call(at, a.On, a.Call)
	}
	ways := 0
	for _, set := range []bool{a.Gives != nil, a.Not != nil, a.Outcome != ""} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		c.bad(at, "state the expectation by exactly one of gives (the value), not (any other value) and outcome (ok, fail or info); this step has %d of them", ways)
	}
	for key, v := range map[string]*string{"gives": a.Gives, "not": a.Not} {
		if v != nil {
			c.nameOf(at+"."+key, *v)
		}
	}
	c.outcome(at+".outcome", a.Outcome)
	if a.Within != "" {
		c.span(at+".within", a.Within)
	}
}
