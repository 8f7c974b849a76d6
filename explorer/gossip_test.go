package explorer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/explorer"
	"netsplit/internal/sim"
	"netsplit/internal/story"
	"netsplit/model"
)

// TestGossip runs the stories in testdata/gossip: campaigns of the explorer
// over the simulated gossip system.
func TestGossip(t *testing.T) {
	datadriven.Walk(t, "testdata/gossip", func(t *testing.T, path string) {
		g := &gossipScript{}
		datadriven.RunTest(t, path, g.do)
	})
}

type gossipScript struct {
	o   sim.Options
	rep sim.Report
	run sim.Run
}

func (g *gossipScript) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "system": // system bug | system repaired
		g.o = sim.Options{Bug: d.HasArg("bug")}
		return ""
	case "explore": // explore cofi seed=1 clean=3 runs=60 labs=2 [until-failure]
		hosts := []model.NodeID{"n1", "n2", "n3"}
		c := sim.Campaign{Options: g.o, StopAtFirst: d.HasArg("until-failure"), Config: explorer.Config{Strategy: model.Strategy(d.CmdArgs[0].Key),
			Nodes: hosts, Hosts: hosts, Effect: model.Drop, Retries: 2, MaxCut: story.Duration(d, "maxcut"), Workload: 3 * time.Second}}
		d.MaybeScanArgs(t, "seed", &c.Config.Seed)
		d.MaybeScanArgs(t, "clean", &c.Config.Clean)
		d.MaybeScanArgs(t, "runs", &c.Config.Runs)
		d.MaybeScanArgs(t, "labs", &c.Labs)
		g.rep = c.Run()
		fails, cut := 0, 0
		for _, r := range g.rep.Runs {
			if r.Verdict.Value == model.VerdictFail {
				fails++
			}
			if r.Engine.Reached {
				cut++
			}
		}
		return fmt.Sprintf("%d runs, cut in %d, failed %d, first failure in run %d\nended: %s\n", len(g.rep.Runs), cut, fails, g.rep.Failed, g.rep.Why)
	case "show": // show failures
		var b strings.Builder
		for _, r := range g.rep.Runs {
			if r.Verdict.Value == model.VerdictFail {
				fmt.Fprintf(&b, "%s isolating %s: %s\n", r.Scenario.ID, r.Scenario.Cut().Do.Isolate, how(r))
			}
		}
		return b.String()
	case "replay": // replay s0107: the run again, as its recipe says, and what happened in it
		for _, r := range g.rep.Runs {
			if r.Scenario.ID == d.CmdArgs[0].Key {
				g.run = sim.Execute(g.o, explorer.Replay(r.Scenario, r.Result()))
				return g.story()
			}
		}
		d.Fatalf(t, "no run %s", d.CmdArgs[0].Key)
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

// how says in a line where a run was cut and healed.
func how(r sim.Run) string {
	cut := r.Engine.CutAt.Round(time.Millisecond).String()
	if w := r.Scenario.Waits(); w != nil {
		cut = fmt.Sprintf("%s of %s", w.When.State.State, &w.When.State.Invariant)
	}
	heal := r.Engine.HealReason
	if r.Engine.HealClass != nil {
		heal = r.Engine.HealClass.String()
	}
	return "cut at " + cut + ", healed by " + heal
}

// story tells the replayed run: cut, heal, and every change of what a node
// says about n1, on the wire or to the client.
func (g *gossipScript) story() string {
	var b strings.Builder
	line := func(at time.Duration, format string, a ...any) {
		fmt.Fprintf(&b, "%6dms  %s\n", at.Milliseconds(), fmt.Sprintf(format, a...))
	}
	said := map[model.NodeID]string{}
	decisions, history := g.run.Decisions, g.run.History
	for _, ev := range g.run.Log {
		for len(history) > 0 && history[0].Time <= ev.At {
			tell(line, said, history[0])
			history = history[1:]
		}
		if o := ev.Observation; o != nil && o.Var.About == "n1" && said[o.Var.Node] != o.Value {
			said[o.Var.Node] = o.Value
			line(ev.At, "%s says n1 is %s", o.Var.Node, o.Value)
		}
		for len(decisions) > 0 && decisions[0].Event == ev.Num {
			dec := decisions[0]
			decisions = decisions[1:]
			if dec.Cut {
				line(ev.At, "CUT %s off (%s)", g.run.Scenario.Cut().Do.Isolate, dec.Reason)
			}
			if dec.Heal {
				what := dec.Reason
				if dec.Class != nil {
					what += ": " + dec.Class.String()
				}
				line(ev.At, "HEAL (%s)", what)
			}
		}
	}
	for _, op := range history {
		tell(line, said, op)
	}
	fmt.Fprintf(&b, "verdict %s: %s\n", g.run.Verdict.Value, g.run.Verdict.Reason)
	for _, f := range g.run.Verdict.Failures {
		fmt.Fprintf(&b, "  %s\n", f.Summary)
	}
	return b.String()
}

func tell(line func(time.Duration, string, ...any), said map[model.NodeID]string, op model.Operation) {
	switch {
	case op.F == "decommission":
		line(op.Time, "client: decommission n1: %s %s", op.Type, op.Error)
	case op.Type == model.OpOK && op.F == "status":
		v := model.Absent
		for _, w := range strings.Fields(op.Value) {
			if s, ok := strings.CutPrefix(w, "n1="); ok {
				v = s
			}
		}
		if k := "client " + op.Node; said[k] != v {
			said[k] = v
			line(op.Time, "client reads from %s that n1 is %s", op.Node, v)
		}
	case op.Type == model.OpOK:
		line(op.Time, "client, at the end, reads from %s: %s", op.Node, op.Value)
	}
}
