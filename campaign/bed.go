package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/campaign/agent"
	"netsplit/campaign/fabric"
	"netsplit/campaign/hosts"
	"netsplit/controller"
	"netsplit/deploy/lab"
	"netsplit/inference/tap"
	"netsplit/model"
)

// Bed is a testbed with everything that a run needs of it: its switches under
// control, an agent on each host, and its mirror port. One run uses it at a
// time. A testbed without switches has no fabric, and no runs.
type Bed struct {
	Testbed model.Testbed

	cuts   backend // by hand: the fabric, or the hosts
	fabric *fabric.Fabric
	hosts  *hosts.Hosts
	lab    *lab.Lab // nil: somebody else's testbed
	binary string
	run    atomic.Pointer[session] // of the run under way; nil between runs
	agents agents
	macs   map[model.NodeID]net.HardwareAddr
	mirror *tap.Reader
	stop   context.CancelFunc // of the mirror reader of the run under way
	read   chan struct{}      // closed when that reader ended
}

// fenceLimit is how long a switch may take to confirm a cut or a heal.
const fenceLimit = 2 * time.Second

// overseer is told what happens to the switches of a bed. It must not wait.
type overseer interface {
	switchChanged(id model.DatapathID, up bool)
	demoted(id model.DatapathID, err error) // another controller became its master
	refused(id model.DatapathID, err error) // rules of others are in our way there
	hostPort(host model.NodeID, err error)  // a host's port went, or is back (nil)
}

// newBed takes over the switches of a testbed and starts an agent on every
// host. binary is the netsplit program as the hosts find it.
func newBed(ctx context.Context, tb model.Testbed, gate model.Gate, ctrl *controller.Controller, binary string, log *slog.Logger, o overseer) (*Bed, error) {
	b := emptyBed(tb, binary)
	trouble := func(format string, args ...any) {
		if s := b.run.Load(); s != nil {
			s.Fail(format, args...)
		}
	}
	f, err := fabric.New(fabric.Config{Testbed: tb, Gate: gate, Controller: ctrl, Log: log,
		PacketIn: func(host model.NodeID, at time.Time, frame []byte) {
			if s := b.run.Load(); s != nil {
				s.Gate(host, at, frame)
			}
		},
		Events: fabric.Events{
			Ready: func(id model.DatapathID) { o.switchChanged(id, true) },
			SwitchDown: func(id model.DatapathID, err error) {
				o.switchChanged(id, false)
				trouble("switch %s went away, with what it held: %v", id, err)
			},
			Demoted: func(id model.DatapathID, err error) {
				o.demoted(id, err)
				trouble("for a part of the run not known exactly, %v", err)
			},
			Refused:     o.refused,
			SwitchError: func(id model.DatapathID, err error) { trouble("switch %s refused: %v", id, err) },
			GateFault:   func(id model.DatapathID, err error) { trouble("the gate port of switch %s: %v", id, err) },
			HostPort: func(id model.DatapathID, host model.NodeID, err error) {
				o.hostPort(host, err)
				if err != nil {
					trouble("host %s hangs on no port of switch %s: %v", host, id, err)
				}
			},
			Tampered: func(id model.DatapathID, t fabric.Tampering) {
				trouble("somebody changed the rules of switch %s: %s", id, t)
			},
		}})
	if err != nil {
		return nil, err
	}
	b.fabric, b.cuts = f, f
	if err := b.startAgents(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// newHostBed is newBed for a testbed whose hosts drop packets themselves. lost is
// called when one of them does not any more.
func newHostBed(ctx context.Context, tb model.Testbed, binary string, lost func(error)) (*Bed, error) {
	b := emptyBed(tb, binary)
	err := b.startAgents(ctx)
	if err == nil {
		b.hosts, err = hosts.New(ctx, hosts.Config{Testbed: tb, Lost: lost,
			Agent: func(ctx context.Context, h model.NodeID) (hosts.Agent, error) { return b.revive(ctx, h) }})
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.cuts = b.hosts
	return b, nil
}

func emptyBed(tb model.Testbed, binary string) *Bed {
	return &Bed{Testbed: tb, binary: binary, agents: agents{on: map[model.NodeID]*agent.Client{}}, macs: map[model.NodeID]net.HardwareAddr{}}
}

// startAgents starts an agent on every host.
func (b *Bed) startAgents(ctx context.Context) error {
	for _, h := range b.Testbed.Hosts {
		mac, err := net.ParseMAC(h.MAC)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		b.macs[h.Name] = mac
		a, err := agent.Start(ctx, h, b.binary)
		if err != nil {
			return fmt.Errorf("start the agent on host %s: %w", h.Name, err)
		}
		b.agents.put(h.Name, a)
	}
	return nil
}

// agents are those on the hosts now.
type agents struct {
	mu sync.Mutex
	on map[model.NodeID]*agent.Client
}

// of is the agent on a host; nil if there is none.
func (a *agents) of(h model.NodeID) *agent.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.on[h]
}

func (a *agents) put(h model.NodeID, c *agent.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on[h] = c
}

func (a *agents) all() []*agent.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.on))
}

// revive is the agent on a host, started again if it died.
func (b *Bed) revive(ctx context.Context, name model.NodeID) (*agent.Client, error) {
	a := b.agents.of(name)
	if a.Err() == nil {
		return a, nil
	}
	h, _ := b.Testbed.Host(name)
	a.Close()
	a, err := agent.Start(ctx, h, b.binary)
	if err != nil {
		return nil, fmt.Errorf("the agent on host %s died and could not be started again: %w", name, err)
	}
	b.agents.put(name, a)
	return a, nil
}

// How long a switch may take to come back before a run, by itself and after
// its daemons were started again.
const (
	readyLimit   = 5 * time.Second
	restartLimit = 20 * time.Second
)

// ensure makes the testbed fit for a run: a switch that another controller took
// is asked for its master role again, a lab's switch that died is started again,
// and so are agents that died.
func (b *Bed) ensure(ctx context.Context) error {
	if err := b.fabric.Claim(ctx); err != nil {
		return fmt.Errorf("testbed %s is not ready: %w", b.Testbed.Name, err)
	}
	rctx, cancel := context.WithTimeout(ctx, readyLimit)
	err := b.fabric.Ready(rctx)
	cancel()
	if err != nil && b.lab != nil {
		if err := b.lab.RestartSwitch(ctx); err != nil {
			return fmt.Errorf("the switch of testbed %s is gone and could not be started again: %w", b.Testbed.Name, err)
		}
		rctx, cancel := context.WithTimeout(ctx, restartLimit)
		defer cancel()
		err = b.fabric.Ready(rctx)
	}
	if err != nil {
		return fmt.Errorf("testbed %s is not ready: %w", b.Testbed.Name, err)
	}
	for _, h := range b.Testbed.Hosts {
		now := time.Now()
		old := b.agents.of(h.Name)
		if _, err := old.CountFrom(ctx, agent.Sender{}, now, now); err == nil {
			continue
		}
		old.Close()
		if _, err := b.revive(ctx, h.Name); err != nil {
			return err
		}
	}
	return nil
}

// sweep ends what a run left on a lab's hosts; hosts that are not ours are
// left alone.
func (b *Bed) sweep() error {
	if b.lab == nil {
		return nil
	}
	var pids []int
	for _, a := range b.agents.all() {
		pids = append(pids, a.PID())
	}
	return b.lab.Sweep(pids...)
}

// Close ends the agents and leaves the network whole.
func (b *Bed) Close() error {
	var errs []error
	if b.hosts != nil {
		b.hosts.Close()
	}
	for _, a := range b.agents.all() {
		errs = append(errs, a.Close())
	}
	if b.fabric != nil {
		errs = append(errs, b.fabric.Leave())
	}
	return errors.Join(errs...)
}

// hasMirror: one mirror port sees all that there is to see, on a single switch only.
func (b *Bed) hasMirror() bool { return len(b.Testbed.Mirrors) > 0 && len(b.Testbed.Switches()) == 1 }

// tapName says which tap a run uses. A script cuts without the gate, at line
// rate, and reads no message where there is no mirror port.
func (b *Bed) tapName(sc *model.Scenario) string {
	switch {
	case b.hasMirror() && !sc.Faulty():
		return "mirror"
	case sc.Strategy == model.StrategyScripted:
		return "none"
	}
	return "gate"
}

// gateName is the transport of the gate; "" for another tap.
func (b *Bed) gateName(tap string) string {
	if tap != "gate" {
		return ""
	}
	return b.fabric.Gate()
}

// checkGate enters what was lost at the gate into the run under way.
func (b *Bed) checkGate(ctx context.Context) error { return b.fabric.CheckGate(ctx) }

// tap opens the tap of a run.
func (b *Bed) tap(ctx context.Context, s *session, pairs []fabric.Pair, sc *model.Scenario) error {
	b.run.Store(s)
	switch b.tapName(sc) {
	case "gate":
		return b.fabric.SetTaps(ctx, pairs, nil)
	case "none":
		return b.fabric.SetTaps(ctx, nil, nil)
	}
	m := b.Testbed.Mirrors[0]
	r, err := tap.Open(m.Interface, m.Netns)
	if err != nil {
		return fmt.Errorf("open the mirror port: %w", err)
	}
	b.mirror = r
	rctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.stop, b.read = cancel, make(chan struct{})
	go func() {
		defer close(b.read)
		if err := r.Read(rctx, s.Mirror); err != nil && rctx.Err() == nil {
			s.Fail("the mirror port could not be read any more: %v", err)
		}
	}()
	return b.fabric.SetTaps(ctx, nil, pairs)
}

// calm closes the taps: plain forwarding between all hosts, nothing held.
func (b *Bed) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := b.fabric.Flush(ctx)
	b.run.Store(nil)
	if b.mirror != nil {
		b.stop()
		<-b.read
		err = errors.Join(err, b.mirror.Close())
		b.mirror = nil
	}
	return err
}

// Release sends a held frame on to its host.
func (b *Bed) Release(frame []byte, to model.NodeID) error { return b.fabric.Release(frame, to) }

// cutID is the id of a run's one cut in its rules' cookies.
const cutID = 1

// Cut puts the partition's drop rules behind the gate.
func (b *Bed) Cut(p model.Partition) error {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	return b.fabric.CutBehind(ctx, cutID, p)
}

// Heal takes them away.
func (b *Bed) Heal() error {
	ctx, cancel := context.WithTimeout(context.Background(), fenceLimit)
	defer cancel()
	return b.fabric.Heal(ctx, cutID)
}

// HostOf is the host that a hardware address belongs to, "" if none does.
func (b *Bed) HostOf(mac [6]byte) model.NodeID {
	h, _ := b.fabric.HostOf(mac[:])
	return h
}

// MAC is the hardware address of a host.
func (b *Bed) MAC(h model.NodeID) (net.HardwareAddr, bool) {
	m, ok := b.macs[h]
	return m, ok
}

// arrivalsOf says when packets arrived at a host, by their digests.
func (b *Bed) arrivalsOf(ctx context.Context, host model.NodeID, digests []uint64, from time.Time) ([][]time.Time, error) {
	a := b.agents.of(host)
	if a == nil {
		return nil, fmt.Errorf("no agent on host %s", host)
	}
	return a.ArrivalsOf(ctx, digests, from)
}

// arrived counts, at the receiving host, the packets of a link, or only some
// traffic of it, between two moments, and gives the time of the first after the second of them.
func (b *Bed) arrived(ctx context.Context, l model.Link, only []model.Traffic, from, to time.Time) (int, time.Time, error) {
	a := b.agents.of(l.Dst)
	src, ok := b.Testbed.Host(l.Src)
	if a == nil || !ok {
		return 0, time.Time{}, fmt.Errorf("no agent on host %s", l.Dst)
	}
	n := 0
	sender := agent.Sender{Addrs: []netip.Addr{src.IP}, MAC: b.macs[l.Src], Only: only}
	if to.After(from) {
		c, err := a.CountFrom(ctx, sender, from, to)
		if err != nil {
			return 0, time.Time{}, err
		}
		if c.Incomplete {
			return c.Packets, time.Time{}, fmt.Errorf("the agent on host %s missed packets", l.Dst)
		}
		n = c.Packets
	}
	first, err := a.FirstFrom(ctx, sender, to)
	return n, first, err
}
