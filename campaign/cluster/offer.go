package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// Offer is a campaign whose runs runners make.
type Offer struct {
	h     *Hub
	w     Work
	slots *slots

	mu    sync.Mutex
	known map[string]chan outcome // by run that is awaited, or whose result came
	took  map[string][]string     // by run: who took it, in order
}

// outcome is how a run ended: by a result, or given up.
type outcome struct {
	result
	givenUp bool
}

// Offer tells the runners of a campaign. A campaign that was offered before, by a daemon
// that ended since, goes on: so do its runs.
func (h *Hub) Offer(ctx context.Context, w Work, archive []byte) (*Offer, error) {
	if !token.MatchString(w.Campaign) {
		return nil, fmt.Errorf("campaign %q cannot be offered", w.Campaign)
	}
	o := &Offer{h: h, w: w, slots: newSlots(), known: map[string]chan outcome{}, took: map[string][]string{}}
	var err error
	if len(archive) > 0 {
		if o.w.Archive, err = h.keep(ctx, archive); err != nil {
			return nil, full(err)
		}
	}
	_, err = h.items.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: w.Campaign, FilterSubject: h.n.subject("item", w.Campaign, "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: h.c.times.lease, MaxDeliver: maxTakers, MaxAckPending: -1, MaxWaiting: 100_000})
	if err != nil {
		return nil, full(err)
	}
	h.mu.Lock()
	h.offers[w.Campaign] = o
	early := h.early[w.Campaign]
	delete(h.early, w.Campaign)
	h.mu.Unlock()
	for _, g := range early {
		h.giveUp(o, g)
	}
	b, err := json.Marshal(o.w)
	if err == nil {
		_, err = h.campaigns.Put(ctx, w.Campaign, b)
	}
	if err != nil {
		o.Leave()
		return nil, full(err)
	}
	return o, h.read(ctx, o)
}

// read takes the results that came before there was the offer.
func (h *Hub) read(ctx context.Context, o *Offer) error {
	info, err := h.results.Info(ctx, jetstream.WithSubjectFilter(h.n.subject("result", o.w.Campaign, "*")))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		m, err := h.results.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		var r result
		if json.Unmarshal(m.Data, &r) == nil {
			o.tell(runOf(subject), outcome{result: r})
		}
	}
	return nil
}

// Slot waits until a runner has room for one more run.
func (o *Offer) Slot(ctx context.Context) (give func(), err error) { return o.slots.take(ctx) }

// Taken are the runners that took a run, in order.
func (o *Offer) taken(run, runner string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took[run] = append(o.took[run], runner)
}

func (o *Offer) awaits(run string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[run] != nil
}

// channel is where the outcome of a run comes; it holds one. The caller holds mu.
func (o *Offer) channel(run string) chan outcome {
	c := o.known[run]
	if c == nil {
		c = make(chan outcome, 1)
		o.known[run] = c
	}
	return c
}

func (o *Offer) tell(run string, out outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.channel(run) <- out:
	default: // a second one: the first counts
	}
}

// ErrGivenUp says that runners ended while they made a run, one after the other.
var ErrGivenUp = errors.New("the run was given up")

// Run has a run made and puts its record at dir. If that is there already, of a daemon that
// ended since, nothing is done. The error is netsplit's own or the testbed's failure, and the
// record, if there is one, has it too; made says whether there is a record.
func (o *Offer) Run(ctx context.Context, w model.WorkItem, dir string) (made bool, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return true, nil
	}
	o.mu.Lock()
	c := o.channel(w.Run)
	o.mu.Unlock()
	if err := o.handOut(ctx, w); err != nil {
		return false, err
	}
	var out outcome
	select {
	case out = <-c:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	defer func() {
		if ctx.Err() == nil {
			o.settle(w.Run, out)
		}
	}()
	if out.givenUp {
		return false, o.whyGivenUp(w.Run)
	}
	if out.Record != "" {
		if err := o.bring(ctx, w, out, dir); err != nil {
			return false, fmt.Errorf("the record that runner %s sent: %w", out.Runner, err)
		}
	}
	if out.Error != "" {
		return out.Record != "", fmt.Errorf("runner %s: %s", out.Runner, out.Error)
	}
	if out.Record == "" {
		return false, fmt.Errorf("runner %s sent no record and no reason", out.Runner)
	}
	return true, nil
}

func (o *Offer) whyGivenUp(run string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	who := strings.Join(o.took[run], ", ")
	if who == "" {
		who = "their names were not heard"
	}
	return fmt.Errorf("%w: %d runners ended, or were not heard of for %v, while they made it (%s); it may be what ends them, so it is handed out no more", ErrGivenUp, maxTakers, o.h.c.times.lease, who)
}

// handOut publishes an item, unless a runner has it or has made it.
func (o *Offer) handOut(ctx context.Context, w model.WorkItem) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("the scenario of run %s takes %d bytes, and the most is %d", w.Run, len(b), maxMessage)
	}
	for {
		err := o.publish(ctx, w, b)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(full(err), model.ErrFull):
			return full(err)
		}
		o.h.c.Log.Warn("a run could not be handed out; it is tried again", "run", w.Run, "err", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (o *Offer) publish(ctx context.Context, w model.WorkItem, b []byte) error {
	subject := o.h.n.subject("item", w.Campaign, w.Run)
	_, err := o.h.items.GetLastMsgForSubject(ctx, subject)
	if err == nil {
		return nil // it waits, or a runner has it
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	// A runner stores the result before it gives the item back.
	_, err = o.h.results.GetLastMsgForSubject(ctx, o.h.n.subject("result", w.Campaign, w.Run))
	if err == nil {
		return nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	if _, err = o.h.js.Publish(ctx, subject, b); isSecond(err) {
		return nil
	}
	return err
}

// isSecond says whether a message was refused because its subject has one.
func isSecond(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && strings.Contains(api.Description, "per subject")
}

// bring brings the record of a run to dir, where it appears whole or not at all, and sees
// that it is of this run.
func (o *Offer) bring(ctx context.Context, w model.WorkItem, out outcome, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return full(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".coming-*")
	if err != nil {
		return full(err)
	}
	defer os.RemoveAll(tmp)
	object, err := o.h.records.Get(ctx, out.Record)
	if err != nil {
		return err
	}
	err = errors.Join(unpack(object, tmp, forOwner), object.Close(), object.Error())
	if err == nil {
		err = isOf(w, o.w.Version, tmp)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if errors.Is(err, fs.ErrExist) { // brought meanwhile
		err = nil
	}
	return full(err)
}

// settle removes what is stored of a run whose outcome is known. A runner that still makes
// it stops.
func (o *Offer) settle(run string, out outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	h := o.h
	errs := []error{
		h.items.Purge(ctx, jetstream.WithPurgeSubject(h.n.subject("item", o.w.Campaign, run))),
		h.results.Purge(ctx, jetstream.WithPurgeSubject(h.n.subject("result", o.w.Campaign, run))),
		h.nc.Publish(h.n.subject("stop", o.w.Campaign, run), nil),
	}
	if out.Record != "" {
		errs = append(errs, h.records.Delete(ctx, out.Record))
	}
	if err := errors.Join(errs...); err != nil {
		h.c.Log.Warn("what is stored of a run stays until its campaign ends", "run", run, "err", err)
	}
	o.mu.Lock()
	delete(o.took, run)
	o.mu.Unlock()
}

// End ends the campaign for the runners, which stop its runs.
func (o *Offer) End() {
	o.Leave()
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if err := o.h.remove(ctx, o.w.Campaign); err != nil {
		o.h.c.Log.Warn("what is stored of a campaign stays until the daemon starts again", "campaign", o.w.Campaign, "err", err)
	}
}

// Leave leaves the campaign's runs to runners and to the next daemon.
func (o *Offer) Leave() {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	delete(o.h.offers, o.w.Campaign)
}

// heardResult takes a result. One that nobody waits for, as its campaign ended or another
// runner was first, is removed with its record.
func (h *Hub) heardResult(m jetstream.Msg) {
	var r result
	campaign, run := campaignOf(m.Subject()), runOf(m.Subject())
	if err := json.Unmarshal(m.Data(), &r); err != nil {
		r = result{Error: fmt.Sprintf("its result cannot be read: %v", err)}
	}
	h.mu.Lock()
	o := h.offers[campaign]
	h.mu.Unlock()
	switch {
	case o != nil:
		o.tell(run, outcome{result: r})
	case !h.c.Goes(campaign):
		go h.drop(m.Subject(), r)
	}
}

func (h *Hub) drop(subject string, r result) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	err := h.results.Purge(ctx, jetstream.WithPurgeSubject(subject))
	if r.Record != "" {
		err = errors.Join(err, h.records.Delete(ctx, r.Record))
	}
	if err != nil {
		h.c.Log.Debug("a late result stays", "subject", subject, "err", err)
	}
}

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
	o := h.offers[a.Consumer]
	if o == nil && h.c.Goes(a.Consumer) {
		h.early[a.Consumer] = append(h.early[a.Consumer], g)
	}
	h.mu.Unlock()
	go h.giveUp(o, g)
}

// giveUp tells the campaign, if the item is still there: else it was made after all.
func (h *Hub) giveUp(o *Offer, g giveUp) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if o != nil {
		if item, err := h.items.GetMsg(ctx, g.item); err == nil {
			o.tell(runOf(item.Subject), outcome{givenUp: true})
		}
	}
	if err := h.givenUp.DeleteMsg(ctx, g.advisory); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		h.c.Log.Debug("an advisory stays", "err", err)
	}
}

// full makes an error of a full disk one that the campaign knows.
func full(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == insufficientResources || api.ErrorCode == storageExceeded || strings.Contains(api.Description, "no space left")) {
		return fmt.Errorf("%w: the broker of the cluster has no room: %w", model.ErrFull, err)
	}
	return err
}

// Error codes of JetStream.
const (
	insufficientResources jetstream.ErrorCode = 10023
	storageExceeded       jetstream.ErrorCode = 10047
)
