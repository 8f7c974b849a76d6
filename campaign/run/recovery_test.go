package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record"
	"netsplit/sut/nodes"
)

// restless is a target of which each condition holds from a time on, waited for as a run's
// processes wait for it.
type restless struct {
	nodes.Processes
	start time.Time
	from  map[string]time.Duration // by condition; none: it never holds
	asked []string                 // hosts, each with when
	deaf  error                    // what asking ends with
}

func (r *restless) since() time.Duration { return time.Since(r.start).Round(time.Second) }

func (r *restless) Settle(ctx context.Context, all []model.Condition, also func() []string) []string {
	return r.Processes.Settle(ctx, nil, func() (pending []string) {
		for _, c := range all {
			if from, ever := r.from[c.Name]; !ever || time.Since(r.start) < from {
				pending = append(pending, c.Name+" does not hold")
			}
		}
		if also != nil {
			pending = append(pending, also()...)
		}
		return pending
	})
}

func (r *restless) AskQuiesce(_ context.Context, host model.NodeID) error {
	r.asked = append(r.asked, fmt.Sprintf("%s at %v", host, r.since()))
	return r.deaf
}

// TestARunWaitsUntilItsTargetIsAtRest once it is stable, and cannot be judged if it is not within
// the limit.
func TestARunWaitsUntilItsTargetIsAtRest(t *testing.T) {
	asked := []string{"n2 at 2s", "n3 at 2s"}
	for name, c := range map[string]struct {
		none   bool // the target has no quiesce
		from   map[string]time.Duration
		deaf   error
		ended  time.Duration // when recovery was over
		quiet  time.Duration // Recovery.QuietAt
		asked  []string
		reason string // of verdict unknown
	}{
		"at rest later":    {from: map[string]time.Duration{"up": 2 * time.Second, "idle": 5 * time.Second, "empty": 7 * time.Second}, ended: 7 * time.Second, quiet: 7 * time.Second, asked: asked},
		"at rest already":  {from: map[string]time.Duration{"up": 2 * time.Second, "idle": 0, "empty": 0}, ended: 2 * time.Second, quiet: 2 * time.Second, asked: asked},
		"nobody answers":   {from: map[string]time.Duration{"up": 2 * time.Second, "idle": 0, "empty": 3 * time.Second}, deaf: errors.New("refused"), ended: 3 * time.Second, quiet: 3 * time.Second, asked: asked},
		"never at rest":    {from: map[string]time.Duration{"up": 2 * time.Second, "idle": 0}, ended: 12 * time.Second, asked: asked, reason: "the target did not come to rest within 10s (quiesce): empty does not hold"},
		"too late":         {from: map[string]time.Duration{"up": 2 * time.Second, "idle": 13 * time.Second, "empty": 0}, ended: 12 * time.Second, asked: asked, reason: "did not come to rest within 10s (quiesce): idle does not hold"},
		"not stable":       {from: map[string]time.Duration{"idle": 0, "empty": 0}, ended: 20 * time.Second},
		"without such one": {none: true, from: map[string]time.Duration{"up": 2 * time.Second}, ended: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := testSession(t, model.Scenario{}, &fakeGate{})
				target := &restless{start: time.Now(), from: c.from, deaf: c.deaf}
				r := &run{s: s, settles: target, target: &model.Target{Stable: []model.Condition{{Name: "up"}}, Timing: model.Timing{Recover: 20 * time.Second},
					Quiesce: &model.Quiesce{Hosts: []model.NodeID{"n2", "n3"}, Until: []model.Condition{{Name: "idle"}, {Name: "empty"}}, Limit: 10 * time.Second}}}
				if c.none {
					r.target.Quiesce = nil
				}
				rec := r.recover(t.Context())
				if rec.QuietAt.Round(time.Second) != c.quiet || target.since() != c.ended || !slices.Equal(target.asked, c.asked) || rec.Stable != (name != "not stable") {
					t.Errorf("%+v after %v, asked %v; want quiet at %v, after %v, asked %v", rec, target.since(), target.asked, c.quiet, c.ended, c.asked)
				}
				var ev record.Evidence
				s.mu.Lock()
				s.report(&ev)
				s.mu.Unlock()
				if c.reason == "" {
					if !s.whole() || len(ev.Incomplete) > 0 {
						t.Errorf("incomplete: %v", ev.Incomplete)
					}
					return
				}
				if v := check.Judge(check.Record{Target: r.target, Incomplete: ev.Incomplete, Recovery: rec}); v.Value != model.VerdictUnknown || !strings.Contains(v.Reason, c.reason) {
					t.Errorf("%s: %s, want unknown: %s", v.Value, v.Reason, c.reason)
				}
			})
		})
	}
}
