package report

import (
	"bytes"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// judged is a run of a large system: a stack trace that was described before,
// operations that had a right to fail, a server that a workload restarted.
func judged(t testing.TB) Input {
	in := failing(t)
	s := &in.Summary
	s.Release = "3.11.5"
	s.Cost = model.Cost{Start: 4 * time.Second, Settle: 18 * time.Second, Workload: 31 * time.Second, Recover: 12 * time.Second, Ours: 1300 * time.Millisecond}
	s.Probes, s.ProbeCost = 260, 2600*time.Millisecond
	in.Known = []model.KnownFailure{{ID: "SYS-1", Title: "A thread dies"}, {ID: "SYS-2", Title: "another"}}
	s.Verdict.Failures = append([]model.Failure{{Check: "fatal-log", Class: model.Broken, Known: "SYS-1", Amount: 2,
		Signature: "process server logged java.lang.NullPointerException at org.x.Store.put",
		Summary:   "server on n1 logged at 7.0 s, before the cut: ERROR [Stage:7] - Exception in thread Thread[Stage:7]: java.lang.NullPointerException",
		Quote:     "A partition is no reason for a thread to die.",
		Detail: []string{"n1 server 7.000 s: ERROR [Stage:7] - Exception in thread Thread[Stage:7]", "    java.lang.NullPointerException: <b>null</b>",
			"    at org.x.Store.put(Store.java:99)", "    at org.x.Verb.handle(Verb.java:5)", "n1 server 9.000 s: ERROR [Stage:9] - Exception in thread Thread[Stage:9]"}}},
		s.Verdict.Failures...)
	s.Verdict.Legal = 14
	s.Verdict.Excuses = []model.Excuse{
		{F: "read", Error: "NoHostAvailable", Node: "n1", Count: 9, First: 8 * time.Second, Last: 12 * time.Second, Why: "n1 reached 1 of n1, n2, n3 and needed 2: the cut"},
		{F: "write", Error: "Timeout", Node: "n2", Count: 5, First: 8100 * time.Millisecond, Last: 8100 * time.Millisecond, Why: "the system has 20s to notice that n2 no longer reaches n1: the cut"},
	}
	s.Verdict.Late = []model.Late{{Check: "gone", Summary: "1 thing was late, not lost", Detail: []string{"late: <b>k</b>"}, Count: 1}}
	s.Verdict.Lines = []model.ExcusedLine{{Host: "n2", Process: "server", Line: "ERROR lost <b>peer</b>", Why: "server on n3 is stopped", Count: 3, First: 9 * time.Second, Last: 11 * time.Second}}
	end := in.Events[len(in.Events)-1]
	for i, v := range []model.NodeVerb{model.NodeStop, model.NodeStart} {
		in.Events = append(in.Events, model.Event{Num: end.Num + uint64(i) + 1, At: end.At + time.Duration(i)*time.Second, Kind: model.EventNode, Node: &model.NodeAction{Verb: v, Process: "server", Host: "n3"}})
	}
	return in
}

// TestWhatOneCauseBroughtStandsTogether: whatever stands between by its cost.
func TestWhatOneCauseBroughtStandsTogether(t *testing.T) {
	in := judged(t)
	in.Summary.Verdict.Failures = []model.Failure{
		{Check: "recovery", Severity: model.SeverityNotRecovered, Cause: "process-died: p", Signature: "not recovered"},
		{Check: "operations", Severity: model.SeverityError, Cause: "operations: failed", Signature: "put failed"},
		{Check: "fatal-log", Severity: model.SeverityLog, Cause: "process-died: p", Signature: "logged it"},
	}
	got := section(t, write(t, in), "failures")
	last, put := strings.Index(got, "logged it"), strings.Index(got, "put failed")
	if last < strings.Index(got, "not recovered") || put < last || strings.Count(got, "Same cause as above.") != 1 {
		t.Errorf("failures:\n%s", got)
	}
	wants(t, "failures", got, ">not-recovered</span> not recovered")
}

func TestJudgedRunIsExplained(t *testing.T) {
	in := judged(t)
	page := write(t, in)
	wants(t, "story", section(t, page, "story"), "Workloads stopped server on n3 at ", " and started server on n3 at ")
	for i, e := range in.Events {
		if e.Kind == model.EventNode && e.Node.Verb == model.NodeStop {
			slow := *e.Node
			slow.Took = 6 * time.Second
			in.Events[i].Node, in.Events[i].At = &slow, 14*time.Second
		}
	}
	wants(t, "story", section(t, write(t, in), "story"), "Workloads stopped server on n3 from 8.000 s to 14.000 s and started server on n3 at ")
	in.Summary.Scenario.Steps = append(in.Summary.Scenario.Steps, model.Step{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n3"}}})
	wants(t, "story", section(t, write(t, in), "story"), "Steps started server on n3 at ", "Workloads stopped server on n3 from ")
	failures := section(t, page, "failures")
	wants(t, "failures", failures, "known: SYS-1", "Described before as", "A thread dies", "before the cut",
		"java.lang.NullPointerException: <b>null</b>\nat org.x.Store.put(Store.java:99)\nat org.x.Verb.handle(Verb.java:5)\n")
	if strings.Contains(failures, "<b>null") || strings.Count(failures, "known:") != 1 {
		t.Error("a trace became markup, or an unknown failure is called known")
	}
	wants(t, "late", section(t, page, "problems"), "Late, not lost: a second look found it", "gone: 1 thing was late, not lost", "late: &lt;b&gt;k")
	wants(t, "operations", section(t, page, "operations"), "14 refused or without an answer", "n1 reached 1 of n1, n2, n3 and needed 2: the cut",
		"NoHostAvailable", "8.000 s to 12.000 s", "<td>8.100 s")
	wants(t, "lines", section(t, page, "lines"), "<td>n2<td>server<td>ERROR lost &lt;b&gt;peer&lt;/b&gt;<td>server on n3 is stopped", "9.000 s to 11.000 s")
	wants(t, "facts", section(t, page, "facts"), "<dd>3.11.5", "66.3 s", "260 probes, waited 2.60 s in all for answers, 10.0 ms each, 3.9 for each second",
		"until it was stable", "18.0 s, 27.1 %", "1.30 s, 2.0 %")

	if strings.Contains(page, "making the template") {
		t.Error("a part that took no time is listed")
	}
	in.Summary.Release, in.Summary.TargetVersion = "", "server v=3.10.8"
	wants(t, "facts", section(t, write(t, in), "facts"), "Version", "<dd>server v=3.10.8")
	in.Summary.Cost.Template = 40 * time.Second
	wants(t, "facts", section(t, write(t, in), "facts"), "making the template", "40.0 s, 37.6 %", "106.3 s")

	in.Summary.Verdict.Failures[0].KnownBy = model.KnownBySymptom
	failures = section(t, write(t, in), "failures")
	wants(t, "by symptom", failures, "looks like SYS-1", "Looks like <b>SYS-1</b>: A thread dies. Only the symptom of that one is known: this may be another.")
	if strings.Contains(failures, "known: SYS-1") || strings.Contains(failures, "Described before") {
		t.Error("a failure that has the symptom is called known")
	}
	in.Summary.Verdict.Failures[0].KnownBy = ""

	in.Known = nil // a record of before
	wants(t, "failures", section(t, write(t, in), "failures"), "Described before as <b>SYS-1</b>.")
}

func TestCampaignNamesKnownFailures(t *testing.T) {
	in := searched(t)
	in.Known = judged(t).Known
	in.Findings[1].Failure = judged(t).Summary.Verdict.Failures[0]
	for i := range in.Runs {
		in.Runs[i] = judged(t).Summary
	}
	var b bytes.Buffer
	if err := Campaign(&b, in); err != nil {
		t.Fatal(err)
	}
	wants(t, "page", b.String(), "known: SYS-1", "A thread dies", "<pre class=\"trace\">java.lang.NullPointerException", "<dd>3.11.5", "105.0 with 2 labs",
		"1820 probes, waited 18.2 s in all for answers", "netsplit itself", "9.10 s, 2.0 %")
}

// TestDetailsOfAnyShape: indented lines first, or alone, or of strange text.
func TestDetailsOfAnyShape(t *testing.T) {
	got := details([]string{"    first", "a", "\t\t\t\tb\u202e", "     c", "  d", "", "x=1 [m7 m12]", "x [m7] y", "[m]"})
	want := []detailView{{Text: "    first"}, {Text: "a", Trace: "b·\nc\n"}, {Text: "  d"}, {}, {Text: "x=1", Messages: []string{"7", "12"}}, {Text: "x [m7] y"}, {Text: "[m]"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A run that failed on a machine with too much to do says so; one that passed
// does not, since nothing was missed.
func TestABusyMachineIsNamed(t *testing.T) {
	const warning = "waited for a CPU. That alone may have broken time limits"
	for _, c := range []struct {
		wait    float64
		verdict model.VerdictValue
		warns   bool
	}{{0.94, model.VerdictFail, true}, {0.94, model.VerdictUnknown, true}, {0.94, model.VerdictPass, false}, {0.3, model.VerdictFail, false}, {0, model.VerdictFail, false}} {
		in := failing(t)
		in.Summary.CPUWait, in.Summary.Verdict.Value = c.wait, c.verdict
		page := write(t, in)
		if got := strings.Contains(html.UnescapeString(page), warning); got != c.warns {
			t.Errorf("%v, %s: warns %v", c.wait, c.verdict, got)
		}
		if c.wait > 0 {
			wants(t, "facts", page, "what was ready to run waited for a CPU for ")
		}
	}
}
