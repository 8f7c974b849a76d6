package campaign

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"netsplit/campaign/cluster"
	"netsplit/campaign/run"
	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/inference/store"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed"
	"netsplit/testbed/lab"
	"netsplit/testbed/manual"
)

// Config is what a Service is made from.
type Config struct {
	// RunsDir holds the records of runs and, unless StorePath says otherwise,
	// the store (netsplit.db).
	RunsDir, StorePath string
	// ControllerAddr is where switches connect to, e.g. 127.0.0.1:6653; port 0
	// takes a free one.
	ControllerAddr string
	// TLS is for the switches of an outside testbed; nil: plain TCP. Allowed are
	// the datapaths that may connect; none: all.
	TLS     *tls.Config
	Allowed []model.DatapathID
	// Equal: share the switches with other controllers; otherwise this one asks
	// to be their master.
	Equal bool
	// Testbed is an outside testbed; nil: the Service makes labs on this machine.
	Testbed *model.Testbed
	// Gate is the transport of the gate for campaigns that ask for none; ""
	// leaves it to the testbed. With GateByPacketIn the Service does not open the
	// gate ports of an outside testbed.
	Gate model.Gate
	// Binary is the path of the netsplit program on the hosts, BinDir the folder
	// of the helper programs of targets.
	Binary, BinDir string
	Metrics        Metrics
	Log            *slog.Logger
	Version        string
	// InProcess: the Service lives only as long as one command, so hints to further
	// commands name its store.
	InProcess bool
	// Reads: the Service makes no runs: it continues no campaign, heals nothing and listens for
	// no switch. It still serves requests that change the store or delete records.
	Reads bool
	// APIAddr is where the API listens: what Open tells whoever finds the store taken.
	APIAddr string
	// Cluster: runners on other machines make the runs; nil: this one does. Of it only Address
	// and Existing are set.
	Cluster *cluster.Config
	// Scripts reads scripted tests for campaigns that play them; nil: there are none.
	Scripts Scripts
	// Retention bounds the records of runs; the zero value keeps all.
	Retention model.Retention
}

// Metrics is told what happens when it happens. Package api implements it.
type Metrics interface {
	run.Metrics
	KnownTarget(target string, strategy model.Strategy)
	RunDone(target string, strategy model.Strategy, verdict model.VerdictValue)
	Finding(f model.Finding)
	// RunElsewhere adds what a run on another machine did.
	RunElsewhere(t model.RunMetrics)
	SwitchKnown(dpid model.DatapathID)
	SwitchConnected(dpid model.DatapathID, connected bool)
	SwitchGone(dpid model.DatapathID)
	// RunsDone, FoundBefore and LastCut say what happened before this process began.
	RunsDone(target string, strategy model.Strategy, verdict model.VerdictValue, n int)
	FoundBefore(target string, class model.FailureClass)
	LastCut(at time.Time)
}

// Service keeps campaigns, runs, findings and manual partitions. Everything
// it knows is in the store and in the records: if its process is killed, the next
// Open continues where it was.
type Service struct {
	cfg     Config
	log     *slog.Logger
	metrics Metrics
	store   *store.Store
	ctrl    *controller.Controller
	outside *testbed.Testbed   // of Config.Testbed
	hand    *manual.Partitions // empty without outside

	hub *cluster.Hub // nil: runs are made here
	// judgingRemote bounds the records of runners that are judged at once: a place for each.
	judgingRemote chan struct{}

	examining sync.Mutex // held by Diagnose

	// booking is held from reading to storing campaigns and findings: workers
	// finish runs side by side, and must not overwrite a newer state with an older
	// one. Lock it before mu.
	booking sync.Mutex

	reporting sync.Mutex // held by reportCampaign

	pruning sync.Mutex // held by Prune

	judging sync.Map // campaigns that are done: whether they judged a fault run

	querying sync.Mutex // held while a record is read whole: that takes time and memory

	scheduling  sync.Mutex    // held while schedules are changed; taken before mu and booking
	rescheduled chan struct{} // wakes the scheduler

	uploading sync.Mutex // held while an uploaded target is kept or deleted; mu is taken after it

	mu       sync.Mutex // guards what follows
	jobs     map[string]*job
	queue    []*job
	ids      int
	events   []model.ServiceEvent
	before   uint64 // number before that of this daemon's first event
	subs     map[chan struct{}]bool
	testbeds []*testbed.Testbed                            // that exist now
	switches map[model.DatapathID]time.Time                // last change of connection
	mapCount model.MapCount                                // of the campaign that finished a run last
	views    map[string]func(after uint64) model.LiveState // by run under way: its live state
	// unrecorded says why there was no room to record the last run; nil: there was.
	unrecorded error

	room func(dir string) (room, error) // nil: roomAt
	put  func(model.Campaign) error     // nil: the store's

	unstored map[string]model.Campaign // what the store did not take; guarded by mu

	wake   chan struct{}
	cancel context.CancelCauseFunc // when the daemon goes down
	done   sync.WaitGroup
}

var errClosing = errors.New("the daemon is going down")

// Open opens the store and listens for switches. After a daemon that died, it heals
// what that left cut, marks its interrupted runs as unknown, and continues its
// campaigns.
func Open(cfg Config) (*Service, error) {
	// Processes of a target run in other directories.
	var err error
	if cfg.RunsDir, err = filepath.Abs(cfg.RunsDir); err != nil {
		return nil, fmt.Errorf("runs directory: %w", err)
	}
	if err := rundir.MakeRoot(cfg.RunsDir); err != nil {
		return nil, fmt.Errorf("runs directory: %w", err)
	}
	if cfg.StorePath == "" {
		cfg.StorePath = filepath.Join(cfg.RunsDir, "netsplit.db")
	}
	st, err := store.Open(cfg.StorePath, store.WithCreator(cfg.Version))
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, log: cfg.Log, metrics: cfg.Metrics, store: st, jobs: map[string]*job{},
		subs: map[chan struct{}]bool{}, switches: map[model.DatapathID]time.Time{}, views: map[string]func(uint64) model.LiveState{}, wake: make(chan struct{}, 1), judgingRemote: make(chan struct{}, runtime.GOMAXPROCS(0)), rescheduled: make(chan struct{}, 1),
		// More than any earlier daemon can have come to, so that its readers do not
		// take what is new for what they know.
		before: uint64(time.Now().UnixMicro())}
	if cfg.APIAddr != "" {
		if err := st.SetAddress(cfg.APIAddr); err != nil { // e.g. a full disk: what is stored can still be read
			cfg.Log.Warn("who finds the store taken is not told our address", "err", err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	s.hand = manual.New(manual.Config{Store: st, Metrics: cfg.Metrics, Tell: s.tell, Log: cfg.Log, Closing: ctx})
	if cfg.Reads {
		return s, nil
	}
	if cfg.Testbed != nil {
		for _, id := range cfg.Testbed.Switches() {
			cfg.Metrics.SwitchKnown(id)
		}
	}
	if err := s.listen(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if cfg.Testbed == nil {
		// What a daemon that was killed left of its labs: hosts with targets
		// that still run, and switches.
		if err := lab.Default().Collect(ctx); err != nil {
			s.log.Warn("labs of dead owners could not be removed; as root: netsplit lab down", "err", err)
		}
	}
	if err := s.completeFindings(); err != nil { // e.g. a full disk: they can still be read
		s.log.Warn("findings of an older version are listed without severity and cause", "err", err)
	}
	err = s.resume()
	if err == nil && cfg.Cluster != nil {
		err = s.openHub(ctx)
	}
	if err == nil {
		err = s.restoreMetrics()
	}
	if err == nil {
		err = s.startManual()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.done.Go(func() { s.loop(ctx) })
	s.done.Go(func() { s.retryUnstored(ctx) })
	if !cfg.InProcess { // a command does its own work and no other
		s.done.Go(func() { s.scheduler(ctx) })
		s.done.Go(func() { s.retain(ctx) })
	}
	return s, nil
}

// listen opens the controller and, with an outside testbed, takes it over. For a
// testbed without switches, or where runners make the runs, there is no controller.
func (s *Service) listen(ctx context.Context) error {
	if s.cfg.Cluster != nil {
		return nil
	}
	if tb := s.cfg.Testbed; tb != nil && tb.Backend == model.BackendNFTables {
		return s.takeOutside(ctx)
	}
	role := of13.RoleMaster
	if s.cfg.Equal {
		role = of13.RoleEqual
	}
	ctrl, err := controller.Listen(controller.Config{Addr: s.cfg.ControllerAddr, TLS: s.cfg.TLS, Allowed: s.cfg.Allowed, Role: role, Log: s.log,
		Refused: func(addr string, err error) {
			s.tell("switch", addr, "refused", fmt.Sprintf("a connection from %s was refused: %v", addr, err))
		}})
	if err != nil {
		return fmt.Errorf("listen for switches (--openflow): %w", err)
	}
	s.ctrl = ctrl
	if s.cfg.Testbed == nil {
		return nil
	}
	return s.takeOutside(ctx)
}

// resume marks the runs that the last daemon did not finish as unknown, and queues
// its campaigns again. A command does its own work and no other: it leaves them to
// "campaign resume" or to the next daemon.
func (s *Service) resume() error {
	unfinished, err := s.store.UnfinishedRuns()
	if err != nil {
		return err
	}
	for _, m := range unfinished {
		if s.leftToRunners(m) {
			continue
		}
		why := "the daemon ended, or its disk was full, while this run was under way; its scenario is run again"
		if c, err := s.getCampaign(m.Campaign); err == nil && c.State != model.CampaignQueued && c.State != model.CampaignRunning {
			why = byTheEndOf(c)
		}
		if err := s.cutShort(m, why); err != nil {
			return err
		}
	}
	campaigns, err := s.allCampaigns()
	if err != nil {
		return err
	}
	slices.SortFunc(campaigns, func(a, b model.Campaign) int { return a.Created.Compare(b.Created) })
	for _, c := range campaigns {
		if c.Spec.OnStage() && c.State == model.CampaignRunning {
			c.Running, c.Doing, c.Ended, c.State, c.Reason = nil, nil, time.Now(), model.CampaignFailed, "netsplit ended while the script was played"
			if err := s.store.PutCampaign(c); err != nil {
				return err
			}
			continue
		}
		if !s.cfg.InProcess && (c.State == model.CampaignQueued || c.State == model.CampaignRunning) {
			if c.Waits.IsZero() { // the last daemon was killed
				c.Waits = s.sinceKilled(&c)
			}
			c.Running, c.Doing = nil, nil
			s.enqueue(c)
		}
	}
	return nil
}

// Close stops running campaigns, heals every partition, and closes the store. The
// next daemon continues these campaigns.
func (s *Service) Close() error {
	s.cancel(errClosing)
	s.done.Wait()
	errs := []error{s.hand.Close()}
	s.storeUnstored() // what ended last, too
	if s.hub != nil {
		s.hub.Close()
	}
	if s.outside != nil {
		errs = append(errs, s.outside.Close())
	}
	if s.ctrl != nil {
		errs = append(errs, s.ctrl.Close())
	}
	return errors.Join(append(errs, s.store.Close())...)
}

// Keys remembers idempotency keys for the API.
func (s *Service) Keys() *store.Store { return s.store }

// ControllerAddr is where switches connect to; "" if it drives none.
func (s *Service) ControllerAddr() string {
	if s.ctrl == nil {
		return ""
	}
	return s.ctrl.Addr().String()
}

func (s *Service) enqueue(c model.Campaign) {
	s.mu.Lock()
	s.queue = append(s.queue, &job{c: c})
	s.jobs[c.ID] = s.queue[len(s.queue)-1]
	s.jobs[c.ID].ctx, s.jobs[c.ID].cancel = context.WithCancelCause(context.Background())
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop runs campaigns, one after the other: they share the machine, and side
// by side they would disturb each other's timing.
func (s *Service) loop(ctx context.Context) {
	for {
		s.mu.Lock()
		var j *job
		if len(s.queue) > 0 {
			j, s.queue = s.queue[0], s.queue[1:]
		}
		s.mu.Unlock()
		if j == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { j.cancel(errClosing) })
		s.execute(j)
		stop()
	}
}

func (s *Service) execute(j *job) {
	s.update(j, func(c *model.Campaign) {
		c.State = model.CampaignRunning
		endWait(c)
	})
	s.tell("campaign", j.c.ID, string(model.CampaignRunning), "campaign "+j.c.ID+" started")
	err := s.tryCampaign(j)
	for wait := firstWait; s.waitsForRoom(j, err); wait = min(2*wait, longestWait) {
		if err = s.awaitRoom(j, wait, err); err != nil {
			break
		}
		began := time.Now()
		err = s.tryCampaign(j)
		if time.Since(began) > longestWait {
			wait = firstWait
		}
	}
	if errors.Is(err, errClosing) { // it stays running in the store: the next daemon goes on with it
		s.update(j, func(c *model.Campaign) { c.Waits = time.Now() })
		return
	}
	s.ended(j, err)
}

// endWait books the time for which a campaign waited.
func endWait(c *model.Campaign) {
	if !c.Waits.IsZero() {
		c.Idle, c.Waits = c.Idle+max(0, time.Since(c.Waits)), time.Time{} // the clock may be set back
	}
}

func (s *Service) tryCampaign(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(p)
		}
	}()
	return s.runCampaign(j.ctx, j)
}

// panicked makes an error of a panic. It is called while that is recovered from.
func (s *Service) panicked(p any) error {
	s.log.Error("internal error", "panic", p, "stack", string(debug.Stack()))
	return fmt.Errorf("internal error of netsplit: %v; please report it, with the stack in the log", p)
}

func (s *Service) ended(j *job, err error) {
	if s.hub != nil {
		s.hub.End(j.c.ID)
	}
	s.booking.Lock() // whoever finds it without a job finds how it ended
	s.change(j, func(c *model.Campaign) {
		if j.cancelled && errors.Is(err, errPaused) {
			err = errCancelled
		}
		endWait(c) // it may end in the queue
		c.Ended, c.Running, c.Doing = time.Now(), nil, nil
		switch {
		case err == nil:
			c.State = model.CampaignDone
		case errors.Is(err, errBudget):
			c.State, c.Reason = model.CampaignDone, errBudget.Error()
		case errors.Is(err, errBroken):
			c.State, c.Reason = model.CampaignDone, errBroken.Error()
		case errors.Is(err, errSuspect):
			c.State, c.Reason = model.CampaignCancelled, errSuspect.Error()
		case errors.Is(err, errCancelled):
			c.State, c.Reason = model.CampaignCancelled, cancelledByUser
		case errors.Is(err, errPaused):
			c.State, c.Reason = model.CampaignPaused, "paused by a user"
		case model.IsFull(err):
			c.State, c.Reason = model.CampaignFailed, fmt.Sprintf("%v: what was recorded stays; make room, then continue with netsplit campaign resume %s", err, c.ID)
		default:
			c.State, c.Reason = model.CampaignFailed, err.Error()
		}
	})
	s.keepEnd(j)
	if err := s.cutShortAll(j.c); err != nil {
		s.log.Error("runs that were cut short could not be stored; the next start or resume does it", "campaign", j.c.ID, "err", err)
	}
	s.mu.Lock()
	delete(s.jobs, j.c.ID)
	s.mu.Unlock()
	s.booking.Unlock()
	s.tryReportCampaign(j, true)
	text := fmt.Sprintf("campaign %s is %s", j.c.ID, j.c.State)
	if j.c.Reason != "" {
		text += ": " + j.c.Reason
	}
	s.tell("campaign", j.c.ID, string(j.c.State), text)
}

func (s *Service) update(j *job, change func(*model.Campaign)) {
	s.booking.Lock()
	defer s.booking.Unlock()
	s.change(j, change)
}

// change is update for a caller who holds booking.
func (s *Service) change(j *job, change func(*model.Campaign)) {
	c := s.changed(j, change)
	if err := s.putCampaign(c); err != nil {
		s.keepUnstored(c)
		s.log.Error("a campaign's state could not be stored; it is tried again", "campaign", c.ID, "err", err)
	}
}

// changed changes a campaign in memory and returns a copy. The caller holds booking
// and stores the copy.
func (s *Service) changed(j *job, change func(*model.Campaign)) model.Campaign {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&j.c)
	c := j.c
	c.Running, c.Doing = slices.Clone(c.Running), maps.Clone(c.Doing)
	return c
}

// newID returns an id that sorts by time: c-<yyyymmdd>-<hhmmss>-<n>.
func (s *Service) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("c-%s-%d", time.Now().UTC().Format("20060102-150405"), s.ids)
}
