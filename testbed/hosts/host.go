package hosts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
)

// host is what one host was told.
type host struct {
	name model.NodeID
	ip   netip.Addr
	// rules are those last confirmed, and seen what they had dropped when last
	// asked, by key. Guarded by Hosts.change.
	rules []hostrules.Rule
	seen  map[string]uint64

	mu       sync.Mutex // guards what follows
	agent    Agent      // that has the rules; nil: none has
	renew    bool       // there are rules
	until    time.Time  // when they expire unless they are renewed
	reported bool       // as lost, and none were confirmed since
	start    *starting  // nil: nobody asks for its agent
}

// starting is an agent that is asked for, and started if it died.
type starting struct {
	over  chan struct{} // closed when the rest is known
	agent Agent
	err   error
}

// agent is the one on a host now. One that has to be started is waited for half of
// Timeout; then its start goes on, and whoever asks later finds it.
func (h *Hosts) agent(ctx context.Context, o *host) (Agent, error) {
	o.mu.Lock()
	s := o.start
	if s == nil {
		s = &starting{over: make(chan struct{})}
		o.start = s
		h.work.Go(func() {
			s.agent, s.err = h.cfg.Agent(h.life, o.name)
			o.mu.Lock()
			o.start = nil
			o.mu.Unlock()
			close(s.over)
		})
	}
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.cfg.timeout/2)
	defer cancel()
	select {
	case <-s.over:
		return s.agent, s.err
	case <-ctx.Done():
		return nil, fmt.Errorf("host %s: its agent died and is being restarted; try again in some seconds", o.name)
	}
}

// each does something for all hosts at once, and what that leaves to do one after
// the other.
func (h *Hosts) each(ctx context.Context, do func(context.Context, *host) (func(), error)) error {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.timeout)
	defer cancel()
	var work sync.WaitGroup
	thens, errs := make([]func(), len(h.all)), make([]error, len(h.all))
	for i, host := range h.all {
		work.Go(func() { thens[i], errs[i] = do(ctx, h.hosts[host.Name]) })
	}
	work.Wait()
	for i, then := range thens {
		if then != nil && errs[i] == nil {
			then()
		}
	}
	return errors.Join(errs...)
}

func (o *host) holder() Agent {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agent
}

// set notes who has the host's rules; nil: nobody, as far as is known.
func (o *host) set(a Agent, renew bool, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agent, o.renew, o.until = a, renew, until
	if a != nil {
		o.reported = false
	}
}

// gap is why the rules that the host last confirmed were not in force all the time
// until next took others, with what those before them had dropped and err; nil if
// they were, or that was told before. held is who was known to have them. A table that
// was given up is replaced without a word, but has counts of none of its rules.
// Hosts.change is held.
func (o *host) gap(held, next Agent, rules []hostrules.Rule, dropped map[string]uint64, err error) error {
	o.mu.Lock()
	reported := o.reported
	o.mu.Unlock()
	switch {
	case reported || len(o.rules) == 0:
		return nil
	case held != nil && held != next:
		return fmt.Errorf("host %s: its agent died, and its rules with it", o.name)
	case err != nil:
		return err
	}
	goOn := map[string]bool{}
	for _, r := range rules {
		goOn[r.Key()] = true
	}
	for _, r := range o.rules {
		if _, there := dropped[r.Key()]; !there && goOn[r.Key()] {
			return fmt.Errorf("host %s lost its rules for a time", o.name)
		}
	}
	return nil
}

func (h *Hosts) renewing(ctx context.Context, o *host) {
	tick := time.NewTicker(h.cfg.renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o.mu.Lock()
		a, renew := o.agent, o.renew
		o.mu.Unlock()
		if a == nil || !renew {
			continue
		}
		rctx, cancel := context.WithTimeout(ctx, lease-h.cfg.renewEvery) // then it has run out
		began := time.Now()
		err := a.Renew(rctx, lease)
		cancel()
		if ctx.Err() != nil {
			continue
		}
		o.mu.Lock()
		if o.agent == a && err == nil {
			o.until = began.Add(lease)
		} else if o.agent == a {
			o.agent, o.reported = nil, true // it is given all rules anew
		}
		o.mu.Unlock()
		if err != nil {
			h.cfg.Lost(o.name, err)
		}
	}
}
