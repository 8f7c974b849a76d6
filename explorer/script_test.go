package explorer_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/explorer"
	"netsplit/internal/onecut"
	"netsplit/model"
)

// TestScripts runs the stories in testdata. Each file opens with a paragraph
// that tells what it shows. The verbs are documented at the handlers below.
// After a change that is understood, -rewrite updates the answers.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.do(t, d) })
	})
}

// script is the state of one file: a testbed, invariants by name, and one run
// or one campaign.
type script struct {
	nodes, clients []model.NodeID
	invs           map[string]model.Invariant
	names          []string // of invs, in order
	scn            model.Scenario
	engine         *explorer.Engine
	num, frame     uint64
	msgs           []model.Message
	numbered       bool // decisions name their steps

	core   *explorer.Core
	handed map[string]model.Scenario
}

func newScript() *script {
	return &script{invs: map[string]model.Invariant{}, handed: map[string]model.Scenario{}}
}

func (s *script) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "nodes": // nodes n1 n2 n3 clients=(c1)
		for _, a := range d.CmdArgs {
			if a.Key != "clients" {
				s.nodes = append(s.nodes, model.NodeID(a.Key))
				continue
			}
			for _, v := range a.Vals {
				s.clients = append(s.clients, model.NodeID(v))
			}
		}
		return ""
	case "invariant": // invariant I changes=3 support=10 kind=leader: next line "status[n1]@n2 == status[n1]@n3"
		return s.invariant(t, d)
	case "scenario": // scenario cofi invariant=I state=(LEFT,NORMAL) isolate=n3 maxcut=3s [never] [nth=2]
		return s.scenario(t, d)
	case "step": // one event per line: see event
		return s.steps(t, d)
	case "show": // show result
		return result(s.engine.Result())
	case "replay": // replay: the scenario of this file becomes the replay of its run
		s.scn = explorer.Replay(s.scn, s.engine.Result().RunResult(s.scn.ID, model.Verdict{}))
		s.restart()
		return s.scn.Why
	case "campaign": // campaign cofi clean-runs=2 runs=10 retries=1 seed=1 workload=3s maxcut=1s
		return s.campaign(t, d)
	case "ask": // ask 2: scenarios handed out
		n := 1
		if len(d.CmdArgs) > 0 {
			n, _ = strconv.Atoi(d.CmdArgs[0].Key)
		}
		return s.ready(s.core.Step(explorer.Input{Kind: explorer.InputAsk, Slots: n}))
	case "mined": // mined: hands over the invariants; lines are results of clean runs, as in result
		in := explorer.Input{Kind: explorer.InputInvariants}
		for _, n := range s.names {
			in.Invariants = append(in.Invariants, s.invs[n])
		}
		for _, line := range lines(d.Input) {
			in.Results = append(in.Results, s.result(t, d, line))
		}
		return s.ready(s.core.Step(in))
	case "result": // result: one finished run per line, "s0003 healed GOSSIP n3>n2 {a, b}; met I {a, b} 3x at 100ms"
		var out []string
		for _, line := range lines(d.Input) {
			r := s.result(t, d, line)
			out = append(out, s.ready(s.core.Step(explorer.Input{Kind: explorer.InputResult, Result: &r})))
		}
		return strings.Join(out, "")
	case "lost": // lost s0003
		return s.ready(s.core.Step(explorer.Input{Kind: explorer.InputLost, Scenario: d.CmdArgs[0].Key}))
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

func lines(s string) []string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

var refRE = regexp.MustCompile(`^([a-z]+)(?:\[(\w+)\])?@(\w+)$`)

func ref(t *testing.T, d *datadriven.TestData, s string) model.VarRef {
	m := refRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		d.Fatalf(t, "variable %q: want name[about]@node or name@node", s)
	}
	return model.VarRef{Name: m[1], About: m[2], Node: model.NodeID(m[3])}
}

func (s *script) hosts() []model.NodeID {
	return append(append([]model.NodeID{}, s.nodes...), s.clients...)
}

func (s *script) invariant(t *testing.T, d *datadriven.TestData) string {
	a, b, ok := strings.Cut(d.Input, "==")
	if !ok {
		d.Fatalf(t, "invariant: want a line A == B")
	}
	i := model.Invariant{Kind: "status", Relation: model.RelationEqual, A: ref(t, d, a), B: ref(t, d, b), Status: model.InvariantMined}
	d.MaybeScanArgs(t, "kind", &i.Kind)
	d.MaybeScanArgs(t, "changes", &i.Changes)
	d.MaybeScanArgs(t, "support", &i.Support)
	var status string
	d.MaybeScanArgs(t, "status", &status)
	if status != "" {
		i.Status = model.InvariantStatus(status)
	}
	i.ID = d.CmdArgs[0].Key
	s.invs[i.ID] = i
	s.names = append(s.names, i.ID)
	return ""
}

func dur(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	var v string
	d.MaybeScanArgs(t, key, &v)
	if v == "" {
		return 0
	}
	x, err := time.ParseDuration(v)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return x
}

func (s *script) scenario(t *testing.T, d *datadriven.TestData) string {
	scn := onecut.Scenario{ID: "s0001", Strategy: model.Strategy(d.CmdArgs[0].Key), Never: d.HasArg("never"), MaxCut: dur(t, d, "maxcut"), CutAfter: dur(t, d, "cut"), HealAfter: dur(t, d, "heal")}
	var iso, inv string
	d.MaybeScanArgs(t, "isolate", &iso)
	d.MaybeScanArgs(t, "invariant", &inv)
	if iso != "" {
		scn.Isolate = model.NodeID(iso)
		scn.Partition = model.Isolate(scn.Isolate, s.hosts(), model.Drop)
		if d.HasArg("peers-only") {
			scn.Partition = model.Isolate(scn.Isolate, s.nodes, model.Drop)
			scn.Partition.Shape = model.Partial
		}
	}
	d.MaybeScanArgs(t, "nth", &scn.Nth)
	if inv != "" {
		i := s.invs[inv]
		scn.Invariant = &i
	}
	for _, a := range d.CmdArgs {
		if a.Key == "state" {
			scn.State = &model.State{A: a.Vals[0], B: a.Vals[1]}
		}
	}
	for _, n := range s.names {
		scn.Observe = append(scn.Observe, s.invs[n])
	}
	for _, l := range lines(d.Input) {
		verb, rest, _ := strings.Cut(l, " ")
		if verb == "fault" {
			scn.Faults = append(scn.Faults, s.fault(t, d, rest))
			continue
		}
		if verb == "or" {
			scn.Or = append(scn.Or, renaming(rest))
			continue
		}
		c := class(t, d, rest)
		switch verb {
		case "seen":
			scn.Seen = append(scn.Seen, c)
		case "heal-at":
			scn.HealAt = &c
		default:
			d.Fatalf(t, "%q: want seen CLASS, heal-at CLASS, or n2 for n1, … or fault …", l)
		}
	}
	s.scn = scn.Model()
	s.restart()
	return ""
}

// renaming reads what a model.Renaming prints.
func renaming(s string) model.Renaming {
	r := model.Renaming{}
	for _, one := range strings.Split(s, ", ") {
		as, n, _ := strings.Cut(one, " for ")
		r[model.NodeID(n)] = model.NodeID(as)
	}
	return r
}

func (s *script) restart() {
	s.engine = explorer.NewEngine(s.scn)
	s.num, s.frame, s.msgs = 0, 0, nil
}

var classRE = regexp.MustCompile(`^(.*) (\w+)>(\w+) (?:at )?\{(.*), (.*)\}$`)

func class(t *testing.T, d *datadriven.TestData, s string) model.Class {
	m := classRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		d.Fatalf(t, "class %q: want TYPE from>to at {a, b}", s)
	}
	return model.Class{Type: m[1], From: model.NodeID(m[2]), To: model.NodeID(m[3]), State: model.State{A: m[4], B: m[5]}}
}

// steps feeds one event after another and prints each with what it caused.
//
//	100ms workload | tick | stop
//	110ms observe status[n1]@n2 LEFT        a probe's answer
//	120ms n2>n3 GOSSIP status[n1]@n2=LEFT   a message, what it reveals, its packet
//	130ms n2>n3 again 4                     a packet with message 4 once more
//	140ms n2>n3 bare                        a packet without a message
//	150ms n2>n3 A + B                       one packet with two messages
//	160ms n2>n3#1 A                         of TCP connection #1; so are "n2>n3#1 again 4", "n2>n3#1 bare" (no bytes)
//	                                        and "n2>n3#1 bytes" (part of a message)
//	170ms n2>n3 cut A                       a packet that a script's cut is of
//	180ms begin delay A n2>n3 for=1s        a script begins a message fault; "end 1" ends the first
//	190ms cut a 3,4                         a script cuts, and packets 3 and 4 are kept and cross; "heal a"
func (s *script) steps(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	for _, line := range lines(d.Input) {
		at, rest, _ := strings.Cut(line, " ")
		now, err := time.ParseDuration(at)
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		var ds []model.Decision
		for _, ev := range s.events(t, d, now, strings.TrimSpace(rest)) {
			ds = append(ds, s.engine.Step(ev)...)
		}
		fmt.Fprintf(&b, "%-46s", line)
		for i, x := range ds {
			if i > 0 {
				b.WriteString("; ")
			}
			if x.Frame != 0 && (s.scn.Messages() || s.scn.Strategy == model.StrategyScripted) {
				fmt.Fprintf(&b, "p%d ", x.Frame)
			}
			said := decision(x)
			if s.numbered && x.Step != 0 {
				said = strings.Replace(strings.Replace(said, "CUT", fmt.Sprintf("CUT %d", x.Step), 1), "HEAL", fmt.Sprintf("HEAL %d", x.Step), 1)
			}
			b.WriteString(said)
		}
		b.WriteString("\n")
	}
	out := strings.Split(b.String(), "\n")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return strings.Join(out, "\n")
}

func decision(d model.Decision) string {
	var w []string
	if d.Cut {
		w = append(w, "CUT")
	}
	if d.Heal {
		w = append(w, "HEAL")
	}
	if d.Verb != "" {
		w = append(w, string(d.Verb))
	}
	if d.Action != "" {
		w = append(w, string(d.Action))
	}
	w = append(w, "("+d.Reason+")")
	if d.Class != nil {
		w = append(w, "by "+d.Class.String())
	}
	return strings.Join(w, " ")
}

func (s *script) event(k model.EventKind, at time.Duration) model.Event {
	s.num++
	return model.Event{Num: s.num, At: at, Kind: k}
}

func (s *script) events(t *testing.T, d *datadriven.TestData, at time.Duration, what string) []model.Event {
	w := strings.Fields(what)
	switch w[0] {
	case "workload", "tick", "stop", "start", "note":
		return []model.Event{s.event(model.EventKind(w[0]), at)}
	case "begin", "end", "cut", "heal":
		return []model.Event{s.change(t, d, at, w[0], strings.Join(w[1:], " "))}
	case "observe":
		ev := s.event(model.EventObserve, at)
		ev.Observation = &model.Observation{At: at, Var: ref(t, d, w[1]), Value: w[2], Probe: "probe"}
		return []model.Event{ev}
	}
	from, to, ok := strings.Cut(w[0], ">")
	if !ok {
		d.Fatalf(t, "event %q: want workload, tick, stop, observe or from>to", what)
	}
	to, tcp, isTCP := strings.Cut(to, "#")
	s.frame++
	p := &model.HeldPacket{Frame: s.frame, From: model.NodeID(from), To: model.NodeID(to), Bytes: 60}
	if isTCP {
		p.Stream = "tcp " + from + ">" + to + "#" + tcp
	}
	var out []model.Event
	if p.RuleCut = w[1] == "cut"; p.RuleCut {
		w = slices.Delete(w, 1, 2)
	}
	switch w[1] {
	case "bare":
	case "bytes":
		p.Payload = 10
	case "again":
		n, err := strconv.ParseUint(w[2], 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		p.Again = []uint64{n}
	default:
		for _, part := range strings.Split(strings.Join(w[1:], " "), " + ") {
			f := strings.Fields(part)
			m := model.Message{Num: uint64(len(s.msgs) + 1), Frame: s.frame, At: at, From: p.From, To: p.To, Type: f[0]}
			s.msgs = append(s.msgs, m)
			p.Messages = append(p.Messages, m.Num)
			ev := s.event(model.EventMessage, at)
			ev.Message = &m
			out = append(out, ev)
			for _, o := range f[1:] {
				v, value, ok := strings.Cut(o, "=")
				if !ok {
					d.Fatalf(t, "%q: want variable=value", o)
				}
				ev := s.event(model.EventObserve, at)
				ev.Observation = &model.Observation{At: at, Var: ref(t, d, v), Value: value, Message: m.Num}
				out = append(out, ev)
			}
		}
	}
	ev := s.event(model.EventPacket, at)
	ev.Packet = p
	return append(out, ev)
}

// result prints what the engine has to tell of the run.
func result(r explorer.EngineResult) string {
	var b strings.Builder
	for _, m := range r.States {
		fmt.Fprintf(&b, "met %s %s %dx, first at %s", m.Invariant, m.State, m.Count, m.First)
		if m.Nth > 1 {
			fmt.Fprintf(&b, ", number %d of its shape", m.Nth)
		}
		b.WriteString("\n")
	}
	switch {
	case !r.Reached:
		b.WriteString("never cut\n")
	case !r.Healed:
		fmt.Fprintf(&b, "cut at %s, still cut\n", r.CutAt)
	default:
		fmt.Fprintf(&b, "cut at %s, healed at %s (%s)\n", r.CutAt, r.HealAt, r.HealReason)
	}
	if r.CutState != nil {
		fmt.Fprintf(&b, "cut in %s", r.CutState)
		if len(r.Or) > 0 {
			fmt.Fprintf(&b, ", with %s", r.Or)
		}
		b.WriteString("\n")
	}
	if r.HealClass != nil {
		fmt.Fprintf(&b, "healed by %s\n", r.HealClass)
	}
	for _, c := range r.Classes {
		fmt.Fprintf(&b, "class met %s\n", c)
	}
	fmt.Fprintf(&b, "workload took %s\n", r.Workload)
	b.WriteString(faultLines(r))
	return b.String()
}

func (s *script) campaign(t *testing.T, d *datadriven.TestData) string {
	c := explorer.Config{Strategy: model.Strategy(d.CmdArgs[0].Key), Nodes: s.nodes, Clients: s.clients, Hosts: s.hosts(),
		Effect: model.Drop, MaxCut: dur(t, d, "maxcut"), Workload: dur(t, d, "workload"), IsolateClients: d.HasArg("clients")}
	d.MaybeScanArgs(t, "clean-runs", &c.Clean)
	d.MaybeScanArgs(t, "runs", &c.Runs)
	d.MaybeScanArgs(t, "retries", &c.Retries)
	d.MaybeScanArgs(t, "seed", &c.Seed)
	s.core = explorer.NewCore(c)
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// ready prints what was handed out, and whether the core waits or is done.
func (s *script) ready(r explorer.Ready) string {
	var b strings.Builder
	for _, sc := range r.Scenarios {
		s.handed[sc.ID] = sc
		fmt.Fprintf(&b, "%s %s: %s\n", sc.ID, sc.Strategy, sc.Why)
		for _, c := range onecut.Of(sc).Seen {
			fmt.Fprintf(&b, "      seen %s\n", c)
		}
		for _, r := range sc.Or {
			fmt.Fprintf(&b, "      or %s\n", r)
		}
	}
	if r.Mine {
		b.WriteString("mine now\n")
	}
	if r.Done {
		b.WriteString("done: " + r.Why + "\n")
	} else if r.Why != "" {
		b.WriteString("no more: " + r.Why + "\n")
	}
	return b.String()
}

var metRE = regexp.MustCompile(`^met (\w+) \{(.*), (.*)\}(?: (\d+)x)?(?: at (\w+))?(?: nth (\d+))?$`)
var cutRE = regexp.MustCompile(`^cut \{(.*), (.*)\}(?: with (.*))?$`)

// result reads "s0003 OUTCOME; met …; met …", where OUTCOME is "clean",
// "missed" (the state did not occur), "never healed", "unknown", "took 4s" or
// "healed CLASS". "; class CLASS" is a class met while cut, "; cut {a, b}" the
// state it was cut in, and "; cut {a, b} with n2 for n1, …" with other nodes.
func (s *script) result(t *testing.T, d *datadriven.TestData, line string) model.RunResult {
	parts := strings.Split(line, ";")
	id, outcome, _ := strings.Cut(strings.TrimSpace(parts[0]), " ")
	r := model.RunResult{Scenario: id, Verdict: model.Verdict{Value: model.VerdictPass}, Duration: time.Second}
	verb, rest, _ := strings.Cut(outcome, " ")
	switch verb {
	case "clean", "missed":
	case "took":
		x, err := time.ParseDuration(rest)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		r.Duration = x
	case "unknown":
		r.Verdict.Value = model.VerdictUnknown
	case "never":
		r.Reached = true
	case "healed":
		c := class(t, d, rest)
		r.Reached, r.HealClass = true, &c
	default:
		d.Fatalf(t, "%q: unknown outcome %q", line, verb)
	}
	for _, p := range parts[1:] {
		if c, ok := strings.CutPrefix(strings.TrimSpace(p), "class "); ok {
			r.Classes = append(r.Classes, class(t, d, c))
			continue
		}
		if m := cutRE.FindStringSubmatch(strings.TrimSpace(p)); m != nil {
			r.CutState = &model.State{A: m[1], B: m[2]}
			if m[3] != "" {
				r.Or = renaming(m[3])
			}
			continue
		}
		m := metRE.FindStringSubmatch(strings.TrimSpace(p))
		if m == nil {
			d.Fatalf(t, "%q: want met INVARIANT {a, b} 3x at 100ms", p)
		}
		ms := model.MetState{Invariant: m[1], State: model.State{A: m[2], B: m[3]}, Count: 1}
		if m[4] != "" {
			ms.Count, _ = strconv.Atoi(m[4])
		}
		if m[5] != "" {
			ms.First, _ = time.ParseDuration(m[5])
		}
		if m[6] != "" {
			ms.Nth, _ = strconv.Atoi(m[6])
		}
		r.States = append(r.States, ms)
	}
	return r
}
