package nodes

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/testbed/proc"
)

// defaultOperation is how long an operation may take that states no limit.
const defaultOperation = 5 * time.Second

// OpResult is how an operation of a script ended.
type OpResult struct {
	// Type is OpOK (it happened), OpFail (it was refused) or OpInfo (nobody
	// knows).
	Type model.OpType
	// Value is what an operation that happened answered.
	Value string
	// Error is what it said instead.
	Error string
}

// Operation is an operation of the target as a host expands it.
func (p *Processes) Operation(host model.NodeID, name string, args []string) (model.ClientOperation, error) {
	return sut.Operation(p.c.Kit.Target, p.inputs[host], name, args)
}

// Operate runs an operation's command on a host and reads its outcome.
func (p *Processes) Operate(ctx context.Context, host model.NodeID, op model.ClientOperation) (OpResult, error) {
	on, ok := p.c.Testbed.Testbed.Host(host)
	if !ok {
		return OpResult{}, fmt.Errorf("the testbed has no host %q", host)
	}
	var mu sync.Mutex // guards the outputs
	var out, said strings.Builder
	line := func(b *strings.Builder) func(time.Time, string) {
		return func(_ time.Time, s string) {
			mu.Lock()
			defer mu.Unlock()
			b.WriteString(s + "\n")
		}
	}
	run, err := p.spec(on, "operation", op.Env, p.c.Kit.Target.Rights, op.Command)
	if err != nil {
		return OpResult{}, err
	}
	run.LogPath, run.Sweep = filepath.Join(p.c.Dir, rundir.LogsDir, fmt.Sprintf("%s-operations.log", host)), true
	run.OnStdout, run.OnLine = line(&out), line(&said)
	pr, err := proc.Start(run)
	if err != nil {
		return OpResult{}, err
	}
	limit := cmp.Or(op.Limit, defaultOperation)
	t := time.NewTimer(limit)
	defer t.Stop()
	late := false
	select {
	case <-pr.Done():
	case <-t.C:
		late = true
	case <-ctx.Done():
	}
	x, err := pr.Kill() // and what it left behind
	if err != nil {
		return OpResult{}, err
	}
	if ctx.Err() != nil {
		return OpResult{}, context.Cause(ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	return outcome(op, out.String(), said.String(), x, late, limit)
}

// outcome reads what an operation's command printed and how it ended.
func outcome(op model.ClientOperation, out, said string, x proc.Status, late bool, limit time.Duration) (OpResult, error) {
	text := strings.TrimSpace(out)
	if op.Refused != "" {
		for _, s := range []string{text, said} {
			if _, ok, err := matchOf(op.Refused, s); err != nil || ok {
				return OpResult{Type: model.OpFail, Error: cmp.Or(matchingLine(op.Refused, s), firstLine(s))}, err
			}
		}
	}
	if late {
		return OpResult{Type: model.OpInfo, Error: fmt.Sprintf("timeout after %v", limit)}, nil
	}
	if status(x) == 0 {
		value, ok, err := matchOf(op.OK, text)
		if err != nil || ok {
			return OpResult{Type: model.OpOK, Value: value}, err
		}
	}
	why := cmp.Or(firstLine(said), firstLine(out), "it printed nothing")
	return OpResult{Type: model.OpInfo, Error: fmt.Sprintf("%s (%s)", why, x)}, nil
}

// firstLine is the first line of a text that has a letter or a digit, or else is not empty,
// shortened.
func firstLine(s string) string {
	signs := ""
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return line[:min(len(line), 200)]
		}
		signs = cmp.Or(signs, line)
	}
	return signs[:min(len(signs), 200)]
}

// matchingLine is the first line of a text that a pattern matches by itself, shortened; "" if
// none is.
func matchingLine(pattern, s string) string {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if _, ok, err := matchOf(pattern, line); err == nil && ok {
			return line[:min(len(line), 200)]
		}
	}
	return ""
}

// matchOf is what a pattern finds in a text: its group "value", or the text.
func matchOf(pattern, text string) (string, bool, error) {
	if pattern == "" {
		return text, true, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", false, err
	}
	m := re.FindStringSubmatch(text)
	if m == nil {
		return "", false, nil
	}
	if i := re.SubexpIndex("value"); i > 0 {
		return m[i], true, nil
	}
	return text, true, nil
}
