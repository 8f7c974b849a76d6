package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
)

func collect(t *testing.T, p model.LogPatterns) (*logs, *[]record.LogLine) {
	t.Helper()
	var kept []record.LogLine
	l, err := newLogs(p, new(recorder).Number, func(file string, x record.LogLine) {
		if file == rundir.LogLinesFile {
			kept = append(kept, x)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, &kept
}

// TestStackTracesStayWithTheirLine feeds two interleaved streams.
func TestStackTracesStayWithTheirLine(t *testing.T) {
	l, kept := collect(t, model.LogPatterns{Fatal: []string{"ERROR"}, Allow: []string{"harmless"}, Context: 3})
	n1, n2 := record.LogLine{Host: "n1", Process: "p"}, record.LogLine{Host: "n2", Process: "p"}
	l.line(n1, "ERROR one")
	l.line(n2, "ERROR two")
	l.line(n1, "java.lang.NullPointerException: x")
	l.line(n2, "INFO all well")
	l.line(n1, "\tat a.B.c(D.java:1)")
	l.line(n1, "Caused by: java.io.IOException")
	l.line(n1, "\tat one line beyond the limit")
	l.line(n1, "ERROR three")
	l.line(n1, "ERROR harmless")
	l.flush()
	var got []string
	for _, k := range *kept {
		got = append(got, string(k.Host)+" "+k.Line+": "+strings.Join(k.Context, "|"))
	}
	want := []string{"n2 ERROR two: ", "n1 ERROR one: java.lang.NullPointerException: x|\tat a.B.c(D.java:1)|Caused by: java.io.IOException", "n1 ERROR three: "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEachLineIsKeptOnceAndNumbered; a fatal one once more, with its number.
func TestEachLineIsKeptOnceAndNumbered(t *testing.T) {
	var got []string
	l, err := newLogs(model.LogPatterns{Fatal: []string{"ERROR"}}, new(recorder).Number, func(file string, x record.LogLine) {
		got = append(got, fmt.Sprintf("%s %d %s: %s %v", file, x.Num, x.File, x.Line, x.Context))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INFO", "ERROR", "\tat x", "INFO again"} {
		l.line(record.LogLine{Host: "n1", Process: "p", File: "f"}, text)
	}
	want := []string{"lines.jsonl 1 f: INFO []", "lines.jsonl 2 f: ERROR []", "lines.jsonl 3 f: \tat x []", "lines.jsonl 4 f: INFO again []", "loglines.jsonl 2 f: ERROR [\tat x]"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestColoursAreNoPartOfALine: patterns and stack traces find what a program prints
// in colours, as it would print it to a file.
func TestColoursAreNoPartOfALine(t *testing.T) {
	l, kept := collect(t, model.LogPatterns{Fatal: []string{"^ERROR .*broken$"}, Allow: []string{"^ERROR harmless"}})
	n1 := record.LogLine{Host: "n1", Process: "p"}
	l.line(n1, "\x1b[38;5;160mERROR it is broken\x1b(B\x1b[m")
	l.line(n1, "\x1b[1;31m\tat a.B.c(D.java:1)\x1b[m")
	l.line(n1, "\x1b[31mERROR harmless and broken\x1b[0m")
	l.line(n1, "\x1b]0;title\x07ERROR [x] is broken\x1b[K")
	l.flush()
	if got := firstLines(*kept); got != "ERROR it is broken|ERROR [x] is broken" || len((*kept)[0].Context) != 1 || (*kept)[0].Context[0] != "\tat a.B.c(D.java:1)" {
		t.Errorf("kept %+v", *kept)
	}
}

// TestFoldersOfOursAreNoWordsOfTheSystem: a user named the folder of the records "corrupt".
func TestFoldersOfOursAreNoWordsOfTheSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corrupt")
	link := filepath.Join(t.TempDir(), "corrupted")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	var got []string
	l, err := newLogs(model.LogPatterns{Fatal: []string{"(?i)corrupt"}}, new(recorder).Number, func(file string, x record.LogLine) {
		if file == rundir.LogLinesFile {
			got = append(got, strings.ReplaceAll(x.Line, dir, "DIR"))
		}
	}, link, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Store Directory: " + dir + "/n3", "in " + link + "/n3", dir + "/n3/1.blk is corrupt", "it is Corrupt"} {
		l.line(record.LogLine{Host: "n1", Process: "p"}, text)
	}
	l.flush()
	if want := []string{"DIR/n3/1.blk is corrupt", "it is Corrupt"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// firstLines are the lines that matched, without what continued them.
func firstLines(kept []record.LogLine) string {
	var out []string
	for _, k := range kept {
		out = append(out, k.Line)
	}
	return strings.Join(out, "|")
}

// TestALineOfTheTraceAllows: what is kept with a match can allow it, however the
// match ends; what follows an allowed line is judged by itself.
func TestALineOfTheTraceAllows(t *testing.T) {
	l, kept := collect(t, model.LogPatterns{Fatal: []string{"^ERROR", `^java\.lang\.`}, Allow: []string{`at a\.Known\.`, "^Caused by: java.io.IOException: reset$", "^ERROR connection"}, Context: 3})
	n1 := record.LogLine{Host: "n1", Process: "p"}
	for _, text := range []string{
		"ERROR one", "java.lang.NullPointerException", "\tat a.Known.place(K.java:1)", "INFO",
		"ERROR two", "java.lang.NullPointerException", "\tat a.Other.place(K.java:1)", "Caused by: java.io.IOException: reset", "INFO",
		"ERROR three", "java.lang.NullPointerException", "\tat a.Other.place(K.java:1)", "Caused by: java.io.IOException: reset by a peer", "\tat a.Known.beyond(K.java:1)", "INFO",
		"ERROR connection lost", "java.lang.IllegalStateException", "\tat a.Other.place(K.java:1)", "INFO",
		"ERROR four", "\tat a.Known.place(K.java:1)",
	} {
		l.line(n1, text)
	}
	l.flush()
	if got, want := firstLines(*kept), "ERROR three|java.lang.IllegalStateException"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
}
