package explorer_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"netsplit/explorer"
	"netsplit/internal/onecut"
	"netsplit/internal/story"
	"netsplit/model"
)

// TestScripts runs the stories in testdata, each of searches. Each file opens with a
// paragraph that tells what it shows. The verbs are documented at the handlers below.
// After a change that is understood, -rewrite updates the answers.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{Story: story.New()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.do(t, d) })
	})
}

// script is the state of one file: what it has told, and a search.
type script struct {
	story.Story
	core *explorer.Core
}

func (s *script) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if s.Do(d) {
		return ""
	}
	switch d.Cmd {
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
		for _, n := range s.Names {
			in.Invariants = append(in.Invariants, s.Invariants[n])
		}
		for _, line := range story.Lines(d.Input) {
			in.Results = append(in.Results, s.result(t, d, line))
		}
		return s.ready(s.core.Step(in))
	case "result": // result: one finished run per line, "s0003 healed GOSSIP n3>n2 {a, b}; met I {a, b} 3x at 100ms"
		var out []string
		for _, line := range story.Lines(d.Input) {
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

func (s *script) campaign(t *testing.T, d *datadriven.TestData) string {
	c := explorer.Config{Strategy: model.Strategy(d.CmdArgs[0].Key), Nodes: s.Nodes, Clients: s.Clients, Hosts: s.Hosts(),
		Effect: model.Drop, MaxCut: story.Duration(d, "maxcut"), Workload: story.Duration(d, "workload"), IsolateClients: d.HasArg("clients")}
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
		c := story.Class(rest)
		r.Reached, r.HealClass = true, &c
	default:
		d.Fatalf(t, "%q: unknown outcome %q", line, verb)
	}
	for _, p := range parts[1:] {
		if c, ok := strings.CutPrefix(strings.TrimSpace(p), "class "); ok {
			r.Classes = append(r.Classes, story.Class(c))
			continue
		}
		if m := cutRE.FindStringSubmatch(strings.TrimSpace(p)); m != nil {
			r.CutState = &model.State{A: m[1], B: m[2]}
			if m[3] != "" {
				r.Or = story.Renaming(m[3])
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
