package run

import (
	"context"
	"fmt"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/testbed/agent"
)

// portsRead counts what a run reads of the target's ports, in their order in the target
// file.
type portsRead struct {
	nodes map[model.NodeID]bool
	at    map[model.Proto]map[uint16]*record.PortRead
	all   []*record.PortRead
}

func newPortsRead(t *model.Target) *portsRead {
	p := &portsRead{nodes: map[model.NodeID]bool{}, at: map[model.Proto]map[uint16]*record.PortRead{model.ProtoTCP: {}, model.ProtoUDP: {}}}
	for _, n := range t.Nodes {
		p.nodes[n] = true
	}
	for _, pr := range t.Protocols {
		proto := model.ProtoTCP
		if pr.Transport == "udp" {
			proto = model.ProtoUDP
		}
		r := &record.PortRead{Transport: pr.Transport, Port: pr.Port}
		p.at[proto][pr.Port] = r
		p.all = append(p.all, r)
	}
	return p
}

// passed counts a packet that reaches its receiver, and of which so many bytes of payload
// were read, to both of its ports; to one that both ends have, once.
func (p *portsRead) passed(pk *model.Packet, payload int, held bool) {
	if p == nil || payload == 0 {
		return
	}
	add := func(port uint16) {
		r := p.at[pk.Proto][port]
		if r == nil {
			return
		}
		r.Read += int64(payload)
		if held {
			r.Held += int64(payload)
		}
		if p.nodes[pk.From] && p.nodes[pk.To] {
			r.Nodes += int64(payload)
		}
	}
	add(pk.Dst.Port())
	if pk.Src.Port() != pk.Dst.Port() {
		add(pk.Src.Port())
	}
}

func (p *portsRead) result() []record.PortRead {
	out := make([]record.PortRead, 0, len(p.all))
	for _, r := range p.all {
		out = append(out, *r)
	}
	return out
}

// arrivals is what had come to the target's hosts when they were asked.
type arrivals struct {
	bytes [][]int64 // by host, then port
	lost  []uint64  // packets that a host's agent missed, by host
	err   error
}

func (r *run) arrivals(ctx context.Context) arrivals {
	var ports []agent.ServicePort
	for _, p := range r.target.Protocols {
		ports = append(ports, agent.ServicePort{Transport: p.Transport, Port: p.Port})
	}
	var a arrivals
	for _, h := range r.procs.Hosts() {
		bytes, lost, err := r.c.Testbed.PortBytes(ctx, h, ports)
		if err != nil {
			a.err = fmt.Errorf("host %s could not say what arrived: %w", h, err)
			return a
		}
		a.bytes, a.lost = append(a.bytes, bytes), append(a.lost, lost)
	}
	return a
}

// portsRead is what was read of each port, and what of it arrived since before. What comes
// while the hosts are asked counts as not read, so they are asked again until nothing is
// missing, for two seconds at most.
func (r *run) portsRead(ctx context.Context, before arrivals) []record.PortRead {
	read := func() []record.PortRead {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.ports.result()
	}
	enough := time.After(2 * time.Second)
	return portsArrived(read, before, func() arrivals { return r.arrivals(ctx) }, func() bool {
		select {
		case <-ctx.Done():
			return false
		case <-enough:
			return false
		case <-time.After(portsAgain):
			return true
		}
	})
}

// portsAgain is how long a packet that came may take until it is read.
const portsAgain = 50 * time.Millisecond

// portsArrived asks what arrived until all of it was read, or wait says that it is enough.
func portsArrived(read func() []record.PortRead, before arrivals, ask func() arrivals, wait func() bool) []record.PortRead {
	for {
		out, missing := read(), false
		after := ask()
		for i := range out {
			out[i].Arrived, out[i].Trouble = before.to(after, i)
			out[i].Known = out[i].Trouble == ""
			missing = missing || out[i].Known && out[i].Arrived > out[i].Read
		}
		if !missing || !wait() {
			return out
		}
	}
}

// to is what has arrived of a port between two moments, or why nobody knows.
func (a arrivals) to(b arrivals, port int) (n int64, trouble string) {
	for _, err := range []error{a.err, b.err} {
		if err != nil {
			return 0, err.Error()
		}
	}
	if len(a.bytes) != len(b.bytes) {
		return 0, "nobody counted before the target started"
	}
	for h := range a.bytes {
		d := b.bytes[h][port] - a.bytes[h][port]
		switch {
		case d < 0 || b.lost[h] < a.lost[h]:
			return 0, "the agent of a host was started again meanwhile"
		case b.lost[h] > a.lost[h]:
			return 0, fmt.Sprintf("the agent of a host missed %d packets", b.lost[h]-a.lost[h])
		}
		n += d
	}
	return n, ""
}
