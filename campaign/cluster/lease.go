package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"netsplit/model"
)

// health counts the runs in a row that failed on this machine for reasons that are not the
// target's.
type health struct {
	stopTaking func()

	mu    sync.Mutex
	bad   int
	unfit error // why it takes no more items
}

// note takes the outcome of a run. A machine that is unfit takes no more items.
func (h *health) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.bad = 0
		return
	}
	if h.bad++; model.IsFull(err) || errors.Is(err, errGone) {
		h.unfit = err
	} else if h.bad >= maxFailures {
		h.unfit = fmt.Errorf("%d runs in a row failed here, the last: %w", h.bad, err)
	}
	if h.unfit != nil {
		h.stopTaking()
	}
}

// take takes items of a campaign, one after the other, until taking ends or the machine is
// unfit. Runs under way go on until ctx ends.
func (r *Runner) take(ctx, taking context.Context, w Work, bench Bench, h *health) {
	var c jetstream.Consumer
	for taking.Err() == nil {
		var err error
		if c == nil {
			c, err = r.js.Consumer(taking, r.n.items(), w.Campaign)
		}
		var m jetstream.Msg
		if err == nil {
			nctx, stop := context.WithTimeout(taking, r.c.times.lease)
			m, err = c.Next(jetstream.FetchContext(nctx))
			stop()
		}
		switch {
		case err == nil:
			r.make(ctx, bench, m, h)
		case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrConsumerDeleted):
			c = nil
			if r.isGone(taking, w.Campaign) { // else it is offered anew
				h.note(errGone)
				return
			}
			pause(taking, time.Second)
		case !errors.Is(err, jetstream.ErrNoMessages) && !errors.Is(err, nats.ErrTimeout) && taking.Err() == nil:
			r.c.Log.Debug("no item", "err", err)
			pause(taking, time.Second)
		}
	}
}

// isGone says whether a campaign is not offered any more.
func (r *Runner) isGone(ctx context.Context, campaign string) bool {
	kv, err := r.js.KeyValue(ctx, r.n.campaigns())
	if err == nil {
		_, err = kv.Get(ctx, campaign)
	}
	return errors.Is(err, jetstream.ErrKeyNotFound)
}

// make executes the run of an item and sends its record. It acknowledges the item only when
// the result is stored, so a machine that dies loses no run. Otherwise it gives the item back:
// another runner executes the run, as where the disk of this one is full.
func (r *Runner) make(ctx context.Context, bench Bench, m jetstream.Msg, h *health) {
	var w model.WorkItem
	err := verify(r.authority, m.Subject(), m.Data(), m.Headers().Get(signatureHeader))
	if err == nil {
		err = json.Unmarshal(m.Data(), &w)
	}
	if err != nil || w.Run != word(m.Subject(), 3) || w.Campaign != word(m.Subject(), 2) {
		r.c.Log.Error("an item is not taken", "subject", m.Subject(), "err", err)
		_ = m.TermWithReason("it is not taken") // if that is not heard, it comes again
		return
	}
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &underWay{cancel: cancel, item: m}
	r.mu.Lock()
	if same := r.under[w.Run]; same != nil { // its lease ended while the broker was away
		same.item = m
		r.mu.Unlock()
		r.doing(w, "")
		return
	}
	r.under[w.Run] = u
	r.mu.Unlock()
	r.say(nil)
	r.doing(w, "")
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		r.renew(rctx, u)
	}()
	dir, failed := bench.Run(rctx, w, Say{Doing: func(what string) { r.doing(w, what) }, Watch: func(live func(uint64) model.LiveState) {
		r.mu.Lock()
		defer r.mu.Unlock()
		u.live = live
	}, Cuts: func(inForce func() map[model.Shape]int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		u.cuts = inForce
	}})
	if dir != "" {
		defer bench.Forget(dir)
	}
	stored := rctx.Err() == nil && !model.IsFull(failed) && r.send(rctx, w, dir, failed)
	why := context.Cause(rctx)
	cancel(nil)
	<-renewed
	r.mu.Lock()
	delete(r.under, w.Run) // before somebody gets it again
	r.mu.Unlock()
	if why == nil || stored { // else it was stopped, which says nothing of the machine
		h.note(failed)
	}
	if stored || errors.Is(why, errStopped) || errors.Is(why, errOver) { // nobody needs it any more
		r.acknowledge(u)
	} else {
		r.giveBack(u, w)
	}
	r.say(nil)
}

// last is the item of a run as it was delivered last.
func (r *Runner) last(u *underWay) jetstream.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	return u.item
}

// acknowledge ends an item: it is made, or of no use any more.
func (r *Runner) acknowledge(u *underWay) {
	ctx, stop := context.WithTimeout(context.Background(), r.c.times.renewal())
	defer stop()
	m := r.last(u)
	if err := m.DoubleAck(ctx); err != nil {
		r.c.Log.Debug("an item was not acknowledged; its lease ends", "subject", m.Subject(), "err", err)
	}
}

// giveBack has another runner make a run at once. The daemon hands it out anew; if it is away,
// the broker delivers the item again.
func (r *Runner) giveBack(u *underWay, w model.WorkItem) {
	ctx, stop := context.WithTimeout(context.Background(), r.c.times.renewal())
	defer stop()
	m := r.last(u)
	meta, err := m.Metadata()
	if err == nil {
		var b []byte
		if b, err = json.Marshal(back{w.Campaign, w.Run, meta.Sequence.Stream, r.about.Instance}); err == nil {
			var answer *nats.Msg
			if answer, err = r.nc.RequestWithContext(ctx, r.n.subject("back", r.about.Name), b); err == nil && len(answer.Data) > 0 {
				err = errors.New(string(answer.Data))
			}
		}
	}
	if err == nil {
		return
	}
	if err := errors.Join(err, m.Nak()); err != nil {
		r.c.Log.Debug("an item was not given back", "subject", m.Subject(), "err", err)
	}
}

// renew renews the lease until ctx ends.
func (r *Runner) renew(ctx context.Context, u *underWay) {
	t := time.NewTicker(r.c.times.renewal())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			m := r.last(u)
			if err := m.InProgress(); err != nil {
				r.c.Log.Debug("a lease was not renewed", "subject", m.Subject(), "err", err)
			}
		}
	}
}

func (r *Runner) doing(w model.WorkItem, what string) {
	b, err := json.Marshal(doing{Campaign: w.Campaign, What: what, Instance: r.about.Instance})
	if err == nil {
		err = r.nc.Publish(r.n.subject("doing", r.about.Name, w.Run), b)
	}
	if err != nil {
		r.c.Log.Debug("doing", "err", err)
	}
}

// send brings a record and a result to the broker, and says whether they are stored. It tries
// until they are or ctx ends, however long the broker is away.
func (r *Runner) send(ctx context.Context, w model.WorkItem, dir string, failed error) bool {
	res := result{Instance: r.about.Instance}
	if failed != nil {
		res.Error = model.OneLine(failed.Error())
	}
	if dir != "" {
		res.Record = w.Campaign + "/" + w.Run + "." + nuid.Next()
	}
	sent := dir == ""
	for ctx.Err() == nil {
		var err error
		if !sent {
			err = r.sendRecord(ctx, res.Record, dir)
			sent = err == nil
		}
		if err == nil {
			err = r.sendResult(ctx, w, res)
		}
		if err == nil {
			return true
		}
		r.c.Log.Warn("the record of a run was not sent; it is tried again", "run", w.Run, "err", err)
		pause(ctx, time.Second)
	}
	r.takeBack(w, res)
	return false
}

func (r *Runner) sendRecord(ctx context.Context, name, dir string) error {
	records, err := r.js.ObjectStore(ctx, r.n.records(r.about.Name))
	if err != nil {
		return err
	}
	return put(ctx, records, name, dir)
}

func (r *Runner) sendResult(ctx context.Context, w model.WorkItem, res result) error {
	b, err := json.Marshal(res)
	if err != nil {
		return err
	}
	_, err = r.js.Publish(ctx, r.n.subject("result", w.Campaign, w.Run, r.about.Name), b)
	if isDuplicate(err) { // stored by a try whose answer was lost
		return nil
	}
	return err
}

// takeBack removes a record that nobody waits for; it may not have come whole.
func (r *Runner) takeBack(w model.WorkItem, res result) {
	if res.Record == "" {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), r.c.times.renewal())
	defer stop()
	records, err := openStore(ctx, r.js, r.n.records(r.about.Name))
	if err == nil {
		err = records.Delete(ctx, res.Record)
	}
	if err != nil {
		r.c.Log.Debug("a record that nobody needs stays until its campaign ends", "run", w.Run, "err", err)
	}
}
