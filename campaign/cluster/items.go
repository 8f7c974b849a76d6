package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// handOut publishes an item, unless a runner has it or has made it. look: it was handed out a
// while ago.
func (o *Offer) handOut(ctx context.Context, w model.WorkItem, look bool) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if most := o.h.maxMessage(); int64(len(b)) > most {
		return fmt.Errorf("the scenario of run %s takes %d bytes, and the broker of the cluster takes at most %d (max_payload)", w.Run, len(b), most)
	}
	for {
		if o.h.isFull() { // it would not answer
			return o.h.Away()
		}
		err := o.publish(ctx, w, b, look)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case model.IsFull(o.h.full(err)):
			return o.h.full(err)
		}
		o.h.c.Log.Warn("a run could not be handed out; it is tried again", "run", w.Run, "err", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (o *Offer) publish(ctx context.Context, w model.WorkItem, b []byte, look bool) error {
	subject := o.h.n.subject("item", w.Campaign, w.Run)
	item, err := o.h.items.GetLastMsgForSubject(ctx, subject)
	if err == nil {
		if look {
			return o.revive(ctx, w.Run, item)
		}
		return nil // it waits, or a runner has it
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	// A runner stores the result before it gives the item back.
	stored, err := o.h.results.GetLastMsgForSubject(ctx, o.h.n.subject("result", w.Campaign, w.Run, "*"))
	if err == nil {
		o.tell(w.Run, outcome{result: readResult(stored.Subject, stored.Data)}) // if it was not heard
		return nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	m, err := o.h.signed(subject, b)
	if err != nil {
		return err
	}
	if _, err = o.h.js.PublishMsg(ctx, m); isDuplicate(err) {
		return nil
	}
	return err
}

// revive hands an item out anew that the broker keeps but takes for delivered and acknowledged: it
// would deliver it to nobody. How an item gets there: see unpublish.
func (o *Offer) revive(ctx context.Context, run string, item *jetstream.RawStreamMsg) error {
	c, err := o.h.items.Consumer(ctx, o.w.Campaign)
	if err != nil {
		return err
	}
	if !forgotten(c.CachedInfo(), item.Sequence) {
		return nil // it waits, or a runner has it
	}
	o.h.c.Log.Warn("the broker delivers a run to nobody; it is handed out anew", "run", run)
	return o.h.again(ctx, item)
}

// forgotten says whether a consumer delivers no item of that sequence any more, though the stream has
// it. Of which items it waits for acknowledgements it does not tell.
func forgotten(i *jetstream.ConsumerInfo, item uint64) bool {
	return i.AckFloor.Stream >= item || i.NumPending == 0 && i.NumAckPending == 0
}

// unpublish removes the item of a run. It does not purge the subject: in nats-server 2.15.3 a purge
// of an item that waits for its acknowledgement raises the floor of acknowledged deliveries over
// earlier ones (consumer.purge), and the next acknowledgement that of items. Those in between
// that wait as well are then never delivered again (nats-server issue 5727).
func (h *Hub) unpublish(ctx context.Context, campaign, run string) error {
	item, err := h.items.GetLastMsgForSubject(ctx, h.n.subject("item", campaign, run))
	if errors.Is(err, jetstream.ErrMsgNotFound) { // its runner acknowledged it
		return nil
	}
	if err != nil {
		return err
	}
	return drop(ctx, h.items, item.Sequence)
}

// drop removes a message, if it is there.
func drop(ctx context.Context, s jetstream.Stream, seq uint64) error {
	err := s.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	if _, gone := s.GetMsg(ctx, seq); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// isDuplicate says whether a message was refused because its subject has one.
func isDuplicate(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && strings.Contains(api.Description, "per subject")
}

// again hands an item out as if for the first time.
func (h *Hub) again(ctx context.Context, item *jetstream.RawStreamMsg) error {
	if err := h.items.DeleteMsg(ctx, item.Sequence); err != nil {
		return err
	}
	_, err := h.js.PublishMsg(ctx, &nats.Msg{Subject: item.Subject, Data: item.Data, Header: item.Header})
	if isDuplicate(err) {
		return nil
	}
	return err
}
