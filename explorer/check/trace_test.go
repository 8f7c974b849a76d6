package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestTraces names the traces in testdata/traces, printed by real programs,
// by exception and place. The first line of a file is the signature wanted.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/traces/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("too few traces: %v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
		got, _ := traceSignature(lines[1], lines[2:], nil)
		if got != lines[0] {
			t.Errorf("%s: %q, want %q", f, got, lines[0])
		}
	}
}

func TestStableLine(t *testing.T) {
	for _, c := range [][3]string{
		{"2026-11-21 20:35:11,123 ERROR [ReadStage-1] CassandraDaemon.java:228 - Exception in thread Thread[ReadStage-1,5,main]",
			"2025-01-02 01:02:03,4 ERROR [ReadStage-33] CassandraDaemon.java:228 - Exception in thread Thread[ReadStage-33,5,main]",
			"ERROR CassandraDaemon.java:# - Exception in thread Thread[ReadStage#,main]"},
		{"ERROR [HintedHandoff:1] 2026-11-21 20:35:11,123 AbstractCassandraDaemon.java (line 114) Fatal exception in thread Thread[HintedHandoff:1,1,main]",
			"ERROR [HintedHandoff:12] 2026-11-22 00:35:11,123 AbstractCassandraDaemon.java (line 114) Fatal exception in thread Thread[HintedHandoff:12,1,main]",
			"ERROR AbstractCassandraDaemon.java (line #) Fatal exception in thread Thread[HintedHandoff:#,main]"},
		{"2026-11-21 20:35:11,123 ERROR org.apache.hadoop.hdfs.server.datanode.DataNode: n1:9866:DataXceiver error processing WRITE_BLOCK operation  src: /10.77.0.2:41234 dst: /10.77.0.1:9866",
			"2026-11-21 20:36:19,999 ERROR org.apache.hadoop.hdfs.server.datanode.DataNode: n1:9866:DataXceiver error processing WRITE_BLOCK operation  src: /10.77.0.2:5 dst: /10.77.0.1:9866",
			"ERROR org.apache.hadoop.hdfs.server.datanode.DataNode: n#:DataXceiver error processing WRITE_BLOCK operation src: /# dst: /#"},
		{"1234:M 21 Nov 2026 20:00:00.123 # Guru Meditation: x #redis.c:99", "7:M 1 Jan 2027 00:00:00.000 # Guru Meditation: x #redis.c:7", "Guru Meditation: x #redis.c:#"},
		{"Nov 21 20:00:01 cannot open /var/lib/run-1/data/blk_1073741825_1001.meta", "Nov  3 20:00:01 cannot open /tmp/else/where/blk_1073741899_1099.meta", "cannot open /…/blk_#.meta"},
		{"node 6f9619ff-8b86-d011-b42d-00c04fc964ff at 0x7fff12 Foo@1b6d3586 deadbeef01", "node 00000000-8b86-d011-b42d-00c04fc964ff at 0x1 Foo@ffff1 c0ffee0123", "node # at # Foo@# #"},
		{"FATAL", "FATAL", "FATAL"}, {"", "", ""}, {"2026-11-21 20:35:11", "2026-11-22 20:35:12", "#"},
	} {
		a, b := stableLine(c[0]), stableLine(c[1])
		if a != b {
			t.Errorf("two runs differ: %q and %q", a, b)
		}
		if a != c[2] {
			t.Errorf("got %q, want %q", a, c[2])
		}
	}
}

func FuzzTraceSignature(f *testing.F) {
	files, _ := filepath.Glob("testdata/traces/*.txt")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b), "")
		}
	}
	f.Fuzz(func(t *testing.T, text, own string) {
		lines := strings.Split(text, "\n")
		a, _ := traceSignature(lines[0], lines[1:], strings.Fields(own))
		if len([]rune(a)) > 2*stableRunes+10 {
			t.Errorf("a signature of %d runes: %q", len([]rune(a)), a)
		}
		if strings.ContainsAny(a, "\n\r") {
			t.Errorf("a signature of several lines: %q", a)
		}
	})
}

// TestPrintedAndWritten: one line that reaches two streams is one failure.
func TestPrintedAndWritten(t *testing.T) {
	r := Record{Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL"}}, Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}},
		LogLines: []record.LogLine{{Host: "n1", Process: "server", At: time.Second, Line: "FATAL it"}, {Host: "n1", Process: "logs", File: "logs/a.log", At: 1300 * time.Millisecond, Line: "FATAL it"},
			{Host: "n1", Process: "server", At: 1400 * time.Millisecond, Line: "FATAL it"}, {Host: "n2", Process: "server", At: 1400 * time.Millisecond, Line: "FATAL it"}}}
	if v := Judge(r); len(v.Failures) != 1 || v.Failures[0].Amount != 3 {
		t.Errorf("got %+v", v)
	}
}

// TestALineOfTheTraceAllows: a record that has the line is judged as it would
// have been written.
func TestALineOfTheTraceAllows(t *testing.T) {
	for allow, want := range map[string]int{`at a\.Known\.`: 1, "^FATAL it$": 0, `^\tat a\.Known\.x\(K\)$`: 1, "nothing": 2, `it\n\tat a\.Known`: 1} {
		r := Record{Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL"}, Allow: []string{allow}}, Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}},
			LogLines: []record.LogLine{{Host: "n1", Process: "server", At: time.Second, Line: "FATAL it", Context: []string{"\tat a.Known.x(K)", "\tat b.C.d(E)"}}, {Host: "n2", Process: "server", At: 2 * time.Second, Line: "FATAL it"}}}
		got := 0
		for _, f := range Judge(r).Failures {
			got += f.Amount
		}
		if got != want {
			t.Errorf("allow %q: %d, want %d", allow, got, want)
		}
	}
}

// TestASummarySaysALineOnce: a trace whose words are those of the line, but for
// its ids, adds nothing to it.
func TestASummarySaysALineOnce(t *testing.T) {
	for _, c := range []struct {
		line    string
		context []string
		want    string
	}{
		{"panic: no ID 37dad04a4c9439e8 in cluster 7d84", []string{"", "goroutine 7 [running]:", "main.f()", "\t/srv/app/f.go:4 +0x26"}, "n1 logged at 1.0 s, with nothing cut: panic: no ID 37dad04a4c9439e8 in cluster 7d84"},
		{"FATAL it", []string{"java.lang.IllegalStateException: why", "\tat a.B.c(D)"}, "n1 logged at 1.0 s, with nothing cut: FATAL it: java.lang.IllegalStateException: why"},
	} {
		r := Record{Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL", "^panic:"}}, Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}},
			LogLines: []record.LogLine{{Host: "n1", Process: "server", At: time.Second, Line: c.line, Context: c.context}}}
		fs := Judge(r).Failures
		if len(fs) != 1 || !strings.HasSuffix(fs[0].Summary, c.want) {
			t.Errorf("%+v, want %s", fs, c.want)
		}
		r.Scenario.Steps = []model.Step{{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n1"}}}}
		for began, says := range map[time.Duration]string{2 * time.Second: "1.0 s, before the first fault: ", time.Millisecond: "1.0 s: "} {
			r.Results = []model.StepResult{{Step: 1, By: "time", Began: began}}
			if fs := Judge(r).Failures; len(fs) != 1 || !strings.Contains(fs[0].Summary, says) {
				t.Errorf("a crash at %v: %+v", began, fs)
			}
		}
	}
}

// TestADisturbanceAllows: a line of logs.disturbed is a failure unless hosts were
// apart, or a server was gone, when it was logged or not long before. One that nobody
// has started yet disturbs nothing.
func TestADisturbanceAllows(t *testing.T) {
	const within = 10 * time.Second
	cut := &model.Proof{CutAt: 20 * time.Second, HealAt: 30 * time.Second}
	stop := []NodeAction{{At: 20 * time.Second, NodeAction: model.NodeAction{Verb: model.NodeStop, Process: "server", Host: "n2"}}}
	restart := append(slices.Clone(stop), NodeAction{At: 30 * time.Second, NodeAction: model.NodeAction{Verb: model.NodeStart, Process: "server", Host: "n2"}})
	for _, c := range []struct {
		name    string
		proof   *model.Proof
		actions []NodeAction
		at      time.Duration
		line    string
		allowed bool
	}{
		{"undisturbed", nil, nil, 25 * time.Second, "FATAL lost peer", false},
		{"before the cut", cut, nil, 19 * time.Second, "FATAL lost peer", false},
		{"in the cut", cut, nil, 21 * time.Second, "FATAL lost peer", true},
		{"another line", cut, nil, 21 * time.Second, "FATAL it", false},
		{"soon after the heal", cut, nil, 40 * time.Second, "FATAL lost peer", true},
		{"long after the heal", cut, nil, 41 * time.Second, "FATAL lost peer", false},
		{"a cut that was never healed", &model.Proof{CutAt: 20 * time.Second}, nil, 500 * time.Second, "FATAL lost peer", true},
		{"before a server was stopped", nil, stop, 19 * time.Second, "FATAL lost peer", false},
		{"after it was", nil, stop, 500 * time.Second, "FATAL lost peer", true},
		{"soon after its start", nil, restart, 39 * time.Second, "FATAL lost peer", true},
		{"long after its start", nil, restart, 41 * time.Second, "FATAL lost peer", false},
	} {
		r := Record{Proof: c.proof, Actions: c.actions, LogLines: []record.LogLine{{Host: "n1", Process: "server", At: c.at, Line: c.line}},
			Target: &model.Target{Processes: []model.Process{{Name: "newcomer", Hosts: []model.NodeID{"n3"}, Manual: true}}, Logs: model.LogPatterns{Fatal: []string{"FATAL"}, Disturbed: []model.DisturbedLine{{Match: "lost peer", Within: within}}},
				Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}}}
		v := Judge(r)
		if got := len(v.Failures) == 0; got != c.allowed {
			t.Errorf("%s: allowed %t, want %t", c.name, got, c.allowed)
		}
		var want []model.ExcusedLine
		if c.allowed {
			want = []model.ExcusedLine{{Host: "n1", Process: "server", Line: c.line, Why: "the cut", Count: 1, First: c.at, Last: c.at}}
			if c.proof == nil {
				want[0].Why = "server on n2 is stopped"
			}
		}
		if !slices.Equal(v.Lines, want) {
			t.Errorf("%s: listed as excused %+v, want %+v", c.name, v.Lines, want)
		}
	}
}

// TestTracesContinue: each line of a real trace belongs to it, and what is
// logged next does not.
func TestTracesContinue(t *testing.T) {
	files, _ := filepath.Glob("testdata/traces/*.txt")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")[1:]
		for i := 1; i < len(lines); i++ {
			if !Continues(lines[:i], lines[i]) {
				t.Errorf("%s: %q does not continue the trace", f, lines[i])
			}
		}
		for _, next := range []string{"2026-11-21 20:35:11,123 INFO Server: next", "INFO  [main] next", "server: panicked before"} {
			if Continues(lines, next) {
				t.Errorf("%s: %q continues the trace", f, next)
			}
		}
	}
	head := "2026-11-21 20:35:11,123 ERROR [main] - failed"
	for _, c := range []struct {
		before []string
		line   string
		want   bool
	}{
		{nil, "\tat a.b.c(D.java:1)", false},
		{[]string{head}, "java.lang.NullPointerException: null", true},
		{[]string{head, "java.io.IOException: x", "\tat a.b.c(D.java:1)"}, "java.io.IOException: another", false},
		{[]string{head}, "Traceback (most recent call last):", true},
		// Of one entry of Erlang's logger, every line has the same head.
		{[]string{"2026-11-23 05:17:37.854708+00:00 [error] <0.506.0> ** Reason = badmatch"}, "2026-11-23 05:17:37.854708+00:00 [error] <0.506.0>    [{ra_log,init,1}]", true},
		{[]string{"2026-11-23 05:17:37.854708+00:00 [error] <0.506.0> ** Reason = badmatch"}, "2026-11-23 05:17:37.854708+00:00 [error] <0.507.0> ** Reason = badmatch", false},
		{[]string{"2026-11-23 05:17:37.854708+00:00 [error] <0.506.0> ** Reason = badmatch"}, "2026-11-23 05:17:37.854709+00:00 [error] <0.506.0> ** Reason = badarg", false},
		{[]string{"2026-11-23 05:17:37.854000 ERROR one"}, "2026-11-23 05:17:37.854000 ERROR two", false}, // of milliseconds, padded
		{[]string{head}, head, false}, // what is logged in one millisecond need not be one entry
		{[]string{head}, "", false}, {[]string{head}, "goroutine 1 [running]:", false},
	} {
		if got := Continues(c.before, c.line); got != c.want {
			t.Errorf("%q after %q: %v", c.line, c.before, got)
		}
	}
}

// TestAnAllowedLineIsListedOnce: though a process both prints it and writes it to a
// file, and two checks look for lines that are fatal.
func TestAnAllowedLineIsListedOnce(t *testing.T) {
	line := func(at time.Duration, file string) record.LogLine {
		return record.LogLine{Host: "n1", Process: "server", At: at, Line: "FATAL lost peer", File: file}
	}
	r := Record{Proof: &model.Proof{CutAt: time.Second, HealAt: 9 * time.Second, Links: []model.Link{{Src: "n1", Dst: "n2"}}},
		LogLines: []record.LogLine{line(2*time.Second, ""), line(2*time.Second+time.Millisecond, "server.log"), line(3*time.Second, ""), line(3*time.Second, "server.log")},
		Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL"}, Disturbed: []model.DisturbedLine{{Match: "lost peer"}}},
			Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}, {Name: "fatal-log", Class: model.Broken, With: map[string]string{"packages": "org."}}}}}
	want := []model.ExcusedLine{{Host: "n1", Process: "server", Line: "FATAL lost peer", Why: "the cut", Count: 2, First: 2 * time.Second, Last: 3 * time.Second}}
	if v := Judge(r); len(v.Failures) > 0 || !slices.Equal(v.Lines, want) {
		t.Errorf("failures %v, listed %+v, want %+v", v.Failures, v.Lines, want)
	}
}

// TestAnAllowedLineIsListedInShort: a verdict goes into the store and to users, with
// that of each other run.
func TestAnAllowedLineIsListedInShort(t *testing.T) {
	r := Record{Proof: &model.Proof{CutAt: time.Second, HealAt: 9 * time.Second, Links: []model.Link{{Src: "n1", Dst: "n2"}}},
		LogLines: []record.LogLine{{Host: "n1", Process: "server", At: 2 * time.Second, Line: "FATAL lost peer" + strings.Repeat(" it", 20000)}},
		Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL"}, Disturbed: []model.DisturbedLine{{Match: "lost peer"}}},
			Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}}}
	if v := Judge(r); len(v.Lines) != 1 || len(v.Lines[0].Line) > 400 || !strings.HasPrefix(v.Lines[0].Line, "FATAL lost peer it") {
		t.Errorf("listed %.500v", v.Lines)
	}
}

// TestBetweenTwoCutsOfAScriptNothingIsAllowed: the network was whole then, and what
// one of them cut the other left alone.
func TestBetweenTwoCutsOfAScriptNothingIsAllowed(t *testing.T) {
	cut := func(name string, from, to time.Duration, l model.Link) model.CutProof {
		return model.CutProof{Name: name, Proof: model.Proof{CutAt: from, HealAt: to, HealedAt: to + 300*time.Millisecond, Links: []model.Link{l}}}
	}
	a, b := model.Link{Src: "n1", Dst: "n2"}, model.Link{Src: "n1", Dst: "n3"}
	for at, why := range map[time.Duration]string{1500 * time.Millisecond: "the cut first", 2200 * time.Millisecond: "the cut first", 5 * time.Second: "", 8500 * time.Millisecond: "the cut second", 10 * time.Second: ""} {
		r := Record{Cuts: []model.CutProof{cut("first", time.Second, 2*time.Second, a), cut("second", 8*time.Second, 9*time.Second, b)},
			Proof:    &model.Proof{CutAt: time.Second, HealAt: 9 * time.Second, Links: []model.Link{a, b}},
			LogLines: []record.LogLine{{Host: "n1", Process: "server", At: at, Line: "FATAL lost peer"}},
			Target: &model.Target{Logs: model.LogPatterns{Fatal: []string{"FATAL"}, Disturbed: []model.DisturbedLine{{Match: "lost peer"}}},
				Checks: []model.CheckSpec{{Name: "fatal-log", Class: model.Broken}}}}
		v := Judge(r)
		got := ""
		for _, l := range v.Lines {
			got += l.Why
		}
		if got != why || len(v.Failures) > 0 != (why == "") {
			t.Errorf("at %v: allowed by %q, want %q; failures %v", at, got, why, v.Failures)
		}
		far, _ := reached(model.Need{Via: "n1", From: []model.NodeID{"n3"}, Count: 1}, disturbances(&r, 0, 0), at)
		if (len(far) == 0) != (why == "the cut second") {
			t.Errorf("at %v: n1 reached %v of n3", at, far)
		}
	}
}
