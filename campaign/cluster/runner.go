package cluster

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"netsplit/model"
)

// Worker makes runs on one machine.
type Worker interface {
	// Open makes ready for the runs of a campaign. Its error says what this machine lacks.
	Open(ctx context.Context, w Work, files Files) (Bench, error)
}

// Bench is ready for the runs of one campaign.
type Bench interface {
	// Slots is how many runs it makes at once.
	Slots() int
	// Run makes a run and leaves its record at dir, which may be "" if there is none. The error
	// is netsplit's own or the testbed's failure.
	Run(ctx context.Context, w model.WorkItem, say Say) (dir string, err error)
	// Forget removes a record.
	Forget(dir string)
	Close()
}

// Say tells of a run while it is made.
type Say struct {
	Doing func(what string)
	Watch func(live func(after uint64) model.LiveState)
	// Cuts takes a function that counts the partitions in force, by shape.
	Cuts func(inForce func() map[model.Shape]int)
}

// Files brings what a runner lacks from the daemon.
type Files interface {
	// Target is the archive of the campaign's target, nil if it comes with netsplit.
	Target(ctx context.Context) ([]byte, error)
	// Software puts a set of the daemon's cache into a folder.
	Software(ctx context.Context, set, dir string) error
}

// RunnerConfig is what a Runner is made from.
type RunnerConfig struct {
	Invitation Invitation // of the daemon's own broker
	URL        string     // of an existing NATS server, in place of an invitation
	Existing   Existing
	// About is what the runner says of itself; Name may be "" with an invitation.
	About  model.Runner
	Worker Worker
	// State is told what the runner is and does, when that changes.
	State func(model.Runner)
	Log   *slog.Logger

	times times // zero: the usual ones
}

// Runner takes the runs of campaigns that its machine can make.
type Runner struct {
	c      RunnerConfig
	n      names
	nc     *nats.Conn
	js     jetstream.JetStream
	closed chan struct{} // when the connection ended for good

	mu    sync.Mutex
	about model.Runner
	under map[string]*underWay // by run

	authority *ecdsa.PublicKey // that signs what is to be done; nil with an existing server
}

// underWay is a run that is made here.
type underWay struct {
	cancel context.CancelCauseFunc
	item   jetstream.Msg // as it was delivered last
	live   func(uint64) model.LiveState
	cuts   func() map[model.Shape]int
}

// ErrRefused says that the daemon does not let a runner in any more.
var ErrRefused = errors.New("the daemon refuses this runner: its invitation was withdrawn, or a newer one was made under its name; make one where the daemon is (netsplit cluster invite)")

var (
	errStopped = errors.New("the daemon needs this run no more")
	errOver    = errors.New("the campaign is over")
	errAnew    = errors.New("the campaign is offered anew")
	errGone    = errors.New("the campaign is not offered any more")
)

// Join connects to the broker. It fails only where trying again is of no use: a broker that
// is away is waited for.
func Join(c RunnerConfig) (*Runner, error) {
	if c.times == (times{}) {
		c.times = usual
	}
	r := &Runner{c: c, n: DefaultName, about: c.About, under: map[string]*underWay{}, closed: make(chan struct{})}
	options := []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.RetryOnFailedConnect(true),
		nats.ClosedHandler(func(*nats.Conn) { close(r.closed) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.Log.Warn("the broker is not reached; it is tried again", "err", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.Log.Warn("the connection to the broker ended", "err", err) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.Log.Info("connected to the broker again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.Log.Warn("broker", "err", err) })}
	var err error
	if c.URL != "" {
		if !token.MatchString(r.about.Name) {
			return nil, fmt.Errorf("%q cannot be a runner's name: use letters, digits, - and _, at most 64", r.about.Name)
		}
		r.nc, r.n, err = c.Existing.connect(c.URL, append(options, nats.Name(r.about.Name))...)
	} else {
		err = r.accept(options)
	}
	if err != nil {
		return nil, err
	}
	r.about.Instance = nuid.Next()
	r.js, err = jetstream.New(r.nc, jetstream.WithDefaultTimeout(callTime))
	return r, err
}

// accept connects by an invitation.
func (r *Runner) accept(options []nats.Option) (err error) {
	i := r.c.Invitation
	if r.about.Name, err = i.runner(); err != nil {
		return err
	}
	conf, err := i.client()
	if err != nil {
		return err
	}
	if r.authority, err = i.publicKey(); err != nil {
		return err
	}
	r.n = names(i.Name)
	options = append(options, nats.Secure(conf), nats.Name(r.about.Name), nats.CustomInboxPrefix(inbox(r.about.Name)))
	if r.nc, err = nats.Connect(i.URL, options...); err != nil {
		err = fmt.Errorf("connect to the cluster at %s: %w", i.URL, err)
	}
	return err
}

// Run takes runs until ctx ends. Runs under way are then given back, for other runners.
func (r *Runner) Run(ctx context.Context) error {
	defer r.nc.Close()
	for subject, f := range map[string]nats.MsgHandler{r.n.subject("hello"): func(*nats.Msg) { r.say(nil) }, r.n.subject("stop", "*", "*"): r.heardStop, r.n.subject("live", "*"): r.heardLive} {
		if _, err := r.nc.Subscribe(subject, f); err != nil {
			return err
		}
	}
	var beats sync.WaitGroup
	bctx, stop := context.WithCancelCause(ctx)
	beats.Go(func() { r.beat(bctx) })
	beats.Go(func() {
		select {
		case <-r.closed:
			stop(ErrRefused)
		case <-bctx.Done():
		}
	})
	r.offers(bctx)
	refused := errors.Is(context.Cause(bctx), ErrRefused)
	stop(nil)
	beats.Wait()
	if refused && r.c.URL != "" {
		return fmt.Errorf("the NATS server at %s ended the connection: %w", redacted(r.c.URL), cmp.Or(r.nc.LastError(), nats.ErrConnectionClosed))
	}
	if refused {
		return ErrRefused
	}
	r.say(func(a *model.Runner) { a.State, a.Reason = model.RunnerGone, "it was stopped" })
	_ = r.nc.FlushTimeout(r.c.times.beat) // a broker that is away misses its beats
	return nil
}

// beat says every few seconds that the runner is there.
func (r *Runner) beat(ctx context.Context) {
	t := time.NewTicker(r.c.times.beat)
	defer t.Stop()
	for {
		r.say(nil)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// say changes what the runner says of itself, and says it.
func (r *Runner) say(change func(*model.Runner)) {
	r.mu.Lock()
	before := r.about
	if change != nil {
		change(&r.about)
	}
	r.about.Busy, r.about.InForce = len(r.under), r.inForce()
	now := r.about
	r.mu.Unlock()
	if r.c.State != nil && (before.State != now.State || before.Reason != now.Reason || before.Campaign != now.Campaign) {
		r.c.State(now)
	}
	b, err := json.Marshal(now)
	if err == nil && r.nc.IsConnected() { // an old word is of no use later
		err = r.nc.Publish(r.n.subject("runner", now.Name), b)
	}
	if err != nil {
		r.c.Log.Debug("beat", "err", err)
	}
}

// inForce counts the partitions in force here, by shape. The caller holds mu.
func (r *Runner) inForce() map[model.Shape]int {
	all := map[model.Shape]int{}
	for _, u := range r.under {
		if u.cuts == nil {
			continue
		}
		for shape, n := range u.cuts() {
			all[shape] += n
		}
	}
	return all
}

// offers watches the campaigns and works for them, the oldest first.
func (r *Runner) offers(ctx context.Context) {
	offered, tried := map[string]Work{}, map[string]time.Time{}
	var mu sync.Mutex
	changed := make(chan struct{}, 1)
	over := map[string]context.CancelCauseFunc{} // of the campaign that is worked for
	watch := func(kv jetstream.KeyValue) error {
		w, err := kv.WatchAll(ctx)
		if err != nil {
			return err
		}
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case e, ok := <-w.Updates():
				if !ok {
					return errors.New("the watch ended")
				}
				if e == nil { // all that was there is known
					continue
				}
				mu.Lock()
				var work Work
				if e.Operation() == jetstream.KeyValuePut {
					err := r.unseal("campaign "+e.Key(), e.Value(), &work)
					if err != nil {
						r.c.Log.Error("a campaign is not taken", "campaign", e.Key(), "err", err)
						mu.Unlock()
						continue
					}
					if !reflect.DeepEqual(work, offered[e.Key()]) {
						if end := over[e.Key()]; end != nil {
							end(errAnew)
						}
						delete(tried, e.Key())
					}
					offered[e.Key()] = work
				} else {
					delete(offered, e.Key())
					delete(tried, e.Key())
					if end := over[e.Key()]; end != nil {
						end(errOver)
					}
				}
				mu.Unlock()
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() {
		for ctx.Err() == nil {
			kv, err := r.js.KeyValue(ctx, r.n.campaigns())
			if err == nil {
				err = watch(kv)
			}
			if ctx.Err() == nil {
				r.c.Log.Debug("campaigns", "err", err)
				pause(ctx, time.Second)
			}
		}
	})
	for ctx.Err() == nil {
		mu.Lock()
		var next *Work
		for _, id := range sorted(offered) {
			if time.Since(tried[id]) > r.c.times.retry {
				w := offered[id]
				next = &w
				break
			}
		}
		var cctx context.Context
		if next != nil {
			cctx, over[next.Campaign] = context.WithCancelCause(ctx)
		}
		waits := len(offered) > 0
		mu.Unlock()
		if next == nil {
			if !waits {
				r.say(func(a *model.Runner) { a.State, a.Reason, a.Campaign, a.Slots = model.RunnerIdle, "", "", 0 })
			}
			select {
			case <-changed:
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		err := r.workFor(cctx, *next)
		mu.Lock()
		switch {
		case errors.Is(err, errGone): // the end was told while this runner was away
			delete(offered, next.Campaign)
		case err != nil && cctx.Err() == nil:
			tried[next.Campaign] = time.Now()
		}
		over[next.Campaign](nil)
		delete(over, next.Campaign)
		mu.Unlock()
	}
}

func sorted(m map[string]Work) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// workFor makes runs of a campaign until it is over. The error says what this machine lacks.
func (r *Runner) workFor(ctx context.Context, w Work) error {
	r.say(func(a *model.Runner) {
		if a.Campaign != w.Campaign || a.State != model.RunnerUnfit {
			a.State, a.Reason = model.RunnerPreparing, ""
		}
		a.Campaign, a.Slots = w.Campaign, 0
	})
	bench, err := r.open(ctx, w)
	if ctx.Err() != nil {
		if bench != nil {
			bench.Close()
		}
		return nil
	}
	if err != nil {
		r.say(func(a *model.Runner) { a.State, a.Reason = model.RunnerUnfit, model.OneLine(err.Error()) })
		return err
	}
	defer bench.Close()
	r.say(func(a *model.Runner) { a.State, a.Reason, a.Slots = model.RunnerReady, "", bench.Slots() })
	var slots sync.WaitGroup
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	h := health{stopTaking: stopTaking}
	for range bench.Slots() {
		slots.Go(func() { r.take(ctx, taking, w, bench, &h) })
	}
	slots.Wait()
	if errors.Is(h.unfit, errGone) {
		return errGone
	}
	if h.unfit != nil && ctx.Err() == nil {
		r.say(func(a *model.Runner) {
			a.State, a.Slots, a.Reason = model.RunnerUnfit, 0, model.OneLine(h.unfit.Error())
		})
		return h.unfit
	}
	return nil
}

// open makes ready for a campaign, if this is a runner for it.
func (r *Runner) open(ctx context.Context, w Work) (Bench, error) {
	r.mu.Lock()
	about := r.about
	r.mu.Unlock()
	if w.Version != about.Version {
		return nil, fmt.Errorf("this runner is netsplit %s and the daemon is %s: build the same version here", about.Version, w.Version)
	}
	if err := fits(about, w.Needs); err != nil {
		return nil, err
	}
	return r.c.Worker.Open(ctx, w, supplies{r, w})
}

// supplies brings files by their hash.
type supplies struct {
	r *Runner
	w Work
}

func (s supplies) Target(ctx context.Context) ([]byte, error) {
	if s.w.Archive == "" {
		return nil, nil
	}
	files, err := s.r.js.ObjectStore(ctx, s.r.n.files())
	if err != nil {
		return nil, err
	}
	b, err := files.GetBytes(ctx, s.w.Archive)
	if err == nil && sum(b) != s.w.Archive {
		err = errors.New("the target's files have other bytes than their hash says")
	}
	return b, err
}

func (s supplies) Software(ctx context.Context, set, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, supplyTime)
	defer cancel()
	if err := s.software(ctx, set, dir); err != nil {
		return fmt.Errorf("set %s from the daemon's cache: %w", set, err)
	}
	return nil
}

func (s supplies) software(ctx context.Context, set, dir string) error {
	m, err := s.r.nc.RequestWithContext(ctx, s.r.n.subject("software", s.r.about.Name), []byte(set))
	if err != nil {
		return err
	}
	var a answer
	if err := s.r.unseal("software "+set, m.Data, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	files, err := s.r.js.ObjectStore(ctx, s.r.n.files())
	if err != nil {
		return err
	}
	object, err := files.Get(ctx, a.File)
	if err != nil {
		return err
	}
	hash := sha256.New()
	err = unpack(io.TeeReader(object, hash), dir, forAll, ofSoftware)
	if err == nil { // to its end
		_, err = io.Copy(hash, object)
	}
	if err := errors.Join(cmp.Or(object.Error(), err), object.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != a.Hash {
		return fmt.Errorf("file %s has other bytes than its hash says", a.File)
	}
	return nil
}

// heardStop ends runs that the daemon needs no more.
func (r *Runner) heardStop(m *nats.Msg) {
	campaign, run := word(m.Subject, 2), word(m.Subject, 3)
	if string(m.Data) == r.about.Instance {
		return
	}
	var stops []context.CancelCauseFunc
	r.mu.Lock()
	for id, u := range r.under {
		if id == run || run == allRuns && strings.HasPrefix(id, campaign+"-r") {
			stops = append(stops, u.cancel)
		}
	}
	r.mu.Unlock()
	if len(stops) == 0 { // most often, so a signature is looked at only where it matters
		return
	}
	if err := verify(r.authority, m.Subject, m.Data, m.Header.Get(signatureHeader)); err != nil {
		r.c.Log.Error("a stop is not taken", "subject", m.Subject, "err", err)
		return
	}
	for _, stop := range stops {
		stop(errStopped)
	}
}

// heardLive answers for the live state of a run that is made here.
func (r *Runner) heardLive(m *nats.Msg) {
	r.mu.Lock()
	var live func(uint64) model.LiveState
	if u := r.under[word(m.Subject, 2)]; u != nil {
		live = u.live
	}
	r.mu.Unlock()
	if live == nil {
		return
	}
	var after uint64
	if _, err := fmt.Sscan(string(m.Data), &after); err != nil {
		return
	}
	b, err := json.Marshal(live(after))
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		r.c.Log.Debug("live state", "err", err)
	}
}
