package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"netsplit/model"
	"netsplit/testbed/agent"
)

const (
	leakUDP  = 5000 // datagrams a second
	leakTCP  = 1000 // writes a second, one segment each
	cutTime  = 12 * time.Millisecond
	tcpPort  = 7000
	maxStall = 3 * time.Second // of the TCP flow after a heal
	// block is how many cuts of one kind come in a row, before those of the
	// other kind.
	block = 50
)

// window is the time between a fence behind a cut, answered, and its heal,
// decided, and how many packets the hosts sent in it.
type window struct {
	from, to time.Time
	wanted   int
}

// leakage is what came of a number of cuts.
type leakage struct {
	cuts, leaky  int // cuts; those during which a packet arrived
	packets      int // that arrived all the same
	wanted       int // that the hosts sent meanwhile
	worst        time.Duration
	idleTCP      int // cuts before which the TCP flow had not come back
	sinceBarrier []time.Duration
}

// last is how long after a cut its last leaked packet came: p50 and greatest in ms.
func (l *leakage) last() string {
	if len(l.sinceBarrier) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f, %.2f", millis(quantile(l.sinceBarrier, .5)), millis(l.worst))
}

// leaks makes n cuts at the gate by either transport and n by drop rule and
// barrier, in turn, and counts what arrives at both hosts while they are in force: the agents there
// go by the kernel's time of arrival and know nothing of the controller.
func leaks(ctx context.Context, b *ourTestbed, n int, say func(string, ...any)) ([]row, error) {
	agents, err := b.agents(ctx)
	if err != nil {
		return nil, err
	}
	send, err := b.newSender(hostA, hostB)
	if err != nil {
		return nil, err
	}
	flow, err := b.newFlow()
	if err != nil {
		return nil, err
	}
	defer flow.close()

	g := &gateOwner{b: b}
	decide := g.packet
	gate := func(by model.Gate) func() error {
		return func() error {
			if err := b.gateBy(ctx, thePair, by); err != nil {
				return err
			}
			b.gate.Store(&decide)
			return nil
		}
	}
	kinds := []*struct {
		name  string
		total leakage
		cut   func(context.Context) (window, error)
		ready func() error
	}{
		{name: "gate port", cut: g.cut, ready: gate(model.GateByPort)},
		{name: "packet-in gate", cut: g.cut, ready: gate(model.GateByPacketIn)},
		{name: "drop rule + barrier", cut: b.dropRule, ready: func() error { return b.fabric.SetTaps(ctx, nil, nil) }},
	}
	for done := 0; done < n; done += block {
		now := min(block, n-done)
		for _, k := range kinds {
			if err := k.ready(); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := b.oneBlock(ctx, now, send, flow, agents, k.cut, &k.total); err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
			say("cuts by %s: %d of %d, %d packets leaked in %d of them (%v)", k.name, k.total.cuts, n, k.total.packets, k.total.leaky,
				time.Since(began).Round(time.Millisecond))
		}
	}
	b.gate.Store(nil)
	if err := b.fabric.SetTaps(ctx, nil, nil); err != nil {
		return nil, err
	}
	port, in, drop := &kinds[0].total, &kinds[1].total, &kinds[2].total
	if port.wanted == 0 || in.wanted == 0 || drop.wanted == 0 {
		return nil, errors.New("nothing wanted to cross a cut: the flows did not run")
	}
	text := func(l *leakage) string {
		s := fmt.Sprintf("%d in %d of %d cuts (%d wanted)", l.packets, l.leaky, l.cuts, l.wanted)
		if l.idleTCP > 0 {
			s += fmt.Sprintf("; TCP at rest before %d", l.idleTCP)
		}
		return s
	}
	beside := func(name string, gate *leakage) row {
		return row{what: fmt.Sprintf("leaked packets, %s beside drop rule + barrier, UDP %d/s and TCP", name, leakUDP), ours: text(gate), beside: text(drop),
			ratio: fmt.Sprintf("%d : %d", gate.packets, drop.packets), goal: noneGoal + " cuts", met: none(seen{gate.cuts, gate.packets})}
	}
	return []row{
		beside("gate port", port), beside("packet-in gate", in),
		{what: "… ms to the last leaked packet, from the fence behind a gate port's cut; packet-in gate's; beside from a drop rule's barrier reply: p50, greatest of leaky cuts",
			ours: port.last() + "; " + in.last(), beside: drop.last()},
	}, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// oneBlock makes cuts one after the other, then asks the agents about them.
func (b *ourTestbed) oneBlock(ctx context.Context, n int, send *sender, flow *tcpFlow, agents map[model.NodeID]*agent.Client,
	cut func(context.Context) (window, error), into *leakage) error {
	var windows []window
	for len(windows) < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !flow.moving(ctx, maxStall) {
			into.idleTCP++
		}
		// One datagram load per cut, longer than the cut lasts, and over
		// before the next one.
		end, err := send.begin(order{Size: 200, Rate: leakUDP, Time: cutTime + 28*time.Millisecond})
		if err != nil {
			return err
		}
		time.Sleep(4*time.Millisecond + rand.N(8*time.Millisecond))
		w, err := cut(ctx)
		if err != nil {
			return err
		}
		into.wanted += w.wanted
		windows = append(windows, w)
		if _, err := end(); err != nil {
			return err
		}
	}
	for _, w := range windows {
		leaked := 0
		for _, to := range theHosts {
			from := hostA
			if to == hostA {
				from = hostB
			}
			c, err := agents[to].CountFrom(ctx, agent.Sender{Addrs: []netip.Addr{b.host(from).IP}}, w.from, w.to)
			if err != nil {
				return err
			}
			if c.Incomplete {
				return fmt.Errorf("the agent on host %s missed packets: the count would be worth nothing", to)
			}
			if c.Packets > 0 {
				last := c.Last.Sub(w.from)
				into.worst = max(into.worst, last)
				into.sinceBarrier = append(into.sinceBarrier, last)
			}
			leaked += c.Packets
		}
		into.cuts++
		into.packets += leaked
		if leaked > 0 {
			into.leaky++
		}
	}
	return nil
}

// gateOwner decides about held packets one by one, as a run does: under a lock,
// in order of arrival; a cut falls between two packets.
type gateOwner struct {
	b *ourTestbed

	mu      sync.Mutex
	armed   bool
	isCut   bool
	refused int
	did     chan struct{} // closed when the cut was decided
}

func (g *gateOwner) packet(frame []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.armed {
		g.armed, g.isCut = false, true
		close(g.did)
	}
	if g.isCut {
		g.refused++
		return
	}
	_ = g.b.fabric.Release(frame, "") // fails only with the connection
}

// cut cuts at the next packet, waits for the fence behind it, and heals.
func (g *gateOwner) cut(ctx context.Context) (w window, err error) {
	g.mu.Lock()
	g.armed, g.did = true, make(chan struct{})
	did := g.did
	g.mu.Unlock()
	select {
	case <-did:
	case <-time.After(5 * time.Second):
		return w, errors.New("no packet came to the gate for 5 s")
	case <-ctx.Done():
		return w, ctx.Err()
	}
	if err := g.b.fabric.Fence(ctx); err != nil {
		return w, err
	}
	if w, err = g.b.hold(); err != nil {
		return w, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w.to = time.Now() // before a packet may pass again
	g.isCut = false
	return w, nil
}

func (b *ourTestbed) dropRule(ctx context.Context) (w window, err error) {
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{hostA}, {hostB}}}
	if err := b.fabric.Cut(ctx, 1, p); err != nil {
		return w, err
	}
	if w, err = b.hold(); err != nil {
		return w, err
	}
	w.to = time.Now()
	return w, b.fabric.Heal(ctx, 1)
}

// hold lets the time of a cut pass; the window is not closed yet.
func (b *rig) hold() (w window, err error) {
	w.from = time.Now()
	for i, sign := range []int{-1, 1} {
		if i == 1 {
			time.Sleep(cutTime)
		}
		for _, l := range b.links {
			_, sent, err := l.packets()
			if err != nil {
				return w, err
			}
			w.wanted += sign * int(sent)
		}
	}
	return w, nil
}

// tcpFlow is a steady TCP flow from host a to host b.
type tcpFlow struct {
	got  atomic.Int64 // bytes
	stop chan struct{}
	work sync.WaitGroup
	l    net.Listener
	c    net.Conn
}

// newFlow starts the flow. The hosts' least retransmission time is set to
// 10 ms (ip-route(8), rto_min): else it would be at rest for most of the time
// between two cuts.
func (b *rig) newFlow() (*tcpFlow, error) {
	for _, id := range theHosts {
		link := b.links[id]
		l, err := link.h.LinkByIndex(link.index)
		if err != nil {
			return nil, err
		}
		routes, err := link.h.RouteList(l, netlink.FAMILY_V4)
		if err != nil {
			return nil, fmt.Errorf("host %s: routes: %w", id, err)
		}
		for i := range routes {
			routes[i].RtoMin, routes[i].RtoMinLock = 10, true
			if err := link.h.RouteReplace(&routes[i]); err != nil {
				return nil, fmt.Errorf("host %s: rto_min of route %s: %w", id, routes[i].Dst, err)
			}
		}
	}
	f := &tcpFlow{stop: make(chan struct{})}
	addr := netip.AddrPortFrom(b.host(hostB).IP, tcpPort).String()
	if err := b.inside(hostB, func() (err error) { f.l, err = net.Listen("tcp4", addr); return err }); err != nil {
		return nil, err
	}
	f.work.Go(func() {
		c, err := f.l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			f.got.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	if err := b.inside(hostA, func() (err error) { f.c, err = net.DialTimeout("tcp4", addr, 5*time.Second); return err }); err != nil {
		f.l.Close()
		f.work.Wait()
		return nil, err
	}
	f.work.Go(func() {
		defer f.c.Close()
		t := time.NewTicker(time.Second / leakTCP)
		defer t.Stop()
		data := make([]byte, 200)
		for {
			select {
			case <-f.stop:
				return
			case <-t.C:
			}
			if _, err := f.c.Write(data); err != nil {
				return
			}
		}
	})
	return f, nil
}

// moving waits until bytes arrive; false if none did within the limit.
func (f *tcpFlow) moving(ctx context.Context, limit time.Duration) bool {
	had := f.got.Load()
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if f.got.Load() > had {
			return true
		}
	}
	return false
}

func (f *tcpFlow) close() {
	close(f.stop)
	f.c.SetDeadline(time.Now()) // a write that waits for a peer's window
	f.l.Close()
	f.work.Wait()
}
