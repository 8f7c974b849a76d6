package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// giveUp is an advisory that an item was delivered as often as it may be.
type giveUp struct {
	item     uint64 // its sequence in the stream of items
	advisory uint64 // of this advisory
}

// heardGivenUp takes such an advisory.
func (h *Hub) heardGivenUp(m jetstream.Msg) {
	var a struct {
		Consumer string `json:"consumer"`
		Seq      uint64 `json:"stream_seq"`
	}
	meta, err := m.Metadata()
	if err == nil {
		err = json.Unmarshal(m.Data(), &a)
	}
	if err != nil {
		h.c.Log.Warn("an advisory cannot be read", "err", err)
		return
	}
	g := giveUp{item: a.Seq, advisory: meta.Sequence.Stream}
	h.mu.Lock()
	offered := h.offers[a.Consumer] != nil
	if !offered && h.c.Goes(a.Consumer) {
		h.early[a.Consumer] = append(h.early[a.Consumer], g)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.beside.run(func() { h.giveUp(a.Consumer, g) })
}

// giveUp tells the campaign, unless the run was made after all. It tries until the broker
// answers.
func (h *Hub) giveUp(campaign string, g giveUp) {
	for h.ctx.Err() == nil {
		err := h.tryGiveUp(campaign, g)
		if err == nil {
			return
		}
		h.c.Log.Debug("an advisory", "err", err)
		pause(h.ctx, time.Second)
	}
}

func (h *Hub) tryGiveUp(campaign string, g giveUp) error {
	ctx, cancel := context.WithTimeout(h.ctx, callTime)
	defer cancel()
	h.mu.Lock()
	o := h.offers[campaign]
	if o == nil && h.c.Goes(campaign) {
		h.early[campaign] = append(h.early[campaign], g)
		h.mu.Unlock()
		return nil
	}
	h.mu.Unlock()
	item, err := h.items.GetMsg(ctx, g.item)
	if errors.Is(err, jetstream.ErrMsgNotFound) || o == nil {
		return h.dropAdvisory(ctx, g.advisory)
	}
	if err != nil {
		return err
	}
	run := word(item.Subject, 3)
	_, err = h.results.GetLastMsgForSubject(ctx, h.n.subject("result", campaign, run, "*"))
	switch {
	case err == nil:
		return h.dropAdvisory(ctx, g.advisory)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	case o.takers(run) > 0 && o.takers(run) < maxTakers: // leases ended in outages, and no runner with them
		return errors.Join(h.again(ctx, item), h.dropAdvisory(ctx, g.advisory))
	}
	if !o.tell(run, outcome{givenUp: true, advisory: g.advisory}) {
		return h.dropAdvisory(ctx, g.advisory)
	}
	return nil // it is dropped when the outcome is taken
}

func (h *Hub) dropAdvisory(ctx context.Context, seq uint64) error { return drop(ctx, h.givenUp, seq) }
