package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/explorer"
	"netsplit/explorer/engine"
	"netsplit/internal/onecut"
	"netsplit/internal/story"
	"netsplit/model"
)

// TestScripts runs the stories in testdata, each of runs. Each file opens with a paragraph
// that tells what it shows. The verbs are documented at the handlers below.
// After a change that is understood, -rewrite updates the answers.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.do(t, d) })
	})
}

// script is the state of one file: what it has told, and a run.
type script struct {
	story.Story
	scn        model.Scenario
	engine     *engine.Engine
	num, frame uint64
	msgs       []model.Message
	numbered   bool // decisions name their steps
}

func newScript() *script { return &script{Story: story.New()} }

func (s *script) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if s.Do(d) {
		return ""
	}
	switch d.Cmd {
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
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

func (s *script) scenario(t *testing.T, d *datadriven.TestData) string {
	scn := onecut.Scenario{ID: "s0001", Strategy: model.Strategy(d.CmdArgs[0].Key), Never: d.HasArg("never"), MaxCut: story.Duration(d, "maxcut"), CutAfter: story.Duration(d, "cut"), HealAfter: story.Duration(d, "heal")}
	var iso, inv string
	d.MaybeScanArgs(t, "isolate", &iso)
	d.MaybeScanArgs(t, "invariant", &inv)
	if iso != "" {
		scn.Isolate = model.NodeID(iso)
		scn.Partition = model.Isolate(scn.Isolate, s.Hosts(), model.Drop)
		if d.HasArg("peers-only") {
			scn.Partition = model.Isolate(scn.Isolate, s.Nodes, model.Drop)
			scn.Partition.Shape = model.Partial
		}
	}
	d.MaybeScanArgs(t, "nth", &scn.Nth)
	if inv != "" {
		i := s.Invariants[inv]
		scn.Invariant = &i
	}
	for _, a := range d.CmdArgs {
		if a.Key == "state" {
			scn.State = &model.State{A: a.Vals[0], B: a.Vals[1]}
		}
	}
	for _, n := range s.Names {
		scn.Observe = append(scn.Observe, s.Invariants[n])
	}
	for _, l := range story.Lines(d.Input) {
		verb, rest, _ := strings.Cut(l, " ")
		if verb == "fault" {
			scn.Faults = append(scn.Faults, s.fault(t, d, rest))
			continue
		}
		if verb == "or" {
			scn.Or = append(scn.Or, story.Renaming(rest))
			continue
		}
		c := story.Class(rest)
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

func (s *script) restart() {
	s.engine = engine.New(s.scn)
	s.num, s.frame, s.msgs = 0, 0, nil
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
	for _, line := range story.Lines(d.Input) {
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
		ev.Observation = &model.Observation{At: at, Var: story.Ref(w[1]), Value: w[2], Probe: "probe"}
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
				ev.Observation = &model.Observation{At: at, Var: story.Ref(v), Value: value, Message: m.Num}
				out = append(out, ev)
			}
		}
	}
	ev := s.event(model.EventPacket, at)
	ev.Packet = p
	return append(out, ev)
}

// result prints what the engine has to tell of the run.
func result(r engine.Result) string {
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
