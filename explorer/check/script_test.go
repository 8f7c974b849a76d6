package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.yaml.in/yaml/v3"

	"netsplit/internal/onecut"
	"netsplit/model"
	"netsplit/record"
)

// TestScripts runs the stories in testdata/*.txt. Verbs:
//
//	target      the checks, conditions and log patterns, as in a target file
//	run         starts a record: strategy= isolate= cut= heal= wanted= leaked=
//	            unproved not-reached incomplete=REASON unheard=REASON hung=WORKLOAD release=V
//	            groups=A+B/C (a partial cut of A and B from C) ended=TIME
//	history     lines: TIME WORKLOAD/PROCESS TYPE F [KEY] [value=V] [error=E] [@NODE]
//	            [needs=VIA:COUNT:HOST+HOST;...]
//	            or: TIME-TIME every=STEP F PREFIX @NODE   acknowledged operations
//	look        from= to= trouble=WHY; lines: what final workloads printed at the next look
//	crossed     lines: TIME KEY FROM TO
//	observe     lines: TIME VARIABLE@NODE VALUE [message=N]
//	final       lines: VARIABLE@NODE VALUE
//	exits       lines: TIME HOST PROCESS STATUS [expected]
//	actions     lines: TIME VERB PROCESS HOST
//	logs        lines: TIME HOST PROCESS TEXT; a line that begins with "|" continues
//	recovery    stable=TIME, or failed with lines that are pending
//	judge       prints the verdict; max-lost= max-window=
//	merge       lines: RUN STRATEGY [never-cut] [replay-of=RUN] [before-the-cut:]SIGNATURE/CLASS ...; prints findings
//
// Times are seconds.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &story{bounds: noBounds}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.do(t, d)
		})
	})
}

type story struct {
	target model.Target
	r      Record
	bounds record.Bounds
}

func (s *story) do(t *testing.T, d *datadriven.TestData) string {
	lines := strings.Split(strings.TrimSpace(d.Input), "\n")
	if d.Input == "" {
		lines = nil
	}
	switch d.Cmd {
	case "target":
		s.target = model.Target{Name: "system"}
		if err := yaml.Unmarshal([]byte(d.Input), &s.target); err != nil {
			t.Fatal(err)
		}
	case "run":
		s.run(t, d)
	case "history":
		for _, l := range lines {
			s.r.History = append(s.r.History, historyLine(t, l)...)
		}
	case "look":
		var l record.Look
		var from, to string
		d.ScanArgs(t, "from", &from)
		d.ScanArgs(t, "to", &to)
		l.From, l.To = at(t, from), at(t, to)
		for i := range d.CmdArgs {
			if d.CmdArgs[i].Key == "trouble" {
				l.Trouble = d.CmdArgs[i].Vals
			}
		}
		s.r.Looks = append(s.r.Looks, l)
		for _, line := range lines {
			for _, e := range historyLine(t, line) {
				e.Look = len(s.r.Looks)
				s.r.History = append(s.r.History, e)
			}
		}
	case "crossed":
		for _, l := range lines {
			f := strings.Fields(l)
			s.r.Crossed = append(s.r.Crossed, Crossed{Key: f[1], At: at(t, f[0]), Link: model.Link{Src: model.NodeID(f[2]), Dst: model.NodeID(f[3])}})
		}
	case "observe":
		for _, l := range lines {
			f := strings.Fields(l)
			o := model.Observation{At: at(t, f[0]), Var: variable(f[1]), Value: f[2]}
			if len(f) > 3 {
				o.Message, _ = strconv.ParseUint(strings.TrimPrefix(f[3], "message="), 10, 64)
			}
			s.r.Observations = append(s.r.Observations, o)
		}
	case "final":
		for _, l := range lines {
			f := strings.Fields(l)
			s.r.Recovery.Final = append(s.r.Recovery.Final, model.VarValue{Var: variable(f[0]), Value: f[1]})
		}
	case "exits":
		for _, l := range lines {
			f := strings.Fields(l)
			st, _ := strconv.Atoi(f[3])
			s.r.Exits = append(s.r.Exits, record.Exit{At: at(t, f[0]), Host: model.NodeID(f[1]), Process: f[2], Status: st, Expected: len(f) > 4})
		}
	case "actions":
		for _, l := range lines {
			f := strings.Fields(l)
			s.r.Actions = append(s.r.Actions, NodeAction{at(t, f[0]), model.NodeAction{Verb: model.NodeVerb(f[1]), Process: f[2], Host: model.NodeID(f[3])}})
		}
	case "logs":
		for _, l := range lines {
			if more, ok := strings.CutPrefix(l, "|"); ok {
				last := &s.r.LogLines[len(s.r.LogLines)-1]
				last.Context = append(last.Context, strings.ReplaceAll(more, "\\t", "\t"))
				continue
			}
			f := strings.SplitN(l, " ", 4)
			s.r.LogLines = append(s.r.LogLines, record.LogLine{At: at(t, f[0]), Host: model.NodeID(f[1]), Process: f[2], Line: f[3]})
		}
	case "recovery":
		s.r.Recovery.Stable = d.HasArg("stable")
		for _, a := range d.CmdArgs {
			if a.Key == "stable" && len(a.Vals) > 0 {
				s.r.Recovery.StableAt = at(t, a.Vals[0])
			}
		}
		s.r.Recovery.Pending = lines
		if d.HasArg("violated") {
			a, b := variable("leader@n1"), variable("leader@n2")
			s.r.Recovery.Violated = []record.Violation{{Invariant: model.Invariant{A: a, B: b, Relation: model.RelationEqual}, State: model.State{A: "n1", B: "n2"}}}
		}
	case "judge":
		s.r.Bounds = noBounds
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "max-lost":
				s.r.Bounds.MaxLost, _ = strconv.Atoi(a.Vals[0])
			case "max-window":
				s.r.Bounds.MaxWindow = at(t, a.Vals[0])
			}
		}
		return printVerdict(Judge(s.r))
	case "merge":
		return merged(t, d, lines)
	default:
		t.Fatalf("%s: unknown verb %q", d.Pos, d.Cmd)
	}
	return ""
}

func (s *story) run(t *testing.T, d *datadriven.TestData) {
	s.r = Record{Target: &s.target,
		Recovery: record.Recovery{Limit: 25 * time.Second, Stable: true, StableAt: 15 * time.Second}, WorkloadEnd: 9 * time.Second}
	p, scn := model.Proof{LeakKnown: true}, onecut.Scenario{Strategy: model.StrategyClean}
	defer func() { s.r.Scenario = scn.Model() }()
	for _, a := range d.CmdArgs {
		v := strings.Join(a.Vals, " ")
		switch a.Key {
		case "strategy":
			scn.Strategy = model.Strategy(v)
		case "isolate":
			scn.Isolate = model.NodeID(v)
			scn.Partition = model.Isolate(scn.Isolate, append(slices.Clone(s.target.Nodes), s.target.Clients...), model.Drop)
		case "cut":
			p.CutAt, s.r.CutReached, s.r.Proof = at(t, v), true, &p
		case "heal":
			p.HealAt = at(t, v)
			s.r.Recovery.HealedAt = p.HealAt
		case "wanted":
			p.Wanted, _ = strconv.Atoi(v)
			p.Dropped = p.Wanted
		case "dropped":
			p.Dropped, _ = strconv.Atoi(v)
		case "leaked":
			p.Leaked, _ = strconv.Atoi(v)
		case "unproved":
			p.LeakKnown = false
		case "groups":
			var gs [][]model.NodeID
			for _, g := range strings.Split(v, "/") {
				var hosts []model.NodeID
				for _, h := range strings.Split(g, "+") {
					hosts = append(hosts, model.NodeID(h))
				}
				gs = append(gs, hosts)
			}
			scn.Partition = model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: gs}
		case "release":
			s.target.Release = v
		case "ended":
			s.r.WorkloadEnd = at(t, v)
		case "incomplete":
			s.r.Incomplete = append(s.r.Incomplete, v)
		case "unheard":
			s.r.Unread = append(s.r.Unread, v)
		case "hung":
			s.r.WorkloadHung = append(s.r.WorkloadHung, v)
		default:
			t.Fatalf("%s: unknown argument %s", d.Pos, a.Key)
		}
	}
}

func at(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSuffix(s, "s") + "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func variable(s string) model.VarRef {
	v, err := model.ParseVarRef(s)
	if err != nil {
		panic(err)
	}
	return v
}

func historyLine(t *testing.T, line string) []record.Entry {
	f := strings.Fields(line)
	if a, b, ok := strings.Cut(f[0], "-"); ok { // a stretch
		step := at(t, strings.TrimPrefix(f[1], "every="))
		var out []record.Entry
		for x, n := at(t, a), 0; x <= at(t, b); x, n = x+step, n+1 {
			o := model.Operation{Type: model.OpOK, F: f[2], Key: fmt.Sprintf("%s%d", f[3], n), Node: model.NodeID(strings.TrimPrefix(f[4], "@")), Time: x}
			out = append(out, record.Entry{Workload: "w", Operation: o})
		}
		return out
	}
	w, p, _ := strings.Cut(f[1], "/")
	o := model.Operation{Time: at(t, f[0]), Type: model.OpType(f[2]), F: f[3]}
	o.Process, _ = strconv.Atoi(p)
	for i, x := range f[4:] {
		switch {
		case strings.HasPrefix(x, "@"):
			o.Node = model.NodeID(x[1:])
		case strings.HasPrefix(x, "value="):
			o.Value = strings.ReplaceAll(x[6:], ",", " ")
		case strings.HasPrefix(x, "error="):
			o.Error = strings.ReplaceAll(x[6:], ",", " ")
		case strings.HasPrefix(x, "needs="):
			o.Needs = needs(t, x[6:])
		case i == 0:
			o.Key = x
		default:
			t.Fatalf("history line %q: what is %q?", line, x)
		}
	}
	return []record.Entry{{Workload: w, Operation: o}}
}

func needs(t *testing.T, s string) []model.Need {
	var out []model.Need
	for _, one := range strings.Split(s, ";") {
		f := strings.Split(one, ":")
		if len(f) != 3 {
			t.Fatalf("needs %q: want VIA:COUNT:HOST+HOST", one)
		}
		n := model.Need{Via: model.NodeID(f[0])}
		n.Count, _ = strconv.Atoi(f[1])
		for _, h := range strings.Split(f[2], "+") {
			n.From = append(n.From, model.NodeID(h))
		}
		out = append(out, n)
	}
	return out
}

func printVerdict(v model.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", v.Value, v.Reason)
	if v.Legal > 0 {
		fmt.Fprintf(&b, "legal: %d\n", v.Legal)
	}
	for _, e := range v.Excuses {
		if e.Why != noNeeds && e.Why != noneJudges {
			fmt.Fprintf(&b, "  %d %s %s at %q from %s to %s s: %s\n", e.Count, e.F, e.Error, e.Node, seconds(e.First), seconds(e.Last), e.Why)
		}
	}
	for _, l := range v.Late {
		fmt.Fprintf(&b, "late: %s (%d)\n", l.Check, l.Count)
		for _, d := range l.Detail {
			fmt.Fprintf(&b, "  - %s\n", d)
		}
	}
	for _, f := range v.Failures {
		fmt.Fprintf(&b, "[%s] %s: %s (%d)\n  %s\n", f.Class, f.Check, f.Signature, f.Amount, f.Summary)
		if f.Known != "" {
			fmt.Fprintf(&b, "  %s\n", model.KnownAs(f.Known, f.KnownBy))
		}
		if own := ownCause(f); f.Cause != own {
			fmt.Fprintf(&b, "  brought by %s\n", f.Cause)
		}
		if f.BeforeCut {
			fmt.Fprintln(&b, "  before the cut")
		}
		if f.Quote != "" {
			fmt.Fprintf(&b, "  quote: %s\n", f.Quote)
		}
		for _, d := range f.Detail {
			fmt.Fprintf(&b, "  - %s\n", d)
		}
	}
	return b.String()
}

func merged(t *testing.T, d *datadriven.TestData, lines []string) string {
	var runs []model.RunSummary
	for _, l := range lines {
		f := strings.Fields(l)
		r := model.RunSummary{RunMeta: model.RunMeta{Run: f[0], Target: "system", Scenario: onecut.Scenario{Strategy: model.Strategy(f[1])}.Model()}}
		if r.Scenario.Strategy != model.StrategyClean {
			r.Proof = &model.Proof{}
		}
		for _, x := range f[2:] {
			if x == "never-cut" {
				r.Proof = nil
				continue
			}
			if of, ok := strings.CutPrefix(x, "replay-of="); ok {
				r.ReplayOf = of
				continue
			}
			x, before := strings.CutPrefix(x, "before-the-cut:")
			x, by, _ := strings.Cut(strings.ReplaceAll(x, "_", " "), "<")
			check, x, named := strings.Cut(x, ":")
			if !named {
				check, x = "", check
			}
			sig, class, _ := strings.Cut(x, "/")
			r.Verdict.Failures = append(r.Verdict.Failures, model.Failure{Check: check, Signature: sig, Class: model.FailureClass(class), Summary: sig + " in " + f[0], BeforeCut: before, Cause: by})
		}
		runs = append(runs, r)
	}
	want := Merge("c1", runs)
	slices.Reverse(runs)
	if got := Merge("c1", runs); !reflect.DeepEqual(got, want) {
		t.Errorf("findings depend on the order of the runs:\n%+v\n%+v", got, want)
	}
	var b strings.Builder
	for _, together := range model.Together(want, func(f model.Finding) string { return f.CauseID }) {
		if d.HasArg("causes") {
			fmt.Fprintf(&b, "%s: %s\n", together[0].Severity, together[0].Cause)
		}
		for _, f := range together {
			fmt.Fprintf(&b, "[%s] %s: %s, after %d, runs %v, clean %v\n", f.Class, f.Failure.Signature, f.Failure.Summary, f.FirstAfter, f.Runs, f.Clean)
		}
	}
	return b.String()
}

// TestRecorded judges records of real runs (testdata/recorded), written by the
// redis-sentinel client's test, and compares with the verdict stored beside.
// The order of what was recorded must not matter.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.record.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded runs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r Record
			b = bytes.Replace(b, []byte(`"Recovery":{"from":`), []byte(`"Recovery":{"healedAt":`), 1) // as it was called when they were written
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			got := printVerdict(Judge(r))
			verdict := strings.TrimSuffix(file, ".record.json") + ".verdict.txt"
			if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" { // datadriven's flag
				if err := os.WriteFile(verdict, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(verdict)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("verdict:\n%swant:\n%s", got, want)
			}
			slices.Reverse(r.History)
			slices.Reverse(r.Observations)
			if again := printVerdict(Judge(r)); again != got {
				t.Errorf("the verdict depends on the order of the record:\n%s", again)
			}
		})
	}
}
