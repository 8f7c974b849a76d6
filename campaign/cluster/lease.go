package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"netsplit/model"
)

// health counts the runs in a row that failed on this machine for reasons that are not the
// target's.
type health struct {
	mu  sync.Mutex
	bad int
	why error // that it takes no more
}

// note notes how a run went, and says whether the machine takes more.
func (h *health) note(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.bad = 0
		return h.why
	}
	if h.bad++; isFull(err) {
		h.why = err
	} else if h.bad >= maxFailures {
		h.why = fmt.Errorf("%d runs in a row failed here, the last: %w", h.bad, err)
	}
	return h.why
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, model.ErrFull) }

// take takes items of a campaign, one after the other, until ctx ends or the machine is found
// to be sick.
func (r *Runner) take(ctx context.Context, w Work, bench Bench, sick *health) {
	var c jetstream.Consumer
	for ctx.Err() == nil {
		var err error
		if c == nil {
			c, err = r.js.Consumer(ctx, r.n.items(), w.Campaign)
		}
		var m jetstream.Msg
		if err == nil {
			nctx, stop := context.WithTimeout(ctx, r.c.times.lease)
			m, err = c.Next(jetstream.FetchContext(nctx))
			stop()
		}
		switch {
		case err == nil:
			if sick.note(r.make(ctx, bench, m)) != nil {
				return
			}
		case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrConsumerDeleted):
			c = nil // the campaign is over, which is told, or it is offered anew
			pause(ctx, time.Second)
		case !errors.Is(err, jetstream.ErrNoMessages) && ctx.Err() == nil:
			r.c.Log.Debug("no item", "err", err)
			pause(ctx, time.Second)
		}
	}
}

// make makes the run of an item and sends its record. The item goes back only when the result
// is stored, so that a run is lost with no machine.
// The error is of this machine: where its disk was full, another one makes the run.
func (r *Runner) make(ctx context.Context, bench Bench, m jetstream.Msg) error {
	var w model.WorkItem
	if err := json.Unmarshal(m.Data(), &w); err != nil || w.Run != runOf(m.Subject()) {
		r.c.Log.Error("an item cannot be read", "subject", m.Subject(), "err", err)
		_ = m.TermWithReason("it cannot be read") // if that is not heard, it comes again
		return nil
	}
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.mu.Lock()
	r.cancel[w.Run] = cancel
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.cancel, w.Run)
		delete(r.live, w.Run)
		r.mu.Unlock()
		r.say(nil)
	}()
	r.say(nil)
	r.doing(w, "")
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		r.renew(rctx, m)
	}()
	dir, err := bench.Run(rctx, w, Say{Doing: func(what string) { r.doing(w, what) }, Watch: func(live func(uint64) model.LiveState) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live[w.Run] = live
	}})
	if dir != "" {
		defer bench.Forget(dir)
	}
	if rctx.Err() == nil && !isFull(err) {
		r.send(rctx, w, dir, err)
	}
	why := context.Cause(rctx)
	cancel(nil)
	<-renewed
	if why != nil { // it was stopped, so it says nothing of the machine
		r.giveBack(m, why)
		return nil
	}
	if isFull(err) {
		r.giveBack(m, err)
		return err
	}
	r.giveBack(m, nil)
	return err
}

// giveBack ends the lease of an item: it is done, or another runner takes it at once.
func (r *Runner) giveBack(m jetstream.Msg, why error) {
	ctx, stop := context.WithTimeout(context.Background(), r.c.times.renewal())
	defer stop()
	var err error
	if why == nil || errors.Is(why, errStopped) || errors.Is(why, errOver) {
		err = m.DoubleAck(ctx)
	} else {
		err = m.Nak()
	}
	if err != nil {
		r.c.Log.Debug("an item was not given back; its lease ends", "subject", m.Subject(), "err", err)
	}
}

// renew renews the lease until ctx ends.
func (r *Runner) renew(ctx context.Context, m jetstream.Msg) {
	t := time.NewTicker(r.c.times.renewal())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := m.InProgress(); err != nil {
				r.c.Log.Debug("a lease was not renewed", "subject", m.Subject(), "err", err)
			}
		}
	}
}

func (r *Runner) doing(w model.WorkItem, what string) {
	b, err := json.Marshal(doing{Campaign: w.Campaign, Runner: r.about.Name, What: what})
	if err == nil {
		err = r.nc.Publish(r.n.subject("doing", w.Run), b)
	}
	if err != nil {
		r.c.Log.Debug("doing", "err", err)
	}
}

// send brings a record and a result to the broker. It tries until it succeeds or ctx ends,
// however long the broker is away.
func (r *Runner) send(ctx context.Context, w model.WorkItem, dir string, failed error) {
	res := result{Campaign: w.Campaign, Run: w.Run, Runner: r.about.Name}
	if failed != nil {
		res.Error = model.OneLine(failed.Error())
	}
	for ctx.Err() == nil {
		err := r.trySend(ctx, res, dir)
		if err == nil {
			return
		}
		r.c.Log.Warn("the record of a run was not sent; it is tried again", "run", w.Run, "err", err)
		pause(ctx, time.Second)
	}
}

func (r *Runner) trySend(ctx context.Context, res result, dir string) (err error) {
	if dir != "" {
		records, err := r.js.ObjectStore(ctx, r.n.records())
		if err != nil {
			return err
		}
		res.Record = res.Campaign + "/" + res.Run + "." + nuid.Next()
		if err := put(ctx, records, res.Record, dir); err != nil {
			return err
		}
	}
	b, err := json.Marshal(res)
	if err != nil {
		return err
	}
	_, err = r.js.Publish(ctx, r.n.subject("result", res.Campaign, res.Run), b)
	if isSecond(err) { // another runner was first
		return nil
	}
	return err
}
