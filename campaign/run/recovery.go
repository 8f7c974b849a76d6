package run

import (
	"context"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// settling asks the target what holds; nodes.Processes says what each call does.
type settling interface {
	Settle(ctx context.Context, all []model.Condition, also func() []string) []string
	AskQuiesce(ctx context.Context, host model.NodeID) error
}

// recover waits until the target is stable again and the invariants hold.
func (r *run) recover(ctx context.Context) record.Recovery {
	rec := record.Recovery{HealedAt: r.s.now(), Limit: r.target.Timing.Recover}
	if started := r.started(ctx); started {
		rec.HealedAt = r.s.now() // crashed until now
	} else if at := r.s.healedAt(); at > 0 {
		rec.HealedAt = at
	}
	left := max(rec.HealedAt+rec.Limit-r.s.now(), 3*time.Second)
	rctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	rec.Pending = r.settles.Settle(rctx, r.target.Stable, func() []string {
		var out []string
		for _, v := range r.s.violated() {
			out = append(out, v.String())
		}
		return out
	})
	rec.Stable = len(rec.Pending) == 0
	if rec.Stable {
		rec.StableAt = r.s.now()
	} else {
		rec.Violated = r.s.violated()
	}
	if q := r.target.Quiesce; q != nil && rec.Stable {
		rec.QuietAt = r.quiesce(ctx, q)
	}
	rec.Final = r.s.values()
	return rec
}

// started waits until the servers that crashed are being started no more: what is asked of
// the target before would be answered without them. False: none was when the workload ended.
func (r *run) started(ctx context.Context) bool {
	if r.s.nodes.starting.Load() == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, r.target.Timing.Settle)
	defer cancel()
	for r.s.nodes.starting.Load() > 0 {
		select {
		case <-ctx.Done():
			r.s.Fail("servers that crashed were not started again within %v", r.target.Timing.Settle)
			return true
		case <-time.After(startedEvery):
		}
	}
	return true
}

// startedEvery is how often it is looked whether crashed servers are back.
const startedEvery = 5 * time.Millisecond

// quiesce waits until nothing goes on in the target any more, and returns when that was; 0
// if it was not within the limit, which leaves the run unknown.
func (r *run) quiesce(ctx context.Context, q *model.Quiesce) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, q.Limit)
	defer cancel()
	for _, h := range q.Hosts {
		if err := r.settles.AskQuiesce(ctx, h); err != nil {
			r.s.Note("quiesce: asked %s: %v", h, err)
		}
	}
	if pending := r.settles.Settle(ctx, q.Until, nil); len(pending) > 0 {
		r.s.Fail("the target did not come to rest within %v (quiesce): %s", q.Limit, strings.Join(pending, "; "))
		return 0
	}
	return r.s.now()
}
