package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// Offer is a campaign whose runs runners make.
type Offer struct {
	h     *Hub
	w     Work
	slots *slots

	mu      sync.Mutex
	known   map[string]chan outcome // by run that is awaited, or whose result came
	took    map[string][]taker      // by run: who took it, in order
	more    map[string][]result     // by run: what came beside its outcome, before that was taken
	settled map[string]bool         // runs whose outcome was taken
}

// outcome is how a run ended: by a result, or given up.
type outcome struct {
	result
	givenUp  bool
	advisory uint64 // number of JetStream's advisory of that
}

// taker is a runner that took a run.
type taker struct{ name, instance string }

// Offer announces a campaign to the runners. One that was offered before, by a daemon
// that ended since, goes on: so do its runs.
func (h *Hub) Offer(ctx context.Context, w Work, archive []byte) (*Offer, error) {
	if !token.MatchString(w.Campaign) {
		return nil, fmt.Errorf("campaign %q cannot be offered", w.Campaign)
	}
	o := &Offer{h: h, w: w, slots: newSlots(), known: map[string]chan outcome{}, took: map[string][]taker{}, more: map[string][]result{}, settled: map[string]bool{}}
	var err error
	if len(archive) > 0 {
		if o.w.Archive, err = h.keep(ctx, archive); err != nil {
			return nil, h.full(err)
		}
	}
	_, err = h.items.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: w.Campaign, FilterSubject: h.n.subject("item", w.Campaign, "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: h.c.times.lease, MaxDeliver: maxTakers, MaxAckPending: -1, MaxWaiting: 100_000})
	if err != nil {
		return nil, h.full(err)
	}
	h.mu.Lock()
	h.offers[w.Campaign] = o
	early := h.early[w.Campaign]
	delete(h.early, w.Campaign)
	h.mu.Unlock()
	err = h.read(ctx, o) // what was made counts more than what was given up
	for _, g := range early {
		h.beside.run(func() { h.giveUp(w.Campaign, g) })
	}
	var b []byte
	if err == nil {
		b, err = h.seal("campaign "+w.Campaign, o.w)
	}
	if err == nil {
		_, err = h.campaigns.Put(ctx, w.Campaign, b)
	}
	if err != nil {
		o.Leave()
		return nil, h.full(err)
	}
	return o, nil
}

// read takes the results that came before there was the offer.
func (h *Hub) read(ctx context.Context, o *Offer) error {
	return h.eachResult(ctx, o.w.Campaign, "*", func(run string, r result) error {
		o.tell(run, outcome{result: r})
		return nil
	})
}

func readResult(subject string, data []byte) (r result) {
	if err := json.Unmarshal(data, &r); err != nil {
		r = result{Error: fmt.Sprintf("its result cannot be read: %v", err)}
	}
	if len(r.Record)+len(r.Instance) > maxName {
		r = result{Error: fmt.Sprintf("its result names a record or an instance by more than %d bytes", maxName)}
	}
	if len(r.Error) > maxText {
		r.Error = strings.ToValidUTF8(r.Error[:maxText], "") + " (..)"
	}
	r.runner = word(subject, 4)
	return r
}

// Slot waits until a runner has room for one more run.
func (o *Offer) Slot(ctx context.Context) (give func(), err error) { return o.slots.take(ctx) }

// taken notes that a runner took a run. One that gets it again after an outage is counted once.
func (o *Offer) taken(run string, by taker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.took[run]) < 2*maxTakers && !slices.Contains(o.took[run], by) {
		o.took[run] = append(o.took[run], by)
	}
}

// leaves notes that a runner gave a run back in good order.
func (o *Offer) leaves(run, instance string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took[run] = slices.DeleteFunc(o.took[run], func(t taker) bool { return t.instance == instance })
}

// takers is how many took a run and did not end it, as far as this daemon heard.
func (o *Offer) takers(run string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.took[run])
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

// What a result says is kept to these bounds, in bytes.
const (
	maxName = 1 << 10
	maxText = 16 << 10
)

// maxKnown bounds the runs of a campaign that are awaited or whose results came: a runner may
// send results of runs that there are not.
const maxKnown = 100_000

// tell gives the outcome of a run. False: there was one before, which counts.
func (o *Offer) tell(run string, out outcome) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled[run] || o.known[run] == nil && len(o.known) >= maxKnown {
		return false
	}
	select {
	case o.channel(run) <- out:
		return true
	default:
		if len(o.more[run]) < 2*maxTakers {
			o.more[run] = append(o.more[run], out.result)
		}
		return false
	}
}

// ErrGivenUp says that runners ended while they made a run, one after the other.
var ErrGivenUp = errors.New("the run was given up")

// Run has a runner make a run, and stores its record at dir. If an earlier daemon stored it, Run
// does nothing. check says what is wrong with a record before it is taken. The
// error is netsplit's own or the testbed's failure, and the record, if there is one, has it
// too; made says whether there is a record.
func (o *Offer) Run(ctx context.Context, w model.WorkItem, dir string, check func(record string) error) (made bool, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return true, nil
	}
	var out outcome
	for {
		o.mu.Lock()
		c := o.channel(w.Run)
		o.mu.Unlock()
		if out, err = o.await(ctx, w, c); err != nil {
			return false, err
		}
		if out.Record == "" || out.givenUp {
			break
		}
		err = o.bring(ctx, w, out, dir, check)
		if errors.Is(err, errVersion) { // of another version: the run is made again
			if err := o.discard(ctx, w.Run, out.result); err != nil {
				return false, err
			}
			continue
		}
		if err != nil {
			err = fmt.Errorf("the record that runner %s sent: %w", out.runner, err)
		}
		if ctx.Err() != nil || model.IsFull(err) { // the campaign ends
			return false, err
		}
		break
	}
	o.settle(w.Run, out)
	switch {
	case out.givenUp:
		return false, o.takeGiveUpReason(w.Run)
	case err != nil:
		return false, err
	case out.Error != "":
		return out.Record != "", fmt.Errorf("runner %s: %s", out.runner, out.Error)
	case out.Record == "":
		return false, fmt.Errorf("runner %s sent no record and no reason", out.runner)
	}
	return true, nil
}

// discard removes a result with its record, as if it had not come.
func (o *Offer) discard(ctx context.Context, run string, r result) error {
	return o.h.dropResult(ctx, o.w.Campaign, run, r)
}

// await hands a run out and waits for its outcome. From time to time it looks whether the item
// still exists and can be delivered: if not, nobody makes the run.
func (o *Offer) await(ctx context.Context, w model.WorkItem, c chan outcome) (outcome, error) {
	for look := false; ; look = true {
		if err := o.handOut(ctx, w, look); err != nil {
			return outcome{}, err
		}
		for again := time.Now().Add(4 * o.h.c.times.lease); time.Now().Before(again); {
			select {
			case out := <-c:
				return out, nil
			case <-ctx.Done():
				return outcome{}, context.Cause(ctx)
			case <-time.After(o.h.c.times.beat):
			}
			if o.h.isFull() {
				return outcome{}, o.h.Away()
			}
		}
	}
}

// takeGiveUpReason says why a run was given up, and forgets who took it.
func (o *Offer) takeGiveUpReason(run string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for _, t := range o.took[run] {
		names = append(names, t.name)
	}
	who := strings.Join(names, ", ")
	delete(o.took, run)
	if who == "" {
		who = "their names were not heard"
	}
	return fmt.Errorf("%w: %d runners ended, or were not heard of for %v, while they made it (%s); it may be what ends them, so it is handed out no more", ErrGivenUp, maxTakers, o.h.c.times.lease, who)
}

// Coming is the prefix of folders with records that are not received whole yet.
const Coming = ".coming-"

// tries is how often a record is asked for, againTime the pause between them, bringTime the
// bound of each.
const (
	tries     = 5
	againTime = 2 * time.Second
	bringTime = time.Hour
)

// bring brings the record of a run to dir, where it appears whole or not at all, and sees
// that it is of this run.
func (o *Offer) bring(ctx context.Context, w model.WorkItem, out outcome, dir string, check func(string) error) (err error) {
	select {
	case o.h.bringing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-o.h.bringing }()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return o.h.full(err)
	}
	for range tries {
		refused := false
		if refused, err = o.tryBring(ctx, w, out, dir, check); err == nil || refused || ctx.Err() != nil || model.IsFull(o.h.full(err)) {
			break
		}
		pause(ctx, againTime)
	}
	return o.h.full(err)
}

func (o *Offer) tryBring(ctx context.Context, w model.WorkItem, out outcome, dir string, check func(string) error) (refused bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bringTime)
	defer cancel()
	tmp, err := os.MkdirTemp(filepath.Dir(dir), Coming+"*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	records, err := o.h.records(ctx, out.runner)
	if err != nil {
		return false, err
	}
	object, err := records.Get(ctx, out.Record)
	if err != nil {
		return false, err
	}
	err = unpack(object, tmp, forOwner, ofRecord)
	if err == nil { // to its end, or else its digest is not checked
		_, err = io.Copy(io.Discard, object)
	}
	if err := errors.Join(err, object.Close(), object.Error()); err != nil {
		return false, err
	}
	if err := errors.Join(isOf(w, o.w.Version, tmp), check(tmp)); err != nil {
		return true, err
	}
	err = os.Rename(tmp, dir)
	if errors.Is(err, fs.ErrExist) { // brought meanwhile
		err = nil
	}
	return false, err
}

// settle removes what is stored of a run whose outcome is known. A runner that still makes
// it stops.
func (o *Offer) settle(run string, out outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	h := o.h
	alone := o.takers(run) == 1 && !out.givenUp // else another runner may still make it
	others := o.close(run, !out.givenUp)
	errs := []error{h.unpublish(ctx, o.w.Campaign, run)}
	for _, r := range append(others, out.result) {
		errs = append(errs, h.dropResult(ctx, o.w.Campaign, run, r))
	}
	if !alone {
		errs = append(errs, h.stopRuns(o.w.Campaign, run, out.Instance), h.dropResults(ctx, o.w.Campaign, run))
	}
	if out.givenUp {
		errs = append(errs, h.dropAdvisory(ctx, out.advisory))
	}
	if err := errors.Join(errs...); err != nil {
		h.c.Log.Warn("what is stored of a run stays until its campaign ends", "run", run, "err", err)
	}
}

// close takes no more outcomes of a run, and returns those that came beside the one that counts.
func (o *Offer) close(run string, forget bool) []result {
	o.mu.Lock()
	defer o.mu.Unlock()
	others := o.more[run]
	select {
	case out := <-o.known[run]:
		others = append(others, out.result)
	default:
	}
	o.settled[run] = true
	delete(o.known, run)
	delete(o.more, run)
	if forget {
		delete(o.took, run)
	}
	return others
}

// dropResults removes the results of a run that are in the broker. One that is removed before it
// was heard leaves its record to nobody, so each is read.
func (h *Hub) dropResults(ctx context.Context, campaign, run string) error {
	return h.eachResult(ctx, campaign, run, func(run string, r result) error { return h.dropResult(ctx, campaign, run, r) })
}

// dropResult removes a result, and its record. One of no runner, where a run was given up, is
// nowhere.
func (h *Hub) dropResult(ctx context.Context, campaign, run string, r result) error {
	if r.runner == "" {
		return nil
	}
	subject := h.n.subject("result", campaign, run, r.runner)
	return errors.Join(h.results.Purge(ctx, jetstream.WithPurgeSubject(subject)), h.forget(ctx, r))
}

// eachResult calls f with the results in the broker, of one run or of all ("*").
func (h *Hub) eachResult(ctx context.Context, campaign, run string, f func(run string, r result) error) error {
	info, err := h.results.Info(ctx, jetstream.WithSubjectFilter(h.n.subject("result", campaign, run, "*")))
	if err != nil {
		return err
	}
	var errs []error
	for subject := range info.State.Subjects {
		m, err := h.results.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err == nil {
			err = f(word(subject, 3), readResult(subject, m.Data))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forget removes the record of a result from the broker.
func (h *Hub) forget(ctx context.Context, r result) error {
	if r.Record == "" {
		return nil
	}
	records, err := h.records(ctx, r.runner)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return records.Delete(ctx, r.Record)
}

// End leaves the campaign, and ends it for the runners.
func (o *Offer) End() {
	o.Leave()
	o.h.End(o.w.Campaign)
}

// End ends a campaign that nobody follows any more, if it was offered: runners stop its runs, and
// what is stored of it goes.
func (h *Hub) End(campaign string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if err := h.remove(ctx, campaign); err != nil {
		h.c.Log.Warn("what is stored of a campaign stays until the daemon starts again", "campaign", campaign, "err", err)
	}
}

// Leave stops following the campaign here. Runners continue its runs, and the next daemon takes
// the results.
func (o *Offer) Leave() {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	delete(o.h.offers, o.w.Campaign)
}

// heardResult takes a result. One that nobody waits for, as its campaign ended or another
// runner was first, is removed with its record.
func (h *Hub) heardResult(m jetstream.Msg) {
	subject := m.Subject()
	campaign, run := word(subject, 2), word(subject, 3)
	r := readResult(subject, m.Data())
	h.mu.Lock()
	o := h.offers[campaign]
	h.mu.Unlock()
	if o != nil && o.tell(run, outcome{result: r}) || o == nil && h.c.Goes(campaign) {
		return
	}
	if o != nil && !o.isSettled(run) { // settle removes it, or it is the one that came first, read again
		return
	}
	h.beside.run(func() {
		ctx, cancel := context.WithTimeout(h.ctx, callTime)
		defer cancel()
		if err := h.dropResult(ctx, campaign, run, r); err != nil {
			h.c.Log.Debug("a late result stays", "subject", subject, "err", err)
		}
	})
}

func (o *Offer) isSettled(run string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.settled[run]
}

// full makes an error of a full disk one that the campaign knows.
func (h *Hub) full(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil || errors.Is(err, model.ErrFull):
		return err
	case h.isFull():
		return h.Away()
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", model.ErrFull, err)
	case errors.As(err, &api) && (api.ErrorCode == insufficientResources || api.ErrorCode == storageExceeded || strings.Contains(api.Description, "no space left")):
		return fmt.Errorf("%w: the broker of the cluster has no room: %w", model.ErrFull, err)
	}
	return err
}

// Error codes of JetStream.
const (
	insufficientResources jetstream.ErrorCode = 10023
	storageExceeded       jetstream.ErrorCode = 10047
)
