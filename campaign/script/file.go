package script

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
)

// File is a script: a partition test, step by step.
type File struct {
	// A short name.
	// Required. Example: split-brain
	Name string `yaml:"name"`
	// One line for people.
	// Example: two masters accept writes
	Title string `yaml:"title,omitempty"`
	// A known target, or the path of a target file, relative to the script.
	// Required. Example: redis-sentinel
	Target string `yaml:"target"`
	// Settings of the target.
	// Example: {min_replicas: "1"}
	Set map[string]string `yaml:"set,omitempty"`
	// What an assertion that does not hold is: `broken`, or `documented`.
	// Default: broken. Example: documented
	Class string `yaml:"class,omitempty"`
	// The sentence of the documentation. Required with `documented`.
	// Example: A failover may lose acknowledged writes.
	Quote string `yaml:"quote,omitempty"`
	// What to do, one step after the other.
	// Required.
	Steps []Step `yaml:"steps"`

	path   string
	lineOf func(path string) int
}

// Step is one step: exactly one verb, with `why` and `if` beside it. Later steps write `$NAME` for a name that a step gave.
type Step struct {
	// A remark.
	// Example: the old master must not serve
	Why string `yaml:"why,omitempty"`
	// Leave the step out unless this operation (`as`) was acknowledged.
	// Example: $alone
	If string `yaml:"if,omitempty"`

	// Names for hosts: `role R`, `rest of n1 c1` or `n2 n3`. A role is looked up now.
	// Example: {old: role master}
	Let map[string]string `yaml:"let,omitempty"`
	// An operation of a client.
	Do *DoStep `yaml:"do,omitempty"`
	// Starts a partition; it is over when nothing passes any more.
	Cut *CutStep `yaml:"cut,omitempty"`
	// Ends the cut of this name; it is over when packets pass again.
	// Example: split
	Heal string `yaml:"heal,omitempty"`
	// Begins a message fault; it is over when the gate holds all that the fault may be about.
	Fault *FaultStep `yaml:"fault,omitempty"`
	// Ends the message fault of this name; it is over when the receiving hosts have confirmed what it did.
	// Example: acks
	End string `yaml:"end,omitempty"`
	// SIGKILL to all processes of a host or of who has a role, or to those named behind it.
	// Example: n1
	Crash string `yaml:"crash,omitempty"`
	// SIGTERM, likewise.
	// Example: n1 redis
	Stop string `yaml:"stop,omitempty"`
	// Start what does not run, likewise.
	// Example: n1
	Start string `yaml:"start,omitempty"`
	// Stop and start, likewise.
	// Example: n1
	Restart string `yaml:"restart,omitempty"`
	// SIGSTOP, likewise.
	// Example: $old
	Pause string `yaml:"pause,omitempty"`
	// SIGCONT, likewise.
	// Example: $old
	Resume string `yaml:"resume,omitempty"`
	// A duration, or a number of a period of the target.
	// Example: 2 failover
	Sleep string `yaml:"sleep,omitempty"`
	// Waits; the script ends if it does not come about.
	Await *AwaitStep `yaml:"await,omitempty"`
	// Fails the run if it does not hold; the script goes on.
	Assert *AssertStep `yaml:"assert,omitempty"`
}

// DoStep is an operation of a client.
type DoStep struct {
	// The host that does it.
	// Required. Example: c1
	On string `yaml:"on"`
	// An operation of the target, and its arguments.
	// Required. Example: [set, $old, x, v1]
	Call []string `yaml:"call,flow"`
	// A name for its outcome.
	// Example: alone
	As string `yaml:"as,omitempty"`
	// `ok`, `fail` or `info`: the script ends on another outcome.
	// Example: ok
	Expect string `yaml:"expect,omitempty"`
}

// CutStep is a partition; its keys are those of `netsplit partition cut`, without `for`: `heal` ends it.
type CutStep struct {
	// A name for `heal`.
	// Required. Example: split
	Name string `yaml:"name,omitempty"`
	// One of the [shapes](partitions.md).
	// Required. Example: complete
	Shape string `yaml:"shape"`
	// Hosts, names of hosts, or roles; `[rest]` is all that are in no other group.
	// Example: [[$old, c1], [rest]]
	Groups [][]string `yaml:"groups,omitempty,flow"`
	// What becomes of packets: `drop`, or `reset`, which also ends TCP connections.
	// Default: drop. Example: reset
	Effect string `yaml:"effect,omitempty"`
	// Cut no other traffic.
	// Example: [tcp/6379]
	Only []string `yaml:"only,omitempty,flow"`
	// Shape `split`: the label to compare.
	// Example: rack
	Label string `yaml:"label,omitempty"`
	// Shapes `leader-in` and `leader-out`: the role.
	// Default: leader. Example: master
	Role string `yaml:"role,omitempty"`
	// Shapes `leader-in` and `leader-out`: how many hosts to cut off.
	// Default: 1. Example: 2
	Size *int `yaml:"size,omitempty"`
}

// FaultStep is a message fault; its keys are those of a scenario's `faults`.
type FaultStep struct {
	// A name for `await` and `end`.
	// Required. Example: acks
	Name string `yaml:"name"`
	// `delay`, `duplicate`, `reorder` or `lose`.
	// Required. Example: lose
	Kind string `yaml:"kind"`
	// Which messages.
	// Required.
	Match MatchStep `yaml:"match"`
	// The first of them that is acted on, counted from this step.
	// Default: 1. Example: 3
	Nth int `yaml:"nth,omitempty"`
	// Act on each of this many from there on; 1 is all.
	// Example: 1
	Every int `yaml:"every,omitempty"`
	// On how many at most.
	// Default: 1, or no bound with `every`. Example: 5
	Times int `yaml:"times,omitempty"`
	// `delay`: how long, as in `sleep`.
	// Example: 2 failover
	For string `yaml:"for,omitempty"`
	// `duplicate`: how many copies.
	// Default: 1. Example: 2
	Copies int `yaml:"copies,omitempty"`
	// `duplicate`: time before each copy, as in `sleep`.
	// Default: 0s. Example: 50ms
	Gap string `yaml:"gap,omitempty"`
	// `reorder`: how many packets overtake it.
	// Default: 1. Example: 2
	Behind int `yaml:"behind,omitempty"`
	// `reorder`: the longest that it waits, as in `sleep`.
	// Default: 1s. Example: 1 failover
	Limit string `yaml:"limit,omitempty"`
	// `lose`, on TCP: `packet`, which TCP sends again, or `message`, for good, with its connection.
	// Default: packet. Example: message
	Lose string `yaml:"lose,omitempty"`
	// `lose`, on TCP: how many retransmissions are lost as well.
	// Default: 0. Example: 1000
	Again int `yaml:"again,omitempty"`
}

// MatchStep selects messages.
type MatchStep struct {
	// A message type; `*` in it is any text.
	// Required. Example: resp REPLCONF ACK
	Type string `yaml:"type"`
	// The host that sends it, or a role: looked up while the message is held.
	// Default: any. Example: $old
	From string `yaml:"from,omitempty"`
	// The host that receives it, or a role.
	// Default: any. Example: master
	To string `yaml:"to,omitempty"`
}

// AwaitStep waits for exactly one of `conditions`, `role`, `fault`, `message`, and an operation (`on`, `call`) that gives a value.
type AwaitStep struct {
	// A message fault that must act on `packets`.
	// Example: acks
	Fault string `yaml:"fault,omitempty"`
	// On how many packets the fault must act.
	// Default: 1. Example: 2
	Packets *int `yaml:"packets,omitempty"`
	// A message that must cross the switch, from this step on. A role is looked up when it has come.
	// Example: {type: tcp rst *, from: master}
	Message *MatchStep `yaml:"message,omitempty"`
	// Conditions of the target's `stable`; `[all]` is all of them.
	// Example: [all]
	Conditions []string `yaml:"conditions,omitempty,flow"`
	// A role of the target that one host must have.
	// Example: master
	Role string `yaml:"role,omitempty"`
	// The hosts to ask for the role.
	// Default: all. Example: [$others]
	Among []string `yaml:"among,omitempty,flow"`
	// A name for the host that has the role.
	// Example: new
	As string `yaml:"as,omitempty"`
	// The host that does the operation.
	// Example: c1
	On string `yaml:"on,omitempty"`
	// The operation and its arguments.
	// Example: [get, n1, x]
	Call []string `yaml:"call,omitempty,flow"`
	// The value that it must give.
	// Example: v1
	Gives *string `yaml:"gives,omitempty"`
	// How long to wait, as in `sleep`.
	// Required. Example: 5 failover
	Within string `yaml:"within"`
}

// AssertStep asserts something of an operation (`on`, `call`) or of what is known already (`that`): exactly one of `gives`, `not` and `outcome`.
type AssertStep struct {
	// A name.
	// Example: $alone
	That string `yaml:"that,omitempty"`
	// The host that does the operation.
	// Example: c2
	On string `yaml:"on,omitempty"`
	// The operation and its arguments.
	// Example: [get, n1, x]
	Call []string `yaml:"call,omitempty,flow"`
	// The value that it must have.
	// Example: v1
	Gives *string `yaml:"gives,omitempty"`
	// A value that it must not have.
	// Example: v2
	Not *string `yaml:"not,omitempty"`
	// `ok`, `fail` or `info`. An operation without an answer ends `info`, so `ok` and `fail` do not hold.
	// Example: fail
	Outcome string `yaml:"outcome,omitempty"`
	// How long it may take to become so, as in `sleep`.
	// Default: 0s. Example: 1 failover
	Within string `yaml:"within,omitempty"`
	// What the assertion is called in reports.
	// Example: the acknowledged write is there
	Words string `yaml:"words,omitempty"`
}

// Asserts says whether the script has an assertion. Without one no play passes: it fails if a
// server dies, and is unknown otherwise.
func (f *File) Asserts() bool {
	return slices.ContainsFunc(f.Steps, func(st Step) bool { return st.Assert != nil })
}

// verbs are those of a step, in the order in which they are explained.
func (st *Step) verbs() []string {
	var out []string
	for _, v := range []struct {
		name string
		set  bool
	}{{"let", st.Let != nil}, {"do", st.Do != nil}, {"cut", st.Cut != nil}, {"heal", st.Heal != ""}, {"fault", st.Fault != nil}, {"end", st.End != ""}, {"crash", st.Crash != ""}, {"stop", st.Stop != ""},
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
	case st.Fault != nil:
		out = append(out, st.Fault.Match.From, st.Fault.Match.To)
	case st.Await != nil:
		out = append(slices.Clone(st.Await.Among), st.Await.On)
		if m := st.Await.Message; m != nil {
			out = append(out, m.From, m.To)
		}
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

// cutPrefix and faultPrefix tell cuts and message faults from names in what a step gives.
const (
	cutPrefix   = "cut "
	faultPrefix = "message fault "
)

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
	case st.Fault != nil:
		out = append(out, faultPrefix+st.Fault.Name)
	}
	return out
}

const verbNames = "let, do, cut, heal, fault, end, crash, stop, start, restart, pause, resume, sleep, await or assert"

// Load reads a script, by the path of its file or by the name of one that comes
// with netsplit (redis-sentinel/split-brain), and checks it against its target: hosts, operations
// and how many arguments they take, periods, roles, conditions, and names that
// are used before they are there. What is wrong comes back as a *sut.Error
// that lists every problem with its line. other, where it is not "", is played on
// in place of the file's target.
func Load(file, other string) (*File, error) {
	on := func(named string) string { return beside(file, named) }
	if other != "" {
		on = func(string) string { return sut.Absolute(other) }
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if b, kerr := fs.ReadFile(targets.FS, known(file)); kerr == nil {
			return parse(file, b, on, loadHere)
		}
		return nil, noScript(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read the script: %w", model.ErrInvalid, err)
	}
	return parse(file, b, on, loadHere)
}

func noScript(file string) error {
	return fmt.Errorf("%w: no script %q: it is neither a file nor one that comes with netsplit: %s", model.ErrInvalid, file, strings.Join(Known(), ", "))
}

func loadHere(target string) (*model.Target, error) {
	t, _, err := sut.Load(target)
	return t, err
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

// parse reads a script. on says on what it is played, given the target that it names, which may
// be "".
func parse(file string, b []byte, on func(named string) string, load func(target string) (*model.Target, error)) (*File, error) {
	f, line, err := decode(file, b, func(f *File, bad func(string, string, ...any)) {
		f.Target = on(f.Target)
		c := &checker{f: f, bad: bad, load: load}
		c.file()
	})
	if err != nil {
		return nil, err
	}
	f.path, f.lineOf = file, line
	return f, nil
}

func decode(file string, b []byte, check func(f *File, bad func(path, format string, args ...any))) (*File, func(path string) int, error) {
	return sut.Decode(file, b, "script", "docs/scripted-tests.md for what a script holds", check)
}

// beside is the target of a script: a known one by its name, or a file from
// where the script stands.
func beside(script, name string) string {
	if name == "" || slices.Contains(sut.Known(), sut.At(name, "")) || !strings.ContainsAny(name, "/\\.") || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(script), name)
}

// checker checks what the types cannot.
type checker struct {
	f     *File
	bad   func(path, format string, args ...any)
	load  func(target string) (*model.Target, error)
	t     *model.Target
	hosts []Host
	known map[string]kind // names so far
	cuts  []string
	// faults are the message faults that act, and on how many packets at most; 0: no bound.
	faults map[string]int
	maybe  bool // the step may be left out
}

// kind is what a name stands for.
type kind string

const (
	aHost      kind = "a host"
	aGroup     kind = "a group of hosts"
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
		c.bad("target", "the script has no target: name a known one (netsplit target list) or write the path of a target file")
		return
	}
	t, err := c.load(f.Target)
	if err != nil {
		c.bad("target", "%v", err)
		return
	}
	if _, err := sut.Args(t, f.Set); err != nil {
		c.bad("set", "%v", err)
	}
	c.t, c.hosts, c.known, c.faults = t, slices.Concat(t.Nodes, t.Clients), map[string]kind{}, map[string]int{}
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
	case st.Fault != nil:
		c.fault(at+".fault", st.Fault)
	case st.End != "":
		if _, acts := c.faults[st.End]; !acts {
			c.bad(at+".end", "no message fault named %q acts at this step: there are %s", st.End, orNone(slices.Sorted(maps.Keys(c.faults))))
		}
		delete(c.faults, st.End)
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
