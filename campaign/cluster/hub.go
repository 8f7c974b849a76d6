package cluster

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"runtime"
	"slices"
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
	// Software gives the folder of a set of the daemon's cache, and a hash of it.
	Software func(set string) (dir, hash string, err error)
	// Doing is told what a run begins to do; Changed, that a runner came, went or changed.
	Doing   func(campaign, run, what string)
	Changed func(r model.Runner)
	Log     *slog.Logger

	times times // zero: the usual ones
}

// Existing is how to connect to a NATS server that is not the daemon's own.
type Existing struct {
	Name        string // what streams, buckets and subjects begin with; "": DefaultName
	Credentials string // file
	CA          string // file
	Cert, Key   string // files
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
	files                   jetstream.ObjectStore
	reading                 []jetstream.ConsumeContext
	key                     *ecdsa.PrivateKey // signs what runners do; nil with an existing server

	supplying sync.Mutex    // held while software is put among the files
	bringing  chan struct{} // a place for each record that is unpacked

	mu      sync.Mutex
	buckets map[string]bool         // runners whose records have one
	runners map[string]model.Runner // by instance
	offers  map[string]*Offer       // by campaign
	early   map[string][]giveUp     // by campaign that is not offered (yet)
	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// callTime bounds one request to JetStream.
const callTime = 30 * time.Second

// Open starts the broker, or connects to an existing one, and makes what is missing of
// streams and buckets.
func Open(ctx context.Context, c Config) (_ *Hub, err error) {
	if c.times == (times{}) {
		c.times = usual
	}
	h := &Hub{c: c, n: DefaultName, runners: map[string]model.Runner{}, offers: map[string]*Offer{}, early: map[string][]giveUp{}, buckets: map[string]bool{}, bringing: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
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
	if h.js, err = jetstream.New(h.nc, jetstream.WithDefaultTimeout(callTime)); err != nil {
		return h, err
	}
	if err := h.make(ctx); err != nil {
		return h, fmt.Errorf("cluster: %w", err)
	}
	if err := h.tidy(ctx); err != nil {
		return h, fmt.Errorf("cluster: %w", err)
	}
	return h, h.listen(ctx)
}

// connect connects to an existing NATS server.
func (e Existing) connect(address string, options ...nats.Option) (*nats.Conn, names, error) {
	n := names(e.Name)
	if n == "" {
		n = DefaultName
	}
	if !token.MatchString(string(n)) {
		return nil, "", fmt.Errorf("cluster name %q: use letters, digits, - and _", n)
	}
	if u, err := url.Parse(address); err != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return nil, "", fmt.Errorf("cluster %q is no URL of a NATS server: use nats://HOST:PORT or tls://HOST:PORT", address)
	}
	if e.Credentials != "" {
		options = append(options, nats.UserCredentials(e.Credentials))
	}
	if e.CA != "" {
		options = append(options, nats.RootCAs(e.CA))
	}
	if e.Cert != "" || e.Key != "" {
		options = append(options, nats.ClientCert(e.Cert, e.Key))
	}
	nc, err := nats.Connect(address, options...)
	if err != nil {
		err = fmt.Errorf("connect to the NATS server at %s: %w", redacted(address), err)
	}
	return nc, n, err
}

func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "its address"
	}
	return u.Redacted()
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
	h.files, err = h.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: h.n.files(), Storage: jetstream.FileStorage})
	return err
}

// tidy removes what is stored of campaigns that do not go on.
func (h *Hub) tidy(ctx context.Context) error {
	keys, err := h.campaigns.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return err
	}
	used := map[string]bool{} // files
	for _, campaign := range keys {
		if h.c.Goes(campaign) {
			var w Work
			if e, err := h.campaigns.Get(ctx, campaign); err == nil && json.Unmarshal(e.Value(), &w) == nil {
				used[w.Archive] = true
			}
			continue
		}
		if err := h.remove(ctx, campaign); err != nil {
			return err
		}
	}
	if err := h.campaigns.PurgeDeletes(ctx); err != nil {
		return err
	}
	files, err := h.files.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
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
		if !strings.HasPrefix(bucket, h.n.records("")) {
			continue
		}
		records, err := h.js.ObjectStore(ctx, bucket)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		objects, err := records.List(ctx)
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			errs = append(errs, err)
		}
		for _, o := range objects {
			if strings.HasPrefix(o.Name, campaign+"/") {
				errs = append(errs, records.Delete(ctx, o.Name))
			}
		}
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
	h.done.Go(func() { h.watch(h.ctx) })
	return h.nc.Publish(h.n.subject("hello"), nil)
}

// watch notices runners that are silent, and disconnects those that are not invited any
// more.
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
			if err := h.broker.expel(); err != nil {
				h.c.Log.Warn("a runner could not be disconnected", "err", err)
			}
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
	h.mu.Lock()
	if !h.buckets[r.Name] {
		h.buckets[r.Name] = true
		h.done.Go(func() { h.makeBucket(r.Name) })
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
	h.count()
	h.mu.Unlock()
	if !known || old.State != r.State || old.Reason != r.Reason || old.Campaign != r.Campaign {
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
		o.taken(run, word(m.Subject, 2))
		return
	}
	if slices.Contains([]string{model.DoingTemplate, model.DoingStart, model.DoingWorkload, model.DoingRecovery}, d.What) {
		h.c.Doing(d.Campaign, run, d.What)
	}
}

// heardBack hands a run out anew that its runner gave back, as if for the first time.
func (h *Hub) heardBack(m *nats.Msg) {
	h.done.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, callTime)
		defer cancel()
		err := h.handBack(ctx, word(m.Subject, 2), m.Data)
		if err == nil {
			err = m.Respond(nil)
		}
		if err != nil {
			h.c.Log.Debug("a run was not given back; its lease ends", "err", err)
		}
	})
}

func (h *Hub) handBack(ctx context.Context, runner string, data []byte) error {
	var b back
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	h.mu.Lock()
	o := h.offers[b.Campaign]
	h.mu.Unlock()
	if o == nil || !o.has(b.Run, runner) {
		return fmt.Errorf("runner %s does not have run %s", runner, b.Run)
	}
	subject := h.n.subject("item", b.Campaign, b.Run)
	item, err := h.items.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return err
	}
	if err := h.items.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return err
	}
	_, err = h.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: item.Data, Header: item.Header})
	return err
}

// supply puts a set of software that a runner lacks among the files, and answers with its
// name and hash there.
func (h *Hub) supply(m *nats.Msg) {
	h.done.Go(func() { // it may take a while
		ctx, cancel := context.WithTimeout(h.ctx, supplyTime)
		defer cancel()
		set := string(m.Data)
		var a answer
		dir, hash, err := h.c.Software(set)
		if err == nil {
			a.File = "software/" + hash
			a.Hash, err = h.keepFolder(ctx, a.File, dir)
		}
		if err != nil {
			a.Error = model.OneLine(err.Error())
		}
		b, err := h.seal("software "+set, a)
		if err == nil {
			err = m.Respond(b)
		}
		if err != nil {
			h.c.Log.Warn("a runner's request for software could not be answered", "set", set, "err", err)
		}
	})
}

// supplyTime bounds how long it may take to bring a set of software.
const supplyTime = 10 * time.Minute

// answer is what a runner is told that asked for software.
type answer struct {
	File  string `json:"file,omitempty"`
	Hash  string `json:"hash,omitempty"` // SHA-256 of the file
	Error string `json:"error,omitempty"`
}

// keep puts content among the files, by its hash.
func (h *Hub) keep(ctx context.Context, content []byte) (name string, err error) {
	name = sum(content)
	if _, err := h.files.GetInfo(ctx, name); err == nil {
		return name, nil
	}
	_, err = h.files.PutBytes(ctx, name, content)
	return name, err
}

// keepFolder puts a folder among the files, and returns the hash of what is there.
func (h *Hub) keepFolder(ctx context.Context, name, dir string) (hash string, err error) {
	h.supplying.Lock() // many runners may ask for it at once
	defer h.supplying.Unlock()
	info, err := h.files.GetInfo(ctx, name)
	if err != nil {
		if err := put(ctx, h.files, name, dir); err != nil {
			return "", err
		}
		if info, err = h.files.GetInfo(ctx, name); err != nil {
			return "", err
		}
	}
	b, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(info.Digest, "SHA-256="))
	return hex.EncodeToString(b), err
}

// put puts a folder, packed, into an object store.
func put(ctx context.Context, store jetstream.ObjectStore, name, dir string) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(pack(dir, write)) }()
	_, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, read)
	read.CloseWithError(err)
	return err
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
		return h.broker.address()
	}
	return redacted(h.c.Address)
}

// Away says that the broker cannot be reached now.
func (h *Hub) Away() error {
	if h.isFull() {
		return fmt.Errorf("%w: the broker had no room on its disk and takes nothing more: make room, restart the daemon, then resume its campaigns", model.ErrFull)
	}
	if h.nc.IsConnected() {
		return nil
	}
	return fmt.Errorf("the NATS server at %s cannot be reached: %w; runners keep what they make until it can", h.Address(), cmp.Or(h.nc.LastError(), errors.New("it does not answer")))
}

// isFull says whether the daemon's own broker could not store something for want of room.
func (h *Hub) isFull() bool { return h.broker != nil && h.broker.full.Load() }

// Close leaves everything as it is: runners go on with what they have, and the next daemon
// takes their results.
func (h *Hub) Close() {
	h.stop()
	for _, r := range h.reading {
		r.Stop()
	}
	h.done.Wait()
	if h.nc != nil {
		h.nc.Close()
	}
	if h.broker != nil && h.broker.srv != nil {
		h.broker.stop()
	}
}
