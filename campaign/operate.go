package campaign

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/campaign/proc"
	"netsplit/campaign/record"
	"netsplit/campaign/target"
	"netsplit/model"
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

// Do has a host carry out an operation of the target and returns when it has
// ended. Invocation and answer go to the history under the host's name. The
// error is netsplit's own, or says what is wrong with the name or arguments.
func (l *Live) Do(ctx context.Context, host model.NodeID, name string, args ...string) (OpResult, error) {
	in, ok := l.r.procs.inputs[host]
	i := slices.Index(l.Hosts(), host)
	if !ok || i < 0 {
		return OpResult{}, fmt.Errorf("no host %q: the target has %v", host, l.Hosts())
	}
	op, err := target.Operation(l.r.target, in, name, args)
	if err != nil {
		return OpResult{}, err
	}
	h := model.Operation{Process: i, Type: model.OpInvoke, F: name, Time: l.Now()}
	for j, k := range op.Takes {
		switch k {
		case "key":
			h.Key = args[j]
		case "value":
			h.Value = args[j]
		case "node":
			h.Node = model.NodeID(args[j])
		}
	}
	l.history(host, h)
	res, err := l.execute(ctx, host, op)
	if err != nil {
		return res, err
	}
	h.Type, h.Time, h.Error = res.Type, l.Now(), res.Error
	if res.Type == model.OpOK && h.Value == "" {
		h.Value = res.Value
	}
	l.history(host, h)
	return res, nil
}

func (l *Live) history(host model.NodeID, op model.Operation) {
	l.r.rec.Append(record.HistoryFile, record.Entry{Workload: string(host), Operation: op})
}

// execute runs an operation's command on a host and reads its outcome.
func (l *Live) execute(ctx context.Context, host model.NodeID, op model.ClientOperation) (OpResult, error) {
	p := l.r.procs
	on, ok := l.r.bed.Testbed.Host(host)
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
	pr, err := proc.Start(proc.Spec{Host: on, Dir: p.dirOf(host), Env: p.env(op.Env), Argv: p.named(host, op.Command),
		LogPath: filepath.Join(l.r.dir, record.LogsDir, fmt.Sprintf("%s-operations.log", host)), OnStdout: line(&out), OnLine: line(&said)})
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
				return OpResult{Type: model.OpFail, Error: firstLine(s)}, err
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
