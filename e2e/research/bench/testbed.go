package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"netsplit/controller"
	"netsplit/internal/labtest"
	"netsplit/model"
	"netsplit/testbed/agent"
	"netsplit/testbed/fabric"
	"netsplit/testbed/lab"
	"netsplit/testbed/proc"
)

// The two hosts of a lab of the benchmarks.
const (
	hostA model.NodeID = "a"
	hostB model.NodeID = "b"
)

var (
	theHosts = []model.NodeID{hostA, hostB}
	thePair  = []fabric.Pair{{A: hostA, B: hostB}}
)

// rig is a lab of two hosts.
type rig struct {
	lab     *lab.Lab
	testbed model.Testbed
	self    string // this program
	links   map[model.NodeID]*hostLink
	closers []func() error
}

// hostLink reads a host's interface counters.
type hostLink struct {
	h     *netlink.Handle
	index int
}

// newTestbed makes a lab whose switch dials the OpenFlow target.
func newTestbed(ctx context.Context, name, target string) (b *rig, err error) {
	b = &rig{links: map[model.NodeID]*hostLink{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.self, err = os.Executable(); err != nil {
		return b, err
	}
	name = fmt.Sprintf("bench%d-%s", os.Getpid(), name)
	if b.lab, err = lab.Up(ctx, lab.Spec{Name: name, Hosts: theHosts, Controller: target, Owner: os.Getpid()}); err != nil {
		return b, err
	}
	b.closers = append(b.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return b.lab.Down(ctx)
	})
	for _, w := range b.lab.Warnings() {
		fmt.Fprintln(os.Stderr, "bench: warning:", w)
	}
	b.testbed = b.lab.Testbed()
	for _, h := range theHosts {
		l, err := openLink(b.lab.Netns(h))
		if err != nil {
			return b, fmt.Errorf("host %s: %w", h, err)
		}
		b.links[h] = l
		b.closers = append(b.closers, func() error { l.h.Close(); return nil })
	}
	return b, nil
}

// close undoes everything in reverse.
func (b *rig) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	b.closers = nil
	return errors.Join(errs...)
}

func openLink(namespace string) (*hostLink, error) {
	ns, err := netns.GetFromName(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	links, err := h.LinkList()
	if err != nil {
		h.Close()
		return nil, err
	}
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback == 0 {
			return &hostLink{h, l.Attrs().Index}, nil
		}
	}
	h.Close()
	return nil, errors.New("no interface but loopback")
}

// packets are the frames that the host's kernel received and sent so far.
func (l *hostLink) packets() (received, sent uint64, err error) {
	link, err := l.h.LinkByIndex(l.index)
	if err != nil {
		return 0, 0, fmt.Errorf("interface counters: %w", err)
	}
	s := link.Attrs().Statistics
	return s.RxPackets, s.TxPackets, nil
}

func (b *rig) host(id model.NodeID) model.TestbedHost {
	h, _ := b.testbed.Host(id)
	return h
}

func (b *rig) command(ctx context.Context, id model.NodeID, argv ...string) *exec.Cmd {
	argv = append(append([]string{}, b.host(id).Exec...), argv...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// daemon starts a program on the host that runs until the testbed is closed.
func (b *rig) daemon(ctx context.Context, id model.NodeID, argv ...string) error {
	cmd := b.command(ctx, id, argv...)
	if err := proc.StartCommand(cmd); err != nil {
		return fmt.Errorf("host %s: %w", id, err)
	}
	b.closers = append(b.closers, func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		return nil
	})
	return nil
}

// inside runs f in the host's network namespace; sockets that f makes stay there.
func (b *rig) inside(id model.NodeID, f func() error) error {
	return labtest.In(b.lab.Netns(id), f)
}

// reach waits until the hosts reach each other, and so know each other's
// hardware addresses.
func (b *rig) reach(ctx context.Context) error {
	var err error
	for range 20 {
		if _, err = b.roundTrips(ctx, 1, time.Millisecond, 64); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("the hosts of lab %s do not reach each other: %w", b.lab.Name(), err)
}

// quiet makes the hosts' knowledge of each other permanent: no ARP from here
// on.
func (b *rig) quiet() error {
	for _, pair := range [][2]model.NodeID{{hostA, hostB}, {hostB, hostA}} {
		on, other := b.links[pair[0]], b.host(pair[1])
		mac, err := net.ParseMAC(other.MAC)
		if err != nil {
			return err
		}
		if err := on.h.NeighSet(&netlink.Neigh{LinkIndex: on.index, State: netlink.NUD_PERMANENT, IP: other.IP.AsSlice(), HardwareAddr: mac}); err != nil {
			return fmt.Errorf("host %s: permanent neighbour: %w", pair[0], err)
		}
	}
	return nil
}

// ourTestbed is a testbed whose switch netsplit controls.
type ourTestbed struct {
	*rig
	fabric *fabric.Fabric
	ctrl   *controller.Controller
	gate   atomic.Pointer[func(frame []byte)] // nil: everything passes

	refused atomic.Uint64 // packets that could not be released

	mu     sync.Mutex
	losses []string // told of at the gate port
}

// gateBy gates the pairs by a transport; everything passes.
func (o *ourTestbed) gateBy(ctx context.Context, pairs []fabric.Pair, by model.Gate) error {
	o.gate.Store(nil)
	if err := o.fabric.UseGate(ctx, by); err != nil {
		return err
	}
	return o.fabric.SetTaps(ctx, pairs, nil)
}

func (o *ourTestbed) gateLosses(ctx context.Context) ([]string, error) {
	err := o.fabric.CheckGate(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.losses), err
}

func newOurTestbed(ctx context.Context) (*ourTestbed, error) {
	ctrl, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	b, err := newTestbed(ctx, "ours", "tcp:"+ctrl.Addr().String())
	if err != nil {
		return nil, errors.Join(err, ctrl.Close())
	}
	o := &ourTestbed{rig: b, ctrl: ctrl}
	fail := func(err error) (*ourTestbed, error) { return nil, errors.Join(err, o.close()) }
	b.closers = append(b.closers, ctrl.Close)
	o.fabric, err = fabric.New(fabric.Config{Testbed: b.testbed, Controller: ctrl,
		Events: fabric.Events{GateFault: func(_ model.DatapathID, err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.losses = append(o.losses, err.Error())
		}},
		PacketIn: func(_ model.NodeID, _ time.Time, frame []byte) {
			if f := o.gate.Load(); f != nil {
				(*f)(frame)
				return
			}
			// Where more comes than the switch takes back: a run would end as unknown.
			if o.fabric.Release(frame, "") != nil {
				o.refused.Add(1)
			}
		}})
	if err != nil {
		return fail(err)
	}
	b.closers = append(b.closers, o.fabric.Close)
	wctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := o.fabric.Ready(wctx); err != nil {
		return fail(err)
	}
	if err := o.reach(ctx); err != nil {
		return fail(err)
	}
	if err := o.quiet(); err != nil {
		return fail(err)
	}
	return o, nil
}

func (b *rig) agents(ctx context.Context) (map[model.NodeID]*agent.Client, error) {
	out := map[model.NodeID]*agent.Client{}
	for _, id := range theHosts {
		a, err := agent.Start(ctx, b.host(id), b.self)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, a.Close)
		out[id] = a
	}
	return out, nil
}
