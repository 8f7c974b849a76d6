package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"netsplit/controller"
	"netsplit/inference/tap"
	"netsplit/model"
	"netsplit/testbed/agent"
	"netsplit/testbed/fabric"
	"netsplit/testbed/hosts"
	"netsplit/testbed/lab"
)

// Testbed is a testbed with everything that a run needs: its switches under
// control, an agent on each host, and its mirror port. One run uses it at a time.
// A testbed without switches has no fabric; runs cannot use it.
type Testbed struct {
	Testbed model.Testbed

	cuts backend // at line rate: the fabric, or the hosts
	// counted: a cut was proved by the counters of its rules.
	counted atomic.Bool
	fabric  *fabric.Fabric
	hosts   *hosts.Hosts
	lab     *lab.Lab // nil: somebody else's testbed
	binary  string
	run     atomic.Pointer[Run]   // under way; nil between runs
	along   atomic.Pointer[along] // of that run; nil: it does not read both taps
	agents  agents
	tended  context.CancelFunc // ends tend
	work    sync.WaitGroup
	log     *slog.Logger
	// standing holds the cuts that stand, by id: uint32, *Cut.
	standing sync.Map
	ids      atomic.Uint32 // the last one of a cut
	macs     map[model.NodeID]net.HardwareAddr
	mirror   *tap.Reader
	stop     context.CancelFunc // of the mirror reader of the run under way
	read     chan struct{}      // closed when that reader ended
}

// Config is what a Testbed is made from.
type Config struct {
	Testbed model.Testbed
	// Lab is the lab that the testbed is. nil: the testbed is somebody else's;
	// netsplit ends nothing on its hosts and restarts none of its switches.
	Lab *lab.Lab
	// Gate is the transport of the gate; "" leaves it to the testbed.
	Gate model.Gate
	// Controller is what the switches connect to; nil for a testbed whose hosts
	// drop packets themselves.
	Controller *controller.Controller
	// Binary is the path of the netsplit program on the hosts.
	Binary string
	Log    *slog.Logger
	Events Events
}

// Events are called when something happens to a testbed, between runs too. They must
// not wait.
type Events struct {
	// SwitchChanged: a switch connected, or its connection ended.
	SwitchChanged func(id model.DatapathID, up bool)
	// Lapsed: a connected switch does not confirm that its cuts hold.
	Lapsed func(id model.DatapathID)
	// Unhindered: rules of others that dropped packets on the switch are gone.
	Unhindered func(id model.DatapathID)
	// Demoted: another controller became master of the switch.
	Demoted func(id model.DatapathID, err error)
	// Refused: rules of others are in the way on the switch.
	Refused func(id model.DatapathID, err error)
	// Tampered: somebody changed netsplit's rules on the switch, and netsplit has
	// restored them; or somebody put other rules before them, and these stay.
	Tampered func(id model.DatapathID, what string)
	// Drained: netsplit's rules disappear from the switch again and again.
	Drained func(id model.DatapathID, err error)
	// HostPort: the host's port is gone, or back (nil).
	HostPort func(host model.NodeID, err error)
	// OtherPort: the port of a link, gate or mirror is gone, or back (nil).
	OtherPort func(id model.DatapathID, port model.Port, err error)
	// Agent: the agent of a host has ended (err says why), or runs again (nil).
	Agent func(host model.NodeID, err error)
	// Lost: a host that dropped packets itself no longer does.
	Lost func(host model.NodeID, err error)
}

// Open starts an agent on every host of a testbed and takes over its switches. If
// there are none, the hosts drop packets themselves. Open does not wait for switches
// to connect: see Ready.
func Open(ctx context.Context, c Config) (*Testbed, error) {
	b := &Testbed{Testbed: c.Testbed, lab: c.Lab, binary: c.Binary, log: c.Log,
		agents: agents{on: map[model.NodeID]*agent.Client{}, starting: map[model.NodeID]*sync.Mutex{}}, macs: map[model.NodeID]net.HardwareAddr{}}
	var err error
	if c.Testbed.Backend == model.BackendNFTables {
		err = b.takeHosts(ctx, c)
	} else {
		err = b.takeSwitches(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// takeSwitches has the fabric keep the switches in order.
func (b *Testbed) takeSwitches(ctx context.Context, c Config) error {
	f, err := fabric.New(fabric.Config{Testbed: c.Testbed, Gate: c.Gate, Controller: c.Controller, Log: c.Log,
		PacketIn: b.held,
		Crossed:  b.crossed,
		Events: fabric.Events{
			Ready: func(id model.DatapathID) { c.Events.SwitchChanged(id, true) },
			SwitchDown: func(id model.DatapathID, err error) {
				c.Events.SwitchChanged(id, false)
				b.trouble("switch %s went away, with what it held: %v", id, err)
			},
			Lapsed:     c.Events.Lapsed,
			Unhindered: c.Events.Unhindered,
			Demoted: func(id model.DatapathID, err error) {
				c.Events.Demoted(id, err)
				b.trouble("for a part of the run not known exactly, %v", err)
			},
			Refused:     c.Events.Refused,
			SwitchError: func(id model.DatapathID, err error) { b.trouble("switch %s refused: %v", id, err) },
			GateFault:   func(id model.DatapathID, err error) { b.trouble("the gate port of switch %s: %v", id, err) },
			HostPort: func(id model.DatapathID, host model.NodeID, err error) {
				c.Events.HostPort(host, err)
				if err != nil {
					b.trouble("host %s is on no port of switch %s: %v", host, id, err)
				}
			},
			OtherPort: func(id model.DatapathID, port model.Port, err error) {
				c.Events.OtherPort(id, port, err)
				if err != nil {
					b.trouble("port %s of switch %s, which the testbed names: %v", port.Name, id, err)
				}
			},
			Tampered: func(id model.DatapathID, t fabric.Tampering) {
				c.Events.Tampered(id, t.String())
				b.trouble("somebody changed the rules of switch %s: %s", id, t)
			},
			Drained: func(id model.DatapathID, err error) {
				c.Events.Drained(id, err)
				b.trouble("%v", err)
			},
		}})
	if err != nil {
		return err
	}
	b.fabric, b.cuts = f, f
	if err := b.startAgents(ctx); err != nil || b.lab != nil { // on a lab, Ensure restarts agents before each run
		return err
	}
	b.tendAll(c.Events.Agent)
	return nil
}

func (b *Testbed) tendAll(tell func(model.NodeID, error)) {
	var ctx context.Context
	ctx, b.tended = context.WithCancel(context.Background())
	for _, h := range b.Testbed.Hosts {
		b.work.Go(func() { b.tend(ctx, h.Name, tell) })
	}
}

// takeHosts has the hosts drop packets themselves.
func (b *Testbed) takeHosts(ctx context.Context, c Config) error {
	if err := b.startAgents(ctx); err != nil {
		return err
	}
	h, err := hosts.New(ctx, hosts.Config{Testbed: c.Testbed, Lost: c.Events.Lost,
		Agent: func(ctx context.Context, h model.NodeID) (hosts.Agent, error) { return b.revive(ctx, h) }})
	if err != nil {
		return err
	}
	b.hosts, b.cuts = h, h
	b.tendAll(c.Events.Agent)
	return nil
}

// HasSwitches says whether switches cut here; otherwise the hosts do, and there
// is no gate.
func (b *Testbed) HasSwitches() bool { return b.fabric != nil }

// Ready waits until all switches are connected and have their rules.
func (b *Testbed) Ready(ctx context.Context) error { return b.fabric.Ready(ctx) }

// Meters says why drop rules alone cut on a switch; nil: meters cut first.
func (b *Testbed) Meters(id model.DatapathID) error { return b.fabric.Meters(id) }

// Refused says which switches netsplit leaves alone because rules of others are in
// the way.
func (b *Testbed) Refused() []error { return b.fabric.Refused() }

// hindered says what keeps packets from links that we do not cut: ports of hosts that are
// not as they should be, by their switches, and rules of somebody else.
func (b *Testbed) hindered(links []model.Link) error {
	if b.fabric == nil {
		return nil
	}
	var errs []error
	for _, l := range links {
		for _, h := range []model.NodeID{l.Src, l.Dst} {
			if err := b.fabric.Unplugged(h); err != nil {
				errs = append(errs, fmt.Errorf("host %s: %w", h, err))
			}
			errs = append(errs, b.fabric.DroppedByOthers(h))
		}
	}
	return distinct(errs)
}

// Located is the testbed with the present numbers of its ports; 0 for a port name that
// no switch has reported.
func (b *Testbed) Located() model.Testbed {
	if b.fabric == nil {
		return b.Testbed
	}
	return b.fabric.Testbed()
}

// AgentGone says why the agent of a host has ended; nil: all are alive.
func (b *Testbed) AgentGone() error {
	for _, a := range b.agents.all() {
		if err := a.Err(); err != nil {
			return err
		}
	}
	return nil
}

// How long a switch may take to come back before a run, by itself and after
// its daemons were started again.
const (
	readyLimit   = 5 * time.Second
	restartLimit = 20 * time.Second
)

// Ensure makes the testbed fit for a run: it asks for the master role again on a
// switch that another controller took, and restarts a lab's dead switch and dead
// agents.
func (b *Testbed) Ensure(ctx context.Context) error {
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

// Sweep ends what a run left on a lab's hosts. It leaves other hosts alone.
func (b *Testbed) Sweep() error {
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
func (b *Testbed) Close() error {
	var errs []error
	if b.tended != nil {
		b.tended()
		b.work.Wait()
	}
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
