package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsplit/model"
)

// Start starts the target and waits until it is stable, and notes where the
// time went.
func (p *Processes) Start(ctx context.Context) error {
	err := p.settled(ctx, p.c.Kit.Target.Timing.Settle)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, p.distrust())
	}
	return err
}

// Took is how long the servers took to start, and the cluster then to settle.
func (p *Processes) Took() (start, settle time.Duration) { return p.starting, p.settling }

// settled begins and says why the target did not come up, or what was still
// pending at the limit.
func (p *Processes) settled(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pending := p.begin(ctx)
	switch {
	case len(pending) == 0:
		return nil
	case ctx.Err() == nil:
		return fmt.Errorf("the target could not be started: %s", joined(pending))
	}
	return fmt.Errorf("the target did not become stable within %v: %s", limit, joined(pending))
}

// begin makes the hosts' directories, starts the target's processes in the
// order of the file, each when the conditions it comes after hold, and waits
// until all conditions hold or ctx ends.
func (p *Processes) begin(ctx context.Context) []string {
	failed := func(err error) []string { return []string{err.Error()} }
	began := time.Now()
	var err error
	if p.control, err = p.listen(); err != nil {
		return failed(err)
	}
	if p.logs, err = newLogs(p.c.Kit.Target.Logs, p.c.Journal.Number, p.keepLine, append(p.folders(), p.c.Dir, p.c.Kit.cache)...); err != nil {
		return failed(err)
	}
	if err := p.prepare(); err != nil {
		return failed(err)
	}
	if err := p.freshen(); err != nil {
		return failed(err)
	}
	copied, err := p.fromTemplate()
	if err != nil {
		return failed(err)
	}
	p.tail(ctx)
	// A server that ends while the others start will not come back.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.gone = cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.gone = nil
		p.mu.Unlock()
	}()
	defer func() { p.failed.Store(p.failed.Load() || errors.Is(context.Cause(ctx), errEnded)) }()
	if pending := p.startServers(ctx, copied); len(pending) > 0 {
		return because(ctx, pending)
	}
	p.starting = time.Since(began)
	pending := because(ctx, p.Settle(ctx, p.c.Kit.Target.Stable, nil))
	p.settling = time.Since(began) - p.starting
	return pending
}

// What is told to Processes.gone wraps one of these: a server ended by itself, or
// the connection to its host did.
var (
	errEnded = errors.New("ended by itself while the target started")
	errBroke = errors.New("broke while the target started")
)

// because puts the end of a server before what did not hold because of it.
func because(ctx context.Context, pending []string) []string {
	if cause := context.Cause(ctx); len(pending) > 0 && (errors.Is(cause, errEnded) || errors.Is(cause, errBroke)) {
		return []string{cause.Error()}
	}
	return pending
}

// startServers starts the processes in the order of the file; those that only
// set the cluster up are left out if that was done.
func (p *Processes) startServers(ctx context.Context, setUp bool) []string {
	for _, base := range p.c.Kit.Target.Processes {
		if base.Manual || base.Once && setUp {
			continue
		}
		if len(base.After) > 0 {
			if pending := p.Settle(ctx, p.Conditions(base.After), nil); len(pending) > 0 {
				return pending
			}
		}
		if base.Once {
			if err := p.once(ctx, base); err != nil {
				p.failed.Store(ctx.Err() == nil)
				return []string{err.Error()}
			}
			continue
		}
		for i, h := range base.Hosts {
			if i > 0 && len(base.InTurn) > 0 {
				if pending := p.Settle(ctx, on(base.Hosts[i-1], p.Conditions(base.InTurn)), nil); len(pending) > 0 {
					return pending
				}
			}
			if err := p.server(h, base.Name); err != nil {
				return []string{err.Error()}
			}
		}
	}
	return nil
}

// on are the conditions, to hold on one host alone.
func on(h model.NodeID, all []model.Condition) []model.Condition {
	out := slices.Clone(all)
	for i := range out {
		out[i].Hosts = []model.NodeID{h}
	}
	return out
}

// once runs a command of the set-up on its hosts, side by side, to its end.
func (p *Processes) once(ctx context.Context, base model.Process) error {
	errs := make([]error, len(base.Hosts))
	var wg sync.WaitGroup
	for i, h := range base.Hosts {
		wg.Go(func() {
			last := new(lastLine)
			pr, err := p.spawn(h, base.Name, last)
			if err != nil {
				errs[i] = err
				return
			}
			ended := "did not end in time"
			select {
			case <-pr.Done():
				ended = ""
			case <-ctx.Done():
			}
			x, err := pr.Stop(stopLimit)
			if ended == "" && err == nil && !x.Success() {
				ended = fmt.Sprintf("ended with %s", x)
			}
			switch {
			case ended != "":
				errs[i] = fmt.Errorf("%s on %s %s; it printed %q; all output is in %s%s", base.Name, h, ended, last.String(), p.logPath(h, base.Name), mayLack(p.rights(base.Name), last.String()))
			case err != nil:
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tail reads the log files that the target names, until the servers are gone.
func (p *Processes) tail(ctx context.Context) {
	if len(p.c.Kit.Target.Logs.Files) == 0 {
		return
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	hosts := p.Hosts()
	p.unread = make([]error, len(hosts))
	for i, h := range hosts {
		p.tails.Go(func() {
			if err := p.logs.tail(ctx, h, p.dirOf(h), p.c.Kit.Target.Logs.Files, p.c.Start, p.copies(h)); err != nil {
				p.unread[i] = fmt.Errorf("log files of %s: %w", h, err)
			}
		})
	}
}
