package disk

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Trigger names a point: the n-th operation of a kind on a kind of file. An empty
// field matches everything.
type Trigger struct {
	Op Op
	// Path is a pattern for Event.Kind or Event.ToKind: "*" for anything within a
	// name, "**" for folders, too, as in "**/*.log".
	Path string
	// Host and Process are names.
	Host, Process string
	// Thread is a pattern for Event.Thread: "*" for anything. It is compared with
	// the first 15 bytes, all that the kernel keeps.
	Thread string
	// Nth counts the events that match, from 1.
	Nth int
}

// Check says what is wrong with the trigger.
func (t Trigger) Check() error {
	switch t.Op {
	case "", OpCreate, OpOpen, OpWrite, OpCopy, OpSync, OpTruncate, OpAllocate, OpRename, OpUnlink:
	default:
		return fmt.Errorf("no file operation %q", t.Op)
	}
	if !doublestar.ValidatePattern(t.Path) {
		return fmt.Errorf("path: %q is no pattern", t.Path)
	}
	if len(strings.ReplaceAll(t.Thread, "*", "")) > 15 {
		return fmt.Errorf("thread: %q can never match: names of threads have at most 15 bytes", t.Thread)
	}
	if t.Nth < 1 {
		return fmt.Errorf("nth is %d: it counts from 1", t.Nth)
	}
	return nil
}

// Matches says whether the event is one that the trigger counts.
func (t Trigger) Matches(e Event) bool {
	path := func(kind string) bool { return kind != "" && doublestar.MatchUnvalidated(t.Path, kind) }
	return (t.Op == "" || t.Op == e.Op) &&
		(t.Host == "" || t.Host == e.Host) && (t.Process == "" || t.Process == e.Process) &&
		(t.Path == "" || path(e.Kind) || path(e.ToKind)) &&
		(t.Thread == "" || wild(t.Thread, e.Thread))
}

// wild matches a pattern whose only sign is "*"; names of threads hold brackets and
// slashes.
func wild(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return s == pattern
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(s, part)
		if !ok {
			return false
		}
		s = after
	}
	return true
}

// Counter counts the events of a Trigger.
type Counter struct {
	Trigger Trigger
	seen    int
}

// Fires counts the event if it matches, and says whether it is the n-th. It is true
// once.
func (c *Counter) Fires(e Event) bool {
	if !c.Trigger.Matches(e) {
		return false
	}
	c.seen++
	return c.seen == c.Trigger.Nth
}
