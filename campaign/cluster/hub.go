package cluster

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// Config is what a Hub is made from.
type Config struct {
	// Dir holds the broker's store and the authority of its certificates.
	Dir string
	// Address is where the broker of this daemon listens (HOST:PORT), or the URL of an
	// existing NATS server or cluster.
	Address string
	// Existing is how to connect to an existing one.
	Existing Existing
	// Goes says whether a campaign goes on: what is stored of others is removed.
	Goes func(campaign string) bool
	// HasRoom says whether the disk of Dir has room again: a broker whose disk was full goes on.
	// nil: it has.
	HasRoom func() bool
	// Software gives the folder of a set of the daemon's cache, and a hash of it.
	Software func(set string) (dir, hash string, err error)
	// Doing is told what a run begins to do; Changed, that a runner came, went or changed.
	Doing   func(campaign, run, what string)
	Changed func(r model.Runner)
	Log     *slog.Logger

	times times // zero: the usual ones
}

// Hub is the daemon's side of a cluster.
type Hub struct {
	c      Config
	n      names
	broker *broker // nil: an existing one
	nc     *nats.Conn
	js     jetstream.JetStream

	items, results, givenUp jetstream.Stream
	campaigns               jetstream.KeyValue
	files                   store
	reading                 []jetstream.ConsumeContext
	key                     *ecdsa.PrivateKey // signs what runners do; nil with an existing server

	supplying sync.Mutex    // held while software is put among the files
	bringing  chan struct{} // a place for each record that is unpacked

	mu      sync.Mutex
	buckets map[string]bool         // runners whose records have one
	stores  map[string]store        // by runner
	runners map[string]model.Runner // by instance
	offers  map[string]*Offer       // by campaign
	early   map[string][]giveUp     // by campaign that is not offered (yet)
	ctx     context.Context
	stop    context.CancelFunc
	beside  beside
}

// maxBringing bounds the records that are unpacked at once: each waits for the broker most of
// the time.
const maxBringing = 64

// callTime bounds one request to JetStream.
const callTime = 30 * time.Second

// Open starts the broker, or connects to an existing one, and makes what is missing of
// streams and buckets.
func Open(ctx context.Context, c Config) (_ *Hub, err error) {
	if c.times == (times{}) {
		c.times = usual
	}
	if c.HasRoom == nil {
		c.HasRoom = func() bool { return true }
	}
	h := &Hub{c: c, n: DefaultName, runners: map[string]model.Runner{}, offers: map[string]*Offer{}, early: map[string][]giveUp{}, buckets: map[string]bool{}, stores: map[string]store{}, bringing: make(chan struct{}, maxBringing)}
	h.ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	options := []nats.Option{nats.Name("netsplit daemon"), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort()}
	if strings.Contains(c.Address, "://") {
		if h.nc, h.n, err = c.Existing.connect(c.Address, options...); err != nil {
			return h, err
		}
	} else {
		ca := Authority{c.Dir}
		if _, h.key, err = ca.load(); err != nil {
			return h, err
		}
		if h.broker, err = startBroker(c.Address, c.Dir, ca, h.n, c.Log); err != nil {
			return h, err
		}
		if h.nc, err = h.broker.connect(options...); err != nil {
			return h, fmt.Errorf("broker of the cluster: %w", err)
		}
	}
	if takes := h.nc.MaxPayload(); takes > 0 && takes < leastMessage {
		return h, fmt.Errorf("the NATS server at %s takes messages of at most %d bytes (max_payload), and records travel in pieces of up to %d: raise it there", h.Address(), takes, leastMessage)
	}
	if h.js, err = jetstream.New(h.nc, jetstream.WithDefaultTimeout(callTime)); err != nil {
		return h, err
	}
	if err := h.make(ctx); errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return h, fmt.Errorf("the NATS server at %s has no JetStream for this user: turn it on there: %w", h.Address(), err)
	} else if err != nil {
		return h, fmt.Errorf("cluster: %w", err)
	}
	if err := h.tidy(ctx); err != nil {
		return h, fmt.Errorf("cluster: %w", err)
	}
	return h, h.listen(ctx)
}

func (h *Hub) make(ctx context.Context) (err error) {
	// A subject has one message: a run is handed out once, whoever asks how often.
	one := func(c jetstream.StreamConfig) (jetstream.Stream, error) {
		c.MaxMsgsPerSubject, c.Discard, c.DiscardNewPerSubject, c.Storage = 1, jetstream.DiscardNew, true, jetstream.FileStorage
		return h.js.CreateOrUpdateStream(ctx, c)
	}
	if h.items, err = one(jetstream.StreamConfig{Name: h.n.items(), Subjects: []string{h.n.subject("item", "*", "*")}, Retention: jetstream.WorkQueuePolicy}); err != nil {
		return err
	}
	if h.results, err = one(jetstream.StreamConfig{Name: h.n.results(), Subjects: []string{h.n.subject("result", "*", "*", "*")}}); err != nil {
		return err
	}
	if h.givenUp, err = h.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: h.n.givenUp(), Storage: jetstream.FileStorage,
		Subjects: []string{"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + h.n.items() + ".*"}}); err != nil {
		return err
	}
	if h.campaigns, err = h.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: h.n.campaigns(), Storage: jetstream.FileStorage}); err != nil {
		return err
	}
	if _, err = h.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: h.n.files(), Storage: jetstream.FileStorage}); err != nil {
		return err
	}
	h.files, err = openStore(ctx, h.js, h.n.files())
	return err
}

// tidy removes what is stored of campaigns that do not go on.
func (h *Hub) tidy(ctx context.Context) error {
	keys, err := h.campaigns.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return err
	}
	used, goOn := map[string]bool{}, 0 // files
	for _, campaign := range keys {
		if h.c.Goes(campaign) {
			var s sealed
			var w Work
			if e, err := h.campaigns.Get(ctx, campaign); err == nil && json.Unmarshal(e.Value(), &s) == nil && json.Unmarshal(s.Value, &w) == nil {
				used[w.Archive] = true
			}
			goOn++
			continue
		}
		if err := h.remove(ctx, campaign); err != nil {
			return err
		}
	}
	if err := h.campaigns.PurgeDeletes(ctx); err != nil {
		return err
	}
	if goOn == 0 { // with what of records was half sent
		if err := h.empty(ctx); err != nil {
			return err
		}
	}
	files, err := h.files.all(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		if used[f.Name] {
			continue
		}
		if err := h.files.Delete(ctx, f.Name); err != nil {
			return err
		}
	}
	return nil
}

// empty removes all items, results and records: no campaign goes on.
func (h *Hub) empty(ctx context.Context) error {
	errs := []error{h.items.Purge(ctx), h.results.Purge(ctx), h.givenUp.Purge(ctx)}
	buckets := h.js.ObjectStoreNames(ctx)
	for bucket := range buckets.Name() {
		if strings.HasPrefix(bucket, h.n.records("")) {
			errs = append(errs, h.js.DeleteObjectStore(ctx, bucket))
		}
	}
	return errors.Join(append(errs, buckets.Error())...)
}

// remove ends a campaign for the runners, and removes what is stored of it.
func (h *Hub) remove(ctx context.Context, campaign string) error {
	errs := []error{h.campaigns.Purge(ctx, campaign)}
	if err := h.js.DeleteConsumer(ctx, h.n.items(), campaign); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		errs = append(errs, err)
	}
	errs = append(errs, h.items.Purge(ctx, jetstream.WithPurgeSubject(h.n.subject("item", campaign, "*"))),
		h.results.Purge(ctx, jetstream.WithPurgeSubject(h.n.subject("result", campaign, "*", "*"))),
		h.stopRuns(campaign, allRuns, ""))
	buckets := h.js.ObjectStoreNames(ctx)
	for bucket := range buckets.Name() {
		runner, is := strings.CutPrefix(bucket, h.n.records(""))
		if !is {
			continue
		}
		records, err := h.records(ctx, runner)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		objects, err := records.all(ctx)
		if err != nil {
			errs = append(errs, err)
			continue // without them no piece is known to be of no record
		}
		for _, o := range objects {
			if strings.HasPrefix(o.Name, campaign+"/") {
				errs = append(errs, records.Delete(ctx, o.Name))
			}
		}
		errs = append(errs, records.tidy(ctx, objects, time.Now().Add(-h.c.times.half)))
	}
	return errors.Join(append(errs, buckets.Error())...)
}

// allRuns stands for all runs of a campaign.
const allRuns = "all"

// stopRuns has runners stop a run, except the instance that has made it.
func (h *Hub) stopRuns(campaign, run, except string) error {
	m, err := h.signed(h.n.subject("stop", campaign, run), []byte(except))
	if err != nil {
		return err
	}
	return h.nc.PublishMsg(m)
}

// listen takes what runners say.
func (h *Hub) listen(ctx context.Context) error {
	for _, s := range []struct {
		subject string
		f       nats.MsgHandler
	}{{h.n.subject("runner", "*"), h.heard}, {h.n.subject("doing", "*", "*"), h.heardDoing}, {h.n.subject("software", "*"), h.supply}, {h.n.subject("back", "*"), h.heardBack}} {
		if _, err := h.nc.Subscribe(s.subject, s.f); err != nil {
			return err
		}
	}
	for stream, f := range map[jetstream.Stream]jetstream.MessageHandler{h.results: h.heardResult, h.givenUp: h.heardGivenUp} {
		c, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
		if err != nil {
			return err
		}
		reading, err := c.Consume(f, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { h.c.Log.Debug("cluster", "err", err) }))
		if err != nil {
			return err
		}
		h.reading = append(h.reading, reading)
	}
	h.beside.run(func() { h.watch(h.ctx) })
	return h.nc.Publish(h.n.subject("hello"), nil)
}

// Live is the live state of a run that a runner makes.
func (h *Hub) Live(run string, after uint64) (out model.LiveState) {
	m, err := h.nc.Request(h.n.subject("live", run), fmt.Append(nil, after), 2*time.Second)
	if err == nil {
		err = json.Unmarshal(m.Data, &out)
	}
	if err != nil {
		h.c.Log.Debug("live state", "run", run, "err", err)
	}
	return out
}

// Address is where runners reach the broker; of an existing one its URL.
func (h *Hub) Address() string {
	if h.broker != nil {
		return h.broker.at
	}
	return redacted(h.c.Address)
}

// Away says that the broker cannot be reached now.
func (h *Hub) Away() error {
	if h.isFull() {
		return fmt.Errorf("%w: the broker has no room on its disk: make room, and it goes on by itself", model.ErrFull)
	}
	if h.nc.IsConnected() {
		return nil
	}
	return fmt.Errorf("the NATS server at %s cannot be reached: %w; runners keep what they make until it can", h.Address(), cmp.Or(h.nc.LastError(), errors.New("it does not answer")))
}

// maxMessage is how many bytes a message may have; an existing server has a bound of its own.
func (h *Hub) maxMessage() int64 {
	most := int64(maxMessage)
	if takes := h.nc.MaxPayload(); takes > 0 {
		most = min(most, takes)
	}
	return most - headerRoom
}

// leastMessage is what an existing server must take: pieces of an object store (128 KiB in
// nats.go), and its answers.
const leastMessage = 128<<10 + headerRoom

// headerRoom is enough for the headers of a message, the signature among them.
const headerRoom = 1 << 10

// isFull says whether the daemon's own broker stores nothing for want of room.
func (h *Hub) isFull() bool { return h.broker != nil && h.broker.isSick() }

// Close leaves everything as it is: runners go on with what they have, and the next daemon
// takes their results.
func (h *Hub) Close() {
	h.stop()
	for _, r := range h.reading {
		r.Stop()
	}
	h.beside.end()
	if h.nc != nil {
		h.nc.Close()
	}
	if h.broker != nil {
		h.broker.stop()
	}
}
