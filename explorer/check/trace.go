package check

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// trace is what a stack trace says: which exception or panic, and in which
// function of the system's own.
type trace struct {
	what, message string
	// where is the first own frame, without line numbers; "" if there is none.
	where string
}

// readTrace reads the stack trace of a log line and the lines that continue
// it: of Java (Throwable.printStackTrace), Python (module traceback) or Go
// (panics). own are prefixes of the system's own functions; none: all that
// belong neither to the language nor to a common library.
func readTrace(line string, context []string, own []string) (trace, bool) {
	lines := append([]string{line}, context...)
	for _, read := range []func([]string, []string) (trace, bool){pythonTrace, goTrace, javaTrace} {
		if t, ok := read(lines, own); ok {
			return t, true
		}
	}
	return trace{}, false
}

// borrowed are packages that are not what is tested, wherever they occur.
var borrowed = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "io.netty.", "org.jboss.netty.", "com.google.",
	"org.eclipse.jetty.", "org.mortbay.", "org.apache.commons.", "org.apache.log4j.", "org.apache.logging.", "org.slf4j.", "ch.qos.logback.",
	"org.apache.thrift.", "com.fasterxml.", "jakarta.", "org.glassfish."}

func isOwn(name string, own []string) bool {
	for _, p := range own {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	if len(own) > 0 {
		return false
	}
	for _, p := range borrowed {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return true
}

var (
	javaHead  = regexp.MustCompile(`^(?:Caused by: )?((?:[\w$]+\.)+[A-Z][\w$]*)(?:\(((?:[\w$]+\.)+[\w$]+)\))?(?::\s*(.*))?$`)
	javaClass = regexp.MustCompile(`\b((?:[a-z][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable)\b)(?:\(((?:[\w$]+\.)+[\w$]+)\))?(?::\s*(.*))?`)
	javaFrame = regexp.MustCompile(`^\s*at (?:[^\s(]*/)?([\w$.<>-]+)\(`)
	hidden    = regexp.MustCompile(`/0x[0-9a-fA-F]+`)       // of a hidden class, Class.getName
	numbered  = regexp.MustCompile(`(\$\$Lambda|\$)\$?\d+`) // anonymous classes, lambdas
	accessor  = regexp.MustCompile(`(Accessor|Proxy)(\d+)`) // made by reflection
	openParen = regexp.MustCompile(`\s*\(most recent call`) // of Python's first line
)

// javaTrace takes the deepest cause, the last one at the left edge.
func javaTrace(lines []string, own []string) (trace, bool) {
	var out trace
	found, framed := false, false
	for i, l := range lines {
		if f := javaFrame.FindStringSubmatch(hidden.ReplaceAllString(l, "")); f != nil {
			name := accessor.ReplaceAllString(numbered.ReplaceAllString(f[1], "$1"), "$1")
			framed = true
			if found && out.where == "" && isOwn(name, own) {
				out.where = name
			}
			continue
		}
		head := javaHead.FindStringSubmatch(l)
		if head == nil && i == 0 {
			head = javaClass.FindStringSubmatch(l)
		}
		if head == nil || framed && !strings.HasPrefix(l, "Caused by:") {
			continue
		}
		next := trace{what: head[1], message: head[3]}
		if head[2] != "" {
			next.what = head[2] // what the other side threw, in a RemoteException
		}
		if found && i > 0 && !hasFrames(lines[i+1:], own) {
			next.where = out.where // its frames are those that were left out
		}
		out, found = next, true
	}
	return out, found && (framed || javaClass.MatchString(out.what))
}

// hasFrames says whether an own frame comes before the next cause.
func hasFrames(lines []string, own []string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, "Caused by:") {
			return false
		}
		if f := javaFrame.FindStringSubmatch(hidden.ReplaceAllString(l, "")); f != nil && isOwn(f[1], own) {
			return true
		}
	}
	return false
}

var (
	pyFrame = regexp.MustCompile(`^\s*File "([^"]+)", line \d+, in (.+)$`)
	pyError = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?::\s*(.*))?$`)
	pyLibs  = regexp.MustCompile(`/(?:site|dist)-packages/|/lib/python[\d.]*/|^<frozen`)
)

// pythonTrace takes the exception that was printed last, and the innermost own
// frame of it.
func pythonTrace(lines []string, own []string) (trace, bool) {
	var out trace
	at := -1
	for i, l := range lines {
		if openParen.MatchString(l) && strings.Contains(l, "Traceback") {
			at, out = i, trace{}
			continue
		}
		if at < 0 {
			continue
		}
		if f := pyFrame.FindStringSubmatch(l); f != nil {
			name := path.Base(f[1]) + " in " + f[2]
			if len(own) > 0 && isOwn(f[1], own) || len(own) == 0 && !pyLibs.MatchString(f[1]) || out.where == "" && len(own) == 0 {
				out.where = name
			}
			continue
		}
		if e := pyError.FindStringSubmatch(l); e != nil && out.what == "" {
			out.what, out.message = e[1], e[2]
		}
	}
	return out, at >= 0 && out.what != ""
}

var (
	goPanic = regexp.MustCompile(`(?:^|\s)(panic: .+|fatal error: .+)$`)
	goFrame = regexp.MustCompile(`^([^\s(]+(?:\(\*?[^)]*\)[^\s(]*)*)\([^\t]*\)$`)
	goInner = regexp.MustCompile(`\.func\d+(?:\.\d+)*`)
)

// goBorrowed are packages through which Go programs panic or log what is fatal:
// the place is that of their caller.
var goBorrowed = []string{"log.", "runtime.", "sync.", "reflect.", "testing.", "go.uber.org/zap", "github.com/sirupsen/logrus", "github.com/rs/zerolog",
	"github.com/coreos/pkg/capnslog", "github.com/golang/glog", "github.com/hashicorp/go-hclog", "github.com/pkg/errors", "k8s.io/klog"}

// goTrace takes the first own frame of the first goroutine printed.
func goTrace(lines []string, own []string) (trace, bool) {
	m := goPanic.FindStringSubmatch(lines[0])
	if m == nil {
		return trace{}, false
	}
	out := trace{what: stable(m[1])}
	for i, l := range lines[1:] {
		f := goFrame.FindStringSubmatch(l)
		if f == nil || i+2 >= len(lines) || !strings.HasPrefix(lines[i+2], "\t") || f[1] == "panic" {
			continue
		}
		name := goInner.ReplaceAllString(f[1], ".func")
		first, _, isPath := strings.Cut(name, "/")
		standard := !strings.Contains(first, ".") && isPath || slices.ContainsFunc(goBorrowed, func(p string) bool { return strings.HasPrefix(name, p) })
		if len(own) > 0 && isOwn(name, own) || len(own) == 0 && !standard {
			out.where = name
			return out, true
		}
	}
	return out, true
}

var (
	logPrefix = regexp.MustCompile(`^(?:#[:\w]*|\[[^\]]*\]|-|\||\(?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE|CRITICAL)\)?:?)\s+`)
	logLevel  = regexp.MustCompile(`TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE|CRITICAL`)
)

// stableLine is a log line without what differs from run to run: the time, the
// thread, ids and numbers. Its level stays.
func stableLine(line string) string {
	rest, level := stable(line), ""
	for {
		p := logPrefix.FindString(rest)
		if p == "" || len(p) == len(rest) {
			break
		}
		if l := logLevel.FindString(p); l != "" && level == "" {
			level = l + " "
		}
		rest = rest[len(p):]
	}
	return level + rest
}

// traceSignature names a log line and its stack trace in the same words in
// every run.
func traceSignature(line string, context []string, own []string) (sig string, t trace) {
	t, ok := readTrace(line, context, own)
	switch {
	case ok && t.where != "":
		return shorten(t.what) + " at " + shorten(t.where), t
	case ok && t.message != "":
		return shorten(t.what) + ": " + stable(t.message), t
	case ok && len(context) > 0:
		return shorten(t.what), t
	}
	return stableLine(line), t
}

// entryHead begins a log line: a time in microseconds, and what stands in brackets
// after it. Two entries rarely have the same; of milliseconds they often do.
var entryHead = regexp.MustCompile(`^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.,]\d{6,}\S*(?: (?:\[\w+\]|<[\w.]+>))+`)

var (
	goRoutine = regexp.MustCompile(`^goroutine \d+ .*\[.+\]:$|^created by |^\[signal |^exit status \d+$|^panic: |^\t?panic\(`)
	throwable = regexp.MustCompile(`^(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b`)
	chained   = regexp.MustCompile(`^(?:During handling of the above exception|The above exception was the direct cause)`)
)

// Continues says whether a line belongs to those before it (a log line and what
// continues it so far) as a part of a stack trace: frames and causes of Java,
// whatever follows a Go panic up to the end of its traces, and a Python
// traceback up to its last exception. What is indented belongs to the line
// before in all of them. Loggers that begin every line of an entry alike, with a
// time in microseconds and whoever logs (Erlang's), show by it what is one entry.
func Continues(before []string, line string) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	if m := entryHead.FindString(line); m != "" {
		return m == entryHead.FindString(before[0])
	}
	switch {
	case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "  "), strings.HasPrefix(line, "Caused by:"), strings.HasPrefix(line, "Suppressed:"):
		return true
	case goPanic.MatchString(before[0]):
		return line == "" || goRoutine.MatchString(line) || goFrame.MatchString(line)
	case slices.ContainsFunc(before, isTraceback):
		// The exception ends the traceback, unless another follows it.
		inFrames := strings.HasPrefix(last, " ") || isTraceback(last)
		return isTraceback(line) || inFrames && pyError.MatchString(line) ||
			(line == "" || chained.MatchString(line)) && (last == "" || pyError.MatchString(last) || chained.MatchString(last))
	case isTraceback(line):
		return len(before) == 1
	}
	return throwable.MatchString(line) && len(before) == 1
}

func isTraceback(line string) bool { return strings.HasPrefix(line, "Traceback (most recent call") }
