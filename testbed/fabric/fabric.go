package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/controller"
	"netsplit/flowrules"
	"netsplit/model"
)

// Pair is two hosts; both directions are meant.
type Pair = flowrules.Pair

// Config of a fabric. The zero value of an optional field takes its default.
type Config struct {
	Testbed    model.Testbed
	Controller *controller.Controller
	Log        *slog.Logger // default: nothing is logged

	// Crossed gets every TCP packet that wanted to cross a partition with effect reset
	// that is cut at line rate. id is the partition's, host is the sender. It may be nil.
	Crossed func(id uint32, host model.NodeID, frame []byte)
	// PacketIn gets every packet of a gated pair in order of arrival, per
	// switch, with the host on whose port it came in, and when: to the kernel
	// by a gate port, to the controller by packet-in. frame is only valid
	// during the call. The call must not block: while it does, the switch's
	// queue fills and packets are lost, and no other call of the fabric that
	// waits for the switch returns.
	PacketIn func(host model.NodeID, at time.Time, frame []byte)
	// Gate is the transport of the gate; default: by port on switches that
	// have a gate port in the testbed. With GateByPacketIn gate ports are not
	// opened.
	Gate model.Gate
	// OpenPort opens the far end of a gate port; default: a packet socket.
	OpenPort func(model.GatePort) (Port, error)

	// Events are told from the fabric's goroutines; all optional.
	Events Events

	HardTimeout time.Duration // life of rules that hold packets back; default 5 s
	Timeout     time.Duration // longest wait for a switch; default 5 s

	renewEvery, checkEvery time.Duration // other ones in tests
}

const (
	renewEvery = time.Second
	checkEvery = time.Second // how often flow tables are read back
)

// Events of the switches of a fabric. A callback must not block.
type Events struct {
	SwitchUp    func(id model.DatapathID) // connected, rules not yet installed
	Ready       func(id model.DatapathID) // rules read back and repaired
	SwitchDown  func(id model.DatapathID, err error)
	SwitchError func(id model.DatapathID, err error)
	// Lapsed: a connected switch has not confirmed in time that the rules of its cuts or
	// its gate were renewed; see LeaseExpiry.
	Lapsed func(id model.DatapathID)
	// Demoted: another controller became master. It is noticed up to
	// controller.Config.RoleInterval late; since then, gate and cuts may not have worked.
	// err is an ErrSlave. Ready follows when we are master again.
	Demoted func(id model.DatapathID, err error)
	// Refused: the switch is connected and left as it is, since rules of somebody
	// else are in the way; err is an ErrInTheWay. Ready follows when they are gone.
	Refused func(id model.DatapathID, err error)
	// Unhindered: rules of somebody else that dropped what ours let pass are gone or have
	// changed; see DroppedByOthers.
	Unhindered func(id model.DatapathID)
	// GateFault: packets were lost at a gate port, or it is down. While it is,
	// the pairs that it gates are open.
	GateFault func(id model.DatapathID, err error)
	// HostPort: the port of a host was removed, has another number or lost its link, or
	// the switch has no port, or two, of its name. So more is cut off than was requested.
	// nil: the port is usable again; if the testbed names it, rules are installed for its
	// present number.
	HostPort func(id model.DatapathID, host model.NodeID, err error)
	// OtherPort: a port that the testbed has by name for a link, a gate or a mirror is
	// not there, or is again (nil).
	OtherPort func(id model.DatapathID, port model.Port, err error)
	// Tampered: somebody changed the flow table. Missing, changed and stale rules were
	// repaired; conflicts are rules of somebody else and were left alone.
	Tampered func(id model.DatapathID, t Tampering)
	// Drained: rules that were put back were missing again, several times in a row;
	// err is an ErrDrained.
	Drained func(id model.DatapathID, err error)
}

// Tampering says how a flow table differed from what the fabric left there.
type Tampering struct {
	Missing   int // of our rules and meters: gone, put back
	Changed   int // of our rules and meters: changed, put right
	Stale     int // with our cookie or mark, not wanted: removed
	Conflicts []flowrules.Conflict
}

// String is the tampering in one line, of many conflicts the first.
func (t Tampering) String() string {
	s := fmt.Sprintf("%d missing, %d changed, %d stale", t.Missing, t.Changed, t.Stale)
	for i, c := range t.Conflicts {
		if i == 5 {
			return s + fmt.Sprintf("; and %d rules more of somebody else", len(t.Conflicts)-i)
		}
		s += "; " + c.String()
	}
	return s
}

// ErrDown: a switch of the testbed is not connected.
var ErrDown = errors.New("switch is not connected")

// Fabric keeps the switches of one testbed in their desired state.
type Fabric struct {
	cfg     Config
	lab     uint16
	members []*member // sorted by datapath id
	byHost  map[model.NodeID]*member
	byMAC   map[flowrules.MAC]model.NodeID
	macs    map[model.NodeID]flowrules.MAC
	stop    chan struct{}
	work    sync.WaitGroup
	tally   tally

	receivers atomic.Pointer[receivers] // see Receivers

	// mu guards the desired state. Held by every operation that changes it
	// from compile to confirmation, so changes come one after the other.
	mu         turn
	gate       []Pair
	mirror     []Pair
	transport  model.Gate
	partitions []flowrules.Desired
	before     map[uint32]map[string]uint64          // by partition: what rules had counted before it was cut
	gone       map[uint32]map[string]model.RuleDrops // by partition: what rules dropped for it that went with other partitions
	changes    map[model.NodeID]int                  // see flowrules.Input.Changes
	leaving    bool                                  // from here on, only forwarding is desired
	closed     bool
}

// New takes charge of the testbed's switches. It does not wait for them to
// connect; see Ready.
func New(cfg Config) (*Fabric, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.HardTimeout, cfg.Timeout = cmp.Or(cfg.HardTimeout, 5*time.Second), cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.renewEvery, cfg.checkEvery = cmp.Or(cfg.renewEvery, renewEvery), cmp.Or(cfg.checkEvery, checkEvery)
	if cfg.renewEvery >= cfg.HardTimeout {
		return nil, fmt.Errorf("fabric: rules live %v but are renewed every %v: renew more often than that", cfg.HardTimeout, cfg.renewEvery)
	}
	f := &Fabric{cfg: cfg, mu: newTurn(), lab: flowrules.LabID(cfg.Testbed.Name), stop: make(chan struct{}),
		byHost: map[model.NodeID]*member{}, byMAC: map[flowrules.MAC]model.NodeID{}, macs: map[model.NodeID]flowrules.MAC{}, changes: map[model.NodeID]int{}, before: map[uint32]map[string]uint64{}, gone: map[uint32]map[string]model.RuleDrops{}}
	if err := f.layOut(); err != nil {
		return nil, err
	}
	f.setTransport(cfg.Gate)
	if err := f.openPorts(); err != nil {
		return nil, err
	}
	for _, m := range f.members {
		plan, err := flowrules.Compile(m.input(f))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("fabric: testbed %s: %w", cfg.Testbed.Name, err), f.closePorts())
		}
		m.intend(plan) // without meters: no switch has told yet
	}
	for i, m := range f.members {
		unregister, err := cfg.Controller.Register(m.id, m)
		if err != nil {
			for _, o := range f.members[:i] {
				o.unregister()
			}
			return nil, errors.Join(err, f.closePorts())
		}
		m.unregister = unregister
	}
	for _, m := range f.members {
		f.work.Go(m.run)
		f.work.Go(m.renewing)
		if m.line != nil {
			f.work.Add(1)
			go m.line.run()
		}
	}
	return f, nil
}

func (f *Fabric) layOut() error {
	t := f.cfg.Testbed
	byID := map[model.DatapathID]*member{}
	for _, h := range t.Hosts {
		hw, err := net.ParseMAC(h.MAC)
		if err != nil || len(hw) != 6 {
			return fmt.Errorf("fabric: testbed %s: host %s has MAC %q: want six hex bytes with colons", t.Name, h.Name, h.MAC)
		}
		m := byID[h.Datapath]
		if m == nil {
			m = newMember(f, h.Datapath)
			byID[h.Datapath] = m
			f.members = append(f.members, m)
		}
		mac := flowrules.MAC(hw)
		m.hosts = append(m.hosts, hostPort{h.Name, h.Port})
		f.byHost[h.Name], f.byMAC[mac], f.macs[h.Name] = m, h.Name, mac
	}
	if len(f.members) == 0 {
		return fmt.Errorf("fabric: testbed %s has no hosts", t.Name)
	}
	for _, p := range t.Mirrors {
		if m := byID[p.Datapath]; m != nil && m.mirrorPort.IsZero() {
			m.mirrorPort = p.Port
		}
	}
	for _, p := range t.Gates {
		if m := byID[p.Datapath]; m != nil && f.cfg.Gate != model.GateByPacketIn && m.line == nil {
			m.line = newLine(m, p)
		}
	}
	routes, err := flowrules.Routes(t.Links)
	if err != nil {
		return fmt.Errorf("fabric: testbed %s: %w", t.Name, err)
	}
	for _, id := range t.Switches() { // those that only join others have rules, too
		if byID[id] == nil {
			byID[id] = newMember(f, id)
			f.members = append(f.members, byID[id])
		}
		byID[id].route = routes[id]
	}
	for _, m := range f.members {
		m.far = m.route.Far(t)
	}
	slices.SortFunc(f.members, func(a, b *member) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	for _, m := range f.members {
		m.at.Store(m.locate(nil, false))
	}
	return nil
}

// Ready waits until every switch is connected and holds its rules.
func (f *Fabric) Ready(ctx context.Context) error {
	for _, m := range f.members {
		if err := m.waitReady(ctx); err != nil {
			return err
		}
		if m.line != nil {
			if err := m.line.waitUp(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetTaps makes exactly these pairs gated and mirrored. It returns when every
// switch has confirmed the rules. On error the taps stay desired and are
// installed when the switch can be reached again.
func (f *Fabric) SetTaps(ctx context.Context, gate, mirror []Pair) error {
	if err := f.mu.take(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	oldGate, oldMirror := f.gate, f.mirror
	f.gate, f.mirror = slices.Clone(gate), slices.Clone(mirror)
	if err := f.check(); err != nil {
		f.gate, f.mirror = oldGate, oldMirror
		return err
	}
	f.setReceivers()
	f.changedAll()
	return f.apply(ctx)
}

// Cut puts a partition in force by drop rules, gated or not, and returns when
// every switch has confirmed them. That is not yet proof: on Open vSwitch
// packets may still cross for a while. On error the partition is not desired
// any more, and what was installed of it is removed.
func (f *Fabric) Cut(ctx context.Context, id uint32, p model.Partition) error {
	return f.cut(ctx, flowrules.Desired{ID: id, Partition: p})
}

// CutBehind is Cut, but leaves gated pairs at the gate: their packets still
// come to PacketIn, whose owner refuses them, and the drop rules stand behind
// the gate in case its rules vanish. Pairs that are not gated are cut as by Cut.
func (f *Fabric) CutBehind(ctx context.Context, id uint32, p model.Partition) error {
	return f.cut(ctx, flowrules.Desired{ID: id, Partition: p, Behind: true})
}

func (f *Fabric) cut(ctx context.Context, in flowrules.Desired) error {
	if err := f.mu.take(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for _, m := range f.members {
		if err := m.canCut(ctx, in.Partition); err != nil {
			return err
		}
	}
	before, err := f.already(ctx, in.Partition)
	if err != nil {
		return err
	}
	f.partitions = append(f.partitions, in)
	err = f.check()
	if err == nil {
		f.changed(in.Partition)
		if err = f.apply(ctx); err == nil {
			if len(before) > 0 {
				f.before[in.ID] = before
			}
			return nil
		}
	}
	f.partitions = f.partitions[:len(f.partitions)-1]
	if in.ID != 0 && f.check() == nil {
		// Remove what was installed; on an unreachable switch it expires.
		f.changed(in.Partition)
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.Timeout)
		defer cancel()
		_ = f.apply(undo)
	}
	return err
}

// Heal lifts the partition with that id, if it is in force, and returns when
// every switch has confirmed it: its drop rules are gone, then its meters are
// up. On error the partition is not desired any more: its rules go when the
// switch is reached again, or expire.
func (f *Fabric) Heal(ctx context.Context, id uint32) error {
	if err := f.mu.take(ctx); err != nil {
		f.work.Go(func() { // heal it although the caller gave up
			f.mu.Lock()
			defer f.mu.Unlock()
			if err := f.heal(context.Background(), id); err != nil {
				f.cfg.Log.Warn("a heal that had to wait was not confirmed", "err", err)
			}
		})
		return err
	}
	defer f.mu.Unlock()
	return f.heal(ctx, id)
}

// heal is Heal; f.mu is held.
func (f *Fabric) heal(ctx context.Context, id uint32) error {
	f.partitions = slices.DeleteFunc(f.partitions, func(p flowrules.Desired) bool {
		if p.ID == id && !p.Lifted {
			f.changed(p.Partition)
		}
		return p.ID == id
	})
	delete(f.before, id)
	delete(f.gone, id)
	f.book(ctx)
	return f.apply(ctx)
}

// changed has the switches look at every packet anew that the senders of a partition send:
// see flowrules.KindFresh. f.mu is held.
func (f *Fabric) changed(p model.Partition) {
	senders := map[model.NodeID]bool{}
	for _, l := range p.Links() {
		senders[l.Src] = true
	}
	for h := range senders {
		f.changes[h]++
	}
}

// lookAnew has one switch look at every packet anew, after its rules were repaired.
func (f *Fabric) lookAnew(ctx context.Context, m *member) error {
	if err := f.mu.take(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	for _, h := range m.hosts {
		f.changes[h.Name]++
	}
	plan, err := flowrules.Compile(m.input(f))
	if err != nil {
		return err
	}
	return m.turnTo(ctx, plan)
}

func (f *Fabric) changedAll() {
	for h := range f.byHost {
		f.changes[h]++
	}
}

// Flush lifts every partition and every tap. It waits for its turn even if ctx ends, so
// that nothing stays desired.
func (f *Fabric) Flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changedAll()
	f.partitions, f.gate, f.mirror = nil, nil, nil
	return f.apply(ctx)
}

// Fence returns once every switch has processed all that was sent before, by session or by
// gate port, and PacketIn has received all that had come to the gate port by then.
func (f *Fabric) Fence(ctx context.Context) error {
	return f.each(ctx, func(ctx context.Context, m *member) error {
		sw := m.session()
		if sw == nil {
			return fmt.Errorf("switch %s: %w", m.id, ErrDown)
		}
		if err := sw.Barrier(ctx); err != nil {
			return err
		}
		return m.fenceLine(ctx)
	})
}

// check compiles the desired state without installing it. f.mu is held.
func (f *Fabric) check() error {
	for _, m := range f.members {
		if _, err := flowrules.Compile(m.input(f)); err != nil {
			return err
		}
	}
	return nil
}

// apply brings every switch to the desired state. f.mu is held.
func (f *Fabric) apply(ctx context.Context) error {
	if f.closed {
		return errors.New("fabric: closed")
	}
	plans := map[*member]flowrules.Plan{}
	for _, m := range f.members {
		p, err := flowrules.Compile(m.input(f))
		if err != nil {
			return err
		}
		plans[m] = p
	}
	return f.each(ctx, func(ctx context.Context, m *member) error {
		err := m.turnTo(ctx, plans[m])
		if errors.Is(err, errNoMeters) { // then cut by rules alone
			plan, cerr := flowrules.Compile(m.input(f))
			if cerr != nil {
				return cerr
			}
			err = m.turnTo(ctx, plan)
		}
		if err != nil || m.session() == nil { // it is disconnected, and nothing was to change there
			return err
		}
		return m.fenceLine(ctx)
	})
}

// each runs do for all switches at once, under the fabric's time limit.
func (f *Fabric) each(ctx context.Context, do func(context.Context, *member) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	if len(f.members) == 1 {
		return do(ctx, f.members[0])
	}
	errs := make([]error, len(f.members))
	var wg sync.WaitGroup
	for i, m := range f.members {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = do(ctx, m)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close stops renewing, removes the fabric's rules from connected switches, and gives the
// datapaths back to the controller. A switch without rules of others then forwards nothing:
// see Leave.
func (f *Fabric) Close() error {
	return f.end(func(ctx context.Context, m *member) error { return m.clear(ctx) })
}

// Leave is Close, but leaves the network whole. It lifts partitions and taps. On a switch
// without rules of others, our rules that forward between hosts stay.
func (f *Fabric) Leave() error {
	f.mu.Lock()
	f.partitions, f.gate, f.mirror, f.leaving = nil, nil, nil, true
	f.mu.Unlock()
	return f.end(func(ctx context.Context, m *member) error { return m.leave(ctx) })
}

func (f *Fabric) end(last func(context.Context, *member) error) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()
	close(f.stop)
	f.work.Wait()
	err := f.each(context.Background(), func(ctx context.Context, m *member) error {
		defer m.unregister()
		return last(ctx, m)
	})
	return errors.Join(err, f.closePorts())
}
