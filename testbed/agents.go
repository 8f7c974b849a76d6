package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netsplit/model"
	"netsplit/testbed/agent"
)

func (b *Testbed) startAgents(ctx context.Context) error {
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
	mu       sync.Mutex
	on       map[model.NodeID]*agent.Client
	starting map[model.NodeID]*sync.Mutex // one at a time is started on a host
}

// start locks a host against another start of its agent; call what it returns.
func (a *agents) start(h model.NodeID) (done func()) {
	a.mu.Lock()
	turn := a.starting[h]
	if turn == nil {
		turn = new(sync.Mutex)
		a.starting[h] = turn
	}
	a.mu.Unlock()
	turn.Lock()
	return turn.Unlock
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

func (b *Testbed) revive(ctx context.Context, name model.NodeID) (*agent.Client, error) {
	defer b.agents.start(name)()
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

// How long to wait before an agent is started again: not at all the first time, then
// reviveAfter, doubled up to reviveAtMost. An agent that lived for reviveAtMost starts this
// afresh. A host may be booting, or end every agent at once.
const (
	reviveAfter  = time.Second
	reviveAtMost = 15 * time.Second
)

// tend starts the agent of a host again whenever it ends, until ctx ends. Without an
// agent nothing can be cut, healed or proved there. Nobody counts what passes meanwhile:
// counts over that time say so.
func (b *Testbed) tend(ctx context.Context, name model.NodeID, tell func(model.NodeID, error)) {
	wait, since := time.Duration(0), time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-b.agents.of(name).Ended():
		}
		why := b.agents.of(name).Err()
		if why == nil { // a caller that needed it has started it again
			continue
		}
		if time.Since(since) > reviveAtMost {
			wait = 0
		}
		tell(name, why)
		for ctx.Err() == nil {
			_ = pause(ctx, wait)
			wait = min(max(2*wait, reviveAfter), reviveAtMost)
			_, err := b.revive(ctx, name)
			if err == nil {
				since = time.Now()
				tell(name, nil)
				break
			}
			if ctx.Err() == nil {
				b.log.Warn("an agent could not be started again", "host", name, "err", err)
			}
		}
	}
}

// Ask runs one probe on a host, through the host's agent where it can.
func (b *Testbed) Ask(ctx context.Context, host model.NodeID, p model.Probe) (string, error) {
	if len(p.Command) > 0 {
		h, ok := b.Testbed.Host(host)
		if !ok {
			return "", fmt.Errorf("no host %q in testbed %s", host, b.Testbed.Name)
		}
		limit := p.Limit
		if limit == 0 {
			limit = time.Second
		}
		return agent.Command(ctx, h, p.Command, limit)
	}
	a := b.agents.of(host)
	if a == nil {
		return "", fmt.Errorf("no agent on host %q: only command probes can be asked there", host)
	}
	answer, _, err := a.Probe(ctx, p)
	return answer, err
}

// ArrivalsOf says when packets arrived at a host, by their digests.
func (b *Testbed) ArrivalsOf(ctx context.Context, host model.NodeID, digests []uint64, from time.Time) ([][]time.Time, error) {
	a := b.agents.of(host)
	if a == nil {
		return nil, fmt.Errorf("no agent on host %s", host)
	}
	return a.ArrivalsOf(ctx, digests, from)
}

// PortBytes asks a host how many bytes of payload have come to it by each of the ports,
// and how many packets its agent missed, since the agent began.
func (b *Testbed) PortBytes(ctx context.Context, host model.NodeID, ports []agent.ServicePort) ([]int64, uint64, error) {
	a := b.agents.of(host)
	if a == nil {
		return nil, 0, fmt.Errorf("no agent on host %s", host)
	}
	return a.PortBytes(ctx, ports)
}

// Arrived counts the packets of a link, or only some traffic of it, that arrived at the
// receiving host between two moments, and returns the time of the first that arrived after
// the second moment. Broadcasts and multicasts of the sender count.
//
// The host's clock is known only within an error. If packets arrived so close to either
// moment that their side is not known, Arrived also returns an error; the count and the
// time are valid without them. That does not concern packets that the gate released.
func (b *Testbed) Arrived(ctx context.Context, l model.Link, only []model.Traffic, from, to time.Time, released ...agent.Released) (int, time.Time, error) {
	a := b.agents.of(l.Dst)
	src, ok := b.Testbed.Host(l.Src)
	if a == nil || !ok {
		return 0, time.Time{}, fmt.Errorf("no agent on host %s", l.Dst)
	}
	n, unsure := 0, error(nil)
	sender := agent.Sender{Addrs: []netip.Addr{src.IP}, MAC: b.macs[l.Src], Only: only, Released: released}
	if to.After(from) {
		c, err := a.CountFrom(ctx, sender, from, to)
		if err != nil {
			return 0, time.Time{}, err
		}
		if c.Incomplete {
			return c.Packets + c.Group, time.Time{}, fmt.Errorf("the agent on host %s missed packets", l.Dst)
		}
		n = c.Packets + c.Group
		if c.Unsure > 0 {
			unsure = fmt.Errorf("host %s: %d packets arrived so close to a cut, heal or count that its clock, known to %v, does not tell on which side", l.Dst, c.Unsure, c.Within.Round(time.Microsecond))
		}
	}
	first, err := a.FirstFrom(ctx, sender, to)
	return n, first, errors.Join(unsure, err)
}

// seen says whether the probe packet, or another that looks like it and meets the same
// rule, has arrived over a link since then. It compares no bytes: routers change them.
func (b *Testbed) seen(ctx context.Context, l model.Link, s model.ProbePacket, since time.Time) (bool, error) {
	a := b.agents.of(l.Dst)
	src, ok := b.Testbed.Host(l.Src)
	if a == nil || !ok {
		return false, fmt.Errorf("no agent on host %s", l.Dst)
	}
	from := src.IP
	if s.V6 && from.Is4() {
		from = agent.LinkLocal(b.macs[l.Src])
	}
	first, err := a.FirstFrom(ctx, agent.Sender{Addrs: []netip.Addr{from}, Like: &s}, since)
	return !first.IsZero(), err
}

func (b *Testbed) emit(ctx context.Context, l model.Link, probePackets []model.ProbePacket) ([]bool, error) {
	a := b.agents.of(l.Src)
	if a == nil {
		return nil, fmt.Errorf("no agent on host %s", l.Src)
	}
	src, known := b.Testbed.Host(l.Src)
	dst, ok := b.Testbed.Host(l.Dst)
	if !ok || !known {
		return nil, fmt.Errorf("no host %q or %q", l.Src, l.Dst)
	}
	sent, err := a.Emit(ctx, src.IP, dst.IP, b.macs[l.Dst], probePackets)
	if errors.Is(err, agent.ErrGone) {
		err = fmt.Errorf("host %s: %w", l.Src, err)
	}
	return sent, err
}

func (b *Testbed) emitSome(ctx context.Context, l model.Link, probePackets []model.ProbePacket, due []bool) ([]bool, error) {
	var some []model.ProbePacket
	for i, is := range due {
		if is {
			some = append(some, probePackets[i])
		}
	}
	sent, err := b.emit(ctx, l, some)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(probePackets))
	for i, is := range due {
		if is {
			out[i], sent = sent[0], sent[1:]
		}
	}
	return out, nil
}
