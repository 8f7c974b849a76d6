package nodes

import (
	"regexp"
	"strings"
	"sync"
)

// lastLine keeps what a process printed last, and the last of its lines that tells of an error:
// many programs end with advice, an address or a stack trace.
type lastLine struct {
	mu        sync.Mutex
	last, why string
	since     int // lines after why
}

// errorWords are in lines that say why a program gives up.
var errorWords = regexp.MustCompile(`(?i)\b(?:error|fatal|panic|exception|fail(?:ed|ure|s)?|cannot|can't|could not|denied|refused|no such|not found|invalid)\b|(?-i:[A-Za-z](?:Error|Exception))\b`)

// near is how many lines later a line is no reason any more.
const near = 20

// enter takes a line; empty ones do not count.
func (l *lastLine) enter(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = line
	if l.since++; errorWords.MatchString(line) {
		l.why, l.since = line, 0
	}
}

// String is the line, shortened; "" if there is none.
func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.last
	if l.why != "" && l.since <= near {
		s = l.why
	}
	return s[:min(len(s), 300)]
}
