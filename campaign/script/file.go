package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
)

// File is a script as a file, for people who write no Go. docs/scripted-tests.md
// explains every key.
type File struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title,omitempty"`
	// Target is the name of a known target, or the path of a target file from
	// where the script stands. Set are its settings.
	Target string            `yaml:"target"`
	Set    map[string]string `yaml:"set,omitempty"`
	// Class and Quote say what the documentation of the target says about an
	// assertion that does not hold: broken (default) or documented.
	Class string `yaml:"class,omitempty"`
	Quote string `yaml:"quote,omitempty"`
	Steps []Step `yaml:"steps"`

	path   string
	lineOf func(path string) int
}

// Step is one step: exactly one of its verbs, and why and if beside it.
type Step struct {
	// Why is said with the step. If names an operation (as) that must have been
	// acknowledged: otherwise the step is left out.
	Why string `yaml:"why,omitempty"`
	If  string `yaml:"if,omitempty"`

	Let     map[string]string `yaml:"let,omitempty"`
	Do      *DoStep           `yaml:"do,omitempty"`
	Cut     *CutStep          `yaml:"cut,omitempty"`
	Heal    string            `yaml:"heal,omitempty"`
	Crash   string            `yaml:"crash,omitempty"`
	Stop    string            `yaml:"stop,omitempty"`
	Start   string            `yaml:"start,omitempty"`
	Restart string            `yaml:"restart,omitempty"`
	Pause   string            `yaml:"pause,omitempty"`
	Resume  string            `yaml:"resume,omitempty"`
	Sleep   string            `yaml:"sleep,omitempty"`
	Await   *AwaitStep        `yaml:"await,omitempty"`
	Assert  *AssertStep       `yaml:"assert,omitempty"`
}

// DoStep is an operation of a client.
type DoStep struct {
	On   string   `yaml:"on"`        // host
	Call []string `yaml:"call,flow"` // operation of the target, and its arguments
	As   string   `yaml:"as,omitempty"`
	// Expect is the outcome that it must have for the script to go on: ok, fail
	// or info.
	Expect string `yaml:"expect,omitempty"`
}

// CutStep is a partition; its keys are those of netsplit partition.
type CutStep struct {
	Name   string     `yaml:"name,omitempty"`
	Shape  string     `yaml:"shape"`
	Groups [][]string `yaml:"groups,omitempty,flow"` // [rest] is all hosts that are in no other
	Only   []string   `yaml:"only,omitempty,flow"`
	Label  string     `yaml:"label,omitempty"`
	Role   string     `yaml:"role,omitempty"`
	Size   *int       `yaml:"size,omitempty"`
}

// AwaitStep waits for exactly one of conditions (all of the target's where the
// list is [all]), a role, and an operation that gives a value.
type AwaitStep struct {
	Conditions []string `yaml:"conditions,omitempty,flow"`
	Role       string   `yaml:"role,omitempty"`
	Among      []string `yaml:"among,omitempty,flow"`
	As         string   `yaml:"as,omitempty"`
	On         string   `yaml:"on,omitempty"`
	Call       []string `yaml:"call,omitempty,flow"`
	Gives      *string  `yaml:"gives,omitempty"`
	Within     string   `yaml:"within"`
}

// AssertStep asserts something of the outcome of an operation (on, call), or of
// what is known already (that).
type AssertStep struct {
	That string   `yaml:"that,omitempty"`
	On   string   `yaml:"on,omitempty"`
	Call []string `yaml:"call,omitempty,flow"`
	// Exactly one of these.
	Gives   *string `yaml:"gives,omitempty"`
	Not     *string `yaml:"not,omitempty"`
	Outcome string  `yaml:"outcome,omitempty"` // ok, fail or info
	// Within lets it become so.
	Within string `yaml:"within,omitempty"`
	Words  string `yaml:"words,omitempty"` // name the assertion
}

// verbs are those of a step, in the order in which they are explained.
func (st *Step) verbs() []string {
	var out []string
	for _, v := range []struct {
		name string
		set  bool
	}{{"let", st.Let != nil}, {"do", st.Do != nil}, {"cut", st.Cut != nil}, {"heal", st.Heal != ""}, {"crash", st.Crash != ""}, {"stop", st.Stop != ""},
		{"start", st.Start != ""}, {"restart", st.Restart != ""}, {"pause", st.Pause != ""}, {"resume", st.Resume != ""}, {"sleep", st.Sleep != ""},
		{"await", st.Await != nil}, {"assert", st.Assert != nil}} {
		if v.set {
			out = append(out, v.name)
		}
	}
	return out
}

// takes are the words of a step that may be names, but for those of let, which may
// give them itself.
func (st *Step) takes() []string {
	var out []string
	for _, words := range []string{st.Crash, st.Stop, st.Start, st.Restart, st.Pause, st.Resume} {
		out = append(out, strings.Fields(words)...)
	}
	switch {
	case st.Do != nil:
		out = append(out, st.Do.On)
	case st.Cut != nil:
		out = slices.Concat(st.Cut.Groups...)
	case st.Await != nil:
		out = append(slices.Clone(st.Await.Among), st.Await.On)
	case st.Assert != nil:
		out = append(out, st.Assert.That, st.Assert.On)
		for _, v := range []*string{st.Assert.Gives, st.Assert.Not} {
			if v != nil {
				out = append(out, *v)
			}
		}
	}
	return append(out, st.arguments()...)
}

// arguments are those of takes that stand for a value, whatever comes of it. What
// an assertion compares is not among them: it says itself what it cannot compare.
func (st *Step) arguments() []string {
	switch {
	case st.Do != nil:
		return st.Do.Call
	case st.Assert != nil:
		return st.Assert.Call
	case st.Await != nil && st.Await.Gives != nil:
		return append(slices.Clone(st.Await.Call), *st.Await.Gives)
	case st.Await != nil:
		return st.Await.Call
	}
	return nil
}

// cutPrefix tells cuts from names in what a step gives.
const cutPrefix = "cut "

// gives lists what later steps may use of a step: $NAME, and its cut.
func (st *Step) gives() []string {
	var out []string
	as := func(name string) {
		if name != "" {
			out = append(out, namePrefix+name)
		}
	}
	for name := range st.Let {
		as(name)
	}
	switch {
	case st.Do != nil:
		as(st.Do.As)
	case st.Await != nil:
		as(st.Await.As)
	case st.Cut != nil:
		out = append(out, cutPrefix+st.Cut.Name)
	}
	return out
}

const verbNames = "let, do, cut, heal, crash, stop, start, restart, pause, resume, sleep, await or assert"

// Load reads a script, by the path of its file or by the name of one that comes
// with netsplit (redis-sentinel/split-brain), and checks it against its target: hosts, operations
// and how many arguments they take, periods, roles, conditions, and names that
// are used before they are there. What is wrong comes back as a *target.Error
// that lists every problem with its line. other, where it is not "", is played on
// in place of the file's target.
func Load(file, other string) (*File, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if b, kerr := fs.ReadFile(targets.FS, known(file)); kerr == nil {
			return parse(file, b, other)
		}
		return nil, fmt.Errorf("%w: no script %q: it is neither a file nor one that comes with netsplit: %s", model.ErrInvalid, file, strings.Join(Known(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read the script: %w", model.ErrInvalid, err)
	}
	return parse(file, b, other)
}

// known is where a script that comes with netsplit would be.
func known(name string) string {
	return path.Join(path.Dir(name), "scripts", path.Base(name)+".yaml")
}

// Known lists the scripts that come with netsplit, sorted.
func Known() []string {
	files, err := fs.Glob(targets.FS, "*/scripts/*.yaml")
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		out = append(out, path.Join(path.Dir(path.Dir(f)), strings.TrimSuffix(path.Base(f), ".yaml")))
	}
	slices.Sort(out)
	return out
}

func parse(file string, b []byte, other string) (*File, error) {
	f, line, err := sut.Decode(file, b, "script", "docs/scripted-tests.md for what a script holds", func(f *File, bad func(string, string, ...any)) {
		if other != "" {
			f.Target = sut.Absolute(other)
		} else if f.Target != "" {
			f.Target = beside(file, f.Target)
		}
		c := &checker{f: f, bad: bad}
		c.file()
	})
	if err != nil {
		return nil, err
	}
	f.path, f.lineOf = file, line
	return f, nil
}

// beside is the target of a script: a known one by its name, or a file from
// where the script stands.
func beside(script, name string) string {
	if !strings.ContainsAny(name, "/\\.") || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(script), name)
}

// checker checks what the types cannot.
type checker struct {
	f     *File
	bad   func(path, format string, args ...any)
	t     *model.Target
	hosts []Host
	known map[string]kind // names so far
	cuts  []string
	maybe bool // the step may be left out
}

// kind is what a name stands for.
type kind string

const (
	aHost      kind = "a host"
	aGroup     kind = "a group of hosts"
	aText      kind = "a text"
	anOutcome  kind = "the outcome of an operation"
	namePrefix      = "$"
)

func (c *checker) file() {
	f := c.f
	if f.Name == "" {
		c.bad("name", "the script has no name: give one, such as name: split-brain")
	}
	switch model.FailureClass(f.Class) {
	case "", model.Broken:
	case model.Documented:
		if f.Quote == "" {
			c.bad("class", "a documented failure needs quote: the sentence of the documentation that admits it")
		}
	default:
		c.bad("class", "unknown class %q: use broken or documented", f.Class)
	}
	if f.Target == "" {
		c.bad("target", "the script has no target: name a known one (netsplit target list) or give the path of a target file")
		return
	}
	t, _, err := sut.Load(f.Target)
	if err != nil {
		c.bad("target", "%v", err)
		return
	}
	if _, err := sut.Args(t, f.Set); err != nil {
		c.bad("set", "%v", err)
	}
	c.t, c.hosts, c.known = t, slices.Concat(t.Nodes, t.Clients), map[string]kind{}
	if len(f.Steps) == 0 {
		c.bad("steps", "no steps: say what to do, one step after the other: %s", verbNames)
	}
	for i := range f.Steps {
		c.step(fmt.Sprintf("steps[%d]", i), &f.Steps[i])
	}
}

func (c *checker) step(at string, st *Step) {
	verbs := st.verbs()
	switch {
	case len(verbs) == 0:
		c.bad(at, "a step has a verb: %s", verbNames)
		return
	case len(verbs) > 1:
		c.bad(at, "a step has one verb, and this one has %s: make each a step of its own", strings.Join(verbs, " and "))
		return
	}
	c.maybe = st.If != ""
	if c.maybe && c.nameOf(at+".if", st.If) != anOutcome {
		c.bad(at+".if", "%q is no outcome of an operation: name one with as, and write if: $name", st.If)
	}
	for _, v := range []struct{ verb, host string }{{"crash", st.Crash}, {"stop", st.Stop}, {"start", st.Start}, {"restart", st.Restart}, {"pause", st.Pause}, {"resume", st.Resume}} {
		if v.host != "" {
			c.node(at+"."+v.verb, v.host)
		}
	}
	switch {
	case st.Let != nil:
		c.let(at+".let", st.Let)
	case st.Do != nil:
		c.call(at+".do", st.Do.On, st.Do.Call)
		c.outcome(at+".do.expect", st.Do.Expect)
		c.name(at+".do.as", st.Do.As, anOutcome)
	case st.Cut != nil:
		c.cut(at+".cut", st.Cut)
	case st.Heal != "":
		if !slices.Contains(c.cuts, st.Heal) {
			c.bad(at+".heal", "no cut named %q before this step: there are %s", st.Heal, orNone(c.cuts))
		}
		c.cuts = slices.DeleteFunc(c.cuts, func(n string) bool { return n == st.Heal })
	case st.Sleep != "":
		c.span(at+".sleep", st.Sleep)
	case st.Await != nil:
		c.await(at+".await", st.Await)
	case st.Assert != nil:
		c.assert(at+".assert", st.Assert)
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
