package judge

import (
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestAFailureWithoutACutIsAProblem, unless somebody described it.
func TestAFailureWithoutACutIsAProblem(t *testing.T) {
	for _, c := range []struct {
		name          string
		v             model.Verdict
		reported      bool
		problem, fact string
	}{
		{"pass", model.Verdict{Value: model.VerdictPass}, false, "", ""},
		{"broken", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "process-died", Class: model.Broken, Summary: "it died"}}}, false,
			"check process-died failed though nothing was cut: it died", ""},
		{"known", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "process-died", Class: model.Broken, Known: "X-1", Summary: "it died"}}}, false,
			"", "known as X-1: it died"},
		{"documented", model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "lost", Class: model.Documented, Summary: "one of two"}}}, false,
			"", "as the documentation admits: one of two"},
		{"unknown", model.Verdict{Value: model.VerdictUnknown, Reason: "nothing to judge"}, false, "could not be judged: nothing to judge", ""},
		{"unknown, as told", model.Verdict{Value: model.VerdictUnknown, Reason: "a switch was lost"}, true, "", ""},
	} {
		x := &Examination{}
		x.verdict(c.v, c.reported, true)
		problems, facts := strings.Join(x.Problems, "|"), strings.Join(x.Facts, "|")
		if !strings.Contains(problems, c.problem) || (problems == "") != (c.problem == "") || !strings.Contains(facts, c.fact) || (facts == "") != (c.fact == "") {
			t.Errorf("%s: problems %q, facts %q", c.name, problems, facts)
		}
	}
}

// TestAFailureUnderAFaultIsNoProblem of the target file.
func TestAFailureUnderAFaultIsNoProblem(t *testing.T) {
	x := &Examination{}
	x.verdict(model.Verdict{Value: model.VerdictFail, Failures: []model.Failure{{Check: "lost", Class: model.Broken, Summary: "one of two"}}}, false, false)
	if len(x.Problems) != 0 || len(x.Facts) != 1 || x.Facts[0] != "check lost failed in this run, which is no clean one: one of two" {
		t.Errorf("problems %q, facts %q", x.Problems, x.Facts)
	}
}

// TestOddLinesOfAHistory are problems of the file, before a campaign depends on them.
func TestOddLinesOfAHistory(t *testing.T) {
	f := &runFiles{events: []model.Event{{Kind: model.EventWorkload, At: 5 * time.Second}}, target: model.Target{Nodes: []model.NodeID{"n1"}, Clients: []model.NodeID{"c1"}}}
	for want, op := range map[string]model.Operation{
		"":                                  {Time: 6 * time.Second, Needs: []model.Need{{Via: "c1", From: []model.NodeID{"n1"}, Count: 1}}},
		"before the workloads began (5s)":   {Time: 7},
		`no host "c7" in the target`:        {Time: 6 * time.Second, Needs: []model.Need{{Via: "c7", From: []model.NodeID{"n1"}, Count: 1}}},
		"2 of 1 hosts can never be reached": {Time: 6 * time.Second, Needs: []model.Need{{Via: "c1", From: []model.NodeID{"n1"}, Count: 2}}},
	} {
		op.Type, op.F = model.OpInvoke, "write"
		again := op
		again.Time++
		f.history = []record.Entry{{Workload: "w", Operation: op}, {Workload: "w", Operation: again}}
		x := &Examination{}
		x.workloads(f)
		if got := strings.Join(x.Problems, "|"); (want == "") != (got == "") || !strings.Contains(got, want) || len(x.Problems) > 1 {
			t.Errorf("%+v: %q, want %q once", op, got, want)
		}
	}
}

// TestATemplateThatCannotBeMadeIsAProblem, though the run passes without it; other
// remarks of the record are told.
func TestATemplateThatCannotBeMadeIsAProblem(t *testing.T) {
	f := &runFiles{events: []model.Event{{Kind: model.EventNote, Note: record.NoTemplate + "n1 names its folder"}, {Kind: model.EventNote, Note: "the clock was moved"}}}
	x := &Examination{}
	x.remarks(f)
	if len(x.Problems) != 1 || !strings.HasSuffix(x.Problems[0], "n1 names its folder") || len(x.Facts) != 1 || x.Facts[0] != "remark: the clock was moved" {
		t.Errorf("problems %q, facts %q", x.Problems, x.Facts)
	}
}

// TestItIsToldWhyOperationsDidNotSucceed: the record of a check is not kept, and which
// errors there are is what the author of a workload must know next.
func TestItIsToldWhyOperationsDidNotSucceed(t *testing.T) {
	f := &runFiles{target: model.Target{Workloads: []model.Workload{{Name: "w", Host: "c1"}, {Name: "idle", Host: "c1"}}}}
	add := func(workload, typ, err string, n int) {
		for range n {
			f.history = append(f.history, record.Entry{Workload: workload, Operation: model.Operation{Type: model.OpType(typ), F: "write", Error: err}})
		}
	}
	add("w", "ok", "", 9)
	add("w", "fail", "connect n1: refused", 3)
	add("w", "info", "timeout after 3s", 1)
	add("w", "fail", "connect n2: refused", 1)
	add("w", "fail", "nack", 2)
	add("w", "fail", "", 1)
	add("idle", "fail", "login denied", 2)
	x := &Examination{}
	x.workloads(f)
	if want := `workload w: 9 operations succeeded, 8 did not: write (4) "connect n1: refused"; write (2) "nack"; write (1) ""; 1 more`; len(x.Facts) != 1 || x.Facts[0] != want {
		t.Errorf("facts %q, want %q", x.Facts, want)
	}
	if want := `(2 failed): write (2) "login denied"; its`; len(x.Problems) != 1 || !strings.Contains(x.Problems[0], want) {
		t.Errorf("problems %q, want %q", x.Problems, want)
	}
}

// TestWhatCrossesAPortIsNamed: the commonest types with their share, so that one
// sees whether the reader understands.
func TestWhatCrossesAPortIsNamed(t *testing.T) {
	f := &runFiles{target: model.Target{Protocols: []model.Protocol{{Port: 7000, Transport: "tcp", Dissector: "text"}}}}
	for typ, n := range map[string]int{"text A": 50, "text other": 30, "text B": 15, "text C": 5} {
		for range n {
			f.events = append(f.events, model.Event{Kind: model.EventMessage, Message: &model.Message{Type: typ, Stream: "tcp x", ToPort: 7000}})
		}
	}
	x := &Examination{}
	x.protocols(f)
	if want := `protocol text on tcp port 7000: 100 messages, most are "text A" (50 %), "text other" (30 %), "text B" (15 %)`; len(x.Problems) > 0 || x.Facts[0] != want {
		t.Errorf("problems %q, facts %q, want %q", x.Problems, x.Facts, want)
	}
}
