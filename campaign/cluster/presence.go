package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// tend disconnects runners that are not invited any more, and has a broker whose disk was full
// go on.
func (h *Hub) tend() {
	if err := h.broker.expel(); err != nil {
		h.c.Log.Warn("a runner could not be disconnected", "err", err)
	}
	if !h.broker.isSick() || !h.c.HasRoom() {
		return
	}
	if err := h.broker.restart(); err != nil {
		h.c.Log.Warn("the broker does not start; it is tried again", "err", err)
		return
	}
	h.c.Log.Info("the broker has room on its disk and goes on")
}

// watch notices runners that are silent, and tends the broker.
func (h *Hub) watch(ctx context.Context) {
	t := time.NewTicker(h.c.times.beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if h.broker != nil {
			h.tend()
		}
		h.mu.Lock()
		var silent []model.Runner
		for instance, r := range h.runners {
			if time.Since(r.Seen) > h.c.times.gone() {
				delete(h.runners, instance)
				r.State, r.Reason = model.RunnerGone, fmt.Sprintf("nothing was heard of it for %v", h.c.times.gone())
				silent = append(silent, r)
			}
		}
		h.count()
		h.mu.Unlock()
		for _, r := range silent {
			h.c.Changed(r)
		}
	}
}

// heard takes a runner's beat.
func (h *Hub) heard(m *nats.Msg) {
	var r model.Runner
	if len(m.Data) > maxWord || json.Unmarshal(m.Data, &r) != nil || r.Name != word(m.Subject, 2) || !token.MatchString(r.Instance) || r.Slots < 0 || r.Slots > maxSlots {
		h.c.Log.Warn("what a runner says of itself is not taken", "subject", m.Subject)
		return
	}
	r.Seen = time.Now()
	maps.DeleteFunc(r.InForce, func(s model.Shape, n int) bool { return !slices.Contains(model.Shapes(), s) || n < 1 || n > maxSlots })
	h.mu.Lock()
	if !h.buckets[r.Name] {
		h.buckets[r.Name] = true
		h.beside.run(func() { h.makeBucket(r.Name) })
	}
	old, known := h.runners[r.Instance]
	if known && old.Name != r.Name || !known && len(h.runners) >= maxRunners {
		h.mu.Unlock()
		return
	}
	if r.State == model.RunnerGone {
		delete(h.runners, r.Instance)
	} else {
		h.runners[r.Instance] = r
	}
	changed := !known || old.State != r.State || old.Reason != r.Reason || old.Campaign != r.Campaign
	if changed || old.Slots != r.Slots {
		h.count()
	}
	h.mu.Unlock()
	if changed {
		h.c.Changed(r)
	}
}

// Bounds of what a runner says of itself.
const (
	maxWord    = 64 << 10
	maxSlots   = 1000
	maxRunners = 100_000
)

// makeBucket makes the place for a runner's records.
func (h *Hub) makeBucket(runner string) {
	_, err := h.js.CreateOrUpdateObjectStore(h.ctx, jetstream.ObjectStoreConfig{Bucket: h.n.records(runner), Storage: jetstream.FileStorage})
	if err != nil && h.ctx.Err() == nil {
		h.c.Log.Warn("there is no place for a runner's records; it is made with its next word", "runner", runner, "err", err)
		h.mu.Lock()
		delete(h.buckets, runner)
		h.mu.Unlock()
	}
}

// count gives each campaign the places of its runners. The caller holds mu.
func (h *Hub) count() {
	n := map[string]int{}
	for _, r := range h.runners {
		if r.State == model.RunnerReady {
			n[r.Campaign] += r.Slots
		}
	}
	for campaign, o := range h.offers {
		o.slots.set(n[campaign])
	}
}

// Runners are those that were heard of last, by name.
func (h *Hub) Runners() []model.Runner {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]model.Runner, 0, len(h.runners))
	for _, r := range h.runners {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b model.Runner) int {
		return strings.Compare(a.Name+"/"+a.Instance, b.Name+"/"+b.Instance)
	})
	return out
}

func (h *Hub) heardDoing(m *nats.Msg) {
	var d doing
	if len(m.Data) > maxWord || json.Unmarshal(m.Data, &d) != nil {
		return
	}
	run := word(m.Subject, 3)
	h.mu.Lock()
	o := h.offers[d.Campaign]
	h.mu.Unlock()
	if o == nil || !o.awaits(run) {
		return
	}
	if d.What == "" {
		o.taken(run, taker{word(m.Subject, 2), d.Instance})
		return
	}
	if slices.Contains([]string{model.DoingTemplate, model.DoingStart, model.DoingWorkload, model.DoingRecovery}, d.What) {
		h.c.Doing(d.Campaign, run, d.What)
	}
}

// heardBack hands a run out anew that its runner gave back, as if for the first time. The
// answer says what is wrong; "" is well.
func (h *Hub) heardBack(m *nats.Msg) {
	h.beside.run(func() {
		ctx, cancel := context.WithTimeout(h.ctx, callTime)
		defer cancel()
		said := ""
		if err := h.handBack(ctx, m.Data); err != nil {
			said = err.Error()
		}
		if err := m.Respond([]byte(said)); err != nil {
			h.c.Log.Debug("a run was given back, and its runner is not told", "err", err)
		}
	})
}

func (h *Hub) handBack(ctx context.Context, data []byte) error {
	var b back
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	h.mu.Lock()
	o := h.offers[b.Campaign]
	h.mu.Unlock()
	if o == nil || o.isSettled(b.Run) {
		return fmt.Errorf("nobody needs run %s", b.Run)
	}
	item, err := h.items.GetMsg(ctx, b.Item)
	if err != nil {
		return err
	}
	if subject := h.n.subject("item", b.Campaign, b.Run); item.Subject != subject {
		return fmt.Errorf("item %d is not run %s", b.Item, b.Run)
	}
	o.leaves(b.Run, b.Instance)
	return h.again(ctx, item)
}
