package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut"
	"netsplit/sut/nodes"
)

// Play is a script: it acts on a target that runs and is stable. Its error is a failure of
// netsplit or of the testbed. A failure of the target is a failed step instead.
type Play func(ctx context.Context, l *Live) error

// Live is a run under way, for a script. The target has settled, and nothing happens except
// what the script does. Cuts are made at line rate, and Live waits for the proof that they
// hold. Everything is recorded. One goroutine uses a Live; so there is one global order of
// the script's operations.
type Live struct {
	r    *run
	cuts []*scriptCut     // not healed, in the order in which they began
	done []model.CutProof // healed
	// faults are the message faults that act, by name: their places among the scenario's, from 1.
	faults map[string]int
}

// healLimit bounds the heal of a cut that a script left behind.
const healLimit = time.Minute

// OpResult is how an operation of a script ended.
type OpResult = nodes.OpResult

func (r *run) script(ctx context.Context) {
	r.s.Mark(model.EventWorkload)
	r.live = &Live{r: r}
	err := r.live.guarded(ctx, r.c.Play)
	for len(r.live.cuts) > 0 { // the script has ended without healing them
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
		_, herr := r.live.Heal(hctx, r.live.cuts[len(r.live.cuts)-1].Name)
		cancel()
		err = errors.Join(err, herr)
	}
	r.s.Mark(model.EventStop)
	if err != nil && ctx.Err() == nil {
		r.s.Fail("%v", err)
	}
}

// guarded plays; a panic there ends the run and is told with its place.
func (l *Live) guarded(ctx context.Context, play Play) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the script panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return play(ctx, l)
}

// Target is the target with its settings filled in.
func (l *Live) Target() *model.Target { return l.r.target }

// Hosts lists the target's hosts, its nodes first.
func (l *Live) Hosts() []model.NodeID { return l.r.procs.Hosts() }

// Now is the time since the run started, on the record's clock.
func (l *Live) Now() time.Duration { return l.r.s.now() }

// Enter enters a step of the script, over now.
func (l *Live) Enter(st model.ScriptStep) {
	s := l.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	s.carryOut(at, nil, s.event(at, model.Event{Kind: model.EventStep, Step: &st}))
}

// Do has a host carry out an operation of the target and returns when it has
// ended. Invocation and answer go to the history under the host's name. The
// error is netsplit's own, or says what is wrong with the name or arguments.
func (l *Live) Do(ctx context.Context, host model.NodeID, name string, args ...string) (OpResult, error) {
	i := slices.Index(l.Hosts(), host)
	if i < 0 {
		return OpResult{}, fmt.Errorf("no host %q: the target has %v", host, l.Hosts())
	}
	op, err := l.r.procs.Operation(host, name, args)
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
	res, err := l.r.procs.Operate(ctx, host, op)
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
	l.r.rec.Append(rundir.HistoryFile, record.Entry{Workload: string(host), Num: l.r.s.Number(), Operation: op})
}

// Holders asks who has a role of the target now, or one of the testbed file
// where the target has none of that name.
func (l *Live) Holders(ctx context.Context, name string) (model.Holders, error) {
	return l.r.procs.Holders(ctx, name)
}

// Period is how long a period of the target is.
func (l *Live) Period(name string) (time.Duration, error) {
	return sut.PeriodOf(l.r.target, sut.ExpandInput{Args: l.r.c.Spec.Args}, name)
}

// Await waits until the named stable conditions hold at once, all of them where
// there is no name, and returns what is still pending at the limit.
func (l *Live) Await(ctx context.Context, limit time.Duration, names []string) ([]string, error) {
	for _, n := range names {
		if !slices.ContainsFunc(l.r.target.Stable, func(c model.Condition) bool { return c.Name == n }) {
			var have []string
			for _, c := range l.r.target.Stable {
				have = append(have, c.Name)
			}
			return nil, fmt.Errorf("target %s has no condition %q: stable has %s", l.r.target.Name, n, strings.Join(have, ", "))
		}
	}
	conditions := l.r.target.Stable
	if len(names) > 0 {
		conditions = l.r.procs.Conditions(names)
	}
	wctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.r.procs.Settle(wctx, conditions, nil), ctx.Err()
}

// Sleep lets time pass.
func (l *Live) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Node acts on a server process of a host. If process is "", it acts on all that the verb
// applies to: it starts them in the order of the file, and does everything else in reverse.
// It returns the names of those that it acted on.
func (l *Live) Node(verb model.NodeVerb, host model.NodeID, process string) ([]string, error) {
	if !slices.Contains(l.Hosts(), host) {
		return nil, fmt.Errorf("no host %q: the target has %v", host, l.Hosts())
	}
	names := []string{process}
	if process == "" {
		names = nil
		for _, q := range l.r.target.Processes {
			if slices.Contains(q.Hosts, host) && !q.Once && !(q.Manual && verb == model.NodeStart) && l.r.procs.Runs(host, q.Name) == (verb != model.NodeStart) {
				names = append(names, q.Name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("host %s has no server to %s now", host, verb)
		}
		if verb != model.NodeStart {
			slices.Reverse(names)
		}
	}
	errs := make([]error, len(names))
	each := func(i int) {
		if err := l.r.procs.Act(model.NodeAction{Verb: verb, Process: names[i], Host: host}); err != nil {
			errs[i] = fmt.Errorf("%s %s on %s: %w", verb, names[i], host, err)
		}
	}
	if verb == model.NodeStart || verb == model.NodeStop { // in order, and these take a while
		for i := range names {
			each(i)
		}
		return names, errors.Join(errs...)
	}
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() { each(i) })
	}
	wg.Wait()
	return names, errors.Join(errs...)
}
